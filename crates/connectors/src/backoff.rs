//! The pauses between attempts that fail.

use std::time::Duration;

use crate::limits::RETRY_PAUSE_MIN;

/// Pauses that double with each failure.
#[derive(Debug)]
pub(crate) struct Backoff {
    next: Duration,
    longest: Duration,
}

impl Backoff {
    /// Pauses from [`RETRY_PAUSE_MIN`] up to the longest one.
    pub(crate) fn new(longest: Duration) -> Self {
        Self { next: RETRY_PAUSE_MIN, longest }
    }

    /// The pause after a failure. `worked` indicates whether an attempt succeeded since the last failure.
    pub(crate) fn pause(&mut self, worked: bool) -> Duration {
        if worked {
            self.next = RETRY_PAUSE_MIN;
        }
        let pause = self.next;
        self.next = (pause * 2).min(self.longest);
        pause
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn pauses_double_up_to_a_bound_and_begin_again_after_a_success() {
        let longest = RETRY_PAUSE_MIN * 100;
        let mut backoff = Backoff::new(longest);
        let pauses: Vec<_> = (0..9).map(|_| backoff.pause(false)).collect();
        assert_eq!(pauses[..3], [RETRY_PAUSE_MIN, RETRY_PAUSE_MIN * 2, RETRY_PAUSE_MIN * 4]);
        assert_eq!(pauses[8], longest);
        assert_eq!(backoff.pause(true), RETRY_PAUSE_MIN);
        assert_eq!(backoff.pause(false), RETRY_PAUSE_MIN * 2);
    }
}
