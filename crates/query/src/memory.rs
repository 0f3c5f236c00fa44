//! The memory limits of queries: one for each query, one for all together.

use std::fmt;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, OnceLock};

use datafusion::common::{DataFusionError, Result};
use datafusion::execution::memory_pool::{MemoryLimit, MemoryPool, MemoryReservation};

/// The bytes that all queries hold, and their limit.
#[derive(Debug)]
pub(crate) struct TotalMemory {
    used: AtomicUsize,
    max: usize,
}

impl TotalMemory {
    pub(crate) fn new(max: usize) -> Arc<Self> {
        Arc::new(Self { used: AtomicUsize::new(0), max })
    }

    /// Bytes that all queries hold now.
    pub(crate) fn used(&self) -> usize {
        self.used.load(Ordering::Relaxed)
    }
}

/// The memory of one query. When the query ends, the total gets back what it still holds.
#[derive(Debug)]
pub(crate) struct QueryMemory {
    used: AtomicUsize,
    max: usize,
    total: Arc<TotalMemory>,
    refused: OnceLock<String>,
}

impl QueryMemory {
    pub(crate) fn new(max: usize, total: Arc<TotalMemory>) -> Self {
        Self { used: AtomicUsize::new(0), max, total, refused: OnceLock::new() }
    }

    /// The limit that the query has exceeded, if it has exceeded one.
    pub(crate) fn limit_met(&self) -> Option<&str> {
        self.refused.get().map(String::as_str)
    }

    /// Makes the error of an exceeded limit. Operators may replace the error by another one, so the limit is also kept here.
    fn refuse(&self, max: usize, whose: &str) -> DataFusionError {
        let limit = format!("{} MiB for {whose}", max / (1024 * 1024));
        DataFusionError::ResourcesExhausted(self.refused.get_or_init(|| limit).clone())
    }
}

/// Adds to a counter if the sum stays within the limit.
fn try_add(counter: &AtomicUsize, bytes: usize, max: usize) -> bool {
    let add = |used: usize| used.checked_add(bytes).filter(|sum| *sum <= max);
    counter.fetch_update(Ordering::Relaxed, Ordering::Relaxed, add).is_ok()
}

impl MemoryPool for QueryMemory {
    fn name(&self) -> &str {
        "query"
    }

    /// Operators call this for memory that they already hold, so it cannot fail.
    fn grow(&self, _reservation: &MemoryReservation, additional: usize) {
        self.used.fetch_add(additional, Ordering::Relaxed);
        self.total.used.fetch_add(additional, Ordering::Relaxed);
    }

    fn shrink(&self, _reservation: &MemoryReservation, shrink: usize) {
        self.used.fetch_sub(shrink, Ordering::Relaxed);
        self.total.used.fetch_sub(shrink, Ordering::Relaxed);
    }

    fn try_grow(&self, _reservation: &MemoryReservation, additional: usize) -> Result<()> {
        if !try_add(&self.used, additional, self.max) {
            return Err(self.refuse(self.max, "one query"));
        }
        if !try_add(&self.total.used, additional, self.total.max) {
            self.used.fetch_sub(additional, Ordering::Relaxed);
            return Err(self.refuse(self.total.max, "all queries together"));
        }
        Ok(())
    }

    fn reserved(&self) -> usize {
        self.used.load(Ordering::Relaxed)
    }

    fn memory_limit(&self) -> MemoryLimit {
        MemoryLimit::Finite(self.max)
    }
}

impl fmt::Display for QueryMemory {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} of {} bytes", self.reserved(), self.max)
    }
}

impl Drop for QueryMemory {
    fn drop(&mut self) {
        self.total.used.fetch_sub(self.reserved(), Ordering::Relaxed);
    }
}

#[cfg(test)]
mod tests {
    use datafusion::execution::memory_pool::MemoryConsumer;

    use super::*;

    #[test]
    fn one_query_and_all_together_have_their_limits() {
        let total = TotalMemory::new(150);
        let pool = |max| Arc::new(QueryMemory::new(max, Arc::clone(&total))) as Arc<dyn MemoryPool>;
        let (one, other) = (pool(100), pool(100));
        let first = MemoryConsumer::new("first").register(&one);
        let second = MemoryConsumer::new("second").register(&other);
        first.try_grow(100).unwrap();
        assert!(first.try_grow(1).unwrap_err().to_string().contains("for one query"));
        assert!(second.try_grow(60).unwrap_err().to_string().contains("for all queries"));
        second.try_grow(50).unwrap();
        assert_eq!(total.used(), 150);
        drop((first, second));
        assert_eq!(total.used(), 0);
    }

    #[test]
    fn a_query_that_ends_releases_all_its_memory() {
        let total = TotalMemory::new(150);
        let query = QueryMemory::new(100, Arc::clone(&total));
        assert!(try_add(&query.used, 40, 100) && try_add(&total.used, 40, 150));
        drop(query);
        assert_eq!(total.used(), 0);
    }
}
