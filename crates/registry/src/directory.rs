//! Entities of one kind in memory: by id, and by tenant and name.

use std::borrow::Borrow;
use std::cmp::Ordering;
use std::collections::{BTreeSet, HashMap};
use std::sync::Arc;

use uuid::Uuid;

use super::page::Listed;

/// Entities of one kind.
#[derive(Debug)]
pub struct Directory<T: Listed> {
    by_id: HashMap<Uuid, Arc<T>>,
    by_name: HashMap<Uuid, BTreeSet<ByName<T>>>,
}

impl<T: Listed> Default for Directory<T> {
    fn default() -> Self {
        Self { by_id: HashMap::new(), by_name: HashMap::new() }
    }
}

impl<T: Listed> Directory<T> {
    pub(super) fn get(&self, id: Uuid) -> Option<&Arc<T>> {
        self.by_id.get(&id)
    }

    pub(super) fn by_name(&self, tenant: Uuid, name: &str) -> Option<&Arc<T>> {
        self.by_name.get(&tenant)?.get(name).map(|ByName(entity)| entity)
    }

    /// The entities of all tenants, in no order.
    pub(super) fn all(&self) -> impl Iterator<Item = &Arc<T>> {
        self.by_id.values()
    }

    /// Number of entities of all tenants.
    pub(super) fn len(&self) -> usize {
        self.by_id.len()
    }

    /// Number of entities of a tenant.
    pub(super) fn len_of(&self, tenant: Uuid) -> usize {
        self.by_name.get(&tenant).map_or(0, BTreeSet::len)
    }

    /// The entities of a tenant, sorted by name.
    pub(super) fn of(&self, tenant: Uuid) -> impl Iterator<Item = &Arc<T>> {
        self.by_name.get(&tenant).into_iter().flatten().map(|ByName(entity)| entity)
    }

    /// Makes room for more entities.
    pub(super) fn reserve(&mut self, more: usize) {
        self.by_id.reserve(more);
    }

    /// Adds an entity, or replaces the one with the same id.
    pub(super) fn put(&mut self, entity: Arc<T>) {
        self.remove(entity.id());
        self.by_name.entry(entity.tenant()).or_default().insert(ByName(Arc::clone(&entity)));
        self.by_id.insert(entity.id(), entity);
    }

    pub(super) fn remove(&mut self, id: Uuid) -> Option<Arc<T>> {
        let entity = self.by_id.remove(&id)?;
        if let Some(names) = self.by_name.get_mut(&entity.tenant()) {
            names.remove(entity.name());
        }
        Some(entity)
    }

    /// Removes the entities of a tenant and returns their ids.
    pub(super) fn remove_tenant(&mut self, tenant: Uuid) -> Vec<Uuid> {
        let removed = self.by_name.remove(&tenant).into_iter().flatten();
        let ids: Vec<Uuid> = removed.map(|ByName(entity)| entity.id()).collect();
        for id in &ids {
            self.by_id.remove(id);
        }
        ids
    }
}

/// An entity in the order of names.
#[derive(Debug)]
struct ByName<T>(Arc<T>);

impl<T: Listed> Borrow<str> for ByName<T> {
    fn borrow(&self) -> &str {
        self.0.name()
    }
}

impl<T: Listed> Ord for ByName<T> {
    fn cmp(&self, other: &Self) -> Ordering {
        self.0.name().cmp(other.0.name())
    }
}

impl<T: Listed> PartialOrd for ByName<T> {
    fn partial_cmp(&self, other: &Self) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

impl<T: Listed> PartialEq for ByName<T> {
    fn eq(&self, other: &Self) -> bool {
        self.cmp(other).is_eq()
    }
}

impl<T: Listed> Eq for ByName<T> {}
