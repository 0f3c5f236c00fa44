//! The messages of the workers to the main thread.

use std::time::Duration;

/// From a worker to the main thread.
#[derive(Debug)]
pub(super) enum WorkerMessage {
    Opened(std::result::Result<Duration, String>),
    /// The worker has nothing to do any more in this segment.
    Done {
        /// Its connection is lost and could not be opened again.
        lost: bool,
    },
}
