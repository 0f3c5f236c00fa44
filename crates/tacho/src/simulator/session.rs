//! The MQTT session of one vehicle.

use std::io::{self, Read, Write};
use std::net::SocketAddr;
use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};

use clients::tls::{TlsClient, TlsSession};
use mio::net::TcpStream;
use mio::{Interest, Registry, Token};
use serde::Serialize;
use wire::mqtt::client::{self, Event, Limits, ReceiveError, SendError};
use wire::mqtt::{Connect, Disconnect, EncodeError, ProtocolVersion, Publish, QoS};

use super::credentials::Credentials;
use super::summary::Summary;
use crate::fleet::Report;
use crate::limits::{
    FLEET_PACKET_BYTES_MAX, FLEET_READ_BYTES, FLEET_RETRY_FIRST, FLEET_RETRY_MAX, FLEET_UNACKED_MAX,
};

const TOPIC: &str = "v1/devices/me/telemetry";
const LIMITS: Limits = Limits { packet_bytes_max: FLEET_PACKET_BYTES_MAX, messages_max: FLEET_UNACKED_MAX };

/// The session of a vehicle, connected or waiting to connect.
#[derive(Debug)]
pub(super) struct Session {
    token: Token,
    address: SocketAddr,
    tls: Option<TlsClient>,
    credentials: Credentials,
    keep_alive_s: u16,
    /// Keeps reports until they are acknowledged.
    client: client::Session,
    link: Link,
    retry: Duration,
}

#[derive(Debug)]
enum Link {
    Down { retry_at: Instant },
    Up(Box<Connection>),
}

#[derive(Debug)]
struct Connection {
    stream: TcpStream,
    /// TLS over the stream; `None` without TLS.
    tls: Option<TlsSession>,
    input: Vec<u8>,
    output: Vec<u8>,
}

/// The ThingsBoard form with a time.
#[derive(Serialize)]
struct TimedReport<'a> {
    ts: u64,
    values: &'a Report,
}

