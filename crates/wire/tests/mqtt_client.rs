//! The MQTT client: conversations in `testdata/mqtt/client.txt`, and arbitrary ones with a server that loses connections.

use std::collections::VecDeque;

use proptest::collection::vec;
use proptest::prelude::*;
use wire::mqtt::client::{Connection, Event, Fault, Limits, ReceiveError, SendError, Session};
use wire::mqtt::{
    Ack, ConnAck, Connect, Disconnect, Filter, Packet, Properties, PropertiesBuilder, Property, PropertyId,
    ProtocolVersion, Publish, QoS, ReasonCode, Will, decode, encode,
};

use crate::mqtt_vectors::unhex;

const CONVERSATIONS: &str = include_str!("../testdata/mqtt/client.txt");
const LIMITS: Limits = Limits { packet_bytes_max: 1 << 16, messages_max: 100 };

/// A client whose unread bytes and events are kept.
struct Client {
    session: Session,
    unread: Vec<u8>,
    out: Vec<u8>,
    /// Debug texts of events.
    events: VecDeque<String>,
    fault: Option<ReceiveError>,
}

impl Client {
    fn new(version: ProtocolVersion, limits: Limits) -> Self {
        let session = Session::new(version, limits);
        Self { session, unread: Vec::new(), out: Vec::new(), events: VecDeque::new(), fault: None }
    }

    fn feed(&mut self, bytes: &[u8]) {
        self.unread.extend_from_slice(bytes);
        let mut used = 0;
        while self.fault.is_none() {
            match self.session.next(&self.unread[used..], &mut self.out) {
                Ok(None) => break,
                Ok(Some((event, bytes))) => {
                    self.events.push_back(format!("{event:?}"));
                    used += bytes;
                }
                Err(error) => self.fault = Some(error),
            }
        }
        self.unread.drain(..used);
    }

    /// Runs a command of a conversation.
    fn command(&mut self, line: &str) -> Result<(), SendError> {
        let mut words = line.split_whitespace();
        let name = words.next().unwrap();
        let words: Vec<&str> = words.collect();
        let out = &mut self.out;
        match (name, &words[..]) {
            ("connect", words) => {
                self.unread.clear();
                return connect(&mut self.session, words, out);
            }
            ("publish", [qos, topic, payload, rest @ ..]) => {
                let publish = Publish::new(topic, qos_of(qos), payload.as_bytes());
                let publish = Publish { retain: rest == ["retain"], ..publish };
                self.session.publish(&publish, out)?;
            }
            ("subscribe", [topic, qos]) => {
                let filter = Filter { topic, options: qos_of(qos) as u8 };
                self.session.subscribe(&[filter], Properties::NONE, out)?;
            }
            ("unsubscribe", [topic]) => {
                self.session.unsubscribe(&[topic], Properties::NONE, out)?;
            }
            ("ack", [packet_id, rest @ ..]) => {
                let reason = rest.first().map_or(ReasonCode::SUCCESS, |code| code_of(code));
                self.session.acknowledge(packet_id.parse().unwrap(), reason, out)?;
            }
            ("ping", []) => self.session.ping(out),
            ("disconnect", [code]) => {
                let disconnect = Disconnect { reason: code_of(code), properties: Properties::NONE };
                self.session.disconnect(&disconnect, out)?;
            }
            _ => panic!("no command: {line}"),
        }
        Ok(())
    }
}

fn connect(session: &mut Session, words: &[&str], out: &mut Vec<u8>) -> Result<(), SendError> {
    let mut properties = PropertiesBuilder::new();
    let mut connect = Connect::new(session.connection().version(), "c");
    for word in words {
        match word.split_once('=').unwrap_or((word, "")) {
            ("clean", _) => connect.clean_start = true,
            ("resume", _) => connect.clean_start = false,
            ("user", name) => connect.username = Some(name),
            ("password", word) => connect.password = Some(word.as_bytes()),
            ("keep_alive", seconds) => connect.keep_alive_s = seconds.parse().unwrap(),
            ("receive_maximum", number) => {
                let number = number.parse().unwrap();
                properties.push(Property::TwoBytes(PropertyId::ReceiveMaximum, number)).unwrap();
            }
            ("will", will) => {
                let [topic, qos, payload] = will.split(':').collect::<Vec<_>>()[..] else { panic!("{will}") };
                let (qos, payload) = (qos_of(qos), payload.as_bytes());
                connect.will =
                    Some(Will { qos, retain: false, properties: Properties::NONE, topic, payload });
            }
            _ => panic!("no option of connect: {word}"),
        }
    }
    let properties = properties.as_properties();
    Ok(session.connect(&Connect { properties, ..connect }, out)?)
}

