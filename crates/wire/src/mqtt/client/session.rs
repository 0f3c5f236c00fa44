//! The session of a client: its messages and subscriptions over one connection after the other.

use super::connection::Connection;
use super::error::{Fault, ReceiveError, SendError};
use super::event::Event;
use super::incoming::Incoming;
use super::outgoing::{Answer, Outgoing};
use crate::mqtt::{
    Ack, Connect, Disconnect, EncodeError, Filter, Packet, PacketType, Properties, ProtocolVersion, Publish,
    QoS, ReasonCode, Subscribe, Unsubscribe, encode,
};

/// Bounds of a session.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Limits {
    /// Bytes of the largest packet that the client takes.
    pub packet_bytes_max: usize,
    /// Messages of QoS 1 and 2 that wait for their answer, sent or not. At most 65,000, because packet identifiers are two
    /// bytes and subscriptions need some.
    pub messages_max: usize,
}

/// Packets that may wait for an answer: fewer than there are identifiers, so that a free one always exists.
const WAITING_MAX: usize = 65_534;

/// The session of a client.
///
/// A message of QoS 1 or 2 is kept until its last answer. It may be published without a connection: the session sends it
/// after the next CONNACK. The session also waits where the server's receive maximum is reached. After a connection was
/// lost, the caller opens the next one and calls [`Session::connect`] again.
#[derive(Debug)]
pub struct Session {
    connection: Connection,
    messages_max: usize,
    outgoing: Outgoing,
    incoming: Incoming,
}

impl Session {
    /// A session without a connection.
    pub fn new(version: ProtocolVersion, limits: Limits) -> Self {
        Self {
            connection: Connection::new(version, limits.packet_bytes_max),
            messages_max: limits.messages_max,
            outgoing: Outgoing::new(),
            incoming: Incoming::new(),
        }
    }

    /// The connection: whether it is open, and what the server takes.
    pub const fn connection(&self) -> &Connection {
        &self.connection
    }

    /// Messages of QoS 1 and 2 without a last answer, sent or not.
    pub const fn unanswered(&self) -> usize {
        self.outgoing.messages()
    }

    /// Begins a connection: appends CONNECT. The connection before is over.
    pub fn connect(&mut self, connect: &Connect<'_>, out: &mut Vec<u8>) -> Result<(), EncodeError> {
        self.connection.connect(connect, out)?;
        self.outgoing.begin_connection();
        self.incoming.begin_connection(connect.properties.receive_maximum());
        Ok(())
    }

    /// Ends a connection that was lost. Messages without an answer stay for the next one.
    pub fn lost(&mut self) {
        self.connection.lost();
    }

    /// Publishes a message and returns its identifier, which is `None` at QoS 0. The session chooses identifier and DUP.
    pub fn publish(&mut self, publish: &Publish<'_>, out: &mut Vec<u8>) -> Result<Option<u16>, SendError> {
        let is_open = self.connection.is_open();
        let qos = publish.qos;
        if qos == QoS::AtMostOnce {
            if !is_open {
                return Err(SendError::NotConnected);
            }
            let start = out.len();
            encode(
                &Packet::Publish(Publish { dup: false, packet_id: None, ..*publish }),
                self.version(),
                out,
            )?;
            if let Some(reason) = self.connection.server().refusal(&out[start..], qos) {
                out.truncate(start);
                return Err(SendError::NotTaken(reason));
            }
            return Ok(None);
        }
        if self.outgoing.messages() >= self.messages_max || self.outgoing.len() >= WAITING_MAX {
            return Err(SendError::QueueFull { max: self.messages_max.min(WAITING_MAX) });
        }
        if publish.properties.topic_alias().is_some() {
            // The next connection does not know the alias.
            return Err(
                EncodeError::Invalid { cause: "a message that may be sent again has a topic alias" }.into()
            );
        }
        let packet_id = self.outgoing.free_packet_id();
        let mut packet = Vec::new();
        let publish = Publish { dup: false, packet_id: Some(packet_id), ..*publish };
        encode(&Packet::Publish(publish), self.version(), &mut packet)?;
        if let Some(reason) = is_open.then(|| self.connection.server().refusal(&packet, qos)).flatten() {
            return Err(SendError::NotTaken(reason));
        }
        self.outgoing.push_message(packet_id, qos, packet);
        if is_open {
            self.outgoing.send_waiting(self.connection.server(), out);
        }
        Ok(Some(packet_id))
    }

