//! The fleet with a minimal server that records all packets of the vehicles.

use std::collections::HashMap;
use std::io::{Read, Write};
use std::net::{TcpListener, TcpStream};
use std::sync::mpsc;

use wire::mqtt::{self, Ack, ConnAck, Packet, Properties, ProtocolVersion, ReasonCode};

use super::*;
use crate::fleet;

/// The packets that the server received.
#[derive(Debug)]
enum Seen {
    Connect { version: ProtocolVersion, client_id: String, username: String },
    Publish { client_id: String, payload: serde_json::Value },
    Disconnect,
}

fn serve(mut stream: TcpStream, drop_first_publish: bool, seen: &mpsc::Sender<Seen>) {
    let (mut input, mut version, mut name) = (Vec::new(), None, String::new());
    let mut bytes = [0; 4096];
    loop {
        while let Some(decoded) = mqtt::decode(&input, version, 65_536).unwrap() {
            let mut out = Vec::new();
            let consumed = decoded.consumed;
            match decoded.packet {
                Packet::Connect(connect) => {
                    version = Some(connect.version);
                    name = connect.client_id.into();
                    let username = connect.username.unwrap().into();
                    seen.send(Seen::Connect { version: connect.version, client_id: name.clone(), username })
                        .unwrap();
                    let ack = ConnAck { session_present: false, code: 0, properties: Properties::NONE };
                    mqtt::encode(&Packet::ConnAck(ack), connect.version, &mut out).unwrap();
                }
                Packet::Publish(publish) => {
                    let payload = serde_json::from_slice(publish.payload).unwrap();
                    seen.send(Seen::Publish { client_id: name.clone(), payload }).unwrap();
                    if drop_first_publish {
                        return;
                    }
                    let packet_id = publish.packet_id.unwrap();
                    let ack = Ack { packet_id, reason: ReasonCode::SUCCESS, properties: Properties::NONE };
                    mqtt::encode(&Packet::PubAck(ack), version.unwrap(), &mut out).unwrap();
                }
                Packet::Disconnect(_) => seen.send(Seen::Disconnect).unwrap(),
                other => panic!("a vehicle sent {other:?}"),
            }
            input.drain(..consumed);
            stream.write_all(&out).unwrap();
        }
        match stream.read(&mut bytes) {
            Ok(0) | Err(_) => return,
            Ok(len) => input.extend_from_slice(&bytes[..len]),
        }
    }
}

/// Starts a fleet against a server that hangs up at the first publish of each of its first `drops` connections.
fn fleet_and_server(count: usize, drops: usize) -> (Simulator, mpsc::Receiver<Seen>) {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let address = listener.local_addr().unwrap();
    let (sender, seen) = mpsc::channel();
    std::thread::spawn(move || {
        for (index, stream) in listener.incoming().enumerate() {
            let (stream, sender) = (stream.unwrap(), sender.clone());
            std::thread::spawn(move || serve(stream, index < drops, &sender));
        }
    });
    let credentials = |index| Credentials { name: format!("vehicle-{index}"), token: format!("tok-{index}") };
    let vehicles = fleet::vehicles(count, 1).into_iter().enumerate();
    let vehicles = vehicles.map(|(index, vehicle)| (vehicle, credentials(index))).collect();
    let plan = Plan { address, tls: None, vehicles, period: Duration::from_millis(50) };
    (Simulator::start(plan).unwrap(), seen)
}

#[test]
fn every_vehicle_connects_reports_and_disconnects() {
    let (simulator, seen) = fleet_and_server(4, 0);
    let mut connected = HashMap::new();
    let mut reports: HashMap<String, Vec<u64>> = HashMap::new();
    while reports.len() < 4 || reports.values().any(|times| times.len() < 3) {
        match seen.recv().unwrap() {
            Seen::Connect { version, client_id, username } => {
                assert_eq!(username.strip_prefix("tok-"), client_id.strip_prefix("vehicle-"));
                connected.insert(client_id, version);
            }
            Seen::Publish { client_id, payload } => {
                assert_eq!(payload["values"].as_object().unwrap().len(), 15);
                reports.entry(client_id).or_default().push(payload["ts"].as_u64().unwrap());
            }
            Seen::Disconnect => panic!("a vehicle left too early"),
        }
    }
    assert_eq!(connected["vehicle-0"], ProtocolVersion::V5);
    assert_eq!(connected["vehicle-1"], ProtocolVersion::V311);
    for times in reports.values() {
        assert!(times.is_sorted_by(|a, b| a < b), "{times:?}");
    }
    let summary = simulator.stop();
    assert_eq!((summary.acked, summary.refused, summary.lost), (summary.sent, 0, 0), "{summary:?}");
    let leaves = (0..).map_while(|_| seen.recv_timeout(Duration::from_secs(5)).ok());
    assert_eq!(leaves.filter(|seen| matches!(seen, Seen::Disconnect)).take(4).count(), 4);
}

#[test]
fn a_report_that_was_not_acknowledged_is_sent_again() {
    let (simulator, seen) = fleet_and_server(1, 1);
    let mut times = Vec::new();
    while times.len() < 4 {
        if let Seen::Publish { payload, .. } = seen.recv().unwrap() {
            times.push(payload["ts"].as_u64().unwrap());
        }
    }
    assert_eq!(times[0], times[1], "the report of the lost connection comes first on the next one");
    let summary = simulator.stop();
    assert_eq!(summary.lost, 1);
    assert_eq!(summary.acked, summary.sent);
}
