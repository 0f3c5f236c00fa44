//! A blocking MQTT client that checks the server's packets and can send invalid input, and a door on the reference store.

use std::collections::VecDeque;
use std::io::{Read, Write};
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::sync::Arc;
use std::time::Duration;

use super::moody::{Moods, MoodyStore};
use gateway::mqtt::{MqttDoor, MqttOptions};
use hub::registry::{NewDevice, ProfileFields, Registry};
use hub::{Hub, Metrics};
use model::limits::IngestLimits;
use model::{TimeRange, Value};
use store::memory::MemoryStore;
use store::{Reader, Scan, Store};
use wire::mqtt::client::Connection;
use wire::mqtt::{
    Ack, ConnAck, Connect, Filter, Packet, PacketType, Properties, PropertyId, ProtocolVersion, Publish, QoS,
    ReasonCode, Subscribe, Unsubscribe, encode, encode_publish, whole_packets,
};

pub(crate) const TELEMETRY: &str = "v1/devices/me/telemetry";
/// Long enough for a busy machine, short enough to fail a test.
const PATIENCE: Duration = Duration::from_secs(20);

/// A running door with the devices `car` (token `t-car`) and `van` (token `t-van`).
pub(crate) struct Fixture {
    pub(crate) store: Arc<MemoryStore>,
    pub(crate) moods: Arc<Moods>,
    pub(crate) hub: Arc<Hub>,
    pub(crate) door: Option<MqttDoor>,
    pub(crate) address: SocketAddr,
    _directory: tempfile::TempDir,
}

impl Fixture {
    pub(crate) fn new() -> Self {
        Self::with(MqttOptions::default())
    }

    pub(crate) fn with(options: MqttOptions) -> Self {
        Self::with_profile(options, None)
    }

    /// The data of the profile of both devices.
    pub(crate) fn with_profile(options: MqttOptions, data: Option<&str>) -> Self {
        let directory = tempfile::tempdir().unwrap();
        let (registry, _) = Registry::open(&directory.path().join("registry.sqlite")).unwrap();
        if data.is_some() {
            let fields = ProfileFields { name: "own", data, ..ProfileFields::default() };
            registry.create_profile(registry.default_tenant(), fields).unwrap();
        }
        for (name, token) in [("car", "t-car"), ("van", "t-van")] {
            let profile = data.map(|_| "own");
            let device = NewDevice { name, token: Some(token), profile, ..NewDevice::default() };
            registry.add_device(registry.default_tenant(), device).unwrap();
        }
        let store = Arc::new(MemoryStore::new());
        let moods = Arc::<Moods>::default();
        let shared: Arc<dyn Store> =
            Arc::new(MoodyStore { store: Arc::clone(&store), moods: Arc::clone(&moods) });
        let kv = Arc::new(kv::MemoryStore::new());
        let hub =
            Hub::start(shared, kv, registry, IngestLimits::default(), Arc::new(Metrics::new())).unwrap();
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let door = MqttDoor::start(Arc::clone(&hub), listener, options).unwrap();
        let address = door.local_address();
        Self { store, moods, hub, door: Some(door), address, _directory: directory }
    }

    pub(crate) fn connect(&self, version: ProtocolVersion, client_id: &str, token: &str) -> Client {
        let mut client = self.open(version);
        assert_eq!(client.say_hello(client_id, token, true).code, 0);
        client
    }

    pub(crate) fn open(&self, version: ProtocolVersion) -> Client {
        let socket = TcpStream::connect(self.address).unwrap();
        socket.set_read_timeout(Some(PATIENCE)).unwrap();
        let connection = Connection::new(version, 1 << 20);
        let (unread, inbox, terms) = (Vec::new(), VecDeque::new(), Vec::new());
        Client { socket, version, connection, unread, inbox, terms, largest: 0 }
    }

