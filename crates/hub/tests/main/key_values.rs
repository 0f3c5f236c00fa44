//! Commits to the key-value store and the wait for their durability.

use std::sync::Arc;
use std::time::Duration;

use hub::registry::Registry;
use hub::{Hub, Metrics};
use kv::{KeyValueStore, KvError, Space, WriteBatch};
use model::limits::IngestLimits;

const SPACE: Space = Space::new("sessions");
const PATIENCE: Duration = Duration::from_secs(60);

fn hub_over(kv: &Arc<kv::MemoryStore>) -> (Arc<Hub>, tempfile::TempDir) {
    let directory = tempfile::tempdir().unwrap();
    let (registry, _) = Registry::open(&directory.path().join("registry.sqlite")).unwrap();
    let (rows, metrics) = (Arc::new(store::MemoryStore::new()), Arc::new(Metrics::new()));
    let hub = Hub::start(rows, Arc::clone(kv) as _, registry, IngestLimits::default(), metrics).unwrap();
    (hub, directory)
}

fn batch() -> WriteBatch {
    let mut batch = WriteBatch::new();
    batch.put(SPACE, "client", "state");
    batch
}

#[tokio::test]
async fn a_commit_ends_when_its_batch_is_durable() {
    let kv = Arc::new(kv::MemoryStore::new());
    let (hub, _directory) = hub_over(&kv);
    kv.hold();
    let waiting = tokio::spawn({
        let hub = Arc::clone(&hub);
        async move { hub.kv_commit_and_wait(&batch(), PATIENCE).await }
    });
    while kv.progress().committed == 0 {
        tokio::task::yield_now().await;
    }
    assert!(!waiting.is_finished() && kv.get(SPACE, b"client").unwrap().is_some());
    kv.release();
    assert_eq!(waiting.await.unwrap().unwrap(), 1);
    hub.close().unwrap();
}

#[tokio::test]
async fn a_busy_store_is_asked_again_until_the_time_is_over() {
    let kv = Arc::new(kv::MemoryStore::new());
    let (hub, _directory) = hub_over(&kv);
    kv.set_busy(Some("full"));
    let refused = hub.kv_commit_and_wait(&batch(), Duration::ZERO).await;
    assert!(matches!(refused, Err(KvError::Busy { .. })), "{refused:?}");
    let waiting = tokio::spawn({
        let hub = Arc::clone(&hub);
        async move { hub.kv_commit_and_wait(&batch(), PATIENCE).await }
    });
    tokio::task::yield_now().await;
    kv.set_busy(None);
    assert_eq!(waiting.await.unwrap().unwrap(), 1);
    hub.close().unwrap();
}

#[tokio::test]
async fn a_batch_of_a_sealed_store_is_an_error() {
    let kv = Arc::new(kv::MemoryStore::new());
    let (hub, _directory) = hub_over(&kv);
    kv.hold();
    let waiting = tokio::spawn({
        let hub = Arc::clone(&hub);
        async move { hub.kv_commit_and_wait(&batch(), PATIENCE).await }
    });
    while kv.progress().committed == 0 {
        tokio::task::yield_now().await;
    }
    kv.seal("the disk is broken");
    let error = waiting.await.unwrap().unwrap_err();
    assert!(error.to_string().contains("the disk is broken"), "{error}");
    assert!(hub.close().is_err(), "a batch was lost");
}
