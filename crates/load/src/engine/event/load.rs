//! The main loop of a worker during a segment: it sends operations that are due, reads answers, and ends seconds.

use std::cmp::Reverse;
use std::thread;
use std::time::{Duration, Instant};

use super::connection::Phase;
use super::feed::{Due, Feed};
use super::messages::WorkerMessage;
use super::segment_clock::SegmentClock;
use super::worker::{Worker, natural_end};
use crate::engine::{Ended, Segment};
use crate::error::Result;
use crate::limits::{DUPLICATES_AWAITED_MS, LOOP_SLEEP_MAX_MS, SENDS_PER_POLL};
use crate::protocol::Protocol;
use crate::schedule::SECOND_NS;

/// Operations that were due and never begun.
pub const NOT_SENT: &str = "due, but not sent before the drain time was over";
/// Connects that were still in progress at the end of the drain time.
pub const NOT_OPENED_IN_TIME: &str = "not opened again before the drain time was over";
const NOT_ANSWERED: &str = "sent, but not answered before the drain time was over";
/// How long the worker sleeps while it waits for the last answers.
const DRAIN_SLEEP_NS: u64 = 10_000_000;

impl<P: Protocol> Worker<'_, P> {
    /// Runs one segment until its last answer. Returns how the segment ended, and when its measured part ended.
    pub(super) fn load(&mut self, segment: &Segment) -> Result<(Ended, u64)> {
        let window = segment.window();
        self.begin_feeds(segment);
        let scheduled = self.feeds.iter().any(Feed::is_scheduled);
        let tick_ns = u64::from(self.plan.tick_us) * 1_000;
        let mut clock =
            SegmentClock { until_ns: window.until_ns, second: 0, tick_ns, next_tick_ns: 0, scheduled };
        self.due_until_ns = if tick_ns > 0 { 0 } else { window.until_ns.saturating_sub(1) };
        self.refill = true;
        let begun_ns = self.now_ns();
        let given_up = self.load_until(&mut clock)?;
        self.refill = false;
        let now_ns = self.now_ns();
        let ended = given_up.unwrap_or_else(|| natural_end(now_ns, window));
        clock.until_ns = now_ns.min(window.until_ns);
        self.due_until_ns = self.due_until_ns.min(clock.until_ns.saturating_sub(1));
        self.drain(&mut clock, ended, segment.drain)?;
        self.due_ns = u64::MAX;
        self.record_busy(begun_ns);
        Ok((ended, clock.until_ns))
    }

    /// Records the busy time: connections of closed loops without a pause were busy until their last answer.
    fn record_busy(&mut self, begun_ns: u64) {
        let is_busy = |feed: &Feed| matches!(feed, Feed::Closed { window: 1.., pause_ns: 0 } | Feed::Idle);
        if !self.feeds.iter().all(is_busy) {
            return;
        }
        for connection in self.connections.iter().filter(|connection| connection.answered_ns > 0) {
            self.recorder.was_busy(begun_ns, connection.answered_ns);
        }
    }

    fn begin_feeds(&mut self, segment: &Segment) {
        let groups = segment.loads.iter().zip(&self.groups).zip(&self.plan.groups);
        let is_open = |index: u32| self.connections[index as usize].phase == Phase::Open;
        let feeds = groups.map(|((load, local), of)| Feed::new(*load, local, *of, self.index, is_open));
        self.feeds = feeds.collect();
        self.active = 0;
        self.outstanding = 0;
        self.paused.clear();
        let now_ns = self.now_ns();
        for group in 0..self.feeds.len() {
            let (window, pause_ns) = match self.feeds[group] {
                Feed::Closed { window, pause_ns } => (window, pause_ns),
                Feed::Open { .. } | Feed::Reopen(_) | Feed::Sample { .. } => (0, 0),
                Feed::Idle => continue,
            };
            // Connections with a pause start spread over one pause, as if the load had been running before.
            let gap_ns = pause_ns / (self.groups[group].len() as u64).max(1);
            let mut begins_ns = 0;
            for index in self.groups[group].clone() {
                let connection = &mut self.connections[index as usize];
                if !connection.is_usable() || connection.exhausted {
                    continue;
                }
                self.active += 1;
                begins_ns += gap_ns;
                if window > 0 && pause_ns > 0 {
                    self.paused.extend((0..window).map(|_| Reverse((begins_ns, index))));
                } else if window > 0 {
                    connection.credits = window;
                    connection.last_sent_ns = now_ns;
                    self.mark_dirty(index);
                }
            }
        }
    }

    /// Runs the load. Returns the reason if the worker gave it up.
    fn load_until(&mut self, clock: &mut SegmentClock) -> Result<Option<Ended>> {
        let had_active = self.active > 0;
        let reopens = self.feeds.iter().any(|feed| matches!(feed, Feed::Reopen(_)));
        loop {
            let now_ns = self.now_ns();
            if now_ns >= clock.until_ns {
                // Operations that came due during the last poll belong to the plan as well.
                self.enqueue_due(clock.until_ns - 1);
                self.send_dirty()?;
                return Ok(None);
            }
            self.end_seconds(clock, now_ns);
            self.end_late_handshakes();
            if self.shared.is_stopped() {
                return Ok(Some(Ended::Stopped));
            }
            if self.outstanding == 0 && self.is_over() && !self.protocol.awaits_deliveries() {
                return Ok(None);
            }
            if self.is_silent(now_ns) {
                self.recorder.error("the server said nothing for too long; the load was given up", 1);
                return Ok(Some(Ended::Silent));
            }
            if had_active && self.active == 0 && self.outstanding == 0 && !reopens {
                if !self.connections.iter().any(|c| c.exhausted) {
                    return Ok(Some(Ended::AllLost));
                }
                // What was sent last is measured to its last delivery.
                if !self.protocol.awaits_deliveries() {
                    return Ok(None);
                }
            }
            self.enqueue_due(now_ns);
            self.end_pauses(now_ns);
            self.send_dirty()?;
            self.reopen_waiting()?;
            if clock.tick_ns > 0 && clock.scheduled {
                self.sleep_tick(clock);
                self.poll_once(0)?;
            } else {
                self.await_next(clock)?;
            }
        }
    }

    /// Whether every load has come to its own end.
    fn is_over(&self) -> bool {
        let over = |feed: &Feed| matches!(feed, Feed::Idle) || feed.is_over();
        self.feeds.iter().any(Feed::is_over) && self.feeds.iter().all(over)
    }

    fn is_silent(&mut self, now_ns: u64) -> bool {
        if self.outstanding == 0 {
            self.last_received_ns = now_ns;
        }
        now_ns.saturating_sub(self.last_received_ns)
            > u64::try_from(self.plan.silence.as_nanos()).unwrap_or(u64::MAX)
    }

    /// Waits for outstanding answers, then records the missing ones.
    fn drain(&mut self, clock: &mut SegmentClock, ended: Ended, limit: Duration) -> Result<()> {
        let last_ns = clock.until_ns.saturating_sub(1);
        for connection in &mut self.connections {
            connection.credits = 0;
        }
        let deadline = Instant::now() + if ended == Ended::Silent { Duration::ZERO } else { limit };
        let mut sends = true;
        while self.is_draining(last_ns, &mut sends) && Instant::now() < deadline {
            let now_ns = self.now_ns();
            self.end_seconds(clock, now_ns);
            self.end_late_handshakes();
            self.enqueue_due(last_ns);
            self.send_dirty()?;
            self.reopen_waiting()?;
            let sleep_ns = if self.is_behind(last_ns) { 0 } else { DRAIN_SLEEP_NS };
            self.poll_once(sleep_ns)?;
        }
        if sends {
            self.shared.end_sending();
        }
        self.await_duplicates(clock, ended)?;
        self.record_missing(last_ns);
        self.close_second(clock);
        Ok(())
    }

    /// Whether operations or deliveries are outstanding. `sends` becomes false, and other workers learn it, when this
    /// worker has sent all and has its answers: only then the number of deliveries is known.
    fn is_draining(&mut self, last_ns: u64, sends: &mut bool) -> bool {
        if self.outstanding > 0 || self.is_behind(last_ns) {
            return true;
        }
        if std::mem::take(sends) {
            self.shared.end_sending();
        }
        P::DELIVERS && (self.shared.is_sending() || self.protocol.awaits_deliveries())
    }

    /// Reads for a moment after the last delivery: a message that comes twice comes late.
    fn await_duplicates(&mut self, clock: &mut SegmentClock, ended: Ended) -> Result<()> {
        if !P::DELIVERS || ended == Ended::Silent {
            return Ok(());
        }
        let deadline = Instant::now() + Duration::from_millis(DUPLICATES_AWAITED_MS);
        while Instant::now() < deadline {
            let now_ns = self.now_ns();
            self.end_seconds(clock, now_ns);
            self.poll_once(DRAIN_SLEEP_NS)?;
        }
        Ok(())
    }

    fn record_missing(&mut self, last_ns: u64) {
        let (mut in_flight, mut waiting) = (0, 0);
        for connection in self.connections.iter_mut().filter(|c| c.is_usable()) {
            let (sent, due) = connection.abandon(self.protocol);
            in_flight += sent;
            waiting += due;
        }
        self.recorder.error(NOT_ANSWERED, in_flight);
        self.recorder.error(NOT_SENT, waiting);
        let mut handshakes = 0;
        for connection in self.connections.iter_mut().filter(|c| c.reopening.is_some()) {
            // The next segment would take its end for that of one of its operations.
            connection.reopening = None;
            connection.close();
            handshakes += 1;
        }
        self.pending = self.pending.saturating_sub(handshakes);
        self.recorder.error(NOT_OPENED_IN_TIME, handshakes as u64);
        for feed in &mut self.feeds {
            if let Feed::Reopen(reopen) = feed {
                self.recorder.error(NOT_SENT, reopen.waiting.drain(..).count() as u64);
            }
            while let Some(due) = feed.next_due(last_ns) {
                self.recorder.planned(due.at_ns());
                self.recorder.error(NOT_SENT, 1);
            }
        }
    }

    /// Whether operations are due that the worker has not queued yet.
    fn is_behind(&mut self, last_ns: u64) -> bool {
        self.feeds.iter_mut().any(|feed| feed.next_ns() <= last_ns)
    }

    /// Moves operations that are due into the queues of their connections.
    pub(super) fn enqueue_due(&mut self, now_ns: u64) {
        for group in 0..self.feeds.len() {
            for _ in 0..SENDS_PER_POLL {
                match self.feeds[group].next_due(now_ns) {
                    None => break,
                    Some(Due::Operation(planned)) => self.enqueue(planned.device, planned.at_ns),
                    Some(Due::Reopening { at_ns }) => self.reopening_due(group, at_ns),
                }
            }
        }
        self.due_ns = self.next_operation_ns();
    }

    /// Does the same during a poll: at most `left` operations, and no reopenings.
    pub(super) fn enqueue_operations(&mut self, now_ns: u64, left: &mut usize) {
        for group in 0..self.feeds.len() {
            while *left > 0
                && let Some(planned) = self.feeds[group].next_operation(now_ns)
            {
                *left -= 1;
                self.enqueue(planned.device, planned.at_ns);
            }
        }
        self.due_ns = if *left > 0 { self.next_operation_ns() } else { u64::MAX };
    }

    /// The time of the next operation that the worker may send during a poll.
    fn next_operation_ns(&mut self) -> u64 {
        let operations = self.feeds.iter_mut().filter(|feed| feed.has_operations());
        let due_ns = operations.map(Feed::next_ns).min().unwrap_or(u64::MAX);
        if due_ns > self.due_until_ns { u64::MAX } else { due_ns }
    }

    pub(super) fn next_due_ns(&mut self) -> u64 {
        self.feeds.iter_mut().map(Feed::next_ns).min().unwrap_or(u64::MAX)
    }

    /// Ends the pauses that are over.
    fn end_pauses(&mut self, now_ns: u64) {
        while let Some(Reverse((at_ns, index))) = self.paused.peek().copied()
            && at_ns <= now_ns
        {
            self.paused.pop();
            if self.reopen_of(index).is_some() {
                self.make_available(index, now_ns);
                continue;
            }
            let connection = &mut self.connections[index as usize];
            if connection.is_usable() && !connection.exhausted {
                connection.credits += 1;
                self.mark_dirty(index);
            }
        }
    }

    pub(super) fn enqueue(&mut self, index: u32, intended_ns: u64) {
        let connection = &mut self.connections[index as usize];
        if connection.exhausted {
            return;
        }
        self.recorder.planned(intended_ns);
        if !connection.is_usable() {
            self.recorder.error("due on a lost connection", 1);
            return;
        }
        connection.enqueue(intended_ns);
        self.outstanding += 1;
        self.mark_dirty(index);
    }

    /// The time until the next event, nanoseconds.
    pub(super) fn until_next_ns(&mut self, clock: &SegmentClock, now_ns: u64) -> u64 {
        let due_ns = self.next_due_ns();
        let resumes_ns = self.paused.peek().map_or(u64::MAX, |Reverse((at_ns, _))| *at_ns);
        let second_ns = (clock.second + 1) * SECOND_NS;
        due_ns
            .min(resumes_ns)
            .min(second_ns)
            .min(clock.until_ns)
            .saturating_sub(now_ns)
            .min(LOOP_SLEEP_MAX_MS * 1_000_000)
    }

    /// Sleeps until the next tick without reading answers, so that one poll serves many messages.
    fn sleep_tick(&self, clock: &mut SegmentClock) {
        let now_ns = self.now_ns();
        if clock.next_tick_ns > now_ns {
            thread::sleep(Duration::from_nanos(clock.next_tick_ns - now_ns));
        }
        clock.next_tick_ns = self.now_ns() + clock.tick_ns;
    }

    fn end_seconds(&mut self, clock: &mut SegmentClock, now_ns: u64) {
        while now_ns >= (clock.second + 1) * SECOND_NS {
            self.close_second(clock);
            self.keep_alive_quiet(now_ns);
        }
    }

    fn close_second(&mut self, clock: &mut SegmentClock) {
        let second = self.recorder.take_second(clock.second);
        clock.second += 1;
        self.send_to_main(WorkerMessage::Second { worker: self.index, second });
    }

    /// Sends a keep-alive on connections that have sent nothing for a while.
    fn keep_alive_quiet(&mut self, now_ns: u64) {
        let quiet_ns = self.protocol.quiet_ns();
        if quiet_ns == 0 {
            return;
        }
        let mut bytes = Vec::new();
        for index in 0..self.connections.len() as u32 {
            let connection = &mut self.connections[index as usize];
            let quiet_ns = keep_alive_after_ns(quiet_ns, connection.number);
            if connection.phase == Phase::Open && now_ns.saturating_sub(connection.last_sent_ns) >= quiet_ns {
                connection.last_sent_ns = now_ns;
                bytes.clear();
                self.protocol.keep_alive(&mut connection.session, &mut bytes);
                if let Err(error) = connection.send(&bytes) {
                    self.lost(index, &error);
                }
            }
        }
    }
}

/// The time after which an idle connection sends a keep-alive: between half of `quiet_ns` and all of it. Connections
/// that became idle together do not send together.
fn keep_alive_after_ns(quiet_ns: u64, number: u32) -> u64 {
    let half = quiet_ns / 2;
    quiet_ns - half / 1_000 * u64::from(number % 1_000)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn quiet_connections_do_not_speak_all_at_once_and_never_too_late() {
        let times: std::collections::BTreeSet<u64> =
            (0..10_000).map(|number| keep_alive_after_ns(30 * SECOND_NS, number) / SECOND_NS).collect();
        assert_eq!((times.first(), times.last(), times.len()), (Some(&15), Some(&30), 16));
    }
}
