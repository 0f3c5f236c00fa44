//! Publishers and subscribers: every connection is one of both.

use std::sync::atomic::{AtomicU64, Ordering};

use load::protocol::{self, Answer, AnswerStatus, Completion, DueTime, Opening, Protocol, Started};
use load::recorder::Operation;
use load::schedule::SECOND_NS;
use wire::mqtt::client::Connection;
use wire::mqtt::{
    Ack, ConnAck, Connect, Disconnect, Packet, PropertiesBuilder, Property, PropertyId, ProtocolVersion,
    Publish, QoS, SubAck, encode,
};

use super::message::{Stamp, blank};
use super::options::{Group, Role, Topics};
use super::sequence::{Arrived, Sequence};
use super::tally::{Published, Received};
use crate::limits::PACKET_BYTES_MAX;
use crate::mqtt::{PacketIds, PublishPacket, acknowledgement, subscribe};
use crate::plan::place_of;

/// The configuration of all connections of a phase.
#[derive(Debug, Clone)]
pub(super) struct Config {
    /// Protocol version of all connections.
    pub(super) version: ProtocolVersion,
    /// What the connections of each group do, in the order of [`load::engine::Plan::groups`].
    pub(super) groups: Vec<Group>,
    pub(super) topics: Topics,
    pub(super) payload_bytes: usize,
    /// Connection n of a group authenticates with the user name `<token_prefix>n`.
    pub(super) token_prefix: String,
    /// The beginning of client identifiers. It is the same in all phases, so that sessions continue.
    pub(super) client_prefix: String,
    pub(super) keep_alive_s: u16,
    /// Distinguishes messages of this run from others.
    pub(super) run: u32,
    /// The number of the next message of each publisher.
    pub(super) next: Vec<u64>,
    /// For each publisher, the number of its first message that subscribers of this phase must get.
    pub(super) first: Vec<u64>,
}

/// The clients of a phase.
#[derive(Debug)]
pub(super) struct Clients {
    config: Config,
    /// A message without its stamp.
    blank: Vec<u8>,
    /// Deliveries that the messages sent so far need.
    expected: AtomicU64,
    /// Messages delivered for the first time.
    delivered: AtomicU64,
}

/// One connection.
#[derive(Debug)]
pub(super) struct Session {
    /// Its number within the group.
    index: u32,
    group: usize,
    connection: Connection,
    /// When its latest connect began, nanoseconds after the start of the segment.
    returned_ns: u64,
    part: Part,
}

#[derive(Debug)]
enum Part {
    Publisher(Publisher),
    Subscriber(Received),
}

#[derive(Debug)]
struct Publisher {
    packet: PublishPacket,
    packet_ids: PacketIds,
    next: u64,
    sent: u64,
    acked: u64,
    /// The number of subscribers of its topic.
    subscribers: u64,
}

impl Session {
    /// The counts of a publisher; `None` for a subscriber.
    pub(super) fn published(&self, qos: QoS) -> Option<Published> {
        let Part::Publisher(Publisher { next, sent, acked, .. }) = &self.part else { return None };
        let unacknowledged = if qos == QoS::AtMostOnce { 0 } else { sent - acked };
        Some(Published { next: *next, sent: *sent, unacknowledged })
    }

    /// What a subscriber received; `None` for a publisher.
    pub(super) fn into_received(self) -> Option<Received> {
        match self.part {
            Part::Subscriber(received) => Some(received),
            Part::Publisher(_) => None,
        }
    }
}

impl Clients {
    pub(super) fn new(config: Config) -> Self {
        let blank = blank(config.payload_bytes);
        let expected = queued(&config);
        Self { blank, config, expected: AtomicU64::new(expected), delivered: AtomicU64::new(0) }
    }

    fn group(&self, session: &Session) -> &Group {
        &self.config.groups[session.group]
    }

