//! A store whose writes wait while it is busy, for checks that are not about backpressure.

use std::sync::Arc;

use super::wrapper::Wrapper;
use crate::{Store, StoreError};

/// Another store. A write that finds it busy is repeated.
pub(super) struct PatientStore(pub(super) Arc<dyn Store>);

impl Wrapper for PatientStore {
    fn inner(&self) -> &dyn Store {
        &*self.0
    }

    fn write<T>(&self, write: impl Fn() -> Result<T, StoreError>) -> Result<T, StoreError> {
        loop {
            match write() {
                Err(StoreError::Busy { .. }) => std::thread::yield_now(),
                other => return other,
            }
        }
    }
}
