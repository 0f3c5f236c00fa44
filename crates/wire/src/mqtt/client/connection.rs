//! One connection: the handshake, and the packets of the server in their order.

use super::error::{Fault, ReceiveError};
use crate::mqtt::{
    Ack, ConnAck, Connect, Disconnect, EncodeError, Packet, PacketType, ProtocolVersion, QoS, ReasonCode,
    decode, encode,
};

/// A plain PUBACK begins with these bytes in every version: type and remaining length.
const PLAIN_PUBACK: [u8; 2] = [0x40, 2];

/// One connection of a client. It is small and keeps no message.
#[derive(Debug, Clone, Copy)]
pub struct Connection {
    version: ProtocolVersion,
    /// Largest packet that the client takes.
    packet_bytes_max: usize,
    phase: Phase,
    /// The CONNECT asked for a new session.
    clean_start: bool,
    keep_alive_s: u16,
    /// Bytes of all packets of the server before the next one.
    received_bytes: u64,
    server: ServerLimits,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Phase {
    /// There was no CONNECT yet.
    New,
    /// CONNECT was sent.
    Connecting,
    /// The server accepted the connection.
    Open,
    /// The server refused, or one side sent DISCONNECT.
    Ended,
}

/// What the server takes, by its CONNACK. Before MQTT 5 it cannot say it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ServerLimits {
    /// Largest number of messages of QoS 1 and 2 that may be unacknowledged.
    pub receive_maximum: u16,
    /// Bytes of the largest packet.
    pub packet_bytes_max: u32,
    /// The highest QoS.
    pub qos_max: QoS,
    /// Whether messages may be retained.
    pub is_retain_available: bool,
}

impl ServerLimits {
    const NONE: Self = Self {
        receive_maximum: u16::MAX,
        packet_bytes_max: u32::MAX,
        qos_max: QoS::ExactlyOnce,
        is_retain_available: true,
    };

    fn of(connack: &ConnAck<'_>) -> Self {
        let properties = connack.properties;
        if properties.is_empty() {
            return Self::NONE;
        }
        Self {
            receive_maximum: properties.receive_maximum(),
            packet_bytes_max: properties.maximum_packet_size().unwrap_or(u32::MAX),
            qos_max: properties.maximum_qos(),
            is_retain_available: properties.is_available(crate::mqtt::PropertyId::RetainAvailable),
        }
    }

    /// Why the server does not take this PUBLISH, if so.
    pub(super) fn refusal(&self, packet: &[u8], qos: QoS) -> Option<ReasonCode> {
        let is_retained = packet.first().is_some_and(|first| first & 1 != 0);
        if packet.len() as u64 > u64::from(self.packet_bytes_max) {
            Some(ReasonCode::PACKET_TOO_LARGE)
        } else if qos > self.qos_max {
            Some(ReasonCode::QOS_NOT_SUPPORTED)
        } else if is_retained && !self.is_retain_available {
            Some(ReasonCode::RETAIN_NOT_SUPPORTED)
        } else {
            None
        }
    }
}

impl Connection {
    /// A connection that has sent nothing. `packet_bytes_max` bounds the packets of the server.
    pub const fn new(version: ProtocolVersion, packet_bytes_max: usize) -> Self {
        Self {
            version,
            packet_bytes_max,
            phase: Phase::New,
            clean_start: true,
            keep_alive_s: 0,
            received_bytes: 0,
            server: ServerLimits::NONE,
        }
    }

    /// The version of the protocol.
    pub const fn version(&self) -> ProtocolVersion {
        self.version
    }

    /// Whether the server accepted the connection and neither side ended it.
    pub fn is_open(&self) -> bool {
        self.phase == Phase::Open
    }

    /// What the server takes.
    pub const fn server(&self) -> &ServerLimits {
        &self.server
    }

    /// The longest silence of the client in seconds: that of the server if it named one. 0 means no bound.
    pub const fn keep_alive_s(&self) -> u16 {
        self.keep_alive_s
    }

    /// Bytes of the packets that [`Connection::next`] returned.
    pub const fn received_bytes(&self) -> u64 {
        self.received_bytes
    }

    /// Begins a connection: appends CONNECT and forgets the connection before.
    pub fn connect(&mut self, connect: &Connect<'_>, out: &mut Vec<u8>) -> Result<(), EncodeError> {
        if connect.version != self.version {
            return Err(EncodeError::Invalid { cause: "the CONNECT has another version than the client" });
        }
        encode(&Packet::Connect(*connect), self.version, out)?;
        *self = Self {
            phase: Phase::Connecting,
            clean_start: connect.clean_start,
            keep_alive_s: connect.keep_alive_s,
            ..Self::new(self.version, self.packet_bytes_max)
        };
        Ok(())
    }