    fn publisher(&self, index: u32, group: &Group) -> Publisher {
        let topics = &self.config.topics;
        let topic = index % topics.count;
        let packet = PublishPacket::new(self.config.version, group.qos, &topics.name(topic, 0), &self.blank);
        let subscribers = connections(&self.config, Role::Subscribe);
        Publisher {
            packet,
            packet_ids: PacketIds::default(),
            next: self.config.next.get(index as usize).copied().unwrap_or(0),
            sent: 0,
            acked: 0,
            subscribers: topics.sharing(topic, subscribers).into(),
        }
    }

    fn subscriber(&self, index: u32) -> Received {
        let sequences = publishers_of(&self.config, index)
            .map(|publisher| (publisher, Sequence::from(self.config.first[publisher as usize])));
        Received { sequences: sequences.collect(), foreign: 0 }
    }

    /// Handles CONNACK. Returns whether the connection is ready.
    fn connected(&self, session: &Session, connack: &ConnAck<'_>, out: &mut Vec<u8>) -> Result<bool, String> {
        if !connack.is_accepted() {
            return Err(connack.refusal(self.config.version));
        }
        let group = self.group(session);
        if group.resume {
            let gone = || "the server has no session of this client any more".to_owned();
            return connack.session_present.then_some(true).ok_or_else(gone);
        }
        if group.subscriptions == 0 {
            return Ok(true);
        }
        let topic = session.index % self.config.topics.count;
        let names: Vec<String> =
            (0..group.subscriptions).map(|number| self.config.topics.name(topic, number)).collect();
        subscribe(&names, group.qos, self.config.version, out)?;
        Ok(false)
    }

    /// Handles a message for a subscriber: acknowledges it, and reports it if it is new.
    fn message(
        &self,
        session: &mut Session,
        publish: &Publish<'_>,
        length: usize,
        out: &mut Vec<u8>,
        done: &mut impl FnMut(Completion<'_>),
    ) {
        let class = self.group(session).class;
        if let Some(packet_id) = publish.packet_id {
            let ack = Ack::success(packet_id);
            let ack = if publish.qos == QoS::ExactlyOnce { Packet::PubRec(ack) } else { Packet::PubAck(ack) };
            encode(&ack, self.config.version, out).expect("BUG: the identifier came in a packet");
        }
        let Part::Subscriber(received) = &mut session.part else { return };
        let stamp = Stamp::read(publish.payload, &self.blank).filter(|stamp| stamp.run == self.config.run);
        let of_it = stamp.and_then(|stamp| {
            let sequences = &mut received.sequences;
            Some((stamp, sequences.iter_mut().find(|(publisher, _)| *publisher == stamp.publisher)?))
        });
        let Some((stamp, (_, sequence))) = of_it else {
            received.foreign += 1;
            return;
        };
        if sequence.note(stamp.number) == Arrived::Again {
            return;
        }
        self.delivered.fetch_add(1, Ordering::Relaxed);
        // The clock of an earlier phase began at another moment. What waited there counts from the return of the session.
        let (intended_ns, sent_ns) = if self.group(session).resume {
            (session.returned_ns, session.returned_ns)
        } else {
            (stamp.intended_ns, stamp.sent_ns)
        };
        let operation = Operation { class, intended_ns, sent_ns };
        let answer = Answer::Delivery(operation);
        done(Completion { answer, status: AnswerStatus::Good, bytes: length as u32 });
    }
}

/// The publishers of a subscriber.
fn publishers_of(config: &Config, subscriber: u32) -> impl Iterator<Item = u32> + use<> {
    let count = config.topics.count;
    (subscriber % count..config.first.len() as u32).step_by(count as usize)
}

fn connections(config: &Config, role: Role) -> u32 {
    config.groups.iter().filter(|group| group.role == role).map(|group| group.connections).sum()
}

/// The number of deliveries that wait for the subscribers of a phase at its start.
fn queued(config: &Config) -> u64 {
    let publishers =
        (0..connections(config, Role::Subscribe)).flat_map(|subscriber| publishers_of(config, subscriber));
    publishers.map(|publisher| publisher as usize).map(|index| config.next[index] - config.first[index]).sum()
}

fn refused(suback: &SubAck<'_>) -> Option<String> {
    let code = suback.codes.iter().find(|code| **code >= 0x80)?;
    let why = suback.properties.reason_string().map(|why| format!(": {why}")).unwrap_or_default();
    Some(format!(
        "SUBACK 0x{code:02X}{why} (devices of Tachograph may use the topics of mqtt.publish_topics and mqtt.subscribe_topics)"
    ))
}

impl Protocol for Clients {
    type Session = Session;

