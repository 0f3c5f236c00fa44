//! How far the rows of a database were read, as the key-value store keeps it. `docs/format/virtual-sensors.md` describes the bytes.

use serde::{Deserialize, Serialize};

use crate::databases::{Position, TimeUnit};

/// How far rows were read.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct RowPosition {
    /// The database with the table or the query, and the columns of the order.
    rows: String,
    /// The meaning of the numbers of times.
    unit: TimeUnit,
    /// The time and the key of the last row.
    after: Option<(i64, i64)>,
    /// The time of the last element in milliseconds, and how many elements before it have the same one.
    pub(super) last: Option<(i64, i64)>,
}

impl RowPosition {
    /// Before the first row.
    pub(super) fn beginning(rows: String, unit: TimeUnit) -> Self {
        Self { rows, unit, after: None, last: None }
    }

    /// Whether the numbers of two places mean the same.
    pub(super) fn is_of_same_rows(&self, other: &Self) -> bool {
        self.rows == other.rows && self.unit == other.unit
    }

    /// The position of the last row.
    pub(super) fn after(&self) -> Option<Position> {
        self.after.map(|(time, key)| Position { time, key })
    }

    /// Moves behind a row.
    pub(super) fn advance(&mut self, to: Position, last: Option<(i64, i64)>) {
        (self.after, self.last) = (Some((to.time, to.key)), last);
    }

    /// The place in a record; `None` if it cannot be read. Then the rows are read from their beginning.
    pub(super) fn decode(bytes: &[u8]) -> Option<Self> {
        let place = serde_json::from_slice(bytes);
        place.inspect_err(|error| tracing::warn!(%error, "the place in the rows of a database cannot be read; they are read from their beginning")).ok()
    }

    /// The bytes of the record.
    pub(super) fn encode(&self) -> Vec<u8> {
        serde_json::to_vec(self).expect("BUG: numbers and text are JSON")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The bytes of `docs/format/virtual-sensors.md`.
    #[test]
    fn the_record_of_the_documentation_is_read_and_written() {
        let page = include_str!("../../../../../docs/format/virtual-sensors.md");
        let start = page.find("{\"rows\":").expect("an example");
        let example = page[start..].lines().next().unwrap();
        let place = RowPosition::decode(example.as_bytes()).unwrap();
        assert_eq!(String::from_utf8(place.encode()).unwrap(), example);
        assert_eq!(place.after(), Some(Position { time: 1_764_272_400_000, key: 2 }));
        assert_eq!(RowPosition::decode(b"{}"), None);
    }

    #[test]
    fn a_place_in_other_rows_is_not_used() {
        let place = |rows: &str, unit| RowPosition::beginning(rows.to_owned(), unit);
        let mut moved = place("road", TimeUnit::Millis);
        moved.advance(Position { time: 7, key: 1 }, Some((7, 0)));
        assert!(moved.is_of_same_rows(&place("road", TimeUnit::Millis)));
        assert!(!moved.is_of_same_rows(&place("roof", TimeUnit::Millis)));
        assert!(!moved.is_of_same_rows(&place("road", TimeUnit::Micros)));
    }
}