fn qos_of(text: &str) -> QoS {
    [QoS::AtMostOnce, QoS::AtLeastOnce, QoS::ExactlyOnce][text.parse::<usize>().unwrap()]
}

fn code_of(text: &str) -> ReasonCode {
    ReasonCode(u8::from_str_radix(text.strip_prefix("0x").unwrap(), 16).unwrap())
}

/// Runs one conversation with the server's bytes in pieces of a length.
fn run(name: &str, version: ProtocolVersion, limits: Limits, lines: &[&str], piece_bytes: usize) {
    let mut client = Client::new(version, limits);
    let mut refused: Option<String> = None;
    for line in lines {
        let place = format!("{name}, pieces of {piece_bytes} bytes: {line}");
        let (word, rest) = line.split_once(' ').unwrap_or((line, ""));
        if word != "refused" {
            assert_eq!(refused.take(), None, "before {place}");
        }
        match word {
            "out" => assert_eq!(hex(&std::mem::take(&mut client.out)), hex(&unhex(rest)), "{place}"),
            "in" => {
                assert!(client.events.is_empty(), "{place}: before came {:?}", client.events);
                unhex(rest).chunks(piece_bytes).for_each(|piece| client.feed(piece));
            }
            "event" => {
                let event =
                    client.events.pop_front().unwrap_or_else(|| panic!("{place}: {:?}", client.fault));
                assert!(rest.split(';').all(|part| event.contains(part.trim())), "{place}: {event}");
            }
            "fault" => {
                let fault = client.fault.take().unwrap_or_else(|| panic!("{place}: no fault"));
                let (offset, text) = rest.split_once(' ').unwrap();
                assert!(fault.to_string().contains(text), "{place}: {fault}");
                assert_eq!(fault.offset, offset.parse::<u64>().unwrap(), "{place}: {fault}");
                assert!(fault.reason_code().is_error());
            }
            "refused" => {
                let refused = refused.take().unwrap_or_else(|| panic!("{place}: nothing was"));
                assert!(refused.contains(rest), "{place}: {refused}");
            }
            _ => refused = client.command(line).err().map(|error: SendError| error.to_string()),
        }
    }
    assert_eq!((client.events.len(), client.fault, refused), (0, None, None), "{name}: {:?}", client.events);
    assert_eq!(hex(&client.out), "", "{name}");
}

fn hex(bytes: &[u8]) -> String {
    bytes.iter().map(|byte| format!("{byte:02x} ")).collect()
}

#[test]
fn conversations_go_as_written_however_the_bytes_are_cut() {
    let text: Vec<&str> = CONVERSATIONS
        .lines()
        .map(str::trim)
        .filter(|line| !line.is_empty() && !line.starts_with('#'))
        .collect();
    let cases = text.split(|line| line.starts_with("== ")).skip(1);
    let heads = text.iter().filter_map(|line| line.strip_prefix("== "));
    for (head, lines) in heads.zip(cases) {
        let mut columns = head.split('|').map(str::trim);
        let name = columns.next().unwrap();
        let version = match columns.next() {
            Some("3") => ProtocolVersion::V31,
            Some("4") => ProtocolVersion::V311,
            Some("5") => ProtocolVersion::V5,
            other => panic!("{name}: version {other:?}"),
        };
        let messages_max =
            columns.next().map(|limit| limit.strip_prefix("messages=").unwrap().parse().unwrap());
        let limits = Limits { messages_max: messages_max.unwrap_or(LIMITS.messages_max), ..LIMITS };
        for piece_bytes in [1, 2, 3, 5, usize::MAX] {
            run(name, version, limits, lines, piece_bytes);
        }
    }
}

