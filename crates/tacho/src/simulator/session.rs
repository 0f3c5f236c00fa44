//! The MQTT session of one vehicle.

use std::collections::VecDeque;
use std::io::{self, Read, Write};
use std::net::SocketAddr;
use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};

use mio::net::TcpStream;
use mio::{Interest, Registry, Token};
use serde::Serialize;
use wire::mqtt::{self, Connect, Disconnect, Packet, Properties, ProtocolVersion, QoS, ReasonCode};

use super::credentials::Credentials;
use super::summary::Summary;
use crate::fleet::Report;
use crate::limits::{
    FLEET_PACKET_BYTES_MAX, FLEET_READ_BYTES, FLEET_RETRY_FIRST, FLEET_RETRY_MAX, FLEET_UNACKED_MAX,
};

const TOPIC: &str = "v1/devices/me/telemetry";
/// First reason code that is a failure [MQTT5 2.4].
const FAILURE: u8 = 0x80;

/// The session of a vehicle, connected or waiting to connect.
#[derive(Debug)]
pub(super) struct Session {
    token: Token,
    address: SocketAddr,
    credentials: Credentials,
    version: ProtocolVersion,
    keep_alive_s: u16,
    link: Link,
    retry: Duration,
    unacked: VecDeque<Unacked>,
    last_packet_id: u16,
}

#[derive(Debug)]
enum Link {
    Down { retry_at: Instant },
    Up(Box<Connection>),
}

#[derive(Debug)]
struct Connection {
    stream: TcpStream,
    /// CONNACK has arrived.
    accepted: bool,
    input: Vec<u8>,
    output: Vec<u8>,
}

