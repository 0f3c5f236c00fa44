//! Busy polling. A sleeping thread is late by its wake-up: the timer, the kernel's scheduler, and a processor that has
//! halted. A thread that polls looks at its sockets again and again instead of sleeping before the next send. It
//! occupies a processor, so a scenario must ask for it (`busy_poll_us`), and the result reports the polling time
//! apart from the time spent on the load.

use std::time::Duration;

use super::worker::Worker;
use crate::error::Result;
use crate::protocol::Protocol;

/// A poll that finds nothing takes less than a microsecond. A longer one was interrupted; of such a poll no more than
/// this counts as polling time, so that the result reports too little idle time rather than too much.
pub(super) const LOOK_NS_MAX: u64 = 2_000;

impl<P: Protocol> Worker<'_, P> {
    /// Polls once for a load with busy polling. The worker does not sleep through operations that are due at the end of
    /// the wait or shortly after it.
    pub(super) fn poll_before_due(&mut self, now_ns: u64, timeout_ns: u64) -> Result<()> {
        let until_ns = now_ns.saturating_add(timeout_ns).saturating_add(self.busy_poll_ns);
        self.is_next_due = self.next_due_ns() <= until_ns;
        let polled = self.poll_once(timeout_ns);
        self.is_next_due = false;
        polled
    }

    /// Waits at most `timeout_ns` for ready sockets and returns their number. The thread sleeps first. With busy
    /// polling it polls during the last part of the wait if an operation is due then.
    pub(super) fn await_ready(&mut self, timeout_ns: u64) -> Result<usize> {
        let awake_ns = if self.is_next_due { self.busy_poll_ns.min(timeout_ns) } else { 0 };
        if awake_ns == 0 {
            return self.poller.wait(Duration::from_nanos(timeout_ns));
        }
        let mut before_ns = self.now_ns();
        let until_ns = before_ns + timeout_ns;
        if timeout_ns > awake_ns {
            let ready = self.poller.wait(Duration::from_nanos(timeout_ns - awake_ns))?;
            if ready > 0 {
                return Ok(ready);
            }
            before_ns = self.now_ns();
        }
        let mut idle_ns = 0;
        let ready = loop {
            let ready = self.poller.wait(Duration::ZERO)?;
            // That poll served the load.
            if ready > 0 {
                break ready;
            }
            let now_ns = self.now_ns();
            idle_ns += (now_ns - before_ns).min(LOOK_NS_MAX);
            before_ns = now_ns;
            if now_ns >= until_ns {
                break 0;
            }
        };
        self.shared.add_polled(idle_ns);
        Ok(ready)
    }
}
