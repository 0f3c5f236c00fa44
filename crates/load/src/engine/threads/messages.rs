//! The messages of the workers to the main thread.

use std::time::Duration;

/// A message of a worker to the main thread.
#[derive(Debug)]
pub(super) enum WorkerMessage {
    Opened(std::result::Result<Duration, String>),
    /// The worker has no more to do in this segment.
    Done {
        /// Whether its connection is lost and could not be opened again.
        lost: bool,
    },
}
