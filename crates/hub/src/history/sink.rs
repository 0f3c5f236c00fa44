//! Receivers of an answer: value by value, or row by row.

use std::ops::{ControlFlow, Range};

use model::{Timestamp, Value, ValueRef};
use store::ValueColumn;

/// A value and its time.
pub type TimedValue = (Timestamp, Value);

/// Values per key, in the order of [`HistoryRequest::keys`](super::HistoryRequest::keys).
pub type History = Vec<(String, Vec<TimedValue>)>;

/// Receives the values of an answer: the values of a key in their order, the keys in any order.
pub trait ValueSink {
    /// Receives a value of the key with this index in [`HistoryRequest::keys`](super::HistoryRequest::keys). `Break` ends
    /// the answer.
    fn value(&mut self, key: usize, ts: Timestamp, value: ValueRef<'_>) -> ControlFlow<()>;

    /// Receives several numbers of a key, with times in microseconds. Otherwise like [`value`](Self::value).
    fn numbers(&mut self, key: usize, times: &[i64], numbers: &[f64]) -> ControlFlow<()> {
        let mut values = times.iter().zip(numbers);
        values
            .try_for_each(|(ts, number)| self.value(key, Timestamp::from_micros(*ts), ValueRef::F64(*number)))
    }
}

/// Receives the rows of an answer in their order. Each row has a value for at least one key.
pub trait RowSink {
    /// Receives some rows of a block: the times of the block in microseconds, and for each key the columns with its values.
    /// `Break` ends the answer.
    fn rows(&mut self, times: &[i64], columns: &[Vec<ValueColumn>], rows: Range<usize>) -> ControlFlow<()>;

    /// Receives one row with the value of each key.
    fn row(&mut self, ts: Timestamp, values: &[Option<ValueRef<'_>>]) -> ControlFlow<()>;
}
