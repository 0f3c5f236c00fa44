//! The rules of what a caller sees.

use uuid::Uuid;

use crate::caller::{Action, Caller, Forbidden};
use crate::registry::{Device, Entity, EntityKind};

/// Whether a caller sees an entity. Profiles are visible to every caller of their tenant, and a tenant to those who see all of it.
pub(crate) fn sees(caller: &Caller, entity: &Entity) -> bool {
    sees_kind(caller, entity.kind(), entity.tenant(), entity.customer())
}

/// Like [`sees`] for an entity of a tenant that is assigned to a customer, or is one.
pub(crate) fn sees_kind(caller: &Caller, kind: EntityKind, tenant: Uuid, customer: Option<Uuid>) -> bool {
    match kind {
        EntityKind::DeviceProfile | EntityKind::AssetProfile => caller.tenant() == tenant,
        _ => caller.sees(tenant, customer),
    }
}

/// Checks a permission on a device that a caller holds.
pub(crate) fn check_device(caller: &Caller, device: &Device, action: Action) -> Result<(), Forbidden> {
    caller.check_on(action, device.tenant, device.customer)
}
