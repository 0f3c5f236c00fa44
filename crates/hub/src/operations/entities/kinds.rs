//! What the kinds of entities have in common: who sees them, who changes them, and the rows about it in the audit table.

use std::sync::Arc;

use uuid::Uuid;

use crate::caller::{Action, Caller};
use crate::error::Error;
use crate::hub::Hub;
use crate::registry::{EntityId, Kind, Page, PageRequest, Registry, RegistryError};
use crate::visible::sees_kind;

impl Hub {
    /// The entity with an id.
    pub fn find<T: Kind>(&self, caller: &Caller, id: Uuid) -> Result<Arc<T>, RegistryError> {
        caller.check(Action::Read)?;
        let found = self.registry.find::<T>(caller.tenant(), id)?;
        match is_seen(caller, &*found) {
            true => Ok(found),
            false => Err(RegistryError::unknown(T::KIND.words(), id)),
        }
    }

    /// The entity with a name.
    pub fn find_named<T: Kind>(&self, caller: &Caller, name: &str) -> Result<Arc<T>, RegistryError> {
        caller.check(Action::Read)?;
        let found = self.registry.find_named::<T>(caller.tenant(), name);
        let found = found.filter(|found| is_seen(caller, &**found));
        found.ok_or_else(|| RegistryError::unknown(T::KIND.words(), name))
    }

    /// A page of the entities that the caller sees, of those for which `wanted` holds.
    pub fn page<T: Kind>(
        &self,
        caller: &Caller,
        request: PageRequest<'_>,
        wanted: impl Fn(&T) -> bool,
    ) -> Result<Page<Arc<T>>, RegistryError> {
        caller.check(Action::Read)?;
        self.registry.page::<T>(caller.tenant(), request, |entity| is_seen(caller, entity) && wanted(entity))
    }

    /// Changes an entity of the caller's tenant. Waits for the disk.
    pub(super) fn manage<T: Kind>(
        &self,
        caller: &Caller,
        act: &'static str,
        change: impl FnOnce(&Registry, Uuid) -> Result<Arc<T>, RegistryError>,
    ) -> Result<Arc<T>, RegistryError> {
        caller.check(Action::ManageEntities)?;
        let entity = change(&self.registry, caller.tenant())?;
        self.audit_of(caller, act, entity.name(), EntityId::of(T::KIND, entity.id()));
        Ok(entity)
    }

    /// Deletes an entity of the caller's tenant with its attributes and alarms. Waits for the disk.
    pub(super) fn manage_deletion<T: Kind>(
        &self,
        caller: &Caller,
        act: &'static str,
        id: Uuid,
        delete: impl FnOnce(&Registry, Uuid) -> Result<Arc<T>, RegistryError>,
    ) -> Result<Arc<T>, Error> {
        caller.check(Action::ManageEntities)?;
        let owner = self.own_entity(caller, EntityId::of(T::KIND, id))?;
        let deleted = self.delete_then_attributes(&owner, || delete(&self.registry, caller.tenant()))?;
        self.audit_of(caller, act, deleted.name(), owner.id());
        Ok(deleted)
    }
}

fn is_seen<T: Kind>(caller: &Caller, entity: &T) -> bool {
    sees_kind(caller, T::KIND, entity.tenant(), (T::CUSTOMER)(entity))
}
