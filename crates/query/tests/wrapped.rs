//! A store that wraps the tables of another store.

use std::sync::Arc;

use store::conformance::Wrapper;
use store::{MemoryStore, Store, TableSnapshot};

type Wrap = dyn Fn(Arc<dyn TableSnapshot>) -> Arc<dyn TableSnapshot> + Send + Sync;

/// The inner store with wrapped tables.
pub(crate) struct Wrapped {
    inner: Arc<MemoryStore>,
    wrap: Box<Wrap>,
}

impl Wrapped {
    pub(crate) fn new(
        inner: Arc<MemoryStore>,
        wrap: impl Fn(Arc<dyn TableSnapshot>) -> Arc<dyn TableSnapshot> + Send + Sync + 'static,
    ) -> Self {
        Self { inner, wrap: Box::new(wrap) }
    }
}

impl Wrapper for Wrapped {
    fn inner(&self) -> &dyn Store {
        &*self.inner
    }

    fn shown_table(&self, table: Arc<dyn TableSnapshot>) -> Arc<dyn TableSnapshot> {
        (self.wrap)(table)
    }
}
