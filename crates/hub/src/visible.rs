//! The rules of what a caller sees.

use crate::caller::{Action, Caller, Forbidden};
use crate::registry::{Device, Entity};

/// Whether a caller sees an entity. Profiles are visible to every caller of their tenant, and a tenant to those who see all of it.
pub(crate) fn sees(caller: &Caller, entity: &Entity) -> bool {
    match entity {
        Entity::DeviceProfile(_) | Entity::AssetProfile(_) => caller.tenant() == entity.tenant(),
        _ => caller.sees(entity.tenant(), entity.customer()),
    }
}

/// Checks a permission on a device that a caller holds.
pub(crate) fn check_device(caller: &Caller, device: &Device, action: Action) -> Result<(), Forbidden> {
    caller.check_on(action, device.tenant, device.customer)
}
