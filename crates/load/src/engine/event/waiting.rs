//! Waits for the next due operation and for answers.

use std::thread;
use std::time::Duration;

use super::connection::Connection;
use super::deferred_reads::WaitStep;
use super::segment_clock::SegmentClock;
use super::worker::Worker;
use crate::error::Result;
use crate::protocol::Protocol;

impl<S> Connection<S> {
    /// Whether an operation waits because the window is full or the kernel accepts no bytes. An answer would release
    /// it.
    fn is_stuck(&self) -> bool {
        self.held || self.is_blocked()
    }
}

impl<P: Protocol> Worker<'_, P> {
    /// Remembers a connection that is blocked by its server.
    pub(super) fn note_stuck(&mut self, index: u32) {
        if self.deferred.longest_ns > 0 && self.connections[index as usize].is_stuck() {
            self.deferred.stuck.push(index);
        }
    }

    fn may_hold(&mut self) -> bool {
        let connections = &self.connections;
        let may_wait = self.deferred.may_wait(|index| connections[index as usize].is_stuck());
        may_wait && self.pending == 0 && !self.has_dirty()
    }

    /// Waits for the next due operation and reads answers, at once or after they have waited long enough.
    pub(super) fn await_next(&mut self, clock: &SegmentClock) -> Result<()> {
        let mut has_read = false;
        loop {
            let now_ns = self.now_ns();
            let timeout_ns = self.until_next_ns(clock, now_ns);
            if self.busy_poll_ns > 0 {
                return self.poll_before_due(now_ns, timeout_ns);
            }
            if !self.may_hold() || !self.reader.has_stamps() {
                return self.poll_once(timeout_ns);
            }
            match self.deferred.step(now_ns, timeout_ns, has_read) {
                WaitStep::Read => {
                    self.poll_once(0)?;
                    self.deferred.read_ns = now_ns;
                    has_read = true;
                }
                WaitStep::Poll => return self.poll_once(timeout_ns),
                WaitStep::Sleep => {
                    if timeout_ns > 0 {
                        thread::sleep(Duration::from_nanos(timeout_ns));
                    }
                    return Ok(());
                }
            }
        }
    }
}
