//! A blocking socket with a read buffer, and its errors.

use std::io::{self, Read, Write};
use std::net::TcpStream;
use std::sync::Arc;
use std::time::Duration;

use super::address::{Address, Dialect};
use crate::cancel::CancelHandle;
use crate::tls::{TlsClient, TlsFailure, TlsStream};

/// The initial size of a read buffer. The answer of a range of 100 rows of 125 bytes fits, so that it needs one system
/// call.
const BUFFER_BYTES: usize = 32 * 1024;
/// The longest time to establish a connection.
const CONNECT_TIMEOUT: Duration = Duration::from_secs(10);

/// The reason why a statement or a connection failed.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum SqlError {
    /// The server refused, and the connection can be used.
    Refused {
        /// MySQL's error number or PostgreSQL's SQLSTATE.
        code: String,
        /// The server's text.
        message: String,
    },
    /// Nobody answers at the address.
    Unreachable(String),
    /// The first bytes are not of the protocol: another kind of server answers.
    OtherProtocol(String),
    /// The connection cannot be used any more.
    Lost(String),
}

impl SqlError {
    /// Whether the transaction must be repeated: deadlock (1213, 40P01), changed record (1020), lock wait timeout
    /// (1205), serialization failure (40001), and PostgreSQL's duplicate key (23505), when two transactions replace the
    /// same row. sysbench ignores these codes.
    pub fn is_retryable(&self) -> bool {
        matches!(self, Self::Refused { code, .. } if matches!(code.as_str(), "1213" | "1020" | "1205" | "40P01" | "40001" | "23505"))
    }

    /// The code of a refusal.
    pub fn code(&self) -> Option<&str> {
        match self {
            Self::Refused { code, .. } => Some(code),
            Self::Lost(_) | Self::OtherProtocol(_) | Self::Unreachable(_) => None,
        }
    }

    /// A text that is the same for the same cause, so that errors can be counted: the code with its meaning, without
    /// the server's keys and numbers.
    pub fn kind(&self) -> String {
        match self {
            Self::Refused { code, message } => format!("error {code}: {}", without_details(message)),
            Self::Lost(what) | Self::OtherProtocol(what) | Self::Unreachable(what) => what.clone(),
        }
    }
}

impl std::fmt::Display for SqlError {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Self::Refused { code, message } => write!(f, "error {code}: {message}"),
            Self::Lost(what) | Self::OtherProtocol(what) | Self::Unreachable(what) => f.write_str(what),
        }
    }
}

/// Replaces numbers and quoted parts of a message by `#`, because they vary.
fn without_details(message: &str) -> String {
    let mut text = String::new();
    let mut quote = None;
    for character in message.chars() {
        match (quote, character) {
            (Some(open), _) if character == open => quote = None,
            (Some(_), _) => {}
            (None, '\'' | '"' | '`') => {
                quote = Some(character);
                text.push('#');
            }
            (None, '0'..='9') if text.ends_with('#') => {}
            (None, '0'..='9') => text.push('#'),
            (None, _) => text.push(character),
        }
    }
    text
}

/// A socket that another thread may shut down.
#[derive(Debug)]
struct SharedSocket(Arc<TcpStream>);

impl Read for SharedSocket {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        (&*self.0).read(buffer)
    }
}

impl Write for SharedSocket {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        (&*self.0).write(bytes)
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

/// The socket of one connection.
#[derive(Debug)]
pub(super) struct Link {
    socket: Arc<TcpStream>,
    /// TLS over the socket; `None` without TLS.
    tls: Option<Box<TlsStream<SharedSocket>>>,
    buffer: Vec<u8>,
    start: usize,
    end: usize,
    pub(super) bytes_in: u64,
    pub(super) bytes_out: u64,
}

impl Link {
    /// Connects. No answer may take longer than `silence`.
    pub(super) fn connect(address: &Address, silence: Duration) -> Result<Self, SqlError> {
        let mut last = String::new();
        for socket in address.resolve().map_err(SqlError::Unreachable)? {
            match TcpStream::connect_timeout(&socket, CONNECT_TIMEOUT) {
                Ok(stream) => return Self::over(stream, silence).map_err(|error| lost(&error)),
                Err(error) => last = connect_failure(&error, &socket.to_string(), address.dialect),
            }
        }
        Err(SqlError::Unreachable(last))
    }

    fn over(stream: TcpStream, silence: Duration) -> io::Result<Self> {
        stream.set_nodelay(true)?;
        stream.set_read_timeout(Some(silence))?;
        stream.set_write_timeout(Some(silence))?;
        let buffer = vec![0; BUFFER_BYTES];
        let socket = Arc::new(stream);
        Ok(Self { socket, tls: None, buffer, start: 0, end: 0, bytes_in: 0, bytes_out: 0 })
    }

    /// Goes on with TLS, after the server has agreed to it.
    pub(super) fn start_tls(&mut self, client: &TlsClient) -> Result<(), SqlError> {
        if self.start < self.end {
            // What came before the handshake is not protected; it must not count as an answer.
            return Err(SqlError::Lost("the server sent more than its agreement to TLS".to_owned()));
        }
        let stream = TlsStream::handshake(client, SharedSocket(Arc::clone(&self.socket)));
        let stream = stream.map_err(|error| match TlsFailure::of(&error) {
            Some(failure) => SqlError::Unreachable(failure.to_string()),
            None => lost(&error),
        })?;
        self.tls = Some(Box::new(stream));
        Ok(())
    }

    /// Whether the connection has TLS.
    pub(super) fn has_tls(&self) -> bool {
        self.tls.is_some()
    }

