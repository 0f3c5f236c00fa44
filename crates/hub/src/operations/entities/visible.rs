//! What a caller sees. A thing of another tenant, or one that is not assigned to the caller's customer, is unknown to the caller.

use std::sync::Arc;

use uuid::Uuid;

use crate::caller::{Action, Caller, Forbidden};
use crate::hub::Hub;
use crate::registry::{Device, Entity, EntityId, EntityKind, RegistryError};
use crate::visible::sees;

impl Hub {
    /// The entity with an id.
    ///
    /// # Errors
    /// The caller may not read, or does not see such an entity.
    pub fn visible_entity(&self, caller: &Caller, id: EntityId) -> Result<Entity, RegistryError> {
        caller.check(Action::Read)?;
        self.own_entity(caller, id)
    }

    /// The entities of a kind that the caller sees, sorted by name: a snapshot.
    ///
    /// # Errors
    /// The caller may not read.
    pub fn visible_entities(&self, caller: &Caller, kind: EntityKind) -> Result<Vec<Entity>, Forbidden> {
        caller.check(Action::Read)?;
        Ok(self.registry.entities(caller.tenant(), kind, |entity| sees(caller, entity)))
    }

    /// Whether a caller sees a device. A door asks it again for a device that it holds when
    /// [`session_changes`](Hub::session_changes) signals.
    pub fn sees_device(&self, caller: &Caller, device: Uuid) -> bool {
        self.own_device(caller, device).is_ok()
    }

    /// An entity that the caller sees.
    pub(crate) fn own_entity(&self, caller: &Caller, id: EntityId) -> Result<Entity, RegistryError> {
        let entity = self.registry.entity(caller.tenant(), id)?;
        match sees(caller, &entity) {
            true => Ok(entity),
            false => Err(RegistryError::unknown(id.kind.words(), id.id)),
        }
    }

    /// A device that the caller sees.
    pub(crate) fn own_device(&self, caller: &Caller, id: Uuid) -> Result<Arc<Device>, RegistryError> {
        let device = self.registry.device_by_id(id);
        let device = device.filter(|device| caller.sees(device.tenant, device.customer));
        device.ok_or_else(|| RegistryError::unknown("device", id))
    }
}