    const DELIVERS: bool = true;

    fn awaits_deliveries(&self) -> bool {
        self.delivered.load(Ordering::Relaxed) < self.expected.load(Ordering::Relaxed)
    }

    fn session(&self, number: u32) -> Session {
        let (group, index) = place_of(self.config.groups.iter().map(|of| of.connections), number);
        let of = &self.config.groups[group];
        let part = match of.role {
            Role::Publish => Part::Publisher(self.publisher(index, of)),
            Role::Subscribe => Part::Subscriber(self.subscriber(index)),
        };
        let connection = Connection::new(self.config.version, PACKET_BYTES_MAX);
        Session { index, group, connection, returned_ns: 0, part }
    }

    fn open(&self, session: &mut Session, out: &mut Vec<u8>) -> Opening {
        let group = self.group(session);
        let token = format!("{}{}", self.config.token_prefix, session.index);
        let role = if group.role == Role::Publish { "p" } else { "s" };
        let client_id = format!("{}{role}{}", self.config.client_prefix, session.index);
        let mut properties = PropertiesBuilder::new();
        if group.session_expiry_s > 0 && self.config.version == ProtocolVersion::V5 {
            let expiry = Property::FourBytes(PropertyId::SessionExpiryInterval, group.session_expiry_s);
            properties.push(expiry).expect("BUG: the property has four bytes");
        }
        let connect = Connect {
            keep_alive_s: self.config.keep_alive_s,
            username: Some(&token),
            clean_start: group.clean_start,
            properties: properties.as_properties(),
            ..Connect::new(self.config.version, &client_id)
        };
        session
            .connection
            .connect(&connect, out)
            .expect("BUG: tokens and client ids are checked to be short");
        Opening::Wait
    }

    fn reopening(&self, session: &mut Session, now_ns: u64) {
        session.returned_ns = now_ns;
    }

    fn window(&self, session: &Session) -> usize {
        session.connection.server().receive_maximum.into()
    }

    fn start(&self, session: &mut Session, due: DueTime, out: &mut Vec<u8>) -> Option<Started> {
        let group = &self.config.groups[session.group];
        let Part::Publisher(publisher) = &mut session.part else { return None };
        if group.messages.is_some_and(|messages| publisher.sent >= messages) {
            return None;
        }
        let packet_id = publisher.packet_ids.next();
        let stamp = Stamp {
            run: self.config.run,
            publisher: session.index,
            number: publisher.next,
            intended_ns: due.intended_ns,
            sent_ns: due.sent_ns,
        };
        stamp.write(publisher.packet.render(out, packet_id));
        publisher.next += 1;
        publisher.sent += 1;
        self.expected.fetch_add(publisher.subscribers, Ordering::Relaxed);
        let answer = match group.qos {
            QoS::AtMostOnce => Answer::None,
            QoS::AtLeastOnce | QoS::ExactlyOnce => Answer::Key(packet_id.into()),
        };
        Some(Started { class: group.class, answer })
    }

