//! The data types of Tachograph: values, timestamps, series, rows, batches and limits; who must act on an
//! error, and the policy of panics.
//!
//! The types are plain values with invariants. The crate has no I/O, no clock and no async runtime; a caller passes the present
//! time as a [`Timestamp`].

#![warn(missing_docs)]

pub mod batch;
pub mod blame;
pub mod calendar;
pub mod date;
pub mod durability;
pub mod interval;
pub mod limits;
pub mod memory_pressure;
pub mod name;
pub mod panics;
pub mod resource_errors;
pub mod series;
pub mod share;
pub mod table_name;
pub mod time;
pub mod token_bucket;
pub mod topic;
pub mod value;
pub mod wake;

pub use batch::{Batch, BatchBuilder, FieldRef, RowRef};
pub use blame::Blame;
pub use date::Date;
pub use durability::Durability;
pub use interval::Interval;
pub use memory_pressure::{MemoryLevel, MemoryPressure, MemoryReservation, MemoryShortage};
pub use name::NameError;
pub use panics::PanicEndsProcess;
pub use resource_errors::is_transient;
pub use series::{DEVICE_TAG, SeriesId, SeriesKey};
pub use share::share_of;
pub use table_name::{Namespace, TableName};
pub use time::{TimeRange, Timestamp};
pub use token_bucket::TokenBucket;
pub use value::{FieldType, Value, ValueRef};
pub use wake::Wake;