#[test]
fn identifiers_in_use_are_skipped_when_the_numbers_begin_again() {
    let mut session = Session::new(ProtocolVersion::V311, LIMITS);
    let mut out = Vec::new();
    session.connect(&Connect::new(ProtocolVersion::V311, "c"), &mut out).unwrap();
    let accepted = [0x20, 2, 0, 0];
    assert!(matches!(session.next(&accepted, &mut out), Ok(Some((Event::Connected(_), 4)))));
    let message = Publish::new("t", QoS::AtLeastOnce, b"x");
    assert_eq!(session.publish(&message, &mut out), Ok(Some(1)));
    for expected in (2..=u16::MAX).chain(2..=3) {
        let id = session.publish(&message, &mut out).unwrap().unwrap();
        assert_eq!(id, expected);
        let mut ack = Vec::new();
        encode(&Packet::PubAck(Ack::success(id)), ProtocolVersion::V311, &mut ack).unwrap();
        assert!(session.next(&ack, &mut out).unwrap().is_some());
        out.clear();
    }
    assert_eq!(session.unanswered(), 1);
}

#[test]
fn the_short_way_for_a_puback_agrees_with_the_codec() {
    for version in [ProtocolVersion::V31, ProtocolVersion::V311, ProtocolVersion::V5] {
        let mut connection = Connection::new(version, LIMITS.packet_bytes_max);
        connection.connect(&Connect::new(version, "c"), &mut Vec::new()).unwrap();
        let (connack, properties): (&[u8], _) = match version {
            ProtocolVersion::V5 => (&[0x20, 3, 0, 0, 0], 1),
            _ => (&[0x20, 2, 0, 0], 0),
        };
        assert!(connection.next(connack).unwrap().is_some() && connection.is_open());
        for bytes in [&[0x40, 2, 1, 2, 0x40][..], &[0x40, 2, 0, 0], &[0x40, 3, 0, 1, 0x97]] {
            for cut in 0..=bytes.len() {
                let expected = decode(&bytes[..cut], Some(version), LIMITS.packet_bytes_max);
                let found = { connection }.next(&bytes[..cut]);
                match (expected, found) {
                    (Ok(expected), Ok(found)) => {
                        assert_eq!(found, expected.map(|decoded| (decoded.packet, decoded.consumed)));
                    }
                    (Err(error), Err(found)) => {
                        assert_eq!(found.fault, Fault::Decode(error));
                        assert_eq!(found.offset, (4 + properties + error.offset) as u64, "{found}");
                    }
                    (expected, found) => panic!("{bytes:02x?}, {cut}: {expected:?}, {found:?}"),
                }
            }
        }
    }
}

#[test]
fn a_message_with_an_alias_is_not_kept_for_a_connection_that_does_not_know_it() {
    let mut session = Session::new(ProtocolVersion::V5, LIMITS);
    let mut alias = PropertiesBuilder::new();
    alias.push(Property::TwoBytes(PropertyId::TopicAlias, 1)).unwrap();
    let message = Publish { properties: alias.as_properties(), ..Publish::new("t", QoS::AtLeastOnce, b"x") };
    let refused = session.publish(&message, &mut Vec::new()).unwrap_err();
    assert!(matches!(refused, SendError::Encode(_)), "{refused}");
    assert_eq!(session.unanswered(), 0);
}

/// A step of a conversation with the model of a server.
#[derive(Debug, Clone)]
enum Step {
    Publish(QoS),
    /// The server handles this many bytes of the client, and the client what the server has sent.
    Exchange(usize),
    /// The connection breaks with everything that is under way. The server may lose the session too.
    Break {
        server_forgets: bool,
    },
}

fn step() -> impl Strategy<Value = Step> {
    let qos = prop_oneof![Just(QoS::AtLeastOnce), Just(QoS::ExactlyOnce)];
    prop_oneof![
        4 => qos.prop_map(Step::Publish),
        4 => (0..60_usize).prop_map(Step::Exchange),
        1 => Just(Step::Break { server_forgets: false }),
    ]
}

fn step_of_a_forgetful_server() -> impl Strategy<Value = Step> {
    prop_oneof![8 => step(), 1 => Just(Step::Break { server_forgets: true })]
}

