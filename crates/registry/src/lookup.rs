//! Entities of any kind, by id and by kind.

use std::sync::Arc;

use uuid::Uuid;

use super::any_entity::Entity;
use super::error::RegistryError;
use super::handle::Registry;
use super::page::Listed;
use crate::entity_id::{EntityId, EntityKind};

impl Registry {
    /// The entity of a tenant with that id.
    ///
    /// # Errors
    /// There is none, or the registry does not have entities of this kind.
    pub fn entity(&self, tenant: Uuid, id: EntityId) -> Result<Entity, RegistryError> {
        let index = self.index.read();
        let EntityId { kind, id } = id;
        let found = match kind {
            EntityKind::Tenant => index.tenant(id).cloned().map(Entity::Tenant),
            EntityKind::Customer => index.customers.get(id).cloned().map(Entity::Customer),
            EntityKind::User => index.user(id).cloned().map(Entity::User),
            EntityKind::Device => index.device(id).map(|(device, _)| Entity::Device(Arc::clone(device))),
            EntityKind::DeviceProfile => index.profiles.get(id).cloned().map(Entity::DeviceProfile),
            EntityKind::Asset => index.assets.get(id).cloned().map(Entity::Asset),
            EntityKind::AssetProfile => index.asset_profiles.get(id).cloned().map(Entity::AssetProfile),
            EntityKind::EntityView => index.views.get(id).cloned().map(Entity::EntityView),
            EntityKind::Alarm => None,
        };
        let found = found.filter(|entity| entity.tenant() == tenant);
        found.ok_or_else(|| RegistryError::unknown(kind.words(), id))
    }

    /// The entities of a kind of a tenant for which `wanted` holds: a snapshot of the index, sorted by name. Alarms are not
    /// in the registry.
    pub fn entities(&self, tenant: Uuid, kind: EntityKind, wanted: impl Fn(&Entity) -> bool) -> Vec<Entity> {
        fn of<'a, T: Listed + 'a>(
            found: impl Iterator<Item = &'a Arc<T>>,
            make: impl Fn(Arc<T>) -> Entity,
            wanted: impl Fn(&Entity) -> bool,
        ) -> Vec<Entity> {
            found.map(|one| make(Arc::clone(one))).filter(wanted).collect()
        }
        let index = self.index.read();
        match kind {
            EntityKind::Tenant => of(index.tenant(tenant).into_iter(), Entity::Tenant, wanted),
            EntityKind::Customer => of(index.customers.of(tenant), Entity::Customer, wanted),
            EntityKind::User => of(index.users().filter(|user| user.tenant == tenant), Entity::User, wanted),
            EntityKind::Device => of(index.devices().of(tenant), Entity::Device, wanted),
            EntityKind::DeviceProfile => of(index.profiles.of(tenant), Entity::DeviceProfile, wanted),
            EntityKind::Asset => of(index.assets.of(tenant), Entity::Asset, wanted),
            EntityKind::AssetProfile => of(index.asset_profiles.of(tenant), Entity::AssetProfile, wanted),
            EntityKind::EntityView => of(index.views.of(tenant), Entity::EntityView, wanted),
            EntityKind::Alarm => Vec::new(),
        }
    }
}
