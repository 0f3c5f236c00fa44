//! A store in which a test controls the parts.

use std::path::Path;
use std::sync::Arc;

use store_local::{LocalStore, Options};

use crate::FaultyDisk;

/// An empty store on a disk in memory, with small pages. It writes parts only when the test calls
/// [`flush`](LocalStore::flush), and never merges them.
///
/// # Panics
/// When the store does not open.
#[allow(clippy::unwrap_used, reason = "a test that cannot continue panics")]
pub fn store_without_merges() -> Arc<LocalStore> {
    let options = Options {
        memtable_flush_bytes: usize::MAX,
        compact: false,
        preallocate: false,
        row_group_rows: 4_096,
        page_rows: 256,
        ..Options::default()
    };
    Arc::new(LocalStore::open(Arc::new(FaultyDisk::new()), Path::new("/data"), options).unwrap().0)
}
