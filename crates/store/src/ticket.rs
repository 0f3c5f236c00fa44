//! Tickets of writes, and the outcome of a write after the store has taken it.

use std::collections::BTreeMap;

use model::limits::LATE_FAILURES_MAX;

use crate::durability::Sequence;
use crate::error::StoreError;

/// The sequences of one write: those of its rows, or the one of its deletion. `first` is after `last` if it has no rows.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Ticket {
    /// The first sequence of the write.
    pub first: Sequence,
    /// The last one, which the store returned.
    pub last: Sequence,
}

impl Ticket {
    /// The ticket of a write of `rows` rows that ends at `last`.
    pub fn of_rows(last: Sequence, rows: usize) -> Self {
        Self { first: (last + 1).saturating_sub(rows as u64), last }
    }

    /// The ticket of a deletion.
    pub fn of_deletion(sequence: Sequence) -> Self {
        Self { first: sequence, last: sequence }
    }

    /// A ticket without rows, which waits for the writes up to `last`.
    pub fn after(last: Sequence) -> Self {
        Self { first: last + 1, last }
    }

    /// This ticket and a later one, with everything between them.
    pub fn up_to(self, later: Self) -> Self {
        Self { first: self.first.min(later.first), last: self.last.max(later.last) }
    }

    /// The rows of the write from `start` on, without the row `end`. Both count from 0.
    pub fn part(self, rows: std::ops::Range<usize>) -> Self {
        Self { first: self.first + rows.start as u64, last: (self.first + rows.end as u64).saturating_sub(1) }
    }
}

/// The outcome of a write.
#[derive(Debug, Clone)]
pub enum Outcome {
    /// The store has not reached the durability yet.
    Pending,
    /// The store keeps the write as its durability class says.
    Kept,
    /// The store does not keep the write. The sender must not get an ack.
    Failed(StoreError),
}

/// The writes that a store took and then lost, for a backend that knows such failures.
///
/// The list is bounded: when it is full, the two oldest entries become one that covers the writes between them too. A write that
/// is reported as failed without need is sent again, and a repeated write changes nothing.
#[derive(Debug, Default)]
pub struct LateFailures {
    /// Last sequence and cause by first sequence. The ranges do not overlap.
    ranges: BTreeMap<Sequence, (Sequence, String)>,
}

impl LateFailures {
    /// Notes that the store lost a write, or a part of one.
    pub fn add(&mut self, lost: Ticket, cause: &str) {
        let (mut first, mut last, mut cause) = (lost.first, lost.last, cause.to_owned());
        while let Some((start, end)) = self.overlapping(Ticket { first, last }) {
            if let Some((_, earlier)) = self.ranges.remove(&start) {
                cause = earlier;
            }
            (first, last) = (first.min(start), last.max(end));
        }
        self.ranges.insert(first, (last, cause));
        if self.ranges.len() > LATE_FAILURES_MAX {
            self.merge_oldest();
        }
    }

    /// The error of a write that the store lost as a whole or in part.
    pub fn of(&self, ticket: Ticket) -> Option<StoreError> {
        let (start, _) = self.overlapping(ticket)?;
        self.ranges.get(&start).map(|(_, cause)| StoreError::Lost { cause: cause.clone() })
    }

    /// The last range that has a sequence of the ticket.
    fn overlapping(&self, ticket: Ticket) -> Option<(Sequence, Sequence)> {
        let (start, (end, _)) = self.ranges.range(..=ticket.last).next_back()?;
        (*end >= ticket.first && ticket.first <= ticket.last).then_some((*start, *end))
    }

    fn merge_oldest(&mut self) {
        if let Some((first, (_, cause))) = self.ranges.pop_first()
            && let Some((_, (last, _))) = self.ranges.pop_first()
        {
            self.ranges.insert(first, (last, cause));
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn cause(failures: &LateFailures, first: Sequence, last: Sequence) -> Option<String> {
        match failures.of(Ticket { first, last })? {
            StoreError::Lost { cause } => Some(cause),
            other => panic!("{other}"),
        }
    }

    #[test]
    fn a_ticket_covers_the_rows_of_its_write() {
        let ticket = Ticket::of_rows(12, 3);
        assert_eq!((ticket.first, ticket.last), (10, 12));
        assert_eq!(ticket.part(1..3), Ticket { first: 11, last: 12 });
        assert_eq!((ticket.part(1..1), ticket.part(0..0)), (Ticket::after(10), Ticket::after(9)));
        assert_eq!(Ticket::of_rows(12, 0), Ticket::after(12));
        assert_eq!(ticket.up_to(Ticket::of_deletion(20)), Ticket { first: 10, last: 20 });
    }

    #[test]
    fn only_writes_with_a_lost_row_have_failed() {
        let mut failures = LateFailures::default();
        failures.add(Ticket { first: 10, last: 12 }, "a");
        failures.add(Ticket { first: 20, last: 20 }, "b");
        assert_eq!(cause(&failures, 1, 9), None);
        assert_eq!(cause(&failures, 9, 10), Some("a".into()));
        assert_eq!(cause(&failures, 12, 14), Some("a".into()));
        assert_eq!(cause(&failures, 13, 19), None);
        assert_eq!(cause(&failures, 20, 20), Some("b".into()));
        assert!(failures.of(Ticket::after(11)).is_none(), "a write without rows loses none");
        assert_eq!(cause(&failures, 21, u64::MAX), None);
        failures.add(Ticket { first: 11, last: 21 }, "c");
        assert_eq!(cause(&failures, 15, 15), Some("a".into()), "overlapping ranges become one");
        assert_eq!(failures.ranges.len(), 1);
    }

    #[test]
    fn a_full_list_forgets_no_failure() {
        let mut failures = LateFailures::default();
        let writes = 3 * LATE_FAILURES_MAX as u64;
        (1..=writes).for_each(|n| failures.add(Ticket::of_deletion(10 * n), "x"));
        assert_eq!(failures.ranges.len(), LATE_FAILURES_MAX);
        assert!((1..=writes).all(|n| failures.of(Ticket::of_deletion(10 * n)).is_some()));
        assert!(failures.of(Ticket::of_deletion(10 * writes - 1)).is_none(), "new failures stay exact");
    }
}
