//! Event time: elements wait until no earlier one is expected.

use std::collections::BTreeMap;

use super::super::plan::SourceId;
use super::super::sql::Row;
use crate::virtual_sensors::limits::LATENESS_ELEMENTS_MAX;

/// An element of a source.
pub(super) type Waiting = (i64, SourceId, Row);

#[derive(Debug)]
pub(super) struct Reorder {
    lateness: i64,
    waiting: BTreeMap<(i64, u64), (SourceId, Row)>,
    number: u64,
    /// Elements of earlier times come too late.
    passed: i64,
}

/// What happens with an element.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Placement {
    Waits,
    IsLate,
    /// It waits, and an earlier one continues before its time.
    PushesOut,
}

impl Reorder {
    pub(super) fn new(lateness: i64) -> Self {
        Self { lateness, waiting: BTreeMap::new(), number: 0, passed: i64::MIN }
    }

    /// Elements of earlier times come too late; `None` before the first.
    pub(super) fn passed(&self) -> Option<i64> {
        Some(self.passed).filter(|passed| *passed > i64::MIN)
    }

    /// No earlier element is expected any more.
    pub(super) fn pass(&mut self, time: i64) {
        self.passed = self.passed.max(time);
    }

    pub(super) fn add(&mut self, timed: i64, source: SourceId, row: Row) -> Placement {
        if timed < self.passed {
            return Placement::IsLate;
        }
        self.passed = self.passed.max(timed.saturating_sub(self.lateness));
        self.number += 1;
        self.waiting.insert((timed, self.number), (source, row));
        if self.waiting.len() > LATENESS_ELEMENTS_MAX
            && let Some(((first, _), _)) = self.waiting.first_key_value()
        {
            let early = *first > self.passed;
            self.passed = self.passed.max(*first);
            if early {
                return Placement::PushesOut;
            }
        }
        Placement::Waits
    }

    /// The next element that waits no longer.
    pub(super) fn next(&mut self) -> Option<Waiting> {
        let (timed, _) = *self.waiting.first_key_value()?.0;
        (timed <= self.passed).then(|| self.take_first()).flatten()
    }

    /// The next element, when nothing more comes.
    pub(super) fn take_first(&mut self) -> Option<Waiting> {
        let ((timed, _), (source, row)) = self.waiting.pop_first()?;
        self.passed = self.passed.max(timed);
        Some((timed, source, row))
    }

    pub(super) fn len(&self) -> usize {
        self.waiting.len()
    }

    pub(super) fn bytes(&self) -> usize {
        const ENTRY: usize = 64;
        self.waiting.values().map(|(_, row)| ENTRY + super::super::sql::datum::row_bytes(row)).sum()
    }
}
