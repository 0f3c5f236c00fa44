//! Writes changes of attributes, one after the other for each entity, and announces them.

use std::sync::Arc;

use kv::{KeyRange, KeyValueStore, KvError, Sequence, WriteBatch};
use uuid::Uuid;

use super::attribute_scope::{ATTRIBUTES, AttributeScope, of_entity};
use super::change::Change;
use super::error::AttributeError;
use super::feed::Feed;
use super::locks::Locks;
use super::owner::Owner;
use super::pushes::Pushes;
use super::scope::Scope;
use crate::registry::RegistryError;

/// The writer of attributes.
pub(crate) struct Writer {
    kv: Arc<dyn KeyValueStore>,
    locks: Locks,
    pushes: Arc<Pushes>,
    feed: Arc<Feed>,
}

impl Writer {
    pub(crate) fn new(kv: Arc<dyn KeyValueStore>, pushes: Arc<Pushes>, feed: Arc<Feed>) -> Self {
        Self { kv, locks: Locks::default(), pushes, feed }
    }

    /// Commits a planned change, and announces it when it is durable. `exists` indicates whether the entity is there; a deletion of the
    /// entity holds the same lock.
    ///
    /// # Errors
    /// The entity is unknown; those of `plan`; the key-value store refused or failed.
    pub(crate) fn change(
        &self,
        place: AttributeScope<'_>,
        exists: impl FnOnce() -> bool,
        plan: impl FnOnce(&dyn KeyValueStore) -> Result<Change, AttributeError>,
    ) -> Result<Sequence, AttributeError> {
        let Owner { entity, name, .. } = place.owner;
        let _lock = self.locks.lock(entity.id);
        if !exists() {
            return Err(RegistryError::unknown(entity.kind.words(), name).into());
        }
        let Change { batch, message } = plan(&*self.kv)?;
        let sequence = self.kv.commit(&batch)?;
        if let Some(message) = message {
            let durable = || self.kv.progress().durable;
            self.feed.add(sequence, (entity, place.scope), durable);
            if place.scope == Scope::Shared {
                self.pushes.add(sequence, entity.id, message, durable);
            }
        }
        Ok(sequence)
    }

    /// Deletes the attributes of an entity, with what `also` adds, and then the entity with `delete`. Nobody writes attributes
    /// meanwhile. `wait` waits until a sequence is durable.
    pub(crate) fn delete_with<T, E: From<KvError>>(
        &self,
        (tenant, id): (Uuid, Uuid),
        also: impl FnOnce(&mut WriteBatch),
        wait: impl FnOnce(Sequence) -> Result<(), KvError>,
        delete: impl FnOnce() -> Result<T, E>,
    ) -> Result<T, E> {
        let _lock = self.locks.lock(id);
        let mut batch = all_of(tenant, id);
        also(&mut batch);
        let sequence = self.kv.commit(&batch)?;
        // First the attributes: if the server ends here, the entity is there and can be deleted again.
        wait(sequence)?;
        delete()
    }

    /// Deletes an entity with `delete`, and then its attributes, for entities whose deletion may be refused. If the server ends
    /// between both, attributes of an unknown entity are left, which nobody sees.
    pub(crate) fn delete_after<T, E: From<KvError>>(
        &self,
        (tenant, id): (Uuid, Uuid),
        wait: impl FnOnce(Sequence) -> Result<(), KvError>,
        delete: impl FnOnce() -> Result<T, E>,
    ) -> Result<T, E> {
        let _lock = self.locks.lock(id);
        let deleted = delete()?;
        wait(self.kv.commit(&all_of(tenant, id))?)?;
        Ok(deleted)
    }
}

/// The deletion of all attributes of an entity.
fn all_of(tenant: Uuid, id: Uuid) -> WriteBatch {
    let mut batch = WriteBatch::new();
    batch.delete_range(ATTRIBUTES, KeyRange::prefix(of_entity(tenant, id)));
    batch
}
