//! Data points in JSON: an object or an array of `{"metric","timestamp","value","tags"}`, or HiTSDB's form with `fields`.
//!
//! [`Points`] reads a body once, from left to right, and lends one [`DataPoint`] at a time. It allocates only for strings with
//! escapes. A fault in the JSON is a [`SyntaxError`] of the whole body; a fault in a point is a [`Refusal`] of that point alone.
//!
//! The check of names ([`DataPoint::check_series`]) is apart from the rest, because a caller that knows the raw text of the series
//! ([`DataPoint::series_text`]) has made it before.

mod json;
mod number;
mod point;
mod points;
mod refusal;
mod series;
mod timestamp;

pub use json::SyntaxError;
pub use number::Number;
pub use point::{DataPoint, FieldValue, Scalar};
pub use points::Points;
pub use refusal::{Refusal, RefusalKind};
pub use series::{Charset, SeriesRules, check_series};
pub use timestamp::Epoch;

// The line protocol has the same numbers and names.
pub(super) use number::parse_number;
pub(super) use refusal::quoted;
pub(super) use series::shown_tags;
pub(super) use timestamp::parse_timestamp;

#[cfg(test)]
mod tests;
