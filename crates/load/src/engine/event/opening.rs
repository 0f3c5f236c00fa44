//! Opening connections: a bounded number of handshakes at a time, each with a deadline. Every failure is recorded with
//! its cause.

use std::io::{self, ErrorKind};
use std::net::TcpStream;

use clients::tls::TlsClient;
use socket2::SockRef;

use super::connection::Phase;
use super::feed::{Feed, Reopen};
use super::poller::{Interest, Ready};
use super::socket::{self, ConnectOptions};
use super::worker::Worker;
use crate::engine::{AfterReopen, Close};
use crate::error::{Error, Result};
use crate::limits::{HANDSHAKES_MAX, LOOP_SLEEP_MAX_MS};
use crate::protocol::{Lifetime, Opening, Protocol};
use crate::recorder::Operation;

/// Number of failures after which the worker opens no more connections.
const FAILURES_MAX: u64 = 100;
/// Recorded beside the failures: SYNs that the kernel sent again, seconds after the first, because no answer came.
pub const SYNS_REPEATED: &str = "SYNs sent again";
/// Connects for which the kernel sent a SYN again.
pub const CONNECTS_REPEATED: &str = "connects whose SYN was sent again";
/// Connections that the worker did not try to open.
pub const GIVEN_UP: &str = "connections not tried after sustained failure";

