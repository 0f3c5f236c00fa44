//! The line protocol of InfluxDB: `measurement,tag=value field=value,field=value time`.
//!
//! Sources of the format: the reference "Line protocol" of the InfluxDB v2 documentation, and the answers of an InfluxDB 1.6 to
//! what the reference leaves open. A measurement, and keys and values of tags, end at an unescaped comma, blank or (keys) `=`. A
//! backslash escapes these characters, in keys of fields also a double quote; any other backslash is literal. Values of fields are
//! floats, integers with the suffix `i` or `u`, `t T true True TRUE f F false False FALSE`, or text in double quotes. Such text has
//! the escapes `\"` and `\\` and may contain line breaks. The time counts since 1970 in a unit that is not part of the line
//! ([`Precision`]). Lines that begin with `#` are comments. A line ends at `\n` or `\r\n`.
//!
//! [`Lines`] walks through the body of a request: it allocates nothing per line unless a name or a text has escapes, and continues
//! after a bad line. The reasons of [`LineError`] are the words of InfluxDB where it refuses the same.

mod delimiters;
mod error;
mod limits;
mod line_end;
mod lines;
mod parse;
mod precision;
mod series;
mod value;
mod whole;

#[cfg(test)]
mod naive;
#[cfg(test)]
mod tests;

pub use error::{BadLine, LineError};
pub use limits::LINE_BYTES_MAX;
pub use lines::{Lines, RawLine, line_number};
pub use precision::Precision;
pub use series::{DuplicateTag, Series, Tag};
pub use value::{Field, LineValue};
pub use whole::{Line, lines, next_line, whole_lines};
