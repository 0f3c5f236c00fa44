//! Connections that are closed and opened during a load (see [`Lifetime`]): the server closes them after a number of
//! requests, or each carries one operation. Waiting counts: an operation that waits for a new connection has been due
//! all the time, and the first operation of a connection counts as sent when the connection was begun.

use std::cmp::Reverse;
use std::io;

use super::connection::{Connection, IoContext, Phase, SendCounts};
use super::feed::Feed;
use super::worker::Worker;
use crate::error::Result;
use crate::limits::REOPEN_PAUSE_MS;
use crate::protocol::{Lifetime, Protocol};
use crate::recorder::Recorder;

impl<S> Connection<S> {
    /// Whether the connection accepts operations that are due.
    pub(super) fn is_usable(&self) -> bool {
        match self.phase {
            Phase::Open | Phase::BetweenConnections => true,
            Phase::Connecting { .. } | Phase::TlsHandshake { .. } | Phase::Handshake => self.is_renewed(),
            Phase::Closed => false,
        }
    }

    /// Whether the worker opens the connection again after its end.
    pub(super) fn is_renewed(&self) -> bool {
        self.lifetime != Lifetime::Run
    }

    /// Closes the connection until an operation is due. Operations in flight are sent again on the next connection.
    pub(super) fn close_until_due(&mut self, now_ns: u64) {
        self.phase = Phase::BetweenConnections;
        self.end_stream();
        let unanswered = self.in_flight.drain(..).map(|carried| carried.operation);
        // Operations that already waited for a repetition are later than those in flight.
        self.again = unanswered.chain(self.again.drain(..)).collect();
        self.inbound.clear();
        self.outbound.clear();
        self.opened_from_ns = None;
        // Operations that wait could not have been sent before. From now on they wait for the new connection.
        self.held = false;
        self.able_ns = now_ns;
    }

    /// Sends operations again whose connection ended before their answers. They were recorded as sent before.
    pub(super) fn render_repeats<P: Protocol<Session = S>>(
        &mut self,
        context: &mut IoContext<'_, P>,
        now_ns: u64,
        counts: &mut SendCounts,
    ) {
        while self.in_flight.len() < self.window
            && let Some(operation) = self.again.pop_front()
        {
            self.opened_from_ns = None;
            let due = context.due(operation.intended_ns, now_ns);
            match context.protocol.start(&mut self.session, due, context.scratch) {
                Some(started) => self.carry(operation, started.answer),
                None => {
                    context.recorder.failed(operation.class, "not begun again on a new connection");
                    counts.withdrawn += 1;
                }
            }
            self.last_sent_ns = now_ns;
        }
    }

    /// Fails the operations in flight and returns their number.
    fn fail_in_flight(&mut self, recorder: &mut Recorder, why: &str) -> usize {
        let failed = self.in_flight();
        let carried = self.in_flight.drain(..).map(|carried| carried.operation);
        carried.chain(self.again.drain(..)).for_each(|operation| recorder.failed(operation.class, why));
        failed
    }

    /// Abandons all operations at the end of a segment. An open connection is closed if an answer may still come.
    /// Returns the number of operations sent, and the number of those only due.
    pub(super) fn abandon<P: Protocol<Session = S>>(&mut self, protocol: &P) -> (u64, u64) {
        let sent = self.in_flight();
        let waiting = self.outstanding() - sent;
        if self.is_renewed() && self.phase != Phase::Closed {
            self.waiting.clear();
            if sent > 0 && self.phase == Phase::Open {
                self.close_until_due(0);
            }
            self.again.clear();
            protocol.lost(&mut self.session);
        } else if sent > 0 {
            // A late answer would be taken for that of a later operation.
            self.close();
        }
        (sent as u64, waiting as u64)
    }
}

impl<P: Protocol> Worker<'_, P> {
    /// Handles an orderly end. The worker opens the connection again as soon as an operation is due.
    pub(super) fn renew(&mut self, index: u32) {
        let now_ns = self.now_ns();
        let connection = &mut self.connections[index as usize];
        connection.close_until_due(now_ns);
        if connection.has_to_send() {
            self.mark_dirty(index);
        }
    }

    /// Opens a connection for the operations that wait for it.
    pub(super) fn open_again(&mut self, index: u32) -> Result<()> {
        let connection = &mut self.connections[index as usize];
        connection.renewing = true;
        self.begin(index)
    }

    /// Handles a failed send. The server may have closed the connection in order before.
    pub(super) fn not_sent(&mut self, index: u32, error: &io::Error) {
        let is_renewed = self.connections[index as usize].is_renewed();
        let read = if is_renewed { self.read(index) } else { Ok(()) };
        if let Err(error) = read {
            self.lost(index, &error);
        } else if self.connections[index as usize].phase == Phase::Open {
            self.lost(index, error);
        }
    }

    /// Handles the loss of a renewable connection with its operations in flight.
    pub(super) fn lost_and_renewed(&mut self, index: u32, error: &io::Error) {
        let now_ns = self.now_ns();
        self.first_loss_ns.get_or_insert(now_ns);
        let connection = &mut self.connections[index as usize];
        let why = format!("connection lost: {error}");
        let failed = connection.fail_in_flight(&mut self.recorder, &why);
        self.protocol.lost(&mut connection.session);
        if failed == 0 {
            self.recorder.error(&why, 1);
        }
        self.outstanding -= failed;
        self.renew(index);
        self.pause_after_failure(index, failed);
    }

    /// Handles a connection that could not be opened again: one operation that waited for it fails. If the server
    /// refuses connections it is gone.
    pub(super) fn not_renewed(&mut self, index: u32, error: &io::Error, text: &str) {
        let now_ns = self.now_ns();
        let connection = &mut self.connections[index as usize];
        connection.renewing = false;
        if error.raw_os_error() == Some(rustix::io::Errno::CONNREFUSED.raw_os_error()) {
            connection.phase = Phase::Open;
            connection.lifetime = Lifetime::Run;
            return self.lost(index, error);
        }
        let why = format!("not opened again: {text}");
        connection.close_until_due(now_ns);
        let mut credits = connection.fail_in_flight(&mut self.recorder, &why);
        self.protocol.lost(&mut connection.session);
        self.outstanding -= credits;
        if credits > 0 {
            // The connection was opened for these operations only.
        } else if connection.waiting.pop_front().is_some() {
            self.recorder.error(&why, 1);
            self.outstanding -= 1;
        } else if connection.credits > 0 {
            connection.credits -= 1;
            credits = 1;
            self.recorder.planned(now_ns);
            self.recorder.error(&why, 1);
        }
        if connection.has_to_send() {
            self.mark_dirty(index);
        }
        self.pause_after_failure(index, credits);
    }

    /// In a closed loop, failed operations make room for others after a pause.
    pub(super) fn pause_after_failure(&mut self, index: u32, failed: usize) {
        let closed = self.feeds.get(self.group_of(index)).is_some_and(Feed::is_closed);
        if self.refill && closed && !self.connections[index as usize].exhausted {
            let resumes_ns = self.now_ns() + REOPEN_PAUSE_MS * 1_000_000;
            self.paused.extend((0..failed).map(|_| Reverse((resumes_ns, index))));
        }
    }
}
