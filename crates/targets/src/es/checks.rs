//! The verification of a load: the server has the documents that it acknowledged, and counted as many.

use load::engine::SegmentOutcome;
use load::recorder;
use load::result::Check;

use super::admin::{Finishing, IndexNumbers};
use super::protocol::Tally;
use crate::Counts;

/// The names of counts that processes exchange.
const SENT: &str = "documents sent";
const STORED: &str = "documents stored";
const REFUSED: &str = "documents refused";

/// The counts of a tally.
pub(super) fn counts_of(tally: Tally) -> Counts {
    [(SENT, tally.sent), (STORED, tally.stored), (REFUSED, tally.refused)]
        .map(|(name, count)| (name.to_owned(), count))
        .into()
}

/// The tally of all processes.
pub(super) fn tally_of(counts: &Counts) -> Tally {
    let count = |name: &str| counts.get(name).copied().unwrap_or(0);
    Tally { sent: count(SENT), stored: count(STORED), refused: count(REFUSED) }
}

/// A finished load.
#[derive(Debug)]
pub(super) struct Loaded {
    pub(super) tally: Tally,
    /// The answer to `_count`.
    pub(super) count: u64,
    pub(super) numbers: IndexNumbers,
    pub(super) finishing: Finishing,
}

impl Loaded {
    /// The comparison of the server's numbers with the acknowledged documents.
    pub(super) fn checks(&self, phase: &str) -> Vec<Check> {
        let Tally { sent, stored, refused } = self.tally;
        // The server may have stored the documents of a request whose answer was lost.
        let most = sent - refused;
        let expected = if most == stored { stored.to_string() } else { format!("{stored} to {most}") };
        let check = |what: &str, found: u64| Check {
            what: format!("{what} ({phase})"),
            expected: expected.clone(),
            found: found.to_string(),
            passed: (stored..=most).contains(&found),
        };
        vec![
            check("documents of the index", self.count),
            check("documents that the server counted as indexed", self.numbers.indexed),
        ]
    }

    /// What the load and the steps after it took.
    pub(super) fn findings(&self, phase: &str, segments: &[SegmentOutcome]) -> Vec<String> {
        let Tally { sent, stored, refused } = self.tally;
        let mut load = format!("{phase}: {stored} of {sent} documents stored, {refused} refused");
        if let Some(per_second) = per_second(stored, segments) {
            load += &format!("; {per_second:.0} documents per second after the warm-up");
        }
        let Finishing { refresh, force_merge, merges } = self.finishing;
        let merged = force_merge.map_or("none".to_owned(), |took| format!("{:.1} s", took.as_secs_f64()));
        let IndexNumbers { documents, bytes, segments, .. } = self.numbers;
        vec![
            format!("{load}."),
            format!(
                "{phase}: after it refresh took {:.1} s, force merge {merged}, and the wait for other merges {:.1} s; the \
                 index has {segments} segments and {:.0} bytes for each document.",
                refresh.as_secs_f64(),
                merges.as_secs_f64(),
                bytes as f64 / documents.max(1) as f64,
            ),
        ]
    }
}

/// Documents per second of the measured part: the tally has those of the warm-up as well, in requests of the same size.
fn per_second(stored: u64, segments: &[SegmentOutcome]) -> Option<f64> {
    let sum = |count: fn(&recorder::Counts) -> u64| -> f64 {
        segments.iter().map(|segment| count(&segment.recorder.total().counts)).sum::<u64>() as f64
    };
    let completed = sum(|counts| counts.completed);
    let within = sum(|counts| counts.completed_within_window);
    let measured_s: f64 = segments.iter().map(|segment| segment.measured.as_secs_f64()).sum();
    (within > 0.0 && measured_s > 0.0).then(|| stored as f64 * within / completed / measured_s)
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;

    fn passed(tally: Tally, count: u64, indexed: u64) -> Vec<bool> {
        let finishing = Finishing { refresh: Duration::ZERO, force_merge: None, merges: Duration::ZERO };
        let numbers = IndexNumbers { indexed, ..IndexNumbers::default() };
        let loaded = Loaded { tally: tally_of(&counts_of(tally)), count, numbers, finishing };
        loaded.checks("load").into_iter().map(|check| check.passed).collect()
    }

    #[test]
    fn lost_documents_fail_a_check_and_unanswered_ones_may_be_there() {
        let all = Tally { sent: 100, stored: 90, refused: 10 };
        assert_eq!(passed(all, 90, 90), [true, true]);
        assert_eq!(passed(all, 89, 90), [false, true]);
        assert_eq!(passed(all, 90, 91), [true, false]);
        let unanswered = Tally { sent: 100, stored: 80, refused: 10 };
        assert_eq!(passed(unanswered, 85, 90), [true, true]);
        assert_eq!(passed(unanswered, 91, 79), [false, false]);
    }
}
