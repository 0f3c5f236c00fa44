//! Filters live updates by what a client got as a reply before: no gap and no repetition.
//!
//! A session watches a series first and reads it then, so an update may repeat what the reply had. The first update of a key and
//! a time that the reply had decides: with the same value it is a repetition, with another one it is a correction.

use std::collections::{HashMap, HashSet};
use std::hash::{BuildHasher, Hash, Hasher, RandomState};
use std::sync::Arc;

use hub::live::Update;
use model::{Timestamp, Value};

use super::update::Data;
use crate::budget::{Charge, OverBudget, Share};
use crate::http::limits::{REMEMBERED_KEY_BYTES, REMEMBERED_POINT_BYTES};

/// The kind of a subscription.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum SubscriptionKind {
    /// The latest value of each key: its time never goes back.
    Latest,
    /// All values from a time on, including late ones.
    History,
}

/// The keys of a subscription of one series, and what the client has got of them.
#[derive(Debug)]
pub(crate) struct UpdateFilter {
    /// All keys when `None`.
    keys: Option<Arc<HashSet<String>>>,
    kind: SubscriptionKind,
    /// Values of replies, until an update shows whether it repeats them: by the hash of key and time the hash of the value,
    /// because a value may be long.
    replied: HashMap<u64, u64>,
    /// For latest values: the time of the newest sent value per key. Older values that arrive late are history.
    newest: HashMap<String, Timestamp>,
    /// Bytes of `newest`.
    newest_bytes: Charge,
    /// Bytes of `replied`.
    replied_bytes: Option<Charge>,
    /// Whether the reply is from before the last call of [`Self::forget_old`].
    is_old: bool,
}

impl UpdateFilter {
    /// Without a reply. Its bytes are charged to `share`.
    pub(crate) fn new(
        keys: Option<Arc<HashSet<String>>>,
        kind: SubscriptionKind,
        share: &Arc<Share>,
    ) -> Result<Self, OverBudget> {
        let (replied, newest) = (HashMap::new(), HashMap::new());
        Ok(Self {
            keys,
            kind,
            replied,
            newest,
            newest_bytes: share.hold(0)?,
            replied_bytes: None,
            is_old: false,
        })
    }

    /// The keys; all when `None`.
    pub(crate) fn keys(&self) -> Option<&HashSet<String>> {
        self.keys.as_deref()
    }

    pub(crate) fn kind(&self) -> SubscriptionKind {
        self.kind
    }

    /// Records the values of a reply.
    pub(crate) fn record(
        &mut self,
        data: &Data,
        share: &Arc<Share>,
        hashes: &RandomState,
    ) -> Result<(), OverBudget> {
        let of_key = |timed_values: &Vec<_>| {
            if self.kind == SubscriptionKind::Latest { 1 } else { timed_values.len() }
        };
        let points: usize = data.values().map(of_key).sum();
        (self.replied, self.replied_bytes, self.is_old) = (HashMap::new(), None, false);
        self.replied_bytes = Some(share.hold(points * REMEMBERED_POINT_BYTES)?);
        for (key, timed_values) in data {
            let recorded = match self.kind {
                SubscriptionKind::Latest => timed_values.len().saturating_sub(1),
                SubscriptionKind::History => 0,
            };
            for (ts, value) in &timed_values[recorded..] {
                self.replied.insert(hashes.hash_one((key.as_str(), ts)), hash_of(hashes, value));
            }
        }
        if self.kind == SubscriptionKind::Latest {
            self.newest_bytes = share.hold(bytes_of(data.keys()))?;
            let newest =
                data.iter().filter_map(|(key, timed_values)| Some((key.clone(), timed_values.last()?.0)));
            self.newest = newest.collect();
        }
        Ok(())
    }

    /// Forgets the values of a reply from before the last call: updates from its time have arrived by now.
    pub(crate) fn forget_old(&mut self) {
        if self.is_old {
            self.replied = HashMap::new();
            self.replied_bytes = None;
        }
        self.is_old = true;
    }

    /// Whether the client must get the update.
    pub(crate) fn wants(&mut self, update: &Update, hashes: &RandomState) -> Result<bool, OverBudget> {
        if self.keys.as_ref().is_some_and(|keys| !keys.contains(&update.key)) {
            return Ok(false);
        }
        Ok(self.is_new(update, hashes) && self.advance(update)?)
    }

    /// Whether the update differs from the reply. Later updates with the same time are corrections.
    fn is_new(&mut self, update: &Update, hashes: &RandomState) -> bool {
        if self.replied.is_empty() {
            return true;
        }
        let replied = self.replied.remove(&hashes.hash_one((update.key.as_str(), &update.ts)));
        replied != Some(hash_of(hashes, &update.value))
    }

    /// Whether the update is not older than the newest sent value. Records its time.
    fn advance(&mut self, update: &Update) -> Result<bool, OverBudget> {
        if self.kind == SubscriptionKind::History {
            return Ok(true);
        }
        match self.newest.get_mut(&update.key) {
            Some(newest) if update.ts < *newest => return Ok(false),
            Some(newest) => *newest = update.ts,
            None => {
                self.newest_bytes.grow(bytes_of([&update.key]))?;
                self.newest.insert(update.key.clone(), update.ts);
            }
        }
        Ok(true)
    }
}

/// About the bytes of keys in memory, each with a time.
pub(super) fn bytes_of<'a>(keys: impl IntoIterator<Item = &'a String>) -> usize {
    keys.into_iter().map(|key| key.len() + REMEMBERED_KEY_BYTES).sum()
}

/// A hash of a value. Different values almost never have the same one.
pub(super) fn hash_of(with: &RandomState, value: &Value) -> u64 {
    let mut hasher = with.build_hasher();
    std::mem::discriminant(value).hash(&mut hasher);
    match value {
        Value::Bool(value) => value.hash(&mut hasher),
        Value::I64(value) => value.hash(&mut hasher),
        Value::F64(value) => value.to_bits().hash(&mut hasher),
        Value::String(text) | Value::Json(text) => text.hash(&mut hasher),
    }
    hasher.finish()
}
