//! A blocking MQTT client that checks the server's packets and can send invalid input, and a door on the reference store.

use std::io::{Read, Write};
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::sync::Arc;
use std::time::Duration;

use super::moody::{Moods, MoodyStore};
use gateway::mqtt::{MqttDoor, MqttOptions};
use hub::registry::{NewDevice, Registry};
use hub::{Hub, Metrics};
use model::limits::IngestLimits;
use model::{TimeRange, Value};
use store::memory::MemoryStore;
use store::{Scan, Store};
use wire::mqtt::client::Connection;
use wire::mqtt::{
    ConnAck, Connect, Packet, Properties, ProtocolVersion, QoS, ReasonCode, encode, encode_publish,
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
        let directory = tempfile::tempdir().unwrap();
        let (registry, _) = Registry::open(&directory.path().join("registry.sqlite")).unwrap();
        for (name, token) in [("car", "t-car"), ("van", "t-van")] {
            let device = NewDevice { name, token: Some(token), ..NewDevice::default() };
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
        Client { socket, version, connection: Connection::new(version, 1 << 20), unread: Vec::new() }
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
    SubAck(u16, Vec<u8>),
    UnsubAck(u16),
    Pong,
    Disconnect(ReasonCode, Option<String>),
    /// The server closed the connection.
    Closed,
}

pub(crate) struct Client {
    pub(crate) socket: TcpStream,
    pub(crate) version: ProtocolVersion,
    connection: Connection,
    unread: Vec<u8>,
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
        Packet::UnsubAck(ack) => Reply::UnsubAck(ack.packet_id),
        Packet::PingResp => Reply::Pong,
        Packet::Disconnect(disconnect) => Reply::Disconnect(disconnect.reason, text(disconnect.properties)),
        other => panic!("a server never sends {other:?}"),
    }
}
