//! Blocking work of the doors: reads of the store, changes of the registry, password checks.

mod pool;
mod worker_set;

pub(crate) use pool::{BlockingPool, PoolError};
pub(crate) use worker_set::WorkerSet;