    /// Ends a connection that was lost.
    pub fn lost(&mut self) {
        self.phase = Phase::Ended;
    }

    /// Appends PINGREQ.
    pub fn ping(&self, out: &mut Vec<u8>) {
        encode(&Packet::PingReq, self.version, out).expect("BUG: PINGREQ has no fields");
    }

    /// Appends DISCONNECT. The connection is over.
    pub fn disconnect(&mut self, disconnect: &Disconnect<'_>, out: &mut Vec<u8>) -> Result<(), EncodeError> {
        encode(&Packet::Disconnect(*disconnect), self.version, out)?;
        self.phase = Phase::Ended;
        Ok(())
    }

    /// The next packet at the beginning of `input` and its length; `None` when bytes are missing.
    ///
    /// The plain PUBACK is most of what a publisher receives. It is found inline, so that a load generator pays nothing for it.
    #[inline]
    pub fn next<'a>(&mut self, input: &'a [u8]) -> Result<Option<(Packet<'a>, usize)>, ReceiveError> {
        if let [first, length, high, low, ..] = *input
            && [first, length] == PLAIN_PUBACK
            && self.phase == Phase::Open
            && (high, low) != (0, 0)
        {
            self.received_bytes += 4;
            return Ok(Some((Packet::PubAck(Ack::success(u16::from_be_bytes([high, low]))), 4)));
        }
        self.decode_next(input)
    }

    fn decode_next<'a>(&mut self, input: &'a [u8]) -> Result<Option<(Packet<'a>, usize)>, ReceiveError> {
        let Some(&first) = input.first() else { return Ok(None) };
        let packet_type = PacketType::from_bits(first >> 4);
        if let Some(packet_type) = packet_type {
            self.check_order(packet_type)
                .map_err(|cause| self.error(Some(packet_type), 0, Fault::Order(cause)))?;
        }
        let decoded = decode(input, Some(self.version), self.packet_bytes_max)
            .map_err(|error| self.error(packet_type, error.offset, Fault::Decode(error)))?;
        let Some(decoded) = decoded else { return Ok(None) };
        self.take(&decoded.packet).map_err(|cause| self.error(packet_type, 0, Fault::Order(cause)))?;
        self.received_bytes += decoded.consumed as u64;
        Ok(Some((decoded.packet, decoded.consumed)))
    }

    /// Whether a server may send this packet now.
    fn check_order(&self, packet_type: PacketType) -> Result<(), &'static str> {
        use PacketType as Type;
        match (self.phase, packet_type) {
            (_, Type::Connect | Type::Subscribe | Type::Unsubscribe | Type::PingReq) => {
                Err("only clients send this packet [MQTT5 table 2-1]")
            }
            (_, Type::Disconnect) if self.version != ProtocolVersion::V5 => {
                Err("before MQTT 5 only clients send this packet [MQTT311 table 2.1]")
            }
            (Phase::New, _) => Err("a packet before CONNECT"),
            (Phase::Ended, _) => Err("a packet after the end of the connection"),
            (Phase::Connecting, Type::ConnAck | Type::Auth) => Ok(()),
            (Phase::Connecting, _) => Err("CONNACK was expected [MQTT-3.2.0-1]"),
            (Phase::Open, Type::ConnAck) => Err("a second CONNACK [MQTT-3.2.0-2]"),
            (Phase::Open, _) => Ok(()),
        }
    }

    fn take(&mut self, packet: &Packet<'_>) -> Result<(), &'static str> {
        match packet {
            Packet::ConnAck(connack) if !connack.is_accepted() => self.phase = Phase::Ended,
            Packet::ConnAck(connack) if connack.session_present && self.clean_start => {
                return Err("a session is present after a clean start [MQTT-3.2.2-2]");
            }
            Packet::ConnAck(connack) => {
                self.phase = Phase::Open;
                self.server = ServerLimits::of(connack);
                self.keep_alive_s = connack.properties.server_keep_alive().unwrap_or(self.keep_alive_s);
            }
            Packet::Disconnect(_) => self.phase = Phase::Ended,
            _ => {}
        }
        Ok(())
    }

    fn error(&self, packet: Option<PacketType>, offset: usize, fault: Fault) -> ReceiveError {
        ReceiveError { packet, offset: self.received_bytes + offset as u64, fault }
    }
}
