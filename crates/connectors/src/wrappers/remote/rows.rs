//! Rows of another server, and which of them are new.

use model::{Timestamp, Value};

use crate::wrappers::places::Places;

/// Rows in the order of their times, with times in milliseconds.
#[derive(Debug, Default, PartialEq)]
pub(super) struct Rows {
    pub(super) names: Vec<String>,
    pub(super) rows: Vec<(i64, Vec<Option<Value>>)>,
}

/// Which rows are new. Those of one millisecond are told apart by their order.
#[derive(Debug)]
pub(super) struct New {
    /// The millisecond of the newest stored row, and how many rows of it are stored before it.
    stored: Option<(i64, i64)>,
    begin_ms: i64,
    places: Places,
}

impl New {
    /// All rows from a time on are new.
    pub(super) fn from(ms: i64) -> Self {
        Self { stored: None, begin_ms: ms, places: Places::default() }
    }

    /// Rows after a stored one are new.
    pub(super) fn after(ms: i64, place: i64) -> Self {
        Self { stored: Some((ms, place)), begin_ms: ms, places: Places::default() }
    }

    /// The first time of an answer.
    pub(super) fn begin_ms(&self) -> i64 {
        self.begin_ms
    }

    /// An answer begins.
    pub(super) fn begin(&mut self) {
        self.places = Places::default();
    }

    /// The time of the next row of an answer; `None` if the row is stored.
    pub(super) fn time(&mut self, ms: i64) -> Option<Result<Timestamp, String>> {
        if ms < self.begin_ms {
            return None;
        }
        let time = self.places.next(ms);
        let last = self.places.last()?;
        if time.is_ok() && self.stored.is_some_and(|stored| last <= stored) {
            return None;
        }
        if time.is_ok() {
            self.stored = Some(last);
            self.begin_ms = ms;
        }
        Some(time)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn taken(new: &mut New, times: &[i64]) -> Vec<i64> {
        new.begin();
        times.iter().filter_map(|ms| new.time(*ms)).map(|time| time.unwrap().micros()).collect()
    }

    #[test]
    fn a_row_of_several_answers_is_taken_once() {
        let mut new = New::from(5);
        assert_eq!(taken(&mut new, &[4, 5, 5, 6]), [5_000, 5_001, 6_000]);
        assert_eq!(new.begin_ms(), 6);
        assert_eq!(taken(&mut new, &[6]), [0; 0]);
        assert_eq!(taken(&mut new, &[6, 6, 7]), [6_001, 7_000]);
    }

    #[test]
    fn a_restart_goes_on_after_the_newest_row() {
        let mut new = New::after(6, 0);
        assert_eq!(taken(&mut new, &[6, 6, 9]), [6_001, 9_000]);
    }
}
