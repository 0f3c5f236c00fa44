//! Work that waits for the disk or for an answer, on threads that may wait.

use tokio::task::spawn_blocking;

use super::failure::Failure;

/// Runs work that waits. A panic ends the work and not the task, so the source is read again.
pub(super) async fn blocking<T: Send + 'static>(
    work: impl FnOnce() -> Result<T, Failure> + Send + 'static,
) -> Result<T, Failure> {
    spawn_blocking(work).await.unwrap_or_else(|error| Err(Failure::while_("the work was given up", error)))
}
