//! The numbers of the messages that one subscriber received from one publisher.

use std::ops::Range;

use crate::limits::SEQUENCE_GAPS_MAX;

/// What an arriving number is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Arrived {
    /// It came for the first time.
    New,
    /// It came before.
    Again,
}

/// The numbers of one publisher, which count up by one.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(crate) struct Sequence {
    /// The number after the largest one.
    next: u64,
    /// Numbers below `next` that have not come.
    gaps: Vec<Range<u64>>,
    /// The sum of gaps beyond the limit. Their numbers count as lost even if they come later.
    unlisted: u64,
    /// Numbers that came for the first time.
    pub(crate) received: u64,
    /// Numbers that came after a larger one.
    pub(crate) reordered: u64,
    /// Numbers that came again.
    pub(crate) repeated: u64,
}

impl Sequence {
    /// The first number that is due is `first`.
    pub(crate) fn from(first: u64) -> Self {
        Self { next: first, ..Self::default() }
    }

    /// Notes an arriving number.
    pub(crate) fn note(&mut self, number: u64) -> Arrived {
        if number >= self.next {
            let gap = self.next..number;
            if !gap.is_empty() && self.gaps.len() < SEQUENCE_GAPS_MAX {
                self.gaps.push(gap);
            } else {
                self.unlisted += number - self.next;
            }
            self.next = number + 1;
        } else if self.fill(number) {
            self.reordered += 1;
        } else {
            self.repeated += 1;
            return Arrived::Again;
        }
        self.received += 1;
        Arrived::New
    }

    /// Removes a number from the gap that contains it.
    fn fill(&mut self, number: u64) -> bool {
        let Some(at) = self.gaps.iter().position(|gap| gap.contains(&number)) else { return false };
        let gap = self.gaps.swap_remove(at);
        let parts = [gap.start..number, number + 1..gap.end];
        self.gaps.extend(parts.into_iter().filter(|part| !part.is_empty()));
        true
    }

    /// How many numbers below `end` have not come.
    pub(crate) fn missing(&self, end: u64) -> u64 {
        let in_gaps: u64 = self.gaps.iter().map(|gap| gap.end - gap.start).sum();
        in_gaps + self.unlisted + end.saturating_sub(self.next)
    }

    /// How many numbers came that are not below `end`, at least.
    pub(crate) fn beyond(&self, end: u64) -> u64 {
        self.next.saturating_sub(end)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn of(numbers: &[u64]) -> Sequence {
        let mut sequence = Sequence::from(0);
        numbers.iter().for_each(|number| _ = sequence.note(*number));
        sequence
    }

    #[test]
    fn what_comes_once_and_in_order_is_complete() {
        let sequence = of(&[0, 1, 2, 3]);
        assert_eq!((sequence.received, sequence.missing(4), sequence.beyond(4)), (4, 0, 0));
        assert_eq!((sequence.reordered, sequence.repeated), (0, 0));
    }

    #[test]
    fn a_lost_number_is_missing_wherever_it_was() {
        for lost in 0..4 {
            let numbers: Vec<u64> = (0..4).filter(|number| *number != lost).collect();
            assert_eq!(of(&numbers).missing(4), 1, "{lost}");
        }
        assert_eq!(of(&[]).missing(4), 4);
    }

    #[test]
    fn a_late_number_is_reordered_and_not_lost() {
        let sequence = of(&[0, 4, 2, 1, 3]);
        assert_eq!((sequence.received, sequence.reordered, sequence.missing(5)), (5, 3, 0));
        assert_eq!(sequence.repeated, 0);
    }

    #[test]
    fn a_number_that_comes_again_counts_as_repeated_only() {
        let sequence = of(&[0, 1, 1, 2, 0]);
        assert_eq!((sequence.received, sequence.repeated, sequence.reordered), (3, 2, 0));
        let filled = of(&[0, 2, 1, 1]);
        assert_eq!((filled.received, filled.repeated, filled.reordered), (3, 1, 1));
    }

    #[test]
    fn numbers_that_were_never_sent_are_beyond() {
        assert_eq!(of(&[0, 1, 7]).beyond(2), 6);
        let mut later = Sequence::from(10);
        assert_eq!((later.note(10), later.missing(12)), (Arrived::New, 1));
        assert_eq!(later.note(9), Arrived::Again, "an earlier phase had it");
    }

    #[test]
    fn gaps_beyond_the_limit_stay_lost() {
        let count = SEQUENCE_GAPS_MAX as u64 + 10;
        let odd: Vec<u64> = (0..count).map(|n| 2 * n + 1).collect();
        let mut sequence = of(&odd);
        assert_eq!(sequence.missing(2 * count), count);
        assert_eq!(sequence.note(2 * count - 2), Arrived::Again, "its gap is not listed");
        assert_eq!((sequence.note(0), sequence.missing(2 * count)), (Arrived::New, count - 1));
    }
}