    fn receive(
        &self,
        session: &mut Session,
        bytes: &[u8],
        out: &mut Vec<u8>,
        done: &mut impl FnMut(Completion<'_>),
    ) -> Result<protocol::Received, String> {
        let mut received = protocol::Received::default();
        let qos = self.group(session).qos;
        while let Some((packet, length)) =
            session.connection.next(&bytes[received.used..]).map_err(|error| error.to_string())?
        {
            received.used += length;
            if let Part::Publisher(publisher) = &mut session.part
                && let Some(step) = acknowledgement(&packet, qos, self.config.version, out)
            {
                publisher.acked += u64::from(step.is_some_and(|last| last.report(length, done)));
                continue;
            }
            match packet {
                Packet::Publish(publish) => self.message(session, &publish, length, out, done),
                Packet::PubRel(release) => {
                    let ack = Packet::PubComp(Ack::success(release.packet_id));
                    encode(&ack, self.config.version, out).expect("BUG: the identifier came in a packet");
                }
                Packet::ConnAck(connack) => received.ready |= self.connected(session, &connack, out)?,
                Packet::SubAck(suback) => {
                    refused(&suback).map_or(Ok(()), Err)?;
                    received.ready = true;
                }
                Packet::PingResp => {}
                Packet::Disconnect(disconnect) => return Err(disconnect.to_string()),
                other => return Err(format!("an unexpected packet: {other:?}")),
            }
        }
        Ok(received)
    }

    fn quiet_ns(&self) -> u64 {
        u64::from(self.config.keep_alive_s) * SECOND_NS / 2
    }

    fn keep_alive(&self, session: &mut Session, out: &mut Vec<u8>) {
        session.connection.ping(out);
    }

    fn close(&self, session: &mut Session, out: &mut Vec<u8>) {
        let mut properties = PropertiesBuilder::new();
        if self.group(session).resume && self.config.version == ProtocolVersion::V5 {
            // Its messages were delivered: it must not stay on the broker.
            let now = Property::FourBytes(PropertyId::SessionExpiryInterval, 0);
            properties.push(now).expect("BUG: the property has four bytes");
        }
        let disconnect = Disconnect { properties: properties.as_properties(), ..Disconnect::NORMAL };
        session.connection.disconnect(&disconnect, out).expect("BUG: a DISCONNECT may have this property");
    }
}

#[cfg(test)]
mod tests {
    use wire::mqtt::{Properties, decode};

    use super::*;
    use crate::broker::options::PhaseClients;
    use load::scenario::Scenario;

    const VERSION: ProtocolVersion = ProtocolVersion::V5;

    /// The clients of a phase of two pairs or sessions, and the connection with this number after CONNACK.
    fn connected(
        scenario: &str,
        phase: usize,
        next: &[u64],
        first: &[u64],
        number: u32,
    ) -> (Clients, Session) {
        let mut scenario = Scenario::load(scenario, &[]).unwrap();
        scenario.phases[phase].mixes.iter_mut().for_each(|mix| mix.connections = 2);
        let PhaseClients { options, groups, topics } =
            PhaseClients::read(&scenario, &scenario.phases[phase]).unwrap();
        let resumes = groups.iter().any(|group| group.resume);
        let clients = Clients::new(Config {
            version: VERSION,
            groups,
            topics,
            payload_bytes: options.payload_bytes,
            token_prefix: options.token_prefix,
            client_prefix: "c".to_owned(),
            keep_alive_s: 60,
            run: 7,
            next: next.to_vec(),
            first: first.to_vec(),
        });
        let mut session = clients.session(number);
        clients.open(&mut session, &mut Vec::new());
        let connack = ConnAck { session_present: resumes, code: 0, properties: Properties::NONE };
        let taken = take(&clients, &mut session, &Packet::ConnAck(connack)).unwrap();
        assert!(taken.1.is_empty());
        (clients, session)
    }

    /// Gives a packet to a connection. Returns what it sends, and the messages that were delivered.
    fn take(
        clients: &Clients,
        session: &mut Session,
        packet: &Packet<'_>,
    ) -> Result<(Vec<u8>, Vec<Operation>), String> {
        let (mut bytes, mut out, mut delivered) = (Vec::new(), Vec::new(), Vec::new());
        encode(packet, VERSION, &mut bytes).unwrap();
        let mut done = |completion: Completion<'_>| {
            if let Answer::Delivery(operation) = completion.answer {
                delivered.push(operation);
            }
        };
        let received = clients.receive(session, &bytes, &mut out, &mut done)?;
        assert_eq!(received.used, bytes.len());
        Ok((out, delivered))
    }

    fn payload(publisher: u32, number: u64) -> Vec<u8> {
        let mut message = blank(100);
        Stamp { run: 7, publisher, number, intended_ns: 40, sent_ns: 50 }.write(&mut message);
        message
    }

