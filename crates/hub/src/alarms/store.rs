//! The alarms: in memory, and in the store of keys.

use std::collections::HashSet;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use kv::{Direction, KeyRange, KeyValueStore, KvError, Sequence, WriteBatch};
use parking_lot::{Mutex, RwLock, RwLockReadGuard};
use uuid::Uuid;

use super::alarm::Alarm;
use super::comment::{AlarmComment, COMMENTS, of_alarm, read};
use super::error::AlarmError;
use super::feed::{AlarmFeed, Feeds};
use super::index::Index;
use super::limits::{ALARM_BYTES_PER_TENANT_MAX, ALARMS_PER_TENANT_MAX};
use super::record::{ALARMS, decode, encode, key};
use crate::metrics::Metrics;

/// The alarms of all tenants.
pub(crate) struct AlarmStore {
    kv: Arc<dyn KeyValueStore>,
    index: RwLock<Index>,
    /// One change at a time; readers wait only while it is put into the index.
    changes: Mutex<()>,
    /// The sequence of the last change.
    last: AtomicU64,
    feeds: Feeds,
    metrics: Arc<Metrics>,
}

impl std::fmt::Debug for AlarmStore {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("AlarmStore").finish_non_exhaustive()
    }
}

/// Changes that are committed together. They are in the index at once, and leave it again if the commit fails.
pub(crate) struct Changes<'a> {
    index: &'a mut Index,
    /// What an alarm was before, in the order of the changes.
    before: Vec<(Uuid, Option<Arc<Alarm>>)>,
    batch: WriteBatch,
    evicted: u64,
}

/// What a commit made.
#[derive(Debug)]
pub(crate) struct Committed<T> {
    pub(crate) value: T,
    /// The changes are durable when the store of keys is durable up to it.
    pub(crate) sequence: Sequence,
    /// The tenants whose alarms have changed.
    pub(crate) tenants: HashSet<Uuid>,
}

impl AlarmStore {
    /// Reads all alarms.
    pub(crate) fn open(kv: Arc<dyn KeyValueStore>, metrics: Arc<Metrics>) -> Result<Self, KvError> {
        let mut index = Index::default();
        for record in kv.scan(ALARMS, &KeyRange::all(), Direction::Ascending)? {
            let (key, value) = record?;
            index.put(Arc::new(decode(&key, &value)?));
        }
        for alarm in index.all().filter(|alarm| !alarm.cleared) {
            metrics.alarms.active(alarm.severity).inc();
        }
        let (index, changes) = (RwLock::new(index), Mutex::default());
        let last = AtomicU64::new(0);
        Ok(Self { kv, index, changes, last, feeds: Feeds::default(), metrics })
    }

    pub(crate) fn read(&self) -> RwLockReadGuard<'_, Index> {
        self.index.read()
    }

    /// The comments of an alarm, the oldest first. It may read the disk.
    pub(crate) fn comments(&self, alarm: Uuid) -> Result<Vec<AlarmComment>, KvError> {
        read(&*self.kv, alarm)
    }

    /// Makes changes and commits them: all or none. Never waits for a write to the disk.
    pub(crate) fn commit<T>(
        &self,
        change: impl FnOnce(&mut Changes<'_>) -> Result<T, AlarmError>,
    ) -> Result<Committed<T>, AlarmError> {
        let _one_at_a_time = self.changes.lock();
        let mut index = self.index.write();
        let batch = WriteBatch::new();
        let mut changes = Changes { index: &mut index, before: Vec::new(), batch, evicted: 0 };
        let committed = change(&mut changes).and_then(|value| {
            changes.write();
            Ok((value, self.kv.commit(&changes.batch)?))
        });
        match committed {
            Ok((value, sequence)) => {
                // Before a reader sees the change: the lock of the index is held.
                self.last.store(sequence, Ordering::Release);
                let tenants = changes.count(&self.metrics);
                Ok(Committed { value, sequence, tenants })
            }
            Err(error) => {
                changes.undo();
                Err(error)
            }
        }
    }

    /// All that a reader has seen is durable when the store of keys is durable up to this.
    pub(crate) fn last_sequence(&self) -> Sequence {
        self.last.load(Ordering::Acquire)
    }

    /// Notifies the subscribers of tenants about changes, which are durable.
    pub(crate) fn publish(&self, tenants: &HashSet<Uuid>) {
        tenants.iter().for_each(|tenant| self.feeds.changed(*tenant));
    }

    pub(crate) fn subscribe(&self, tenant: Uuid) -> AlarmFeed {
        self.feeds.subscribe(tenant)
    }
}

