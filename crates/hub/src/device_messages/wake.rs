//! Wakes a task that empties an outbox.

use std::sync::Arc;

use tokio::sync::Notify;

use crate::wake::Wake;

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