    fn deliver(clients: &Clients, session: &mut Session, message: &[u8]) -> (Vec<u8>, Vec<Operation>) {
        let publish = Publish { packet_id: Some(9), ..Publish::new("t", QoS::AtLeastOnce, message) };
        take(clients, session, &Packet::Publish(publish)).unwrap()
    }

    #[test]
    fn a_message_is_due_at_every_subscriber_of_its_topic_and_no_longer_when_it_came() {
        let (clients, mut publisher) = connected("broker-pairs", 0, &[0, 0], &[0, 0], 1);
        let mut out = Vec::new();
        let due = DueTime { intended_ns: 40, wall_ms: 0, sent_ns: 50 };
        clients.start(&mut publisher, due, &mut out).unwrap();
        let sent = decode(&out, Some(VERSION), usize::MAX).unwrap().unwrap().packet;
        let Packet::Publish(sent) = sent else { panic!("{sent:?}") };
        assert_eq!((sent.topic, sent.payload), ("devices/dev-1/bench", &payload(1, 0)[..]));
        assert!(clients.awaits_deliveries());
        let mut subscriber = clients.session(3);
        clients.open(&mut subscriber, &mut Vec::new());
        let connack = ConnAck { session_present: false, code: 0, properties: Properties::NONE };
        let (subscribe, _) = take(&clients, &mut subscriber, &Packet::ConnAck(connack)).unwrap();
        let subscribe = decode(&subscribe, Some(VERSION), usize::MAX).unwrap().unwrap().packet;
        let Packet::Subscribe(subscribe) = subscribe else { panic!("{subscribe:?}") };
        assert_eq!(subscribe.filters().next().unwrap().topic, sent.topic);
        let (ack, delivered) = deliver(&clients, &mut subscriber, &payload(1, 0));
        assert_eq!(ack, [0x40, 2, 0, 9]);
        assert_eq!(delivered, [Operation { class: 1, intended_ns: 40, sent_ns: 50 }]);
        assert!(!clients.awaits_deliveries());
        // A second copy is acknowledged, and neither delivered nor counted.
        assert_eq!(deliver(&clients, &mut subscriber, &payload(1, 0)).1, []);
        // Publisher 0 has another topic.
        assert_eq!(deliver(&clients, &mut subscriber, &payload(0, 0)).1, []);
        let received = subscriber.into_received().unwrap();
        assert_eq!((received.sequences[0].1.repeated, received.foreign), (1, 1));
    }

    #[test]
    fn a_session_that_returns_awaits_what_was_queued_and_counts_from_its_connect() {
        let (clients, mut session) = connected("broker-offline", 2, &[12, 10], &[10, 10], 0);
        assert!(clients.awaits_deliveries());
        clients.reopening(&mut session, 1_000);
        for number in [10, 11] {
            let (_, delivered) = deliver(&clients, &mut session, &payload(0, number));
            assert_eq!(delivered, [Operation { class: 2, intended_ns: 1_000, sent_ns: 1_000 }]);
        }
        assert!(!clients.awaits_deliveries());
    }

    #[test]
    fn a_refused_subscription_and_a_forgotten_session_end_the_connection() {
        let (clients, mut session) = connected("broker-pairs", 0, &[0, 0], &[0, 0], 2);
        let suback = SubAck { packet_id: 1, properties: Properties::NONE, codes: &[0x87] };
        let error = take(&clients, &mut session, &Packet::SubAck(suback)).unwrap_err();
        assert!(error.contains("SUBACK 0x87") && error.contains("mqtt.subscribe_topics"), "{error}");
        let (clients, mut session) = connected("broker-offline", 2, &[0, 0], &[0, 0], 0);
        clients.open(&mut session, &mut Vec::new());
        let connack = ConnAck { session_present: false, code: 0, properties: Properties::NONE };
        let error = take(&clients, &mut session, &Packet::ConnAck(connack)).unwrap_err();
        assert!(error.contains("no session of this client"), "{error}");
    }
}
