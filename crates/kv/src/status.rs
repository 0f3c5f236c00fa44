//! Sizes and health of a store.

use std::time::Duration;

/// The answer of [`KeyValueStore::status`](crate::KeyValueStore::status).
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct KvStatus {
    /// Why the store refuses writes; `None` when it takes them. Reads continue.
    pub sealed: Option<String>,
    /// Why writes must wait at present; `None` when they do not.
    pub busy: Option<String>,
    /// For how long writes have had to wait without a pause, if the store is only behind with its files. `None` if they wait for the
    /// system: for space, descriptors or memory.
    pub behind: Option<Duration>,
    /// Bytes of the store on disk.
    pub disk_bytes: u64,
    /// Bytes of the cache, and of records that are not in files yet.
    pub memory_bytes: u64,
    /// Bytes of batches that are committed and not durable yet.
    pub undurable_bytes: u64,
    /// Number of batches that were committed since the store was opened.
    pub commits: u64,
    /// Number of syncs since the store was opened. One sync covers many batches.
    pub syncs: u64,
}

/// A store that is behind with its files for less time is ready: the backlog is how it slows its writers down.
const BEHIND_MAX: Duration = Duration::from_secs(5);

impl KvStatus {
    /// Why no new work should be sent to the store; `None` if it is ready. A lack of the system is told at once, a backlog when it lasts.
    pub fn not_ready(&self) -> Option<String> {
        if let Some(cause) = &self.sealed {
            return Some(format!("the key-value engine is read-only since a write failed: {cause}"));
        }
        let cause = self.busy.as_ref()?;
        let lasts = self.behind.is_none_or(|behind| behind >= BEHIND_MAX);
        lasts.then(|| format!("writes to the key-value engine must wait: {cause}"))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn busy(behind: Option<Duration>) -> KvStatus {
        KvStatus { busy: Some("why".to_owned()), behind, ..KvStatus::default() }
    }

    #[test]
    fn a_short_backlog_is_ready_and_a_lack_is_not() {
        assert_eq!(KvStatus::default().not_ready(), None);
        for short in [Duration::ZERO, Duration::from_millis(4_999)] {
            assert_eq!(busy(Some(short)).not_ready(), None);
        }
        for reason in [busy(Some(BEHIND_MAX)), busy(None)].map(|status| status.not_ready().unwrap()) {
            assert_eq!(reason, "writes to the key-value engine must wait: why");
        }
        let sealed = KvStatus { sealed: Some("disk".to_owned()), ..busy(Some(Duration::ZERO)) };
        assert!(sealed.not_ready().unwrap().contains("read-only since a write failed: disk"));
    }
}