#[derive(Debug)]
struct Unacked {
    packet_id: u16,
    payload: Vec<u8>,
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
    #[error("the server sent what is no MQTT: {0}")]
    Decode(#[from] mqtt::DecodeError),
    #[error("cannot be written as MQTT: {0}")]
    Encode(#[from] mqtt::EncodeError),
    #[error("the server refused the connection with code {0:#04x}")]
    Refused(u8),
    #[error("the server ended the session: {0:?}")]
    Disconnected(ReasonCode),
}

impl Session {
    pub(super) fn new(index: usize, address: SocketAddr, credentials: Credentials, period: Duration) -> Self {
        // A report per period keeps the session alive; three missed ones may end it.
        let keep_alive_s = (3 * period.as_secs()).clamp(60, u16::MAX.into()) as u16;
        let version = if index.is_multiple_of(2) { ProtocolVersion::V5 } else { ProtocolVersion::V311 };
        let link = Link::Down { retry_at: Instant::now() };
        let token = Token(index);
        let (retry, unacked) = (FLEET_RETRY_FIRST, VecDeque::new());
        Self { token, address, credentials, version, keep_alive_s, link, retry, unacked, last_packet_id: 0 }
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
            version: self.version,
            clean_start: true,
            keep_alive_s: self.keep_alive_s,
            properties: Properties::NONE,
            client_id: &self.credentials.name,
            will: None,
            username: Some(&self.credentials.token),
            password: None,
        };
        mqtt::encode(&Packet::Connect(connect), self.version, &mut output)?;
        self.link = Link::Up(Box::new(Connection { stream, accepted: false, input: Vec::new(), output }));
        Ok(())
    }

    /// Sends a report, or keeps it until the vehicle is connected.
    pub(super) fn report(&mut self, report: &Report, registry: &Registry, summary: &mut Summary) {
        if self.unacked.len() >= FLEET_UNACKED_MAX {
            summary.skipped += 1;
            return;
        }
        let ts = SystemTime::now().duration_since(UNIX_EPOCH).map_or(0, |since| since.as_millis() as u64);
        let payload =
            serde_json::to_vec(&TimedReport { ts, values: report }).expect("BUG: numbers and text are JSON");
        summary.sent += 1;
        self.last_packet_id = self.last_packet_id.checked_add(1).unwrap_or(1);
        self.unacked.push_back(Unacked { packet_id: self.last_packet_id, payload });
        let newest = self.unacked.len() - 1;
        let sent = self.publish_from(newest).and_then(|()| self.write());
        self.settle(sent, registry, summary);
    }

    /// Puts the unacknowledged reports into the output, beginning with `first`.
    fn publish_from(&mut self, first: usize) -> Result<(), ConnectionError> {
        let Link::Up(connection) = &mut self.link else { return Ok(()) };
        if !connection.accepted {
            return Ok(());
        }
        for Unacked { packet_id, payload } in self.unacked.iter().skip(first) {
            let out = &mut connection.output;
            mqtt::encode_publish(TOPIC, QoS::AtLeastOnce, *packet_id, payload, self.version, out)?;
        }
        Ok(())
    }

    /// Reads and writes as much as the socket allows.
    pub(super) fn ready(&mut self, registry: &Registry, summary: &mut Summary) {
        let done = self.write().and_then(|()| self.read(summary)).and_then(|()| self.write());
        self.settle(done, registry, summary);
    }

    fn write(&mut self) -> Result<(), ConnectionError> {
        let Link::Up(connection) = &mut self.link else { return Ok(()) };
        while !connection.output.is_empty() {
            match connection.stream.write(&connection.output) {
                Ok(0) => return Err(ConnectionError::Closed),
                Ok(written) => drop(connection.output.drain(..written)),
                Err(error) if is_not_now(&error) => return Ok(()),
                Err(error) => return Err(error.into()),
            }
        }
        Ok(())
    }

    fn read(&mut self, summary: &mut Summary) -> Result<(), ConnectionError> {
        let mut bytes = [0; FLEET_READ_BYTES];
        loop {
            let Link::Up(connection) = &mut self.link else { return Ok(()) };
            match connection.stream.read(&mut bytes) {
                Ok(0) => return Err(ConnectionError::Closed),
                Ok(len) => connection.input.extend_from_slice(&bytes[..len]),
                Err(error) if is_not_now(&error) => return Ok(()),
                Err(error) => return Err(error.into()),
            }
            self.take_packets(summary)?;
        }
    }

    fn take_packets(&mut self, summary: &mut Summary) -> Result<(), ConnectionError> {
        let Link::Up(connection) = &mut self.link else { return Ok(()) };
        let input = std::mem::take(&mut connection.input);
        let mut taken = 0;
        while let Some(decoded) = mqtt::decode(&input[taken..], Some(self.version), FLEET_PACKET_BYTES_MAX)? {
            taken += decoded.consumed;
            self.take_packet(&decoded.packet, summary)?;
        }
        if let Link::Up(connection) = &mut self.link {
            connection.input = input;
            connection.input.drain(..taken);
        }
        Ok(())
    }

    fn take_packet(&mut self, packet: &Packet<'_>, summary: &mut Summary) -> Result<(), ConnectionError> {
        match packet {
            Packet::ConnAck(ack) if ack.code != 0 => Err(ConnectionError::Refused(ack.code)),
            Packet::ConnAck(_) => {
                if let Link::Up(connection) = &mut self.link {
                    connection.accepted = true;
                }
                self.retry = FLEET_RETRY_FIRST;
                self.publish_from(0)
            }
            Packet::PubAck(ack) => {
                let before = self.unacked.len();
                self.unacked.retain(|unacked| unacked.packet_id != ack.packet_id);
                let taken = (before - self.unacked.len()) as u64;
                let refused = ack.reason.0 >= FAILURE;
                *(if refused { &mut summary.refused } else { &mut summary.acked }) += taken;
                Ok(())
            }
            Packet::Disconnect(disconnect) => Err(ConnectionError::Disconnected(disconnect.reason)),
            _ => Ok(()),
        }
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
        matches!(&self.link, Link::Up(connection) if connection.accepted) && !self.unacked.is_empty()
    }

    /// Ends the session with a DISCONNECT packet.
    pub(super) fn disconnect(&mut self, registry: &Registry) {
        if let Link::Up(connection) = &mut self.link {
            let disconnect = Disconnect { reason: ReasonCode::SUCCESS, properties: Properties::NONE };
            let encoded = mqtt::encode(&Packet::Disconnect(disconnect), self.version, &mut connection.output);
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
