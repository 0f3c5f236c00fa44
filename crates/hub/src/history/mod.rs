//! Reads the history of devices: plain values, or one aggregate per interval.
//!
//! Intervals have a fixed length, counted from the start of the range, or are those of a calendar. An aggregate has the time of
//! the middle of its interval, and an interval without values is left out, as in ThingsBoard (`AggregatePartitionsFunction`,
//! `AbstractChunkedAggregationTimeseriesDao`).

mod accumulator;
mod align;
mod block;
mod calendar;
mod intervals;
pub mod limits;
mod number;
mod reduce;
mod request;
mod rows;
mod sink;
#[cfg(test)]
mod tests;
mod values;

pub use block::numbers;
pub use calendar::{Calendar, CalendarUnit, CalendarZone};
pub use reduce::{HeldTextBytes, Reduction, check_intervals};
pub use request::{Aggregation, HistoryError, HistoryRequest, Interval, check_values};
pub use rows::read_rows_into;
pub use sink::{History, RowSink, TimedValue, ValueSink};
pub use values::{read, read_into};
