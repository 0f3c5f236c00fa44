//! The store keeps the contract that every backend keeps.

use std::sync::Arc;

use store::{Store, conformance};
use store_local::{LocalStore, Options, RealDisk};

#[test]
fn the_embedded_store_conforms() {
    let root = tempfile::tempdir().unwrap();
    let count = std::sync::atomic::AtomicUsize::new(0);
    conformance::run(&|| {
        let number = count.fetch_add(1, std::sync::atomic::Ordering::Relaxed);
        let dir = root.path().join(number.to_string());
        let options = Options { preallocate: false, ..Options::default() };
        let (store, report) = LocalStore::open(Arc::new(RealDisk), &dir, options).unwrap();
        assert!(report.clean_shutdown && report.damages.is_empty());
        Arc::new(store) as Arc<dyn Store>
    });
}