impl Changes<'_> {
    pub(super) fn index(&self) -> &Index {
        self.index
    }

    /// Adds an alarm. It takes the place of the cleared alarms of its tenant that were created first, if there are too many.
    ///
    /// # Errors
    /// All alarms of the tenant are active, and they are as many as a tenant may have.
    pub(crate) fn add(&mut self, alarm: Alarm) -> Result<Arc<Alarm>, AlarmError> {
        let alarm = Arc::new(alarm);
        let tenant = alarm.tenant;
        self.put(Arc::clone(&alarm));
        while let Some((actual, limit, name)) = self.over_limit(tenant) {
            let oldest = self.index.tenant(tenant).and_then(|tenant| tenant.oldest_cleared());
            let Some(oldest) = oldest.filter(|oldest| *oldest != alarm.id) else {
                let what = "alarms of the tenant, of which none is cleared";
                return Err(AlarmError::OverLimit { what, actual, limit, name });
            };
            self.remove(oldest);
            self.evicted += 1;
        }
        Ok(alarm)
    }

    /// Puts an alarm in the place of the one with its id.
    pub(crate) fn put(&mut self, alarm: Arc<Alarm>) {
        self.before.push((alarm.id, self.index.get(alarm.id).cloned()));
        self.index.put(alarm);
    }

    /// Removes an alarm with its comments.
    pub(crate) fn remove(&mut self, id: Uuid) -> Option<Arc<Alarm>> {
        let removed = self.index.remove(id)?;
        if removed.comments > 0 {
            self.batch.delete_range(COMMENTS, of_alarm(id));
        }
        self.before.push((id, Some(Arc::clone(&removed))));
        Some(removed)
    }

    /// What else is committed with the changes.
    pub(crate) fn batch(&mut self) -> &mut WriteBatch {
        &mut self.batch
    }

    fn over_limit(&self, tenant: Uuid) -> Option<(usize, usize, &'static str)> {
        let tenant = self.index.tenant(tenant)?;
        let (count, bytes) = (tenant.count(), tenant.bytes());
        if count > ALARMS_PER_TENANT_MAX {
            return Some((count, ALARMS_PER_TENANT_MAX, "ALARMS_PER_TENANT_MAX"));
        }
        let limit = ALARM_BYTES_PER_TENANT_MAX;
        (bytes > limit).then_some((bytes, limit, "ALARM_BYTES_PER_TENANT_MAX"))
    }

    /// Adds the last state of each changed alarm to the batch.
    fn write(&mut self) {
        let mut written = HashSet::new();
        for (id, _) in &self.before {
            if !written.insert(*id) {
                continue;
            }
            match self.index.get(*id) {
                Some(alarm) => self.batch.put(ALARMS, key(*id), encode(alarm)),
                None => self.batch.delete(ALARMS, key(*id)),
            };
        }
    }

    fn count(self, metrics: &Metrics) -> HashSet<Uuid> {
        metrics.alarms.evicted.inc_by(self.evicted);
        let mut tenants = HashSet::new();
        let mut counted = HashSet::new();
        for (id, before) in &self.before {
            if !counted.insert(*id) {
                continue;
            }
            let after = self.index.get(*id);
            tenants.extend(before.iter().chain(after).map(|alarm| alarm.tenant));
            for alarm in before.iter().filter(|alarm| !alarm.cleared) {
                metrics.alarms.active(alarm.severity).dec();
            }
            for alarm in after.into_iter().filter(|alarm| !alarm.cleared) {
                metrics.alarms.active(alarm.severity).inc();
            }
        }
        tenants
    }

    fn undo(self) {
        for (id, before) in self.before.into_iter().rev() {
            match before {
                Some(alarm) => self.index.put(alarm),
                None => drop(self.index.remove(id)),
            }
        }
    }
}