    /// Subscribes to filters and returns the identifier that the answer repeats.
    pub fn subscribe(
        &mut self,
        filters: &[Filter<'_>],
        properties: Properties<'_>,
        out: &mut Vec<u8>,
    ) -> Result<u16, SendError> {
        let packet_id = self.subscription_id()?;
        let layout = Subscribe::layout(filters)?;
        let packet = Packet::Subscribe(Subscribe::new(packet_id, properties, &layout));
        encode(&packet, self.version(), out)?;
        self.outgoing.push_subscription(packet_id, PacketType::Subscribe);
        Ok(packet_id)
    }

    /// Ends subscriptions and returns the identifier that the answer repeats.
    pub fn unsubscribe(
        &mut self,
        filters: &[&str],
        properties: Properties<'_>,
        out: &mut Vec<u8>,
    ) -> Result<u16, SendError> {
        let packet_id = self.subscription_id()?;
        let layout = Unsubscribe::layout(filters)?;
        let packet = Packet::Unsubscribe(Unsubscribe::new(packet_id, properties, &layout));
        encode(&packet, self.version(), out)?;
        self.outgoing.push_subscription(packet_id, PacketType::Unsubscribe);
        Ok(packet_id)
    }

    fn subscription_id(&self) -> Result<u16, SendError> {
        if !self.connection.is_open() {
            return Err(SendError::NotConnected);
        }
        if self.outgoing.len() >= WAITING_MAX {
            return Err(SendError::QueueFull { max: WAITING_MAX });
        }
        Ok(self.outgoing.free_packet_id())
    }

    /// Acknowledges a message of the server: PUBACK or PUBREC, with a reason that MQTT 5 sends.
    pub fn acknowledge(
        &mut self,
        packet_id: u16,
        reason: ReasonCode,
        out: &mut Vec<u8>,
    ) -> Result<(), SendError> {
        if !self.connection.is_open() {
            return Err(SendError::NotConnected);
        }
        self.incoming.acknowledge(packet_id, reason, self.version(), out)
    }

    /// Appends PINGREQ.
    pub fn ping(&self, out: &mut Vec<u8>) {
        self.connection.ping(out);
    }

    /// Appends DISCONNECT. Messages without an answer stay for the next connection.
    pub fn disconnect(&mut self, disconnect: &Disconnect<'_>, out: &mut Vec<u8>) -> Result<(), EncodeError> {
        self.connection.disconnect(disconnect, out)
    }

    /// The next event and the bytes at the beginning of `input` that it took; `None` when bytes are missing. An event may
    /// take no bytes. Answers that the protocol prescribes are appended to `out`.
    pub fn next<'a>(
        &mut self,
        input: &'a [u8],
        out: &mut Vec<u8>,
    ) -> Result<Option<(Event<'a>, usize)>, ReceiveError> {
        if self.connection.is_open()
            && let Some((packet_id, reason)) = self.outgoing.take_settled()
        {
            return Ok(Some((Event::Settled { packet_id, reason }, 0)));
        }
        let offset = self.connection.received_bytes();
        let Some((packet, used)) = self.connection.next(input)? else { return Ok(None) };
        let event = self.take(&packet, out).map_err(|fault| {
            let packet = PacketType::from_bits(input[0] >> 4);
            ReceiveError { packet, offset, fault }
        })?;
        Ok(Some((event, used)))
    }

    fn take<'a>(&mut self, packet: &Packet<'a>, out: &mut Vec<u8>) -> Result<Event<'a>, Fault> {
        let version = self.version();
        Ok(match *packet {
            Packet::ConnAck(connack) if !connack.is_accepted() => Event::Refused(connack),
            Packet::ConnAck(connack) => {
                if !connack.session_present {
                    self.incoming.forget();
                }
                self.outgoing.resume(connack.session_present, version, out);
                self.outgoing.send_waiting(self.connection.server(), out);
                Event::Connected(connack)
            }
            Packet::Publish(publish) => {
                let is_new = match publish.packet_id {
                    Some(packet_id) => self.incoming.take(packet_id, publish.qos, version, out)?,
                    None => true,
                };
                if is_new { Event::Message(publish) } else { Event::Repeated(publish) }
            }
            Packet::PubAck(ack) => self.complete(PacketType::PubAck, ack, Answer::PubAck, out)?,
            Packet::PubRec(ack) if ack.reason.is_error() => {
                self.complete(PacketType::PubRec, ack, Answer::PubRecRefused, out)?
            }
            Packet::PubRec(ack) if self.outgoing.receive(ack.packet_id, version, out) => Event::Received(ack),
            Packet::PubRec(ack) => return Err(Fault::UnknownPacketId(ack.packet_id)),
            Packet::PubComp(ack) => self.complete(PacketType::PubComp, ack, Answer::PubComp, out)?,
            Packet::PubRel(ack) => {
                self.incoming.release(ack.packet_id, version, out);
                Event::Released(ack)
            }
            Packet::SubAck(suback) => {
                self.answered(suback.packet_id, Answer::SubAck)?;
                Event::Subscribed(suback)
            }
            Packet::UnsubAck(unsuback) => {
                self.answered(unsuback.packet_id, Answer::UnsubAck)?;
                Event::Unsubscribed(unsuback)
            }
            Packet::PingResp => Event::Pong,
            Packet::Auth(auth) => Event::Authentication(auth),
            Packet::Disconnect(disconnect) => Event::Disconnected(disconnect),
            Packet::Connect(_) | Packet::Subscribe(_) | Packet::Unsubscribe(_) | Packet::PingReq => {
                unreachable!("BUG: the connection refuses packets that only clients send")
            }
        })
    }

    /// Takes the last answer to a message and sends those that waited for it.
    fn complete<'a>(
        &mut self,
        packet: PacketType,
        ack: Ack<'a>,
        answer: Answer,
        out: &mut Vec<u8>,
    ) -> Result<Event<'a>, Fault> {
        self.answered(ack.packet_id, answer)?;
        self.outgoing.send_waiting(self.connection.server(), out);
        let Ack { packet_id, reason, properties } = ack;
        Ok(Event::Acknowledged { packet_id, packet, reason, properties })
    }

    fn answered(&mut self, packet_id: u16, answer: Answer) -> Result<(), Fault> {
        if self.outgoing.complete(packet_id, answer) {
            Ok(())
        } else {
            Err(Fault::UnknownPacketId(packet_id))
        }
    }

    const fn version(&self) -> ProtocolVersion {
        self.connection.version()
    }
}
