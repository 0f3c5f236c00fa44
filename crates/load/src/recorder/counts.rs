//! Counters of operations.

use std::collections::BTreeMap;

use crate::limits::ERROR_TEXTS_MAX;

const OTHER_ERRORS: &str = "other errors";

/// Counters of operations. `measured_*` exclude the warm-up; the others include it.
#[derive(Debug, Clone, Default, PartialEq, Eq, serde::Serialize)]
pub struct Counts {
    /// Operations whose intended time came. Known only in total, because an operation gets its class when it is sent.
    pub planned: u64,
    /// Operations handed to the kernel.
    pub sent: u64,
    /// Operations with a correct answer.
    pub completed: u64,
    /// Operations with an intended time in the measured window; in total only.
    pub measured_planned: u64,
    /// Operations of the measured window that were sent.
    pub measured_sent: u64,
    /// Operations of the measured window that were completed.
    pub measured_completed: u64,
    /// Operations completed during the measured window, whenever they were due: the throughput.
    pub completed_within_window: u64,
    /// Operations that the server refused or answered wrongly.
    pub failed: u64,
    /// Requested items of the measured window that existed.
    pub hits: u64,
    /// Requested items of the measured window that did not exist.
    pub misses: u64,
    /// Bytes of requests of the measured window.
    pub bytes_out: u64,
    /// Bytes of answers to operations of the measured window.
    pub bytes_in: u64,
    /// Failures by reason, including `failed`.
    pub errors: BTreeMap<String, u64>,
    /// Other counts that are not failures, such as SYNs that were sent again.
    pub extra: BTreeMap<String, u64>,
}

impl Counts {
    /// Counts a failure.
    pub fn error(&mut self, what: &str, count: u64) {
        if count == 0 {
            return;
        }
        match self.errors.get_mut(what) {
            Some(known) => *known += count,
            None => {
                let known = self.errors.len() < ERROR_TEXTS_MAX;
                *self.errors.entry(if known { what } else { OTHER_ERRORS }.to_owned()).or_default() += count;
            }
        }
    }

    /// Counts an event that is not a failure.
    pub fn extra(&mut self, what: &str, count: u64) {
        match self.extra.get_mut(what) {
            Some(known) => *known += count,
            None => _ = self.extra.insert(what.to_owned(), count),
        }
    }

    /// The number of all failures.
    pub fn errors_total(&self) -> u64 {
        self.errors.values().sum()
    }

    /// The share of requested items that existed; `None` without requests.
    pub fn hit_rate(&self) -> Option<f64> {
        let asked = self.hits + self.misses;
        (asked > 0).then(|| self.hits as f64 / asked as f64)
    }

    /// Adds the counters of another worker or class.
    pub fn merge(&mut self, other: &Self) {
        self.planned += other.planned;
        self.sent += other.sent;
        self.completed += other.completed;
        self.measured_planned += other.measured_planned;
        self.measured_sent += other.measured_sent;
        self.measured_completed += other.measured_completed;
        self.completed_within_window += other.completed_within_window;
        self.failed += other.failed;
        self.hits += other.hits;
        self.misses += other.misses;
        self.bytes_out += other.bytes_out;
        self.bytes_in += other.bytes_in;
        for (what, count) in &other.errors {
            self.error(what, *count);
        }
        for (what, count) in &other.extra {
            self.extra(what, *count);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn kinds_of_errors_are_bounded_and_none_is_forgotten() {
        let mut counts = Counts::default();
        (0..10_000).for_each(|n| counts.error(&format!("key {n}"), 1));
        assert!(counts.errors.len() <= ERROR_TEXTS_MAX + 1);
        assert_eq!(counts.errors_total(), 10_000);
    }
}