/// The reason why a connection ended.
#[derive(Debug, thiserror::Error)]
enum ConnectionError {
    #[error("the server closed the connection")]
    Closed,
    #[error(transparent)]
    Io(#[from] io::Error),
    #[error(transparent)]
    Receive(#[from] ReceiveError),
    #[error("cannot be written as MQTT: {0}")]
    Encode(#[from] EncodeError),
    #[error("the server refused the connection: {0}")]
    Refused(String),
    #[error("the server ended the session: {0}")]
    Disconnected(String),
}

impl Connection {
    fn write_plain(&mut self) -> Result<(), ConnectionError> {
        while !self.output.is_empty() {
            match self.stream.write(&self.output) {
                Ok(0) => return Err(ConnectionError::Closed),
                Ok(written) => drop(self.output.drain(..written)),
                Err(error) if is_not_now(&error) => return Ok(()),
                Err(error) => return Err(error.into()),
            }
        }
        Ok(())
    }

    /// Adds what was read to the input.
    fn take(&mut self, bytes: &[u8]) -> io::Result<()> {
        match &mut self.tls {
            None => self.input.extend_from_slice(bytes),
            Some(tls) => tls.decrypt(bytes, &mut self.input)?,
        }
        Ok(())
    }
}

impl Session {
    pub(super) fn new(
        index: usize,
        (address, tls): (SocketAddr, Option<TlsClient>),
        credentials: Credentials,
        period: Duration,
    ) -> Self {
        // A report per period keeps the session alive; three missed ones may end it.
        let keep_alive_s = (3 * period.as_secs()).clamp(60, u16::MAX.into()) as u16;
        let version = if index.is_multiple_of(2) { ProtocolVersion::V5 } else { ProtocolVersion::V311 };
        let link = Link::Down { retry_at: Instant::now() };
        let token = Token(index);
        let client = client::Session::new(version, LIMITS);
        Self { token, address, tls, credentials, keep_alive_s, client, link, retry: FLEET_RETRY_FIRST }
    }

    pub(super) fn wants_to_connect(&self, now: Instant) -> bool {
        matches!(self.link, Link::Down { retry_at } if retry_at <= now)
    }

    /// Begins to connect. CONNECT is sent when the socket is connected.
    pub(super) fn connect(&mut self, registry: &Registry, summary: &mut Summary) {
        if let Err(error) = self.try_connect(registry) {
            self.drop_connection(&error, registry, summary);
        }
    }

    fn try_connect(&mut self, registry: &Registry) -> Result<(), ConnectionError> {
        let mut stream = TcpStream::connect(self.address)?;
        registry.register(&mut stream, self.token, Interest::READABLE | Interest::WRITABLE)?;
        let mut output = Vec::new();
        let connect = Connect {
            keep_alive_s: self.keep_alive_s,
            username: Some(&self.credentials.token),
            ..Connect::new(self.client.connection().version(), &self.credentials.name)
        };
        self.client.connect(&connect, &mut output)?;
        let tls = self.tls.as_ref().map(TlsClient::session);
        self.link = Link::Up(Box::new(Connection { stream, tls, input: Vec::new(), output }));
        Ok(())
    }

    /// Sends a report, or keeps it until the vehicle is connected.
    pub(super) fn report(&mut self, report: &Report, registry: &Registry, summary: &mut Summary) {
        let ts = SystemTime::now().duration_since(UNIX_EPOCH).map_or(0, |since| since.as_millis() as u64);
        let payload =
            serde_json::to_vec(&TimedReport { ts, values: report }).expect("BUG: numbers and text are JSON");
        let mut unsent = Vec::new();
        let output = match &mut self.link {
            Link::Up(connection) => &mut connection.output,
            Link::Down { .. } => &mut unsent,
        };
        match self.client.publish(&Publish::new(TOPIC, QoS::AtLeastOnce, &payload), output) {
            Ok(_) => summary.sent += 1,
            Err(SendError::QueueFull { .. }) => summary.skipped += 1,
            Err(error) => {
                tracing::debug!(vehicle = self.credentials.name, %error, "a report could not be sent");
                summary.refused += 1;
            }
        }
        let sent = self.write();
        self.settle(sent, registry, summary);
    }

    /// Reads and writes as much as the socket allows.
    pub(super) fn ready(&mut self, registry: &Registry, summary: &mut Summary) {
        let done = self.write().and_then(|()| self.read(summary)).and_then(|()| self.write());
        self.settle(done, registry, summary);
    }

    fn write(&mut self) -> Result<(), ConnectionError> {
        let Link::Up(connection) = &mut self.link else { return Ok(()) };
        let Connection { stream, tls: Some(tls), output, .. } = &mut **connection else {
            return connection.write_plain();
        };
        loop {
            match tls.flush_to(stream) {
                Err(error) if is_not_now(&error) => return Ok(()),
                other => other?,
            }
            // During the handshake and while the socket takes nothing, reports wait unencrypted, as without TLS.
            if output.is_empty() || tls.is_handshaking() || tls.wants_write() {
                return Ok(());
            }
            tls.encrypt(output)?;
            output.clear();
        }
    }

    fn read(&mut self, summary: &mut Summary) -> Result<(), ConnectionError> {
        let mut bytes = [0; FLEET_READ_BYTES];
        loop {
            let Link::Up(connection) = &mut self.link else { return Ok(()) };
            match connection.stream.read(&mut bytes) {
                Ok(0) => return Err(ConnectionError::Closed),
                Ok(len) => connection.take(&bytes[..len])?,
                Err(error) if is_not_now(&error) => return Ok(()),
                Err(error) => return Err(error.into()),
            }
            self.take_events(summary)?;
        }
    }

    fn take_events(&mut self, summary: &mut Summary) -> Result<(), ConnectionError> {
        let Link::Up(connection) = &mut self.link else { return Ok(()) };
        let Connection { input, output, .. } = &mut **connection;
        let mut taken = 0;
        while let Some((event, bytes)) = self.client.next(&input[taken..], output)? {
            taken += bytes;
            match event {
                Event::Connected(_) => self.retry = FLEET_RETRY_FIRST,
                Event::Acknowledged { reason, .. } | Event::Settled { reason, .. } => {
                    summary.answered(reason)
                }
                Event::Refused(connack) => {
                    let version = self.client.connection().version();
                    return Err(ConnectionError::Refused(connack.refusal(version)));
                }
                Event::Disconnected(disconnect) => {
                    return Err(ConnectionError::Disconnected(disconnect.to_string()));
                }
                // A vehicle subscribes to nothing and publishes nothing of QoS 2.
                _ => {}
            }
        }
        input.drain(..taken);
        Ok(())
    }

    fn settle(&mut self, done: Result<(), ConnectionError>, registry: &Registry, summary: &mut Summary) {
        if let Err(error) = done {
            self.drop_connection(&error, registry, summary);
        }
    }

    fn drop_connection(&mut self, error: &ConnectionError, registry: &Registry, summary: &mut Summary) {
        tracing::debug!(vehicle = self.credentials.name, %error, "connection lost");
        self.hang_up(registry);
        summary.lost += 1;
        self.client.lost();
        self.link = Link::Down { retry_at: Instant::now() + self.retry };
        self.retry = (self.retry * 2).min(FLEET_RETRY_MAX);
    }

    fn hang_up(&mut self, registry: &Registry) {
        if let Link::Up(connection) = &mut self.link
            && let Err(error) = registry.deregister(&mut connection.stream)
        {
            tracing::debug!(%error, "a socket could not be taken from the poll; closing it does that too");
        }
    }

    /// Whether a connected vehicle waits for acks.
    pub(super) fn waits_for_acks(&self) -> bool {
        self.client.connection().is_open() && self.client.unanswered() > 0
    }

    /// Ends the session with a DISCONNECT packet.
    pub(super) fn disconnect(&mut self, registry: &Registry) {
        if let Link::Up(connection) = &mut self.link {
            let encoded = self.client.disconnect(&Disconnect::NORMAL, &mut connection.output);
            let sent = encoded.map_err(ConnectionError::from).and_then(|()| self.write());
            if let Err(error) = sent {
                tracing::debug!(vehicle = self.credentials.name, %error, "left without a word");
            }
        }
        self.hang_up(registry);
        self.link = Link::Down { retry_at: Instant::now() };
    }
}

fn is_not_now(error: &io::Error) -> bool {
    // A socket that is still connecting returns NotConnected.
    matches!(
        error.kind(),
        io::ErrorKind::WouldBlock | io::ErrorKind::Interrupted | io::ErrorKind::NotConnected
    )
}
