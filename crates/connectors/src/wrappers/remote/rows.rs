//! Rows of another server, and which of them are new.

use std::collections::HashSet;

use model::{Timestamp, Value};
use xxhash_rust::xxh3::xxh3_64;

use crate::wrappers::tie_order::ElementTimes;

/// A row: its time in milliseconds, and its values.
pub(super) type Row = (i64, Vec<Option<Value>>);

/// The rows of an answer, in the order of their times.
#[derive(Debug, Default, PartialEq)]
pub(super) struct Rows {
    pub(super) names: Vec<String>,
    pub(super) rows: Vec<Row>,
    pub(super) refused: Vec<Refused>,
}

/// A row that cannot be read.
#[derive(Debug, PartialEq)]
pub(super) struct Refused {
    pub(super) reason: String,
    pub(super) text: String,
}

impl Rows {
    /// Adds a row that was made of a text.
    pub(super) fn add(&mut self, row: Result<Row, String>, text: impl FnOnce() -> String) {
        match row {
            Ok(row) => self.rows.push(row),
            Err(reason) => self.refused.push(Refused { reason, text: text() }),
        }
    }
}

/// Which rows are new. Those of one millisecond are told apart by their order.
#[derive(Debug)]
pub(super) struct New {
    /// The millisecond of the newest stored row, and how many rows of it are stored before it.
    stored: Option<(i64, i64)>,
    begin_ms: i64,
    places: ElementTimes,
    /// XXH3 (64 bits) of the texts that the last answer had and that cannot be read. The next answer has them again, until a later row
    /// comes.
    refused: HashSet<u64>,
}

impl New {
    /// All rows from a time on are new.
    pub(super) fn from(ms: i64) -> Self {
        Self { stored: None, begin_ms: ms, places: ElementTimes::default(), refused: HashSet::new() }
    }

    /// Rows after a stored one are new.
    pub(super) fn after(ms: i64, place: i64) -> Self {
        Self { stored: Some((ms, place)), ..Self::from(ms) }
    }

    /// The first time of an answer.
    pub(super) fn begin_ms(&self) -> i64 {
        self.begin_ms
    }

    /// An answer begins.
    pub(super) fn begin(&mut self) {
        self.places = ElementTimes::default();
    }

    /// The rows of an answer that cannot be read, without those that the answer before had.
    pub(super) fn refused(&mut self, refused: Vec<Refused>) -> Vec<Refused> {
        let hash = |one: &Refused| xxh3_64(one.text.as_bytes());
        let before = std::mem::replace(&mut self.refused, refused.iter().map(hash).collect());
        refused.into_iter().filter(|one| !before.contains(&hash(one))).collect()
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
    fn a_text_that_several_answers_have_is_refused_once() {
        let mut new = New::from(5);
        let mut refused = |texts: &[&str]| {
            let refused =
                texts.iter().map(|text| Refused { reason: String::new(), text: (*text).to_owned() });
            new.refused(refused.collect()).into_iter().map(|one| one.text).collect::<Vec<_>>()
        };
        assert_eq!(refused(&["a", "b"]), ["a", "b"]);
        assert_eq!(refused(&["b", "c", "b"]), ["c"]);
        assert_eq!(refused(&[]), [""; 0]);
        assert_eq!(refused(&["b"]), ["b"]);
    }

    #[test]
    fn a_restart_continues_after_the_newest_row() {
        let mut new = New::after(6, 0);
        assert_eq!(taken(&mut new, &[6, 6, 9]), [6_001, 9_000]);
    }
}