    /// All values of one key of a device's table, oldest first.
    pub(crate) fn values(&self, table: &str, device: &str, key: &str) -> Vec<Value> {
        let key_of_series = model::SeriesKey::device(table, device).unwrap();
        let Some(series) = self.store.find_series(&key_of_series) else { return Vec::new() };
        let mut values = Vec::new();
        let scan = Scan {
            series,
            keys: vec![key.to_owned()],
            range: TimeRange::ALL,
            order: store::Order::Ascending,
            limit: usize::MAX,
        };
        let visit = &mut |row: store::ScannedRow<'_>| {
            values.extend(row.values[0].map(|value| value.to_owned()));
            std::ops::ControlFlow::Continue(())
        };
        self.store.scan(&scan, visit).unwrap();
        values
    }

    pub(crate) fn dead_letters(&self, device: &str, key: &str) -> Vec<String> {
        let text = |value| match value {
            Value::String(text) => text,
            other => panic!("dead letters hold text, not {other:?}"),
        };
        self.values(hub::DEAD_LETTER_TABLE, device, key).into_iter().map(text).collect()
    }

    /// Waits until the condition holds.
    pub(crate) fn wait_for(&self, what: &str, mut is_there: impl FnMut() -> bool) {
        let begin = std::time::Instant::now();
        while !is_there() {
            assert!(begin.elapsed() < PATIENCE, "{what} did not come");
            std::thread::sleep(Duration::from_millis(5));
        }
    }

    pub(crate) fn metrics(&self) -> String {
        self.hub.metrics_text()
    }
}

impl Drop for Fixture {
    fn drop(&mut self) {
        if let Some(door) = self.door.take() {
            door.stop();
        }
        // A sealed store returns its error again at the close. The tests that seal it expect this.
        drop(self.hub.close());
    }
}

/// What a server may send to a device, without borrowed parts.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Reply {
    ConnAck {
        session_present: bool,
        code: u8,
    },
    PubAck(u16, ReasonCode, Option<String>),
    PubRec(u16, ReasonCode, Option<String>),
    PubComp(u16, ReasonCode),
    PubRel(u16, ReasonCode),
    Publish(Message),
    SubAck(u16, Vec<u8>),
    UnsubAck(u16, Vec<u8>),
    Pong,
    Disconnect(ReasonCode, Option<String>),
    /// The server closed the connection.
    Closed,
}

/// A PUBLISH of the server.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Message {
    pub(crate) topic: String,
    pub(crate) payload: String,
    pub(crate) qos: QoS,
    pub(crate) retain: bool,
    pub(crate) dup: bool,
    pub(crate) packet_id: Option<u16>,
    pub(crate) alias: Option<u16>,
    pub(crate) identifiers: Vec<u32>,
    /// The other properties, in their order.
    pub(crate) properties: Vec<String>,
}

impl Message {
    fn of(publish: &Publish<'_>) -> Self {
        let apart = [PropertyId::TopicAlias, PropertyId::SubscriptionIdentifier];
        let others = publish.properties.iter().filter(|property| !apart.contains(&property.id()));
        Self {
            topic: publish.topic.to_owned(),
            payload: String::from_utf8(publish.payload.to_vec()).unwrap(),
            qos: publish.qos,
            retain: publish.retain,
            dup: publish.dup,
            packet_id: publish.packet_id,
            alias: publish.properties.topic_alias(),
            identifiers: publish.properties.subscription_identifiers().collect(),
            properties: others.map(|property| format!("{property:?}")).collect(),
        }
    }
}

pub(crate) struct Client {
    pub(crate) socket: TcpStream,
    pub(crate) version: ProtocolVersion,
    connection: Connection,
    unread: Vec<u8>,
    /// Messages that came before an expected answer.
    inbox: VecDeque<Message>,
    /// The properties of CONNACK.
    pub(crate) terms: Vec<String>,
    /// Bytes of the largest packet so far.
    pub(crate) largest: usize,
}

