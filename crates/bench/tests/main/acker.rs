//! A small MQTT 3.1.1 server for tests. It answers CONNECT and PUBLISH, counts messages, and can stall, refuse or close
//! connections.

use std::io::{Read, Write};
use std::net::{Shutdown, SocketAddr, TcpListener, TcpStream};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::thread;
use std::time::Duration;

use wire::mqtt::{Ack, ConnAck, Packet, Properties, ProtocolVersion, decode, encode};

/// How the server behaves.
#[derive(Debug, Clone, Copy, Default)]
pub(crate) struct Behaviour {
    /// Stops answering once, after this many messages, for this long.
    pub(crate) stall: Option<(u64, Duration)>,
    /// The CONNACK code.
    pub(crate) connack: u8,
    /// Closes the connection after this many of its messages, without an answer to the last.
    pub(crate) hang_up_after: Option<u64>,
    /// Answers no PUBLISH.
    pub(crate) silent: bool,
}

#[derive(Debug, Default)]
struct State {
    behaviour: Behaviour,
    messages: AtomicU64,
    stalled: AtomicBool,
    payload_bytes: AtomicU64,
}

/// A running server. Its threads end with their sockets.
#[derive(Debug)]
pub(crate) struct Acker {
    pub(crate) address: SocketAddr,
    state: Arc<State>,
}

impl Acker {
    pub(crate) fn start(behaviour: Behaviour) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let address = listener.local_addr().unwrap();
        let state = Arc::new(State { behaviour, ..State::default() });
        let shared = Arc::clone(&state);
        thread::spawn(move || {
            for stream in listener.incoming().flatten() {
                let shared = Arc::clone(&shared);
                thread::spawn(move || serve(stream, &shared));
            }
        });
        Self { address, state }
    }

    pub(crate) fn messages(&self) -> u64 {
        self.state.messages.load(Ordering::SeqCst)
    }

    pub(crate) fn payload_bytes(&self) -> u64 {
        self.state.payload_bytes.load(Ordering::SeqCst)
    }
}

/// Serves a connection until the peer closes it.
fn serve(mut stream: TcpStream, state: &State) {
    let version = ProtocolVersion::V311;
    let mut input = Vec::new();
    let mut buffer = [0; 16 * 1024];
    let (mut known, mut mine) = (None, 0);
    loop {
        match stream.read(&mut buffer) {
            Ok(0) | Err(_) => return,
            Ok(count) => input.extend_from_slice(&buffer[..count]),
        }
        let (mut out, mut used) = (Vec::new(), 0);
        while let Some(decoded) = decode(&input[used..], known, 1 << 20).unwrap() {
            used += decoded.consumed;
            match decoded.packet {
                Packet::Connect(connect) => {
                    assert!(connect.username.is_some_and(|name| name.starts_with("tok")));
                    known = Some(version);
                    let code = state.behaviour.connack;
                    let connack = ConnAck { session_present: false, code, properties: Properties::NONE };
                    encode(&Packet::ConnAck(connack), version, &mut out).unwrap();
                }
                Packet::Publish(publish) => {
                    mine += 1;
                    state.payload_bytes.fetch_add(publish.payload.len() as u64, Ordering::SeqCst);
                    let count = state.messages.fetch_add(1, Ordering::SeqCst) + 1;
                    if state.behaviour.hang_up_after.is_some_and(|after| mine >= after) {
                        // The answers must arrive: closing with unread bytes would reset the connection.
                        let _ = stream.write_all(&out);
                        let _ = stream.shutdown(Shutdown::Write);
                        while stream.read(&mut buffer).is_ok_and(|count| count > 0) {}
                        return;
                    }
                    stall(state, count);
                    if !state.behaviour.silent {
                        let ack = Ack::success(publish.packet_id.unwrap());
                        encode(&Packet::PubAck(ack), version, &mut out).unwrap();
                    }
                }
                Packet::PingReq => encode(&Packet::PingResp, version, &mut out).unwrap(),
                Packet::Disconnect(_) => return,
                other => panic!("a publisher sent {other:?}"),
            }
        }
        input.drain(..used);
        if stream.write_all(&out).is_err() {
            return;
        }
    }
}

fn stall(state: &State, count: u64) {
    if let Some((after, pause)) = state.behaviour.stall
        && count >= after
        && !state.stalled.swap(true, Ordering::SeqCst)
    {
        thread::sleep(pause);
    }
}
