//! Runs the conformance suite of the storage contract, with several sizes.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use store::{Store, conformance};
use store_local::{LocalStore, Options, RealDisk};

use crate::support::tiny;

fn conforms(options: &Options) {
    let root = tempfile::tempdir().unwrap();
    let count = AtomicUsize::new(0);
    conformance::run(&|| {
        let dir = root.path().join(count.fetch_add(1, Ordering::Relaxed).to_string());
        let (store, report) = LocalStore::open(Arc::new(RealDisk), &dir, options.clone()).unwrap();
        assert!(report.clean_shutdown && report.damages.is_empty());
        Arc::new(store) as Arc<dyn Store>
    });
}

#[test]
fn with_its_own_sizes() {
    conforms(&Options { preallocate: false, ..Options::default() });
}

#[test]
fn with_tiny_sizes_that_flush_all_the_time() {
    conforms(&tiny());
    conforms(&Options { preallocate: true, ..tiny() });
}

#[test]
fn without_room_for_latest_values() {
    conforms(&Options { latest_series_max: 1, ..tiny() });
}

#[test]
fn with_parts_of_their_own_for_all_tables() {
    conforms(&Options { narrow_parts: false, ..tiny() });
}
