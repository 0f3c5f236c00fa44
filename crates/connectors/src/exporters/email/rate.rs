//! How fast mails are sent.

use std::collections::VecDeque;
use std::time::{Duration, Instant};

use crate::exporters::limits::EMAIL_PER_MINUTE_MAX;

const MINUTE: Duration = Duration::from_secs(60);

/// The mails of the last minute.
#[derive(Debug, Default)]
pub(super) struct Rate {
    sent: VecDeque<Instant>,
}

impl Rate {
    /// How long the next mail must wait.
    pub(super) fn pause(&mut self, now: Instant) -> Duration {
        while self.sent.front().is_some_and(|first| now.duration_since(*first) >= MINUTE) {
            self.sent.pop_front();
        }
        match self.sent.front() {
            Some(first) if self.sent.len() >= EMAIL_PER_MINUTE_MAX => MINUTE - now.duration_since(*first),
            _ => Duration::ZERO,
        }
    }

    /// A mail is sent now.
    pub(super) fn sent(&mut self, now: Instant) {
        self.sent.push_back(now);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_mail_above_the_limit_waits_until_the_first_one_is_a_minute_old() {
        let (mut rate, start) = (Rate::default(), Instant::now());
        let second = Duration::from_secs(1);
        for _ in 0..EMAIL_PER_MINUTE_MAX {
            assert_eq!(rate.pause(start), Duration::ZERO);
            rate.sent(start);
        }
        assert_eq!(rate.pause(start + second * 10), second * 50);
        assert_eq!(rate.pause(start + MINUTE), Duration::ZERO);
        assert!(rate.sent.is_empty());
    }
}
