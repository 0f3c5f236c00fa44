//! Opening connections: a bounded number of handshakes at a time, each with a deadline, every failure with its cause.

use std::io::{self, ErrorKind};
use std::net::{IpAddr, SocketAddr, TcpStream};

use socket2::{Domain, Protocol as Transport, SockRef, Socket, Type};

use super::connection::Phase;
use super::feed::Feed;
use super::poller::{Interest, Ready};
use super::worker::Worker;
use crate::driver::{Lifetime, Opening, Protocol};
use crate::engine::Close;
use crate::error::{Error, Result};
use crate::limits::{HANDSHAKE_TIMEOUT_S, HANDSHAKES_MAX, LOOP_SLEEP_MAX_MS};
use crate::recorder::Operation;

/// Failures after which opening the rest is pointless.
const FAILURES_MAX: u64 = 100;
const SECOND_NS: u64 = 1_000_000_000;
const NO_ANSWER: &str = "no answer to the handshake within 10 s (the server does not accept any more: \
                         look at its open-file limit and its connection limit)";

impl<P: Protocol> Worker<'_, P> {
    /// Opens all connections; failures are in `self.failures`.
    pub(super) fn open_all(&mut self) -> Result<()> {
        let count = self.connections.len() as u32;
        // Every worker opens its share of the rate.
        let share = f64::from(count) / f64::from(self.plan.connections().max(1));
        let gap_ns = self.plan.open_rate.map_or(0.0, |rate| 1e9 / (rate * share));
        let due_ns = |index: u32| (f64::from(index) * gap_ns) as u64;
        let mut next = 0;
        let mut checked_ns = 0;
        while (next < count || self.pending > 0) && self.failed_openings() < FAILURES_MAX {
            if self.shared.is_stopped() {
                return Ok(());
            }
            let now_ns = self.now_ns();
            while next < count && self.pending < HANDSHAKES_MAX && due_ns(next) <= now_ns {
                if self.connections[next as usize].lifetime == Lifetime::OnDemand {
                    self.connections[next as usize].phase = Phase::Resting;
                    self.shared.add_opened();
                } else {
                    self.begin(next)?;
                }
                next += 1;
            }
            let sleep_ns = LOOP_SLEEP_MAX_MS * 1_000_000;
            let until_due = if next < count && self.pending < HANDSHAKES_MAX {
                due_ns(next).saturating_sub(now_ns)
            } else {
                sleep_ns
            };
            self.turn(until_due.min(sleep_ns))?;
            if now_ns >= checked_ns + SECOND_NS {
                checked_ns = now_ns;
                self.end_late_handshakes();
            }
        }
        let missing = u64::from(count - next);
        if missing > 0 && !self.failures.is_empty() {
            self.failures.insert("not tried after these failures".to_owned(), missing);
        }
        Ok(())
    }

    fn failed_openings(&self) -> u64 {
        self.failures.values().sum()
    }

    /// Starts to connect; an error here is ours (no more files), not the server's.
    pub(super) fn begin(&mut self, index: u32) -> Result<()> {
        let now_ns = self.now_ns();
        let connection = &mut self.connections[index as usize];
        let source = match self.plan.sources.len() {
            0 => None,
            count => Some(self.plan.sources[connection.number as usize % count]),
        };
        self.pending += 1;
        let stream = match connect(self.plan.target, source) {
            Ok(stream) => stream,
            Err(error) if is_ours(&error) => return Err(Error::io("opening a socket")(error)),
            Err(error) => {
                connection.phase = Phase::Handshake;
                self.lost(index, &error);
                return Ok(());
            }
        };
        let mut first = Vec::new();
        let opening = self.protocol.open(&mut connection.session, &mut first);
        self.poller.add(&stream, index, Interest::ReadWrite)?;
        connection.begin(stream, opening == Opening::Wait, first, now_ns);
        Ok(())
    }

    /// The socket of a connection under way has become ready for something.
    pub(super) fn connected(&mut self, index: u32, event: Ready, waits: bool) -> Result<()> {
        if !event.writable {
            return Ok(());
        }
        let connection = &mut self.connections[index as usize];
        let Some(stream) = &connection.stream else { return Ok(()) };
        let refused = match stream.take_error() {
            Ok(None) => connection.flush().err(),
            Ok(error) => error,
            Err(error) => Some(error),
        };
        if let Some(error) = refused {
            self.lost(index, &error);
            return Ok(());
        }
        let connection = &mut self.connections[index as usize];
        if !connection.is_blocked()
            && let Some(stream) = &connection.stream
        {
            connection.wants_write = false;
            self.poller.modify(stream, index, Interest::Read)?;
        }
        if waits {
            connection.phase = Phase::Handshake;
        } else {
            self.ready(index);
        }
        Ok(())
    }

    /// The handshake is over: the connection can be used.
    pub(super) fn ready(&mut self, index: u32) {
        let now_ns = self.now_ns();
        let connection = &mut self.connections[index as usize];
        if connection.phase == Phase::Open {
            return;
        }
        connection.open(self.protocol.window(&connection.session));
        let began_ns = connection.began_ns;
        let reopened = connection.reopening.take();
        self.pending -= 1;
        self.handshakes.record_ns(now_ns.saturating_sub(began_ns));
        match reopened {
            None if std::mem::take(&mut connection.renewing) => {
                connection.opened_from_ns = Some(began_ns);
                self.mark_dirty(index);
            }
            None => self.shared.add_opened(),
            Some(operation) => {
                self.recorder.completed(&operation, now_ns, 0);
                self.shared.add_completed(1);
                self.rest(index);
            }
        }
    }

    /// A connection could not be opened, for the first time or again.
    pub(super) fn opening_failed(&mut self, index: u32, error: &io::Error) {
        let text = describe(error);
        self.pending -= 1;
        let connection = &mut self.connections[index as usize];
        if connection.renewing {
            return self.not_renewed(index, error, &text);
        }
        connection.close();
        let reopened = connection.reopening.take();
        match reopened {
            None => *self.failures.entry(text).or_insert(0) += 1,
            Some(operation) => {
                self.recorder.failed(operation.class, &format!("not opened again: {text}"));
                self.rest(index);
            }
        }
    }

    /// A reopening is over: the connection may be reopened once more.
    fn rest(&mut self, index: u32) {
        self.outstanding -= 1;
        let group = self.group_of(index);
        if let Some(Feed::Reopen(reopen)) = self.feeds.get_mut(group) {
            reopen.rested.push_back(index);
        }
    }

    /// A connection of the group is due to be opened again.
    pub(super) fn reopening_due(&mut self, group: usize, intended_ns: u64) -> Result<()> {
        self.recorder.planned(intended_ns);
        self.outstanding += 1;
        if let Some(Feed::Reopen(reopen)) = self.feeds.get_mut(group) {
            reopen.waiting.push_back(intended_ns);
        }
        self.reopen_waiting()
    }

    /// Begins every reopening for which there is a connection.
    pub(super) fn reopen_waiting(&mut self) -> Result<()> {
        for group in 0..self.feeds.len() {
            while let Some((index, intended_ns, close, class)) = self.next_reopening(group) {
                self.reopen(index, Operation { class, intended_ns, sent_ns: self.now_ns() }, close)?;
            }
        }
        Ok(())
    }

    fn next_reopening(&mut self, group: usize) -> Option<(u32, u64, Close, u16)> {
        let Feed::Reopen(reopen) = self.feeds.get_mut(group)? else { return None };
        if reopen.waiting.is_empty() || reopen.rested.is_empty() {
            return None;
        }
        let (index, intended_ns) = (reopen.rested.pop_front()?, reopen.waiting.pop_front()?);
        Some((index, intended_ns, reopen.close, reopen.class))
    }

    fn reopen(&mut self, index: u32, operation: Operation, close: Close) -> Result<()> {
        self.recorder.sent(&operation, 0);
        let connection = &mut self.connections[index as usize];
        if close == Close::Reset
            && let Some(stream) = &connection.stream
        {
            // Where the option cannot be set the connection ends with FIN, which the server counts as well.
            let _ = SockRef::from(stream).set_linger(Some(std::time::Duration::ZERO));
        }
        let outstanding = connection.close();
        connection.reopening = Some(operation);
        self.outstanding -= outstanding;
        self.begin(index)
    }

    /// Gives up handshakes that took too long.
    pub(super) fn end_late_handshakes(&mut self) {
        if self.pending == 0 {
            return;
        }
        let now_ns = self.now_ns();
        for index in 0..self.connections.len() as u32 {
            let connection = &self.connections[index as usize];
            let under_way = matches!(connection.phase, Phase::Connecting { .. } | Phase::Handshake);
            if under_way && now_ns.saturating_sub(connection.began_ns) >= HANDSHAKE_TIMEOUT_S * SECOND_NS {
                self.lost(index, &io::Error::new(ErrorKind::TimedOut, NO_ANSWER));
            }
        }
    }
}

fn connect(target: SocketAddr, source: Option<IpAddr>) -> io::Result<TcpStream> {
    let socket = Socket::new(Domain::for_address(target), Type::STREAM, Some(Transport::TCP))?;
    socket.set_nonblocking(true)?;
    socket.set_tcp_nodelay(true)?;
    if let Some(source) = source {
        socket.bind(&SocketAddr::new(source, 0).into())?;
    }
    match socket.connect(&target.into()) {
        // EINPROGRESS (115) is how a non-blocking connect begins.
        Err(e) if e.raw_os_error() != Some(rustix::io::Errno::INPROGRESS.raw_os_error()) => Err(e),
        _ => Ok(socket.into()),
    }
}

/// Whether this process, not the network or the server, is at its limit.
fn is_ours(error: &io::Error) -> bool {
    let ours = [rustix::io::Errno::MFILE, rustix::io::Errno::NFILE, rustix::io::Errno::NOMEM];
    ours.iter().any(|errno| error.raw_os_error() == Some(errno.raw_os_error()))
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
