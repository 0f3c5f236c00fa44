//! The rule after which the engine stops to open connections: too many of the latest attempts failed.

/// The rule: at least `failures` of the latest `last` attempts failed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct FailureRule {
    /// The number of attempts in the window. The engine gives up only after this number of attempts has ended.
    pub last: u32,
    /// Failures among them.
    pub failures: u32,
}

/// The latest attempts.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct FailureWindow {
    rule: FailureRule,
    /// A ring buffer: whether each attempt failed.
    failed: Vec<bool>,
    next: usize,
    failures: u32,
}

impl FailureWindow {
    /// No attempt has ended yet.
    pub fn new(rule: FailureRule) -> Self {
        Self { rule, failed: Vec::new(), next: 0, failures: 0 }
    }

    /// Records the end of an attempt.
    pub fn ended(&mut self, failed: bool) {
        let last = self.rule.last.max(1) as usize;
        if self.failed.len() < last {
            self.failed.push(failed);
        } else {
            let out = std::mem::replace(&mut self.failed[self.next], failed);
            self.next = (self.next + 1) % last;
            self.failures -= u32::from(out);
        }
        self.failures += u32::from(failed);
    }

    /// Whether the rule is met.
    pub fn is_met(&self) -> bool {
        self.failed.len() >= self.rule.last.max(1) as usize && self.failures >= self.rule.failures.max(1)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn failing(last: u32, failures: u32, attempts: impl IntoIterator<Item = bool>) -> FailureWindow {
        let mut failing = FailureWindow::new(FailureRule { last, failures });
        attempts.into_iter().for_each(|failed| failing.ended(failed));
        failing
    }

    #[test]
    fn single_failures_and_short_ones_are_no_reason() {
        assert!(!failing(100, 50, []).is_met());
        assert!(!failing(100, 50, vec![true; 99]).is_met(), "too few to say");
        assert!(!failing(100, 50, (0..10_000).map(|n| n % 3 == 0)).is_met(), "a third");
        assert!(!failing(100, 50, (0..1_000).map(|n| n < 500)).is_met(), "it was over long ago");
    }

    #[test]
    fn half_of_the_last_hundred_are_one() {
        assert!(failing(100, 50, (0..100).map(|n| n % 2 == 0)).is_met());
        assert!(failing(100, 50, (0..10_050).map(|n| n >= 10_000)).is_met());
        assert!(!failing(100, 50, (0..10_049).map(|n| n >= 10_000)).is_met());
        assert!(failing(1, 1, [true]).is_met());
        assert!(!failing(1, 1, [true, false]).is_met());
    }

    #[test]
    fn the_ring_counts_what_a_list_would() {
        let attempts: Vec<bool> = (0..500_u32).map(|n| n * n % 7 < 3).collect();
        for end in 0..attempts.len() {
            let window = &attempts[end.saturating_sub(20)..end];
            let failures = window.iter().filter(|failed| **failed).count();
            let expected = window.len() == 20 && failures >= 9;
            assert_eq!(failing(20, 9, attempts[..end].iter().copied()).is_met(), expected, "{end}");
        }
    }
}
