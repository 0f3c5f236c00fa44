//! The kinds of entities that the index has by id, and by tenant and name; and the lookups that they have in common.

use std::sync::Arc;

use parking_lot::{MutexGuard, RwLockWriteGuard};
use rusqlite::Connection;
use uuid::Uuid;

use super::asset::{Asset, AssetProfile};
use super::customer::Customer;
use super::directory::Directory;
use super::entity::{Device, Profile};
use super::entity_view::EntityView;
use super::error::RegistryError;
use super::handle::Registry;
use super::index::Index;
use super::page::{Listed, Page, PageRequest, page_of};
use super::save;
use crate::entity_id::{EntityId, EntityKind};

/// A kind of entities.
pub trait Kind: Listed + Clone + Send + Sync + 'static {
    const KIND: EntityKind;
    /// The place in the index.
    const DIRECTORY: fn(&Index) -> &Directory<Self>;
    /// The customer that an entity is assigned to, or that it is.
    const CUSTOMER: fn(&Self) -> Option<Uuid> = |_| None;
}

impl Kind for Customer {
    const KIND: EntityKind = EntityKind::Customer;
    const DIRECTORY: fn(&Index) -> &Directory<Self> = |index| &index.customers;
    const CUSTOMER: fn(&Self) -> Option<Uuid> = |customer| Some(customer.id);
}

impl Kind for Device {
    const KIND: EntityKind = EntityKind::Device;
    const DIRECTORY: fn(&Index) -> &Directory<Self> = Index::devices;
    const CUSTOMER: fn(&Self) -> Option<Uuid> = |device| device.customer;
}

impl Kind for Profile {
    const KIND: EntityKind = EntityKind::DeviceProfile;
    const DIRECTORY: fn(&Index) -> &Directory<Self> = |index| &index.profiles;
}

impl Kind for Asset {
    const KIND: EntityKind = EntityKind::Asset;
    const DIRECTORY: fn(&Index) -> &Directory<Self> = |index| &index.assets;
    const CUSTOMER: fn(&Self) -> Option<Uuid> = |asset| asset.customer;
}

impl Kind for AssetProfile {
    const KIND: EntityKind = EntityKind::AssetProfile;
    const DIRECTORY: fn(&Index) -> &Directory<Self> = |index| &index.asset_profiles;
}

impl Kind for EntityView {
    const KIND: EntityKind = EntityKind::EntityView;
    const DIRECTORY: fn(&Index) -> &Directory<Self> = |index| &index.views;
    const CUSTOMER: fn(&Self) -> Option<Uuid> = |view| view.customer;
}

impl Registry {
    /// The entity of a tenant with that id.
    pub fn find<T: Kind>(&self, tenant: Uuid, id: Uuid) -> Result<Arc<T>, RegistryError> {
        let index = self.index.read();
        let found = (T::DIRECTORY)(&index).get(id).filter(|found| found.tenant() == tenant).cloned();
        found.ok_or_else(|| RegistryError::unknown(T::KIND.words(), id))
    }

    /// The entity of a tenant with that name.
    pub fn find_named<T: Kind>(&self, tenant: Uuid, name: &str) -> Option<Arc<T>> {
        (T::DIRECTORY)(&self.index.read()).by_name(tenant, name).cloned()
    }

    /// A page of the entities of a tenant, of those for which `wanted` holds.
    pub fn page<T: Kind>(
        &self,
        tenant: Uuid,
        request: PageRequest<'_>,
        wanted: impl Fn(&T) -> bool,
    ) -> Result<Page<Arc<T>>, RegistryError> {
        request.check()?;
        let index = self.index.read();
        Ok(page_of((T::DIRECTORY)(&index).of(tenant).filter(|entity| wanted(entity)), &request))
    }

    /// Refuses a name that another entity of the kind has.
    pub(super) fn check_is_free<T: Kind>(&self, tenant: Uuid, name: &str) -> Result<(), RegistryError> {
        match self.find_named::<T>(tenant, name) {
            Some(_) => Err(RegistryError::exists(T::KIND.words(), name)),
            None => Ok(()),
        }
    }

    /// Deletes the row of an entity and its relations. The caller removes it from the index that is returned.
    pub(super) fn delete_row(
        &self,
        writer: &mut MutexGuard<'_, Connection>,
        what: &'static str,
        table: &'static str,
        entity: EntityId,
    ) -> Result<RwLockWriteGuard<'_, Index>, RegistryError> {
        let ending_there = self.relations_ending_at(entity);
        self.commit(writer, what, |transaction| {
            save::no_relations(transaction, entity, &ending_there)?;
            transaction.execute(&format!("DELETE FROM {table} WHERE id = ?1"), [entity.id]).map(drop)
        })?;
        let mut index = self.index.write();
        index.relations.remove_entity(entity);
        Ok(index)
    }
}
