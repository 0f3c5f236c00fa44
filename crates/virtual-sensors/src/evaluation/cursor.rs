//! Up to which row a sensor has evaluated a device.

use std::collections::BTreeSet;
use std::sync::Arc;

use model::Timestamp;
use sensors::virtual_sensors::plan::SourceId;
use store::Sequence;
use uuid::Uuid;

/// A device that a sensor reads. An element is a row, so its identity is its time: a row that comes again is none.
#[derive(Debug)]
pub(super) struct Cursor {
    pub(super) id: Uuid,
    pub(super) device: Arc<str>,
    pub(super) table: Arc<str>,
    /// The sources that read it.
    pub(super) sources: Vec<SourceId>,
    /// Rows up to this time were done before the sensor began or continued.
    begun_us: i64,
    /// The time of the newest element in microseconds.
    newest_us: i64,
    /// In event time, the times of the elements that may wait.
    waiting: BTreeSet<i64>,
    /// Rows up to this sequence were read from the store.
    read_through: Sequence,
}

/// What a row is for a sensor.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Arrival {
    Element,
    /// It was evaluated before.
    Known,
    /// A newer one of the device was evaluated before.
    OutOfOrder,
}

impl Cursor {
    /// Rows after a time are new.
    pub(super) fn new(id: Uuid, device: &str, table: &str, sources: Vec<SourceId>, begun_us: i64) -> Self {
        let (device, table, waiting) = (device.into(), table.into(), BTreeSet::new());
        Self { id, device, table, sources, begun_us, newest_us: begun_us, waiting, read_through: 0 }
    }

    /// The time up to which rows were evaluated, in microseconds. Those that wait in event time were not; `passed` is the time up to
    /// which they do not wait.
    pub(super) fn evaluated_us(&self, passed: Option<Option<i64>>) -> i64 {
        match passed {
            None => self.newest_us,
            Some(passed) => self.newest_us.min(passed.map_or(i64::MIN, end_of_ms)).max(self.begun_us),
        }
    }

    /// The range of the rows that are new.
    pub(super) fn rest(&self, passed: Option<Option<i64>>) -> model::TimeRange {
        let evaluated = Timestamp::from_micros(self.evaluated_us(passed));
        model::TimeRange::new(evaluated.saturating_add_micros(1), Timestamp::MAX)
    }

    /// All rows up to a sequence were read from the store.
    pub(super) fn read_through(&mut self, sequence: Sequence) {
        self.read_through = sequence;
    }

    /// A row comes.
    pub(super) fn take(&mut self, ts: Timestamp, sequence: Sequence, passed: Option<Option<i64>>) -> Arrival {
        let us = ts.micros();
        let is_element = match passed {
            None => us > self.newest_us,
            Some(passed) => {
                let waits_from = passed.map_or(i64::MIN, |passed| passed.saturating_mul(1_000));
                while self.waiting.first().is_some_and(|first| *first < waits_from) {
                    self.waiting.pop_first();
                }
                us > self.begun_us && self.waiting.insert(us)
            }
        };
        if is_element {
            self.newest_us = self.newest_us.max(us);
            return Arrival::Element;
        }
        let was_read = sequence <= self.read_through || self.waiting.contains(&us);
        if was_read { Arrival::Known } else { Arrival::OutOfOrder }
    }
}

/// The last microsecond of a millisecond.
fn end_of_ms(ms: i64) -> i64 {
    ms.saturating_mul(1_000).saturating_add(999)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn cursor(newest_us: i64) -> Cursor {
        Cursor::new(Uuid::nil(), "d", "t", Vec::new(), newest_us)
    }

    fn take(cursor: &mut Cursor, us: i64, sequence: Sequence, passed: Option<Option<i64>>) -> Arrival {
        cursor.take(Timestamp::from_micros(us), sequence, passed)
    }

    #[test]
    fn a_row_is_an_element_once_and_in_its_order() {
        let mut cursor = cursor(10);
        cursor.read_through(5);
        assert_eq!(take(&mut cursor, 10, 4, None), Arrival::Known);
        assert_eq!(take(&mut cursor, 11, 6, None), Arrival::Element);
        assert_eq!(take(&mut cursor, 11, 7, None), Arrival::OutOfOrder);
        assert_eq!(take(&mut cursor, 9, 8, None), Arrival::OutOfOrder);
        assert_eq!(cursor.evaluated_us(None), 11);
    }

    #[test]
    fn in_event_time_rows_come_in_any_order_and_once() {
        let mut cursor = cursor(i64::MIN);
        assert_eq!(take(&mut cursor, 5_000, 1, Some(None)), Arrival::Element);
        assert_eq!(take(&mut cursor, 3_000, 2, Some(Some(2))), Arrival::Element);
        assert_eq!(take(&mut cursor, 3_000, 3, Some(Some(2))), Arrival::Known);
        assert_eq!(cursor.evaluated_us(Some(Some(2))), 2_999, "those that wait are not evaluated");
        assert_eq!(cursor.evaluated_us(Some(Some(9))), 5_000);
        assert_eq!(cursor.evaluated_us(Some(None)), i64::MIN);
        assert_eq!(
            take(&mut cursor, 3_000, 4, Some(Some(4))),
            Arrival::Element,
            "the sensor counts it as late"
        );
        let mut begun = self::cursor(7_000);
        assert_eq!(begun.evaluated_us(Some(None)), 7_000);
        assert_eq!(take(&mut begun, 7_000, 1, Some(None)), Arrival::OutOfOrder);
        assert_eq!(take(&mut begun, 8_000, 1, Some(None)), Arrival::Element);
    }
}
