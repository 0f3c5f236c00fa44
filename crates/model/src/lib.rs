//! The vocabulary of Tachograph: values, timestamps, series, rows, batches and limits; and what a panic may end.
//!
//! Everything here is a plain value with its invariants. There is no I/O, no clock and no async runtime in this
//! crate; whoever needs the time passes a [`Timestamp`].

pub mod batch;
pub mod date;
pub mod interval;
pub mod limits;
pub mod name;
pub mod panics;
pub mod series;
pub mod time;
pub mod value;

pub use batch::{Batch, BatchBuilder, FieldRef, RowRef};
pub use date::Date;
pub use interval::Interval;
pub use name::NameError;
pub use panics::PanicEndsProcess;
pub use series::{DEVICE_TAG, SeriesId, SeriesKey};
pub use time::{TimeRange, Timestamp};
pub use value::{FieldType, Value, ValueRef};
