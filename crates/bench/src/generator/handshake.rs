//! Opening connections: a bounded number of handshakes at a time, each with a deadline, every failure with its cause.

use std::collections::BTreeMap;
use std::io::{self, ErrorKind};
use std::net::{SocketAddr, TcpStream};
use std::time::{Duration, Instant};

use socket2::{Domain, Protocol as Transport, Socket, Type};
use wire::mqtt::{ConnectReturnCode, Packet, ReasonCode};

use super::codec::{self, Protocol};
use super::connection::{Connection, Phase};
use super::poller::{Interest, Poller};
use super::{Plan, Shared};
use crate::error::Result;
use crate::limits::{HANDSHAKE_TIMEOUT_S, HANDSHAKES_MAX, LOOP_SLEEP_MAX_MS};

/// Failures after which opening the rest is pointless.
const FAILURES_MAX: u64 = 100;
const NO_CONNACK: &str = "no CONNACK within 10 s (the server does not accept any more: \
                          look at its open-file limit and its connection limit)";

/// Opens the connections of one worker. They end up in `connections` in device order, all of them open if the
/// returned failures are empty.
pub(super) struct Opener<'a> {
    pub(super) plan: &'a Plan,
    pub(super) shared: &'a Shared,
    pub(super) poller: &'a mut Poller,
    pub(super) connections: &'a mut Vec<Connection>,
    pub(super) read_buffer: &'a mut [u8],
}

impl Opener<'_> {
    pub(super) fn open_all(&mut self, devices: std::ops::Range<u32>) -> Result<BTreeMap<String, u64>> {
        let mut failures = BTreeMap::new();
        let mut pending = 0;
        let mut next = devices.start;
        let mut last_success = Instant::now();
        while (next < devices.end || pending > 0) && failures.values().sum::<u64>() < FAILURES_MAX {
            while next < devices.end && pending < HANDSHAKES_MAX {
                self.begin(next)?;
                (next, pending) = (next + 1, pending + 1);
            }
            let ready = self.poller.wait(Duration::from_millis(LOOP_SLEEP_MAX_MS))?;
            for index in 0..ready {
                let token = self.poller.event(index).token;
                let Some(settled) = self.step(token).transpose() else { continue };
                pending -= 1;
                match settled {
                    Ok(()) => last_success = Instant::now(),
                    Err(e) => *failures.entry(describe(&e)).or_insert(0) += 1,
                }
            }
            if last_success.elapsed() > Duration::from_secs(HANDSHAKE_TIMEOUT_S) {
                *failures.entry(NO_CONNACK.to_owned()).or_insert(0) += pending as u64;
                break;
            }
        }
        let missing = u64::from(devices.end - next);
        if missing > 0 && !failures.is_empty() {
            failures.insert("not tried after these failures".to_owned(), missing);
        }
        Ok(failures)
    }

    fn begin(&mut self, device: u32) -> Result<()> {
        let stream = connect(self.plan.target).map_err(crate::Error::io("opening a socket"))?;
        let token = u32::try_from(self.connections.len()).expect("BUG: device numbers are u32");
        self.poller.add(&stream, token, Interest::ReadWrite)?;
        self.connections.push(Connection::new(device, stream));
        Ok(())
    }

    /// Moves one handshake on. `Ok(Some(()))` when it is open, an error when it failed for good.
    fn step(&mut self, token: u32) -> io::Result<Option<()>> {
        let connection = &mut self.connections[token as usize];
        if connection.phase != Phase::Handshake {
            return Ok(None);
        }
        let stepped = step(connection, self.plan, self.poller, token, self.read_buffer);
        match &stepped {
            Ok(Some(())) => self.shared.add_opened(),
            Ok(None) => {}
            Err(_) => {
                connection.phase = Phase::Closed;
                self.poller.remove(&connection.stream);
            }
        }
        stepped
    }
}

