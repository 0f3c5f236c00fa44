//! A blocking connection to a service of one server: it carries out one call at a time.

use std::io::{ErrorKind, Read as _, Write as _};
use std::net::TcpStream;
use std::sync::Arc;
use std::time::Duration;

use clients::target_url::addresses;
use prost::Message;

use super::exception::Exception;
use super::frame::{self, Answer};

/// The initial size of a read buffer: the answer of a get fits.
const BUFFER_BYTES: usize = 16 * 1024;
/// The longest time to establish a connection.
const CONNECT_TIMEOUT: Duration = Duration::from_secs(10);

/// The address of a server as HBase names it.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(super) struct Server {
    /// Host name or address.
    pub(super) host: String,
    /// TCP port of its RPC.
    pub(super) port: u16,
}

impl std::fmt::Display for Server {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{}:{}", self.host, self.port)
    }
}

/// The reason why a call failed.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum CallError {
    /// The server answered with an exception; the connection can be used.
    Exception(Exception),
    /// The connection cannot be used any more.
    Lost(String),
}

impl std::fmt::Display for CallError {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Self::Exception(exception) => exception.fmt(f),
            Self::Lost(why) => f.write_str(why),
        }
    }
}

/// The user of this process: HBase trusts the name that a client gives.
pub(super) fn user() -> String {
    std::env::var("USER").ok().filter(|name| !name.is_empty()).unwrap_or_else(|| "tacho".to_owned())
}

/// Connects to a server. No answer may take longer than `silence`.
pub(super) fn connect(server: &Server, silence: Duration) -> Result<TcpStream, String> {
    let mut last = String::new();
    for socket in addresses(&server.host, server.port)? {
        let opened = TcpStream::connect_timeout(&socket, CONNECT_TIMEOUT).and_then(|stream| {
            stream.set_nodelay(true)?;
            stream.set_read_timeout(Some(silence))?;
            stream.set_write_timeout(Some(silence))?;
            Ok(stream)
        });
        match opened {
            Ok(stream) => return Ok(stream),
            Err(error) => last = format!("no connection to {server}: {error}"),
        }
    }
    Err(last)
}

#[derive(Debug)]
pub(super) struct Connection {
    stream: Arc<TcpStream>,
    request: Vec<u8>,
    answers: Vec<u8>,
    /// The part of `answers` that was received and not taken.
    start: usize,
    end: usize,
    call_id: u32,
    timeout_ms: u32,
    /// Bytes of requests.
    pub(super) bytes_out: u64,
    /// Bytes of answers.
    pub(super) bytes_in: u64,
}

impl Connection {
    /// Connects to a service of a server, such as `ClientService`.
    pub(super) fn open(server: &Server, service: &str, silence: Duration) -> Result<Self, CallError> {
        let stream = connect(server, silence).map_err(CallError::Lost)?;
        let mut request = Vec::new();
        // The first call sends the header of the connection too: a server does not answer it.
        frame::open(&mut request, service, &user());
        Ok(Self {
            stream: Arc::new(stream),
            request,
            answers: vec![0; BUFFER_BYTES],
            start: 0,
            end: 0,
            call_id: 0,
            timeout_ms: u32::try_from(silence.as_millis()).unwrap_or(u32::MAX),
            bytes_out: 0,
            bytes_in: 0,
        })
    }

    /// The socket, to cancel a wait.
    pub(super) fn stream(&self) -> &Arc<TcpStream> {
        &self.stream
    }

    /// Carries out a call without cells in its request.
    pub(super) fn call<M: Message + Default>(
        &mut self,
        method: &str,
        message: &impl Message,
    ) -> Result<M, CallError> {
        self.send(method, message, &[])?;
        self.receive()?.message().map_err(CallError::Lost)
    }

    /// Sends a request. [`Self::receive`] waits for its answer.
    pub(super) fn send(
        &mut self,
        method: &str,
        message: &impl Message,
        cells: &[u8],
    ) -> Result<(), CallError> {
        self.call_id = self.call_id.wrapping_add(1) & (i32::MAX as u32);
        frame::request(&mut self.request, (self.call_id, self.timeout_ms), method, message, cells);
        let sent = (&*self.stream).write_all(&self.request);
        self.bytes_out += self.request.len() as u64;
        self.request.clear();
        sent.map_err(|error| CallError::Lost(lost(&error)))
    }

    /// Waits for the answer of the latest request.
    pub(super) fn receive(&mut self) -> Result<Answer<'_>, CallError> {
        let bytes = self.fill().map_err(CallError::Lost)?;
        self.bytes_in += bytes as u64;
        let frame = &self.answers[self.start + 4..self.start + bytes];
        self.start += bytes;
        let (call_id, answer) = Answer::parse(frame).map_err(CallError::Lost)?;
        if call_id != self.call_id {
            let why = format!("the server answered call {call_id} instead of call {}", self.call_id);
            return Err(CallError::Lost(why));
        }
        answer.map_err(CallError::Exception)
    }

    /// Reads until a whole answer is there. Returns its length.
    fn fill(&mut self) -> Result<usize, String> {
        if self.start == self.end {
            (self.start, self.end) = (0, 0);
        }
        loop {
            let needed = frame::answer_bytes(&self.answers[self.start..self.end])?;
            if let Some(bytes) = needed.filter(|bytes| self.end - self.start >= *bytes) {
                return Ok(bytes);
            }
            let room = self.start + needed.unwrap_or(BUFFER_BYTES);
            if self.answers.len() < room.max(self.end + 1) {
                self.answers.resize(room.max(self.end + BUFFER_BYTES), 0);
            }
            match (&*self.stream).read(&mut self.answers[self.end..]) {
                Ok(0) => return Err("closed by the server".to_owned()),
                Ok(count) => self.end += count,
                Err(error) if error.kind() == ErrorKind::Interrupted => {}
                Err(error) => return Err(lost(&error)),
            }
        }
    }
}

fn lost(error: &std::io::Error) -> String {
    match error.kind() {
        ErrorKind::WouldBlock | ErrorKind::TimedOut => "the server does not answer".to_owned(),
        _ => format!("connection lost: {error}"),
    }
}
