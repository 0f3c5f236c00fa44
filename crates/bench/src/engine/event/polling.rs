//! Busy polling: a thread that is soon to send something looks at its sockets again and again instead of sleeping until then. A
//! thread that sleeps is late by what its waking takes: the timer, the kernel's scheduler, and a processor that has halted
//! meanwhile. It takes a processor of its own, so a load asks for it (`busy_poll_us`), and the time spent so is told apart from the time
//! spent on the load.

use std::time::Duration;

use super::worker::Worker;
use crate::driver::Protocol;
use crate::error::Result;

/// One look that finds nothing takes less than a microsecond. What is longer was interrupted, and of such a look no more than
/// this counts as polling, so that too little is said to be idle rather than too much.
pub(super) const LOOK_NS_MAX: u64 = 2_000;

impl<P: Protocol> Worker<'_, P> {
    /// A turn of a load that polls: what is due at its end, or just behind it, is not slept through.
    pub(super) fn poll_before_due(&mut self, now_ns: u64, timeout_ns: u64) -> Result<()> {
        let until_ns = now_ns.saturating_add(timeout_ns).saturating_add(self.busy_poll_ns);
        self.is_next_due = self.next_due_ns() <= until_ns;
        let polled = self.poll_once(timeout_ns);
        self.is_next_due = false;
        polled
    }

    /// Waits at most `timeout_ns` for sockets that are ready and returns their number: asleep at first, and awake for the last part
    /// of the time where that is asked for and something is due then.
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
            // That look was for the load.
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