fn step(
    connection: &mut Connection,
    plan: &Plan,
    poller: &Poller,
    token: u32,
    read_buffer: &mut [u8],
) -> io::Result<Option<()>> {
    if connection.wants_write {
        if let Some(error) = connection.stream.take_error()? {
            return Err(error);
        }
        send_connect(connection, plan)?;
        connection.wants_write = false;
        poller.modify(&connection.stream, token, Interest::Read).map_err(io::Error::other)?;
        return Ok(None);
    }
    let mut answer = None;
    let alive = connection.read(read_buffer, plan.protocol, |connection, packet| {
        answer.get_or_insert_with(|| accept(connection, plan.protocol, &packet));
    })?;
    match answer {
        Some(answer) => answer.map(Some),
        None if !alive => Err(refused("the server closed the connection before CONNACK".to_owned())),
        None => Ok(None),
    }
}

fn accept(connection: &mut Connection, protocol: Protocol, packet: &Packet<'_>) -> io::Result<()> {
    let Packet::ConnAck(connack) = packet else {
        return Err(refused(format!("instead of CONNACK came {packet:?}")));
    };
    if connack.code != ConnectReturnCode::ACCEPTED {
        let why = connack.properties.reason_string().map(|why| format!(": {why}")).unwrap_or_default();
        return Err(refused(format!("CONNACK {}{why}", refusal_text(protocol, connack.code))));
    }
    connection.open(connack.properties.receive_maximum());
    Ok(())
}

/// A CONNACK refusal with its name in the connection's protocol version.
fn refusal_text(protocol: Protocol, code: u8) -> String {
    match (protocol, code) {
        (Protocol::V5, _) => ReasonCode(code).to_string(),
        (Protocol::V311, ConnectReturnCode::UNACCEPTABLE_PROTOCOL_VERSION) => {
            "1 (unacceptable protocol version)".to_owned()
        }
        (Protocol::V311, ConnectReturnCode::IDENTIFIER_REJECTED) => {
            "2 (client identifier rejected)".to_owned()
        }
        (Protocol::V311, ConnectReturnCode::SERVER_UNAVAILABLE) => "3 (server unavailable)".to_owned(),
        (Protocol::V311, ConnectReturnCode::BAD_USER_NAME_OR_PASSWORD) => {
            "4 (bad user name or password)".to_owned()
        }
        (Protocol::V311, ConnectReturnCode::NOT_AUTHORIZED) => "5 (not authorized)".to_owned(),
        (Protocol::V311, other) => other.to_string(),
    }
}

fn send_connect(connection: &mut Connection, plan: &Plan) -> io::Result<()> {
    let token = format!("{}{}", plan.token_prefix, connection.device);
    let client_id = format!("bench-{}-{}", std::process::id(), connection.device);
    let mut packet = Vec::with_capacity(64);
    codec::connect(&mut packet, plan.protocol, &client_id, &token, plan.keep_alive_s);
    connection.send(&packet)
}

fn connect(target: SocketAddr) -> io::Result<TcpStream> {
    let socket = Socket::new(Domain::for_address(target), Type::STREAM, Some(Transport::TCP))?;
    socket.set_nonblocking(true)?;
    socket.set_tcp_nodelay(true)?;
    match socket.connect(&target.into()) {
        // EINPROGRESS (115) is how a non-blocking connect begins.
        Err(e) if e.raw_os_error() != Some(rustix::io::Errno::INPROGRESS.raw_os_error()) => Err(e),
        _ => Ok(socket.into()),
    }
}

fn refused(what: String) -> io::Error {
    io::Error::new(ErrorKind::ConnectionRefused, what)
}

fn describe(error: &io::Error) -> String {
    match error.kind() {
        ErrorKind::ConnectionRefused if error.raw_os_error().is_some() => {
            "connection refused (nobody listens)".to_owned()
        }
        ErrorKind::AddrNotAvailable => "no local port left (net.ipv4.ip_local_port_range)".to_owned(),
        _ => error.to_string(),
    }
}
