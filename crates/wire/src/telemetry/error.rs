//! Errors of payloads, in words for the device's owner.

use model::NameError;

/// A refused payload. The text is for the device's owner and names the remedy.
#[derive(Debug, Clone, PartialEq, thiserror::Error)]
pub enum PayloadError {
    /// Not UTF-8, or neither JSON nor relaxed JSON.
    #[error("the payload is not valid JSON: {0}")]
    Json(String),
    /// JSON, but not one of the four forms.
    #[error("the payload must be an object or an array of objects, found {0}")]
    Form(&'static str),
    /// JSON, but not of the form that its topic asks for.
    #[error("{0}")]
    Shape(String),
    /// A key breaks the rules for names.
    #[error("{0}")]
    Key(#[from] NameError),
    /// A time that is not a number of milliseconds.
    #[error("ts is {0}; it must be a number of milliseconds since 1970")]
    TimestampForm(String),
    /// A time outside of the accepted window.
    #[error("ts {ts} is {side}; {hint}")]
    TimestampRange {
        /// The value as sent, in milliseconds.
        ts: String,
        /// "too old" or "too far in the future".
        side: &'static str,
        /// The probable mistake of the sender.
        hint: String,
    },
    /// A count exceeds a limit.
    #[error("{what} is {actual}, the limit is {limit}")]
    OverLimit {
        /// The counted quantity.
        what: &'static str,
        /// Its value, or the first value above the limit.
        actual: usize,
        /// The limit.
        limit: usize,
    },
}

impl PayloadError {
    /// A short, stable name for metrics.
    pub const fn label(&self) -> &'static str {
        match self {
            Self::Json(_) | Self::Form(_) | Self::Shape(_) => "payload_format",
            Self::Key(_) => "key",
            Self::TimestampForm(_) | Self::TimestampRange { .. } => "timestamp",
            Self::OverLimit { .. } => "payload_limit",
        }
    }
}

/// Refuses a count above its limit.
pub(super) fn over(what: &'static str, actual: usize, limit: usize) -> Result<(), PayloadError> {
    if actual > limit { Err(PayloadError::OverLimit { what, actual, limit }) } else { Ok(()) }
}
