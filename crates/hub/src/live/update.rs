//! Updates for live subscribers, and how many of them may wait.

use std::collections::HashMap;
use std::sync::Arc;

use model::{SeriesId, Timestamp, Value};

/// Unread updates of a subscriber; above it the mailbox keeps only the newest value of each key.
pub const MAILBOX_UPDATES_MAX: usize = 4_096;
/// Bytes of unread updates of a subscriber; above it the mailbox is reduced likewise. A message to a client is smaller.
pub const MAILBOX_REDUCE_BYTES: usize = 1024 * 1024;
/// Updates of one durability class that wait for the store or for the delivering thread; above it they are reduced
/// likewise.
pub const PENDING_UPDATES_MAX: usize = 262_144;
/// Bytes of such updates; above it they are reduced likewise. It is twice the log's bound for bytes that are not yet
/// durable, so all numbers of such a log fit.
pub const PENDING_REDUCE_BYTES: usize = 2 * model::limits::LOG_PENDING_BYTES_MAX;
/// One value of one key that became durable.
#[derive(Debug, Clone, PartialEq)]
pub struct Update {
    /// The series of the value.
    pub series: SeriesId,
    /// The key of the value.
    pub key: String,
    /// The time of the value.
    pub ts: Timestamp,
    pub value: Value,
}

impl Update {
    /// About the bytes that the update takes in memory.
    pub fn weight(&self) -> usize {
        // The counters of an `Arc`, and the overhead of three allocations.
        const OVERHEAD_BYTES: usize = 2 * size_of::<usize>() + 3 * 16;
        let text = match &self.value {
            Value::String(text) | Value::Json(text) => text.len(),
            Value::Bool(_) | Value::I64(_) | Value::F64(_) => 0,
        };
        size_of::<Self>() + OVERHEAD_BYTES + self.key.len() + text
    }
}

/// Keeps the newest value (by ts, then by arrival) of each key of each series, in the order of arrival. Returns how many
/// updates it drops.
pub(super) fn coalesce(updates: &mut Vec<Arc<Update>>) -> usize {
    let before = updates.len();
    let mut newest: HashMap<(SeriesId, &str), usize> = HashMap::new();
    for (index, update) in updates.iter().enumerate() {
        let kept = newest.entry((update.series, update.key.as_str())).or_insert(index);
        if updates[*kept].ts <= update.ts {
            *kept = index;
        }
    }
    let mut keep = vec![false; before];
    newest.into_values().for_each(|index| keep[index] = true);
    let mut kept = keep.into_iter();
    updates.retain(|_| kept.next() == Some(true));
    updates.shrink_to(2 * updates.len());
    before - updates.len()
}
