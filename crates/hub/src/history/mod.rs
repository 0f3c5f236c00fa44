//! Reads the history of devices: plain values, or one aggregate per interval.
//!
//! Intervals are counted from the start of the range. An aggregate has the time of the middle of its interval, and an
//! interval without values is left out, as in ThingsBoard (`AggregatePartitionsFunction`,
//! `AbstractChunkedAggregationTimeseriesDao`).

mod accumulator;
mod align;
mod block;
mod intervals;
mod number;
mod reduce;
mod request;
mod rows;
mod sink;
#[cfg(test)]
mod tests;
mod values;

pub use block::numbers;
pub use reduce::{Reduction, TextHeld, check_intervals};
pub use request::{Aggregation, HistoryError, HistoryRequest, check_values};
pub use rows::read_rows_into;
pub use sink::{History, RowSink, Sample, Sink};
pub use values::{read, read_into};
