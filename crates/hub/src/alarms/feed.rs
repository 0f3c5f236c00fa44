//! Notices of changes of alarms.

use std::collections::HashMap;

use parking_lot::Mutex;
use tokio::sync::watch;
use uuid::Uuid;

/// Notifies the subscribers of a tenant that its alarms have changed.
#[derive(Debug, Default)]
pub(super) struct Feeds {
    epochs: Mutex<HashMap<Uuid, watch::Sender<u64>>>,
}

/// A subscription to the changes of a tenant's alarms. It states that something has changed, and not what: a subscriber that was busy
/// gets one notice for all changes meanwhile, and asks again for what it shows.
#[derive(Debug)]
pub struct AlarmFeed {
    epoch: watch::Receiver<u64>,
}

impl Feeds {
    pub(super) fn subscribe(&self, tenant: Uuid) -> AlarmFeed {
        let mut epochs = self.epochs.lock();
        // Tenants without subscribers are forgotten when someone else subscribes.
        epochs.retain(|other, epoch| *other == tenant || epoch.receiver_count() > 0);
        AlarmFeed { epoch: epochs.entry(tenant).or_default().subscribe() }
    }

    /// The alarms of a tenant have changed, and the change is durable.
    pub(super) fn changed(&self, tenant: Uuid) {
        if let Some(epoch) = self.epochs.lock().get(&tenant) {
            epoch.send_modify(|epoch| *epoch += 1);
        }
    }
}

impl AlarmFeed {
    /// Waits for a change since the last call. A call that was dropped loses no change.
    pub async fn changed(&mut self) {
        if self.epoch.changed().await.is_err() {
            // The hub has closed: nothing changes any more.
            std::future::pending::<()>().await;
        }
    }
}
