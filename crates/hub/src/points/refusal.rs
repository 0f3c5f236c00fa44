//! Why a row is refused.

use model::Timestamp;
use model::name::NameError;
use store::StoreError;

/// Why an item of a request has no row, in words for the sender.
#[derive(Debug, thiserror::Error)]
pub enum PointRefusal {
    /// The table or a tag breaks the rules for names.
    #[error(transparent)]
    Name(#[from] NameError),
    /// The server itself writes the table.
    #[error("the server itself writes the table {table:?}; use another name")]
    OwnTable { table: String },
    /// The time is before all plausible times.
    #[error("the time is before {}, the oldest accepted time (ingest.oldest); check the unit of the timestamp", oldest.micros())]
    TooOld {
        /// The oldest accepted time.
        oldest: Timestamp,
    },
    /// The time is too far in the future.
    #[error(
        "the time is more than {future_max_s} s in the future (ingest.future_max_s); check the clock and the unit of the timestamp"
    )]
    TooNew {
        /// Seconds that a time may be in the future.
        future_max_s: i64,
    },
    /// A text is too long.
    #[error(
        "the text of the key {key:?} has {bytes} bytes, the limit is {limit} (ingest.text_value_bytes_max)"
    )]
    TextTooLong {
        key: String,
        /// Its length.
        bytes: usize,
        limit: usize,
    },
    /// The store refuses the series for something in it, or for a limit.
    #[error(transparent)]
    Store(StoreError),
    /// The store does not add series now. The item is not at fault: the request fails as a whole, and its sender sends it again.
    #[error("the store does not add series now")]
    NoSeriesNow,
}
