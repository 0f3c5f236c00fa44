//! A connection: one request and its answer after another.

use std::io::{self, Read as _, Write as _};
use std::net::{TcpStream, ToSocketAddrs as _};
use std::time::Duration;

use super::protocol::{HEADER_BYTES, Header, ProtocolError, Request, Response, Rows};
use crate::endpoint::Endpoint;
use crate::probe::error::ProbeError;

const CONNECT_TIMEOUT: Duration = Duration::from_secs(10);
const ANSWER_TIMEOUT: Duration = Duration::from_secs(30);

/// Codes of errors (section 9 of the specification).
const BAD_CREDENTIALS: i32 = 0x0100;
const UNAUTHORIZED: i32 = 0x2100;
const INVALID: i32 = 0x2200;

/// A connection that takes statements.
#[derive(Debug)]
pub(super) struct Connection {
    stream: TcpStream,
    address: String,
    /// The names of the options that the server supports.
    pub(super) supported: Vec<String>,
}

/// A connection or a statement that has failed.
#[derive(Debug, thiserror::Error)]
pub(super) enum ConnectionError {
    /// No connection, or no answer.
    #[error(
        "{address}: {cause}. Look at host and port (native_transport_port, 9042 by default), and whether the server runs"
    )]
    Io {
        /// Host and port.
        address: String,
        cause: io::Error,
    },
    /// Another server.
    #[error("{address} does not speak Cassandra's native protocol without TLS: {error}")]
    Protocol {
        /// Host and port.
        address: String,
        error: ProtocolError,
    },
    /// The server wants a password, or another one.
    #[error("{0}")]
    Login(String),
    /// The role may not read a table.
    #[error("the server refuses it: {0}")]
    Unauthorized(String),
    /// The version has no such table or column.
    #[error("this version does not have it: {0}")]
    Invalid(String),
    /// Another error of the server.
    #[error("the server answers with error {code:#06x}: {message}")]
    Server { code: i32, message: String },
}

impl ConnectionError {
    /// The error of the probe.
    pub(super) fn into_probe_error(self, target: &str, what: &'static str) -> ProbeError {
        let (target, reason) = (target.to_owned(), self.to_string());
        match self {
            Self::Io { .. } => ProbeError::Connect { target, reason },
            Self::Login(_) => ProbeError::Login { target, reason },
            Self::Protocol { .. } => {
                ProbeError::OtherProduct { target, expected: "a node of Cassandra", reason }
            }
            Self::Unauthorized(_) => ProbeError::Permission {
                target,
                what,
                reason,
                remedy: "GRANT SELECT on this table allows it",
            },
            Self::Invalid(_) | Self::Server { .. } => ProbeError::Protocol { target, what, reason },
        }
    }
}

impl Connection {
    /// Connects, and logs in if the server wants it.
    pub(super) fn open(endpoint: &Endpoint) -> Result<Self, ConnectionError> {
        let address = format!("{}:{}", endpoint.host, endpoint.port);
        let stream =
            open_stream(endpoint).map_err(|cause| ConnectionError::Io { address: address.clone(), cause })?;
        let mut connection = Self { stream, address, supported: Vec::new() };
        match connection.ask(Request::Options)? {
            Response::Supported(names) => connection.supported = names,
            other => return Err(connection.unexpected("OPTIONS", &other)),
        }
        match connection.ask(Request::Startup)? {
            Response::Ready => Ok(connection),
            Response::Authenticate(authenticator) => {
                connection.log_in(&authenticator, endpoint)?;
                Ok(connection)
            }
            other => Err(connection.unexpected("STARTUP", &other)),
        }
    }

    fn log_in(&mut self, authenticator: &str, endpoint: &Endpoint) -> Result<(), ConnectionError> {
        let Some((user, password)) = &endpoint.login else {
            let what = format!("{}: the server wants a password ({authenticator})", self.address);
            return Err(ConnectionError::Login(what));
        };
        match self.ask(Request::AuthResponse { user, password })? {
            Response::AuthSuccess => Ok(()),
            other => Err(self.unexpected("the password", &other)),
        }
    }

    /// The rows of a statement.
    pub(super) fn rows(&mut self, statement: &str) -> Result<Rows, ConnectionError> {
        match self.ask(Request::Query(statement))? {
            Response::Rows(rows) => Ok(rows),
            other => Err(self.unexpected(statement, &other)),
        }
    }

    /// Sends a request and reads the answer. An answer that is an error becomes one.
    fn ask(&mut self, request: Request<'_>) -> Result<Response, ConnectionError> {
        let io = |cause, address: &str| ConnectionError::Io { address: address.to_owned(), cause };
        let protocol =
            |error, address: &str| ConnectionError::Protocol { address: address.to_owned(), error };
        self.stream.write_all(&request.frame()).map_err(|cause| io(cause, &self.address))?;
        let mut header = [0; HEADER_BYTES];
        self.stream.read_exact(&mut header).map_err(|cause| io(cause, &self.address))?;
        let header = Header::read(header).map_err(|error| protocol(error, &self.address))?;
        let mut body = vec![0; header.body_bytes];
        self.stream.read_exact(&mut body).map_err(|cause| io(cause, &self.address))?;
        match Response::read(header, &body).map_err(|error| protocol(error, &self.address))? {
            Response::Error { code, message } => Err(match code {
                BAD_CREDENTIALS => ConnectionError::Login(format!("{}: {message}", self.address)),
                UNAUTHORIZED => ConnectionError::Unauthorized(message),
                INVALID => ConnectionError::Invalid(message),
                code => ConnectionError::Server { code, message },
            }),
            response => Ok(response),
        }
    }

    fn unexpected(&self, what: &str, response: &Response) -> ConnectionError {
        let message =
            format!("{}: an answer to {what} that this program does not expect: {response:?}", self.address);
        ConnectionError::Server { code: 0, message: message.chars().take(300).collect() }
    }
}

/// The first address of the host that accepts the connection.
fn open_stream(endpoint: &Endpoint) -> io::Result<TcpStream> {
    let mut last = io::Error::new(io::ErrorKind::NotFound, "the host has no address");
    for address in (endpoint.host.as_str(), endpoint.port).to_socket_addrs()? {
        match TcpStream::connect_timeout(&address, CONNECT_TIMEOUT) {
            Ok(stream) => {
                stream.set_read_timeout(Some(ANSWER_TIMEOUT))?;
                stream.set_write_timeout(Some(ANSWER_TIMEOUT))?;
                return Ok(stream);
            }
            Err(error) => last = error,
        }
    }
    Err(last)
}
