//! The pauses between attempts to read a source that fails.

use std::time::Duration;

use crate::limits::{RETRY_PAUSE_MAX, RETRY_PAUSE_MIN};

/// Pauses that double with each failure.
#[derive(Debug)]
pub(super) struct Backoff {
    next: Duration,
}

impl Backoff {
    pub(super) fn new() -> Self {
        Self { next: RETRY_PAUSE_MIN }
    }

    /// The pause after a failure. `worked` says whether the source was read before it failed.
    pub(super) fn pause(&mut self, worked: bool) -> Duration {
        if worked {
            self.next = RETRY_PAUSE_MIN;
        }
        let pause = self.next;
        self.next = (pause * 2).min(RETRY_PAUSE_MAX);
        pause
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn pauses_double_up_to_a_bound_and_begin_anew_after_a_success() {
        let mut backoff = Backoff::new();
        let pauses: Vec<_> = (0..9).map(|_| backoff.pause(false)).collect();
        assert_eq!(pauses[..3], [RETRY_PAUSE_MIN, RETRY_PAUSE_MIN * 2, RETRY_PAUSE_MIN * 4]);
        assert_eq!(pauses[8], RETRY_PAUSE_MAX);
        assert_eq!(backoff.pause(true), RETRY_PAUSE_MIN);
        assert_eq!(backoff.pause(false), RETRY_PAUSE_MIN * 2);
    }
}
