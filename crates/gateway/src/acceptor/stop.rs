//! The stages in which a door stops.

use tokio::sync::watch;

/// Tells connections how far the door has stopped.
pub(crate) type StopSignal = watch::Receiver<Stop>;

/// A stage of stopping.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Stop {
    /// Serving.
    Not,
    /// Running requests finish; idle connections are closed.
    Drain,
    /// All remaining connections are dropped.
    Now,
}

impl Stop {
    /// Waits until the door has reached this stage.
    pub(crate) async fn reached(self, signal: &mut StopSignal) {
        // The sender lives until all connections are closed; an error would mean that the door is gone.
        let _ = signal.wait_for(|stop| *stop >= self).await;
    }
}