/// A server by the specification: it stores each message and keeps the identifiers of QoS 2 until PUBREL.
#[derive(Debug, Default)]
struct Server {
    receive_maximum: u16,
    /// Payloads in the order in which they were taken, with their QoS.
    stored: Vec<(Vec<u8>, QoS)>,
    /// Identifiers between PUBREC and PUBREL.
    unreleased: Vec<u16>,
    has_session: bool,
    unread: Vec<u8>,
    is_connected: bool,
    /// Messages without a last answer on this connection.
    in_flight: usize,
}

impl Server {
    fn take(&mut self, version: ProtocolVersion, bytes: &[u8], out: &mut Vec<u8>) {
        self.unread.extend_from_slice(bytes);
        let unread = std::mem::take(&mut self.unread);
        let mut used = 0;
        loop {
            let known = self.is_connected.then_some(version);
            let Some(decoded) = decode(&unread[used..], known, 1 << 16).unwrap() else { break };
            used += decoded.consumed;
            self.answer(version, &decoded.packet, out);
        }
        self.unread = unread[used..].to_vec();
    }

    fn answer(&mut self, version: ProtocolVersion, packet: &Packet<'_>, out: &mut Vec<u8>) {
        let answer = match packet {
            Packet::Connect(_) => {
                let mut properties = PropertiesBuilder::new();
                let maximum = Property::TwoBytes(PropertyId::ReceiveMaximum, self.receive_maximum);
                properties.push(maximum).unwrap();
                let v5 = version == ProtocolVersion::V5;
                let properties = if v5 { properties.as_properties() } else { Properties::NONE };
                self.is_connected = true;
                let session_present = std::mem::replace(&mut self.has_session, true);
                let connack = Packet::ConnAck(ConnAck { session_present, code: 0, properties });
                return encode(&connack, version, out).unwrap();
            }
            Packet::Publish(publish) => {
                let id = publish.packet_id.unwrap();
                let is_known = self.unreleased.contains(&id);
                assert!(!is_known || publish.dup, "{id} is in use");
                if !is_known {
                    self.stored.push((publish.payload.to_vec(), publish.qos));
                }
                self.in_flight += 1;
                assert!(version != ProtocolVersion::V5 || self.in_flight <= self.receive_maximum.into());
                if publish.qos == QoS::ExactlyOnce {
                    if !is_known {
                        self.unreleased.push(id);
                    }
                    Packet::PubRec(Ack::success(id))
                } else {
                    self.in_flight -= 1;
                    Packet::PubAck(Ack::success(id))
                }
            }
            Packet::PubRel(ack) => {
                self.unreleased.retain(|id| *id != ack.packet_id);
                self.in_flight = self.in_flight.saturating_sub(1);
                Packet::PubComp(Ack::success(ack.packet_id))
            }
            other => panic!("a publisher sent {other:?}"),
        };
        encode(&answer, version, out).unwrap();
    }
}

/// Runs the steps, then lets everything arrive. Returns what the server stored and how often the client was told of each message.
fn converse(
    version: ProtocolVersion,
    receive_maximum: u16,
    steps: &[Step],
) -> (Vec<(Vec<u8>, QoS)>, Vec<QoS>) {
    let mut client = Client::new(version, LIMITS);
    let mut server = Server { receive_maximum, ..Server::default() };
    let mut published = Vec::new();
    let connect = Connect { clean_start: false, ..Connect::new(version, "c") };
    client.session.connect(&connect, &mut client.out).unwrap();
    let exchange = |client: &mut Client, server: &mut Server, bytes: usize| {
        let sent: Vec<u8> = client.out.drain(..bytes.min(client.out.len())).collect();
        let mut answers = Vec::new();
        server.take(version, &sent, &mut answers);
        client.feed(&answers);
        assert_eq!(client.fault, None);
    };
    for step in steps {
        match step {
            Step::Publish(qos) => {
                let payload = (published.len() as u32).to_be_bytes();
                client.session.publish(&Publish::new("t", *qos, &payload), &mut client.out).unwrap();
                published.push(*qos);
            }
            Step::Exchange(bytes) => exchange(&mut client, &mut server, *bytes),
            Step::Break { server_forgets } => {
                client.unread.clear();
                client.out.clear();
                (server.is_connected, server.in_flight) = (false, 0);
                server.unread.clear();
                if *server_forgets {
                    server.has_session = false;
                    server.unreleased.clear();
                }
                client.session.connect(&connect, &mut client.out).unwrap();
            }
        }
    }
    for _ in 0..3 * steps.len() + 3 {
        exchange(&mut client, &mut server, usize::MAX);
    }
    assert_eq!((client.session.unanswered(), client.out.len()), (0, 0));
    let told = client.events.iter();
    let told = told.filter(|event| event.starts_with("Acknowledged") || event.starts_with("Settled")).count();
    assert_eq!(told, published.len(), "each message has one last answer");
    (server.stored, published)
}

