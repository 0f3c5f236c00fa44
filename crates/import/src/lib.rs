//! Imports: CSV, Parquet and line protocol files become rows of devices or of tables.
//!
//! CSV files are read twice. The first pass finds the types of the columns and everything that cannot be imported; the
//! second pass stores the rows. A row is identified by its tags and time, so importing it again changes nothing.
//!
//! Rows go to a server, or to a store that the program has opened: the crate knows the contract of stores, and no engine, no
//! configuration and no command line.

mod cell;
mod csv_counts;
mod csv_file;
pub mod devices;
mod duplicate_rows;
mod file_format;
mod limits;
mod outcome;
mod progress;
mod read_ahead;
mod retry;
mod sink;
mod table_rows;
pub mod tables;
mod time;

pub use cell::DecimalMark;
pub use csv_file::{Dialect, parse_delimiter};
pub use file_format::{FileFormat, Precision};
pub use outcome::{FileOutcome, SkipPolicy, totals, verdict};
pub use progress::{Counted, StartProgress};
pub use sink::{RowSink, ServerSink, WRITE_TIMEOUT};
pub use time::{TimeFormat, TimeReader, Unit, parse_interval, parse_start};
