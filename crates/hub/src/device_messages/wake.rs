//! Wakes whoever empties an outbox.

use std::sync::Arc;

use tokio::sync::Notify;

/// Wakes the owner of an outbox: an event loop or a task.
///
/// The hub calls it on the thread of the sender, without a lock of the outbox. It must not block.
pub trait Wake: Send + Sync {
    /// Wakes the owner. The owner then takes messages until none is left.
    fn wake(&self);
}

/// Wakes a task of tokio.
#[derive(Debug, Clone, Default)]
pub struct NotifyWake(Arc<Notify>);

impl NotifyWake {
    /// Waits for the next wake. A wake that came before counts.
    pub async fn woken(&self) {
        self.0.notified().await;
    }
}

impl Wake for NotifyWake {
    fn wake(&self) {
        self.0.notify_one();
    }
}
