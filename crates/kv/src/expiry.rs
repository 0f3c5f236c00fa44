//! Records that expire: their space is reclaimed.
//!
//! The owner of a space says which of its records have expired, by a pure function of the record and the time. Reclaiming deletes such
//! records by usual batches, slice by slice.
//!
//! - A deletion is behind the batch that wrote the record. So it is never durable without it, and no crash and no older file brings an
//!   older value back.
//! - A snapshot keeps what it has: the deletion comes after it.
//! - A record that was written again after the decision stays ([`WriteBatch::delete_if`]).
//!
//! When a record is deleted is not said. So a reader must treat a record that has expired as absent.

use crate::{Direction, Key, KeyRange, KvError, Sequence, Snapshot, Space, WriteBatch};

/// Says which records of a space have expired.
pub trait Expiry: Send + Sync + 'static {
    /// Whether a record has expired at a time, in microseconds since 1970. The answer depends on the arguments and on nothing else, and a
    /// record that has expired once has also expired at every later time.
    fn is_expired(&self, key: &[u8], value: &[u8], now_us: i64) -> bool;
}

impl<F: Fn(&[u8], &[u8], i64) -> bool + Send + Sync + 'static> Expiry for F {
    fn is_expired(&self, key: &[u8], value: &[u8], now_us: i64) -> bool {
        self(key, value, now_us)
    }
}

/// What one slice of a sweep reads at most: it ends behind the record that reaches one of the bounds.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct SweepBudget {
    /// Records.
    pub records: u64,
    /// Bytes of keys and values, at most 4 MiB.
    pub bytes: usize,
}

/// More bytes and the largest value would not fit into a batch.
const SLICE_BYTES_MAX: usize = 4 << 20;

/// The outcome of a slice of a sweep.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Swept {
    /// Records that were read.
    pub read: u64,
    /// Records that had expired. They are deleted, but for those that were written meanwhile.
    pub expired: u64,
    /// The last key that was read; `None` at the end of the space.
    pub last: Option<Key>,
    /// The batch of the deletions, if there are any.
    pub sequence: Option<Sequence>,
}

/// The deletions of the next slice, after a key.
pub(crate) fn slice(
    snapshot: &dyn Snapshot,
    space: Space,
    expiry: &dyn Expiry,
    now_us: i64,
    after: Option<&[u8]>,
    budget: SweepBudget,
) -> Result<(WriteBatch, Swept), KvError> {
    let range = after.map_or_else(KeyRange::all, |key| KeyRange::all().after(key));
    let (mut batch, mut swept, mut bytes) = (WriteBatch::new(), Swept::default(), 0);
    for record in snapshot.scan(space, &range, Direction::Ascending)? {
        let (key, value) = record?;
        swept.read += 1;
        bytes += key.len() + value.len();
        let is_full = swept.read >= budget.records || bytes >= budget.bytes.min(SLICE_BYTES_MAX);
        if is_full {
            swept.last = Some(key.clone());
        }
        if expiry.is_expired(&key, &value, now_us) {
            swept.expired += 1;
            batch.delete_if(space, key, value);
        }
        if is_full {
            break;
        }
    }
    Ok((batch, swept))
}