    pub(super) fn cancel_handle(&self) -> CancelHandle {
        CancelHandle::new(&self.socket)
    }

    pub(super) fn send(&mut self, bytes: &[u8]) -> Result<(), SqlError> {
        self.bytes_out += bytes.len() as u64;
        let sent = match &mut self.tls {
            None => (&*self.socket).write_all(bytes),
            Some(stream) => stream.write_all(bytes).and_then(|()| stream.flush()),
        };
        sent.map_err(|error| lost(&error))
    }

    /// Waits until `count` bytes have arrived; they are `self.bytes()[..count]`.
    #[inline]
    pub(super) fn need(&mut self, count: usize) -> Result<(), SqlError> {
        if self.end - self.start >= count {
            return Ok(());
        }
        self.read_until(count)
    }

    fn read_until(&mut self, count: usize) -> Result<(), SqlError> {
        if self.start == self.end {
            (self.start, self.end) = (0, 0);
        } else if self.start + count > self.buffer.len() {
            self.buffer.copy_within(self.start..self.end, 0);
            (self.start, self.end) = (0, self.end - self.start);
        }
        if count > self.buffer.len() {
            self.buffer.resize(count, 0);
        }
        while self.end - self.start < count {
            let read = match &mut self.tls {
                None => (&*self.socket).read(&mut self.buffer[self.end..]),
                Some(stream) => stream.read(&mut self.buffer[self.end..]),
            };
            match read {
                Ok(0) => return Err(SqlError::Lost("connection closed by the server".to_owned())),
                Ok(some) => {
                    self.end += some;
                    self.bytes_in += some as u64;
                }
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                Err(error) => return Err(lost(&error)),
            }
        }
        Ok(())
    }

    /// The bytes that were read and not used yet.
    #[inline]
    pub(super) fn bytes(&self) -> &[u8] {
        &self.buffer[self.start..self.end]
    }

    #[inline]
    pub(super) fn used(&mut self, count: usize) {
        self.start += count;
    }
}

fn connect_failure(error: &io::Error, socket: &str, dialect: Dialect) -> String {
    let server = match dialect {
        Dialect::Mysql => "MySQL or MariaDB",
        Dialect::Postgres => "PostgreSQL",
    };
    match error.kind() {
        io::ErrorKind::ConnectionRefused => {
            format!(
                "nobody listens at {socket} (connection refused); start {server} there or name another target"
            )
        }
        io::ErrorKind::TimedOut => format!("{socket} does not answer within {} s", CONNECT_TIMEOUT.as_secs()),
        _ => format!("connecting to {socket}: {error}"),
    }
}

fn lost(error: &io::Error) -> SqlError {
    SqlError::Lost(match error.kind() {
        io::ErrorKind::WouldBlock | io::ErrorKind::TimedOut => {
            "connection lost: the server does not answer".to_owned()
        }
        io::ErrorKind::ConnectionReset | io::ErrorKind::BrokenPipe => {
            "connection lost: reset by the server".to_owned()
        }
        _ => format!("connection lost: {error}"),
    })
}

#[cfg(test)]
mod tests {
    use std::net::TcpListener;
    use std::thread;

    use super::*;

    fn pair() -> (Link, TcpStream) {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let port = listener.local_addr().unwrap().port();
        let address = Address::parse(&format!("mysql://127.0.0.1:{port}/")).unwrap();
        let link = Link::connect(&address, Duration::from_millis(200)).unwrap();
        (link, listener.accept().unwrap().0)
    }

    #[test]
    fn long_answers_grow_the_buffer_and_keep_what_was_not_used() {
        let (mut link, mut server) = pair();
        let bytes: Vec<u8> = (0..200_000_u32).map(|n| n as u8).collect();
        let sent = bytes.clone();
        let writer = thread::spawn(move || server.write_all(&sent));
        link.need(10).unwrap();
        assert_eq!(link.bytes()[..10], bytes[..10]);
        link.used(7);
        link.need(150_000).unwrap();
        assert_eq!(link.bytes()[..150_000], bytes[7..150_007]);
        link.used(150_000);
        link.need(49_993).unwrap();
        assert_eq!(link.bytes(), &bytes[150_007..]);
        writer.join().unwrap().unwrap();
        assert_eq!(link.bytes_in, 200_000);
    }

    #[test]
    fn silence_and_cuts_end_the_wait() {
        let (mut link, server) = pair();
        assert_eq!(link.need(1).unwrap_err().to_string(), "connection lost: the server does not answer");
        let cancel_handle = link.cancel_handle();
        let waiting = thread::spawn(move || link.need(1));
        cancel_handle.cancel();
        assert!(matches!(waiting.join().unwrap(), Err(SqlError::Lost(_))));
        drop(server);
    }

    #[test]
    fn errors_of_one_cause_have_one_text() {
        let refused =
            |message: &str| SqlError::Refused { code: "1062".to_owned(), message: message.to_owned() };
        let kind = refused("Duplicate entry '17' for key 'PRIMARY'").kind();
        assert_eq!(kind, refused("Duplicate entry '9 x' for key 'k_3'").kind());
        assert_eq!(kind, "error 1062: Duplicate entry # for key #");
    }

    #[test]
    fn nobody_listening_is_said_so() {
        let port = TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap().port();
        let address = Address::parse(&format!("postgres://127.0.0.1:{port}/")).unwrap();
        let error = Link::connect(&address, Duration::from_secs(1)).unwrap_err().to_string();
        assert!(error.contains("nobody listens") && error.contains("PostgreSQL"), "{error}");
    }
}