impl Client {
    pub(crate) fn say_hello(&mut self, client_id: &str, token: &str, clean_start: bool) -> ConnAck<'static> {
        let connect = Connect::new(self.version, client_id);
        self.connect_with(Connect { clean_start, keep_alive_s: 60, username: Some(token), ..connect })
    }

    /// Sends bytes as the CONNECT.
    pub(crate) fn connect_with_bytes(&mut self, bytes: &[u8]) {
        self.connection.connect(&Connect::new(self.version, ""), &mut Vec::new()).unwrap();
        self.send_bytes(bytes);
    }

    pub(crate) fn connect_with(&mut self, connect: Connect<'_>) -> ConnAck<'static> {
        let mut bytes = Vec::new();
        self.connection.connect(&connect, &mut bytes).unwrap();
        self.send_bytes(&bytes);
        match self.next() {
            Reply::ConnAck { session_present, code } => {
                ConnAck { session_present, code, properties: Properties::NONE }
            }
            other => panic!("CONNACK was expected, not {other:?}"),
        }
    }

    pub(crate) fn send(&mut self, packet: &Packet<'_>) {
        let mut bytes = Vec::new();
        encode(packet, self.version, &mut bytes).unwrap();
        self.send_bytes(&bytes);
    }

    pub(crate) fn send_bytes(&mut self, bytes: &[u8]) {
        // The server may have closed the connection already. Tests look at the packets that it sent before.
        drop(self.socket.write_all(bytes));
    }

    pub(crate) fn publish(&mut self, qos: QoS, packet_id: u16, payload: &[u8]) {
        self.publish_to(TELEMETRY, qos, packet_id, payload);
    }

    pub(crate) fn publish_to(&mut self, topic: &str, qos: QoS, packet_id: u16, payload: &[u8]) {
        let mut bytes = Vec::new();
        encode_publish(topic, qos, packet_id, payload, self.version, &mut bytes).unwrap();
        self.send_bytes(&bytes);
    }

    /// The next packet of the server.
    pub(crate) fn next(&mut self) -> Reply {
        loop {
            if let Some((packet, bytes)) = self.connection.next(&self.unread).unwrap() {
                let reply = reply_of(&packet);
                if let Packet::ConnAck(ack) = &packet {
                    self.terms = ack.properties.iter().map(|property| format!("{property:?}")).collect();
                }
                self.largest = self.largest.max(bytes);
                self.unread.drain(..bytes);
                return reply;
            }
            let mut buffer = [0; 4096];
            match self.socket.read(&mut buffer) {
                Ok(0) => return Reply::Closed,
                Ok(bytes) => self.unread.extend_from_slice(&buffer[..bytes]),
                Err(error) if error.kind() == std::io::ErrorKind::ConnectionReset => return Reply::Closed,
                Err(error) => panic!("the server says nothing: {error}"),
            }
        }
    }

    /// All packets that come until the server closes the connection, as bytes.
    pub(crate) fn rest(&mut self) -> Vec<Vec<u8>> {
        let mut bytes = std::mem::take(&mut self.unread);
        if let Err(error) = self.socket.read_to_end(&mut bytes) {
            assert_eq!(error.kind(), std::io::ErrorKind::ConnectionReset, "the server does not close");
        }
        let mut at = 0;
        let packet = |(_, length): (PacketType, usize)| {
            at += length;
            bytes[at - length..at].to_vec()
        };
        whole_packets(&bytes).map(packet).collect()
    }

    /// Waits until this many PINGRESP have come, without a look at other packets.
    pub(crate) fn wait_for_pongs(&mut self, count: usize) {
        let is_pong = |(packet, _): &(PacketType, usize)| *packet == PacketType::PingResp;
        while whole_packets(&self.unread).filter(is_pong).count() < count {
            let mut buffer = [0; 4096];
            let bytes = self.socket.read(&mut buffer).unwrap();
            assert!(bytes > 0, "the server closed the connection");
            self.unread.extend_from_slice(&buffer[..bytes]);
        }
    }

    /// The next packet that is not a PUBLISH. [`message`](Self::message) returns those that come before it.
    pub(crate) fn answer(&mut self) -> Reply {
        loop {
            match self.next() {
                Reply::Publish(message) => self.inbox.push_back(message),
                other => return other,
            }
        }
    }

    /// The next PUBLISH.
    pub(crate) fn message(&mut self) -> Message {
        match self.inbox.pop_front() {
            Some(message) => message,
            None => match self.next() {
                Reply::Publish(message) => message,
                other => panic!("a message was expected, not {other:?}"),
            },
        }
    }

    /// The next PUBLISH, whatever answers come before it.
    pub(crate) fn message_among_answers(&mut self) -> Message {
        loop {
            if let Some(message) = self.inbox.pop_front() {
                return message;
            }
            if let Reply::Publish(message) = self.next() {
                return message;
            }
        }
    }

    /// Whether no message comes before the answer to the second of two pings: the first one may be answered in the pass that sends
    /// the message.
    pub(crate) fn has_no_message(&mut self) -> bool {
        for _ in 0..2 {
            self.send(&Packet::PingReq);
            assert_eq!(self.answer(), Reply::Pong);
        }
        self.inbox.is_empty()
    }

    /// Subscribes to filters with their options. Returns the codes of the answer.
    pub(crate) fn subscribe(&mut self, filters: &[(&str, u8)]) -> Vec<u8> {
        self.subscribe_with(filters, Properties::NONE)
    }

    pub(crate) fn subscribe_with(&mut self, filters: &[(&str, u8)], properties: Properties<'_>) -> Vec<u8> {
        let filters: Vec<_> =
            filters.iter().map(|(topic, options)| Filter { topic, options: *options }).collect();
        let layout = Subscribe::layout(&filters).unwrap();
        self.send(&Packet::Subscribe(Subscribe::new(77, properties, &layout)));
        match self.answer() {
            Reply::SubAck(77, codes) => codes,
            other => panic!("SUBACK was expected, not {other:?}"),
        }
    }

    pub(crate) fn unsubscribe(&mut self, filters: &[&str]) -> Vec<u8> {
        let layout = Unsubscribe::layout(filters).unwrap();
        self.send(&Packet::Unsubscribe(Unsubscribe::new(78, Properties::NONE, &layout)));
        match self.answer() {
            Reply::UnsubAck(78, codes) => codes,
            other => panic!("UNSUBACK was expected, not {other:?}"),
        }
    }

    /// Publishes with QoS 1. Returns the code of the answer.
    pub(crate) fn tell(&mut self, topic: &str, payload: &str) -> ReasonCode {
        self.tell_with(&Publish::new(topic, QoS::AtLeastOnce, payload.as_bytes()))
    }

    pub(crate) fn tell_with(&mut self, publish: &Publish<'_>) -> ReasonCode {
        self.send(&Packet::Publish(Publish { packet_id: Some(79), ..*publish }));
        match self.answer() {
            Reply::PubAck(79, code, _) => code,
            other => panic!("PUBACK was expected, not {other:?}"),
        }
    }

    /// Acknowledges a message of QoS 1.
    pub(crate) fn acknowledge(&mut self, message: &Message) {
        self.send(&Packet::PubAck(Ack::success(message.packet_id.unwrap())));
    }

    /// Whether the server sends nothing for a moment, not even an answer to a ping.
    pub(crate) fn hears_nothing(&mut self) -> bool {
        self.socket.set_read_timeout(Some(Duration::from_millis(200))).unwrap();
        let waited = self.socket.peek(&mut [0]);
        self.socket.set_read_timeout(Some(PATIENCE)).unwrap();
        self.unread.is_empty() && waited.is_err()
    }

    /// Whether the server has nothing to send: it answers a ping before it sends any other packet.
    pub(crate) fn is_silent(&mut self) -> bool {
        self.send(&Packet::PingReq);
        self.next() == Reply::Pong
    }
}

fn reply_of(packet: &Packet<'_>) -> Reply {
    let text = |properties: Properties<'_>| properties.reason_string().map(str::to_owned);
    match packet {
        Packet::ConnAck(ack) => Reply::ConnAck { session_present: ack.session_present, code: ack.code },
        Packet::PubAck(ack) => Reply::PubAck(ack.packet_id, ack.reason, text(ack.properties)),
        Packet::PubRec(ack) => Reply::PubRec(ack.packet_id, ack.reason, text(ack.properties)),
        Packet::PubComp(ack) => Reply::PubComp(ack.packet_id, ack.reason),
        Packet::SubAck(ack) => Reply::SubAck(ack.packet_id, ack.codes.to_vec()),
        Packet::PubRel(release) => Reply::PubRel(release.packet_id, release.reason),
        Packet::Publish(publish) => Reply::Publish(Message::of(publish)),
        Packet::UnsubAck(ack) => Reply::UnsubAck(ack.packet_id, ack.codes.to_vec()),
        Packet::PingResp => Reply::Pong,
        Packet::Disconnect(disconnect) => Reply::Disconnect(disconnect.reason, text(disconnect.properties)),
        other => panic!("a server never sends {other:?}"),
    }
}
