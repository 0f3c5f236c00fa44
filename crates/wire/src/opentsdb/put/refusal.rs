//! Why a data point is refused, in OpenTSDB's words.

use std::borrow::Cow;

use super::super::limits::QUOTED_BYTES_MAX;

/// A refused data point.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{message}")]
pub struct Refusal {
    /// The fault, for metrics.
    pub kind: RefusalKind,
    /// The message.
    pub message: Cow<'static, str>,
}

/// The fault of a data point.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum RefusalKind {
    /// `null` instead of a point.
    Null,
    /// No metric, or one with a character that is not allowed.
    Metric,
    /// A timestamp out of range.
    Timestamp,
    /// No value, or one that is not a number.
    Value,
    /// A value beyond the range of f64.
    NotFinite,
    /// No tags, too many, or one with a character that is not allowed.
    Tags,
    /// No fields, or one without a value.
    Fields,
}

impl RefusalKind {
    /// A short, stable name for metrics.
    #[must_use]
    pub fn label(self) -> &'static str {
        match self {
            Self::Null => "null",
            Self::Metric => "metric",
            Self::Timestamp => "timestamp",
            Self::Value | Self::NotFinite => "value",
            Self::Tags => "tags",
            Self::Fields => "fields",
        }
    }
}

impl Refusal {
    pub(super) fn new(kind: RefusalKind, message: impl Into<Cow<'static, str>>) -> Self {
        Self { kind, message: message.into() }
    }

    pub(super) fn not_a_number() -> Self {
        Self::new(RefusalKind::Value, "Unable to parse value to a number")
    }

    pub(super) fn not_finite(number: f64) -> Self {
        let java = if number > 0.0 { "Infinity" } else { "-Infinity" };
        Self::new(RefusalKind::NotFinite, format!("value is NaN or Infinite: {java}"))
    }

    pub(super) fn timestamp() -> Self {
        Self::new(RefusalKind::Timestamp, "Invalid timestamp")
    }

    pub(super) fn timestamp_range(given: i64) -> Self {
        let rule = "a timestamp has at most 10 digits in seconds or 13 in milliseconds";
        Self::new(RefusalKind::Timestamp, format!("bad timestamp={given}; {rule}"))
    }
}

/// At most the beginning of a text that is too long for a message.
pub(in crate::opentsdb) fn quoted(text: &str) -> &str {
    &text[..text.floor_char_boundary(QUOTED_BYTES_MAX)]
}