impl<P: Protocol> Worker<'_, P> {
    /// Opens all connections. `self.failures` holds the failures.
    pub(super) fn open_all(&mut self) -> Result<()> {
        let count = self.connections.len() as u32;
        // Every worker opens its share of the rate.
        let share = f64::from(count) / f64::from(self.plan.connections().max(1));
        let gap_ns = self.plan.open_rate.map_or(0.0, |rate| 1e9 / (rate * share));
        let due_ns = |index: u32| (f64::from(index) * gap_ns) as u64;
        let mut next = 0;
        while (next < count || self.pending > 0) && self.failed_openings() < FAILURES_MAX {
            if self.shared.is_stopped() {
                return Ok(());
            }
            let now_ns = self.now_ns();
            while next < count && self.pending < HANDSHAKES_MAX && due_ns(next) <= now_ns {
                if self.connections[next as usize].lifetime == Lifetime::OnDemand {
                    self.connections[next as usize].phase = Phase::BetweenConnections;
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
            self.poll_once(until_due.min(sleep_ns))?;
            self.end_late_handshakes();
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

    /// Starts to connect. An error here comes from this machine (no more files), not from the server.
    pub(super) fn begin(&mut self, index: u32) -> Result<()> {
        let now_ns = self.now_ns();
        let stamped = self.asks_for_stamps(index);
        let target = self.plan.target_of(self.group_of(index));
        let connection = &mut self.connections[index as usize];
        let source = match self.plan.sources.len() {
            0 => None,
            count => Some(self.plan.sources[connection.number as usize % count]),
        };
        self.pending += 1;
        let options = ConnectOptions { target, source, keep_alive: self.plan.connect.keep_alive, stamped };
        let stream = match socket::connect(&options) {
            Ok(stream) => stream,
            Err(error) if socket::is_local_limit(&error) => return Err(Error::io("opening a socket")(error)),
            Err(error) => {
                connection.phase = Phase::Handshake;
                self.lost(index, &error);
                return Ok(());
            }
        };
        let mut first = Vec::new();
        let opening = self.protocol.open(&mut connection.session, &mut first);
        self.poller.add(&stream, index, Interest::ReadWrite)?;
        let tls = self.plan.tls.as_ref().map(TlsClient::session);
        connection.begin(stream, tls, opening == Opening::Wait, first, now_ns);
        self.begun.push_back((now_ns, index));
        Ok(())
    }

    /// Handles a socket that became ready while it was connecting.
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
        let closes = self.closes_at_once(index);
        let connection = &mut self.connections[index as usize];
        let has_tls = connection.tls.is_some();
        if !connection.is_blocked()
            && (has_tls || !closes)
            && let Some(stream) = &connection.stream
        {
            connection.wants_write = false;
            self.poller.modify(stream, index, Interest::Read)?;
        }
        if has_tls {
            connection.phase = Phase::TlsHandshake { waits };
        } else if waits {
            connection.phase = Phase::Handshake;
        } else {
            self.ready(index);
        }
        Ok(())
    }

    /// Handles the end of the handshake.
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
                self.count_repeated(index, operation.class);
                self.last_received_ns = now_ns;
                self.recorder.completed(&operation, now_ns, 0);
                self.shared.add_completed(1);
                self.reopened(index, operation.intended_ns, now_ns);
            }
        }
    }

    /// Records the SYNs that the kernel sent again to open this connection.
    fn count_repeated(&mut self, index: u32, class: u16) {
        let Some(stream) = &self.connections[index as usize].stream else { return };
        let repeated = socket::repeated(stream);
        if repeated > 0 {
            self.recorder.extra(class, SYNS_REPEATED, repeated.into());
            self.recorder.extra(class, CONNECTS_REPEATED, 1);
        }
    }

    /// Handles a connection that could not be opened, for the first time or again.
    pub(super) fn opening_failed(&mut self, index: u32, error: &io::Error) {
        let text = socket::describe(error);
        self.pending -= 1;
        if self.connections[index as usize].renewing {
            return self.not_renewed(index, error, &text);
        }
        let reopened = self.connections[index as usize].reopening.take();
        if let Some(operation) = reopened {
            self.count_repeated(index, operation.class);
        }
        self.connections[index as usize].close();
        let Some(operation) = reopened else {
            *self.failures.entry(text).or_insert(0) += 1;
            return;
        };
        let what = if self.plan.connect.by_load { "not opened" } else { "not opened again" };
        self.recorder.failed(operation.class, &format!("{what}: {text}"));
        self.outstanding -= 1;
        let now_ns = self.now_ns();
        match self.reopen_of(index).map(|reopen| (reopen.then, reopen.again)) {
            Some((AfterReopen::Stay(_), _)) => self.attempt_ended(index, true),
            Some((_, true)) => self.pause_after_failure(index, 1),
            Some((_, false)) => self.make_available(index, now_ns),
            None => {}
        }
    }

    pub(super) fn reopen_of(&mut self, index: u32) -> Option<&mut Reopen> {
        let group = self.group_of(index);
        match self.feeds.get_mut(group) {
            Some(Feed::Reopen(reopen)) => Some(reopen),
            _ => None,
        }
    }

    /// Whether the load closes this connection as soon as it is open.
    fn closes_at_once(&mut self, index: u32) -> bool {
        self.reopen_of(index).is_some_and(|reopen| reopen.then == AfterReopen::Close)
    }

    /// Handles a connection that a load has opened: it keeps it, closes it, or sends an operation.
    fn reopened(&mut self, index: u32, intended_ns: u64, now_ns: u64) {
        self.outstanding -= 1;
        self.connections[index as usize].last_sent_ns = now_ns;
        match self.reopen_of(index).map(|reopen| reopen.then) {
            Some(AfterReopen::Keep) => self.make_available(index, now_ns),
            Some(AfterReopen::Stay(_)) => self.attempt_ended(index, false),
            Some(AfterReopen::Close) => self.close_and_release(index, now_ns),
            Some(AfterReopen::Answer) => {
                // The operation has been due as long as its connection, and could not be sent before.
                self.connections[index as usize].able_ns = now_ns;
                self.enqueue(index, intended_ns);
            }
            None => {}
        }
    }

    /// Makes the connection available for another reopening. In a closed loop that is due at once.
    pub(super) fn make_available(&mut self, index: u32, now_ns: u64) {
        let refill = self.refill;
        let Some(reopen) = self.reopen_of(index) else { return };
        reopen.available.push_back((index, now_ns));
        if reopen.again && refill {
            self.reopening_due(self.group_of(index), now_ns);
        }
    }

    /// Handles the answer on a connection that carries one operation.
    pub(super) fn reopening_answered(&mut self, index: u32) {
        let answered = self.reopen_of(index).is_some_and(|reopen| reopen.then == AfterReopen::Answer)
            && self.connections[index as usize].outstanding() == 0;
        if answered {
            let now_ns = self.now_ns();
            self.close_and_release(index, now_ns);
        }
    }

    /// Handles the loss of a connection that carries one operation, before its answer.
    pub(super) fn reopening_lost(&mut self, index: u32) {
        match self.reopen_of(index).is_some_and(|reopen| reopen.again) {
            true => self.pause_after_failure(index, 1),
            false => self.reopening_answered(index),
        }
    }

    fn close_and_release(&mut self, index: u32, now_ns: u64) {
        let close = self.reopen_of(index).map_or(Close::Fin, |reopen| reopen.close);
        let connection = &mut self.connections[index as usize];
        end(connection.stream.as_ref(), close);
        connection.close();
        self.make_available(index, now_ns);
    }

    /// Records the end of an attempt. Too many failures end the load.
    fn attempt_ended(&mut self, index: u32, failed: bool) {
        let Some(reopen) = self.reopen_of(index) else { return };
        let class = reopen.class;
        let Some(failing) = &mut reopen.failing else { return };
        failing.ended(failed);
        if !failing.is_met() {
            return;
        }
        let waiting = std::mem::take(&mut reopen.waiting);
        let not_tried = reopen.give_up() + waiting.len() as u64;
        for intended_ns in waiting {
            self.recorder.withdrawn(intended_ns);
            self.outstanding -= 1;
        }
        if not_tried > 0 {
            self.recorder.extra(class, GIVEN_UP, not_tried);
        }
    }

    /// Queues a reopening, which [`Self::reopen_waiting`] begins.
    pub(super) fn reopening_due(&mut self, group: usize, intended_ns: u64) {
        self.recorder.planned(intended_ns);
        self.outstanding += 1;
        if let Some(Feed::Reopen(reopen)) = self.feeds.get_mut(group) {
            reopen.waiting.push_back(intended_ns);
        }
    }

    /// Begins every queued reopening for which a connection is available.
    pub(super) fn reopen_waiting(&mut self) -> Result<()> {
        for group in 0..self.feeds.len() {
            while self.pending < self.plan.connect.at_once
                && let Some((index, able_ns, operation, close)) = self.next_reopening(group)
            {
                self.recorder.sent_when_able(&operation, able_ns, 0);
                let connection = &mut self.connections[index as usize];
                end(connection.stream.as_ref(), close);
                let outstanding = connection.close();
                self.protocol.reopening(&mut connection.session, operation.sent_ns);
                connection.reopening = Some(operation);
                self.outstanding -= outstanding;
                self.begin(index)?;
            }
        }
        Ok(())
    }

    /// The next reopening: the connection, the intended time, and the time at which the connection became available.
    fn next_reopening(&mut self, group: usize) -> Option<(u32, u64, Operation, Close)> {
        let sent_ns = self.now_ns();
        let Feed::Reopen(reopen) = self.feeds.get_mut(group)? else { return None };
        if reopen.waiting.is_empty() || reopen.available.is_empty() {
            return None;
        }
        let ((index, available_ns), intended_ns) =
            (reopen.available.pop_front()?, reopen.waiting.pop_front()?);
        let operation = Operation { class: reopen.class, intended_ns, sent_ns };
        Some((index, intended_ns.max(available_ns), operation, reopen.close))
    }

    /// Closes the connections whose handshake took too long.
    pub(super) fn end_late_handshakes(&mut self) {
        let timeout = self.plan.connect.timeout;
        let timeout_ns = u64::try_from(timeout.as_nanos()).unwrap_or(u64::MAX);
        let now_ns = self.now_ns();
        while let Some((began_ns, index)) = self.begun.front().copied() {
            let connection = &self.connections[index as usize];
            let opening = matches!(
                connection.phase,
                Phase::Connecting { .. } | Phase::TlsHandshake { .. } | Phase::Handshake
            );
            let under_way = opening && connection.began_ns == began_ns;
            if under_way && now_ns.saturating_sub(began_ns) < timeout_ns {
                return;
            }
            self.begun.pop_front();
            if under_way {
                self.lost(index, &io::Error::new(ErrorKind::TimedOut, no_answer(timeout.as_secs_f64())));
            }
        }
    }
}

/// The error text of a handshake that took too long.
pub(crate) fn no_answer(timeout_s: f64) -> String {
    format!(
        "no answer to the handshake within {timeout_s} s (the server does not accept any more: look at its open-file \
         limit and its connection limit)"
    )
}

/// Prepares how the kernel ends the connection when the stream is dropped.
fn end(stream: Option<&TcpStream>, close: Close) {
    if close == Close::Reset
        && let Some(stream) = stream
    {
        // Without the option the kernel ends the connection with FIN, which the server counts as well.
        let _ = SockRef::from(stream).set_linger(Some(std::time::Duration::ZERO));
    }
}
