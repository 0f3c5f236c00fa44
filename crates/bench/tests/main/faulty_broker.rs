//! A small MQTT 5 broker for tests: it forwards messages by exact topic, and treats one of them badly.

use std::collections::BTreeMap;
use std::io::{Read as _, Write as _};
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::sync::{Arc, Mutex};
use std::thread;
use std::time::Duration;

use wire::mqtt::{
    Ack, ConnAck, Packet, Properties, ProtocolVersion, Publish, QoS, SubAck, decode, encode, encode_puback,
};

/// What happens to the tenth message.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Fault {
    /// Nothing.
    None,
    /// It is acknowledged and not forwarded.
    Lose,
    /// It is forwarded twice.
    Double,
    /// It is forwarded after the next message of its topic.
    Swap,
    /// Its last byte changes.
    Change,
    /// It goes to the subscribers of another topic.
    Misroute,
    /// It is acknowledged at once, and forwarded after [`DELAY`].
    Delay,
}

/// How late a delayed message is.
pub(crate) const DELAY: Duration = Duration::from_millis(300);
/// The number of the message that is treated badly.
pub(crate) const BAD: u64 = 10;
const VERSION: ProtocolVersion = ProtocolVersion::V5;

#[derive(Debug)]
struct State {
    fault: Fault,
    messages: u64,
    subscribers: BTreeMap<String, Vec<TcpStream>>,
    /// A message that waits for the next one of its topic.
    held: Option<(String, Vec<u8>)>,
    next_id: u16,
}

/// Starts a broker, whose threads end with their sockets.
pub(crate) fn start(fault: Fault) -> SocketAddr {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let address = listener.local_addr().unwrap();
    let state = State { fault, messages: 0, subscribers: BTreeMap::new(), held: None, next_id: 0 };
    let state = Arc::new(Mutex::new(state));
    thread::spawn(move || {
        for stream in listener.incoming().flatten() {
            let state = Arc::clone(&state);
            thread::spawn(move || serve(stream, &state));
        }
    });
    address
}

fn serve(mut stream: TcpStream, state: &Mutex<State>) {
    let (mut input, mut buffer, mut version) = (Vec::new(), [0; 16 * 1024], None);
    loop {
        match stream.read(&mut buffer) {
            Ok(0) | Err(_) => return,
            Ok(count) => input.extend_from_slice(&buffer[..count]),
        }
        let mut used = 0;
        while let Some(decoded) = decode(&input[used..], version, 1 << 20).unwrap() {
            used += decoded.consumed;
            let mut state = state.lock().unwrap();
            let mut out = Vec::new();
            match decoded.packet {
                Packet::Connect(_) => {
                    version = Some(VERSION);
                    let connack = ConnAck { session_present: false, code: 0, properties: Properties::NONE };
                    encode(&Packet::ConnAck(connack), VERSION, &mut out).unwrap();
                }
                Packet::Subscribe(subscribe) => {
                    for filter in subscribe.filters() {
                        let known = state.subscribers.entry(filter.topic.to_owned()).or_default();
                        known.push(stream.try_clone().unwrap());
                    }
                    let codes = vec![1; subscribe.filters().count()];
                    let suback = SubAck {
                        packet_id: subscribe.packet_id,
                        properties: Properties::NONE,
                        codes: &codes,
                    };
                    encode(&Packet::SubAck(suback), VERSION, &mut out).unwrap();
                }
                Packet::Publish(publish) => {
                    state.publish(&publish);
                    encode_puback(publish.packet_id.unwrap(), VERSION, &mut out);
                }
                Packet::PingReq => encode(&Packet::PingResp, VERSION, &mut out).unwrap(),
                Packet::PubAck(Ack { .. }) => {}
                Packet::Disconnect(_) => return,
                other => panic!("a client sent {other:?}"),
            }
            if stream.write_all(&out).is_err() {
                return;
            }
        }
        input.drain(..used);
    }
}

impl State {
    fn publish(&mut self, publish: &Publish<'_>) {
        self.messages += 1;
        let (topic, mut payload) = (publish.topic.to_owned(), publish.payload.to_vec());
        match self.fault {
            _ if self.messages != BAD => {}
            Fault::None => {}
            Fault::Lose => return,
            Fault::Double => self.forward(&topic, &payload),
            Fault::Swap => return self.held = Some((topic, payload)),
            Fault::Change => *payload.last_mut().unwrap() ^= 1,
            Fault::Misroute => {
                let other = self.subscribers.keys().find(|known| **known != topic).unwrap().clone();
                return self.forward(&other, &payload);
            }
            Fault::Delay => return self.forward_late(&topic, &payload),
        }
        self.forward(&topic, &payload);
        if let Some((topic, payload)) = self.held.take_if(|(held, _)| *held == topic) {
            self.forward(&topic, &payload);
        }
    }

    fn forward(&mut self, topic: &str, payload: &[u8]) {
        let packet = self.packet(topic, payload);
        for subscriber in self.subscribers.get_mut(topic).into_iter().flatten() {
            subscriber.write_all(&packet).unwrap();
        }
    }

    fn forward_late(&mut self, topic: &str, payload: &[u8]) {
        let packet = self.packet(topic, payload);
        let subscribers = self.subscribers.get(topic).into_iter().flatten();
        let subscribers: Vec<TcpStream> =
            subscribers.map(|subscriber| subscriber.try_clone().unwrap()).collect();
        thread::spawn(move || {
            thread::sleep(DELAY);
            for mut subscriber in subscribers {
                subscriber.write_all(&packet).unwrap();
            }
        });
    }

    fn packet(&mut self, topic: &str, payload: &[u8]) -> Vec<u8> {
        self.next_id = self.next_id % u16::MAX + 1;
        let mut out = Vec::new();
        let message =
            Publish { packet_id: Some(self.next_id), ..Publish::new(topic, QoS::AtLeastOnce, payload) };
        encode(&Packet::Publish(message), VERSION, &mut out).unwrap();
        out
    }
}