fn times_stored(stored: &[(Vec<u8>, QoS)], number: usize) -> usize {
    stored.iter().filter(|(payload, _)| payload[..] == (number as u32).to_be_bytes()).count()
}

/// Bytes of a server: packets that clients may get, with any identifier.
fn answers() -> impl Strategy<Value = Vec<u8>> {
    let packet = (0..9_usize, 1..6_u8).prop_map(|(kind, id)| match kind {
        0 => vec![0x40, 2, 0, id],
        1 => vec![0x50, 2, 0, id],
        2 => vec![0x70, 2, 0, id],
        3 => vec![0x62, 2, 0, id],
        4 => vec![0xd0, 0],
        5 => vec![0x30, 3, 0, 1, b't'],
        6 => vec![0x32, 6, 0, 1, b't', 0, id, b'x'],
        7 => vec![0x34, 6, 0, 1, b't', 0, id, b'x'],
        _ => vec![0x90, 3, 0, id, 1],
    });
    vec(packet, 0..12).prop_map(|packets| [vec![0x20, 2, 0, 0], packets.concat()].concat())
}

proptest! {
    #[test]
    fn a_message_of_qos_2_is_stored_once_and_one_of_qos_1_at_least_once(
        is_v5: bool, receive_maximum in 1..5_u16, steps in vec(step(), 0..60),
    ) {
        let version = if is_v5 { ProtocolVersion::V5 } else { ProtocolVersion::V311 };
        let (stored, published) = converse(version, receive_maximum, &steps);
        for (number, qos) in published.iter().enumerate() {
            let times = times_stored(&stored, number);
            prop_assert!(times == 1 || times > 1 && *qos == QoS::AtLeastOnce, "message {number}: {times} times");
        }
        // The first copies come in the order in which the client published.
        let mut first: Vec<&[u8]> = Vec::new();
        for (payload, _) in &stored {
            if !first.contains(&&payload[..]) {
                first.push(payload);
            }
        }
        prop_assert!(first.is_sorted());
    }

    #[test]
    fn no_message_is_lost_with_the_session_of_the_server(
        receive_maximum in 1..5_u16, steps in vec(step_of_a_forgetful_server(), 0..60),
    ) {
        let (stored, published) = converse(ProtocolVersion::V5, receive_maximum, &steps);
        prop_assert!((0..published.len()).all(|number| times_stored(&stored, number) > 0));
    }

    #[test]
    fn any_cut_of_the_bytes_gives_the_same_events_answers_and_fault(
        bytes in answers(), damage in any::<Option<(prop::sample::Index, u8)>>(), cuts in vec(1..7_usize, 1..20),
        publishes in vec(0..3_usize, 0..4),
    ) {
        let mut bytes = bytes;
        if let Some((at, value)) = damage {
            let at = at.index(bytes.len());
            bytes[at] = value;
        }
        let mut clients = [(); 2].map(|()| Client::new(ProtocolVersion::V311, LIMITS));
        for client in &mut clients {
            client.command("connect clean").unwrap();
            for qos in publishes.iter().filter(|qos| **qos > 0) {
                client.command(&format!("publish {qos} t x")).unwrap();
            }
        }
        let [whole, cut] = &mut clients;
        whole.feed(&bytes);
        let mut rest = &bytes[..];
        for bytes in cuts.iter().cycle() {
            if rest.is_empty() {
                break;
            }
            let (piece, others) = rest.split_at((*bytes).min(rest.len()));
            cut.feed(piece);
            rest = others;
        }
        prop_assert_eq!(&whole.events, &cut.events);
        prop_assert_eq!(hex(&whole.out), hex(&cut.out));
        prop_assert_eq!(whole.fault, cut.fault);
    }
}
