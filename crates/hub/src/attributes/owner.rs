//! Entities that have attributes.

use std::fmt;
use std::sync::Arc;

use uuid::Uuid;

use super::scope::Scope;
use crate::caller::{Action, Caller, Forbidden};
use crate::registry::{Device, Entity, EntityId, EntityKind};

/// An entity that has attributes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Owner<'a> {
    /// Its tenant; the tenant's own id for a tenant.
    pub tenant: Uuid,
    /// The customer that it is assigned to.
    pub customer: Option<Uuid>,
    /// Its kind and id.
    pub entity: EntityId,
    /// Its name, for messages.
    pub name: &'a str,
}

impl Owner<'_> {
    /// The scopes that its attributes may have: those of devices have all, as in ThingsBoard.
    pub fn scopes(&self) -> &'static [Scope] {
        match self.entity.kind {
            EntityKind::Device => &Scope::ALL,
            _ => &[Scope::Server],
        }
    }

    /// Checks that a caller may read its attributes. Those of profiles are for every caller of the tenant.
    pub(crate) fn check_read(&self, caller: &Caller) -> Result<(), Forbidden> {
        let customer = match self.entity.kind {
            EntityKind::DeviceProfile | EntityKind::AssetProfile => caller.customer(),
            _ => self.customer,
        };
        caller.check_on(Action::Read, self.tenant, customer)
    }
}

impl<'a> From<&'a Device> for Owner<'a> {
    fn from(device: &'a Device) -> Self {
        let Device { id, tenant, customer, name, .. } = device;
        Self { tenant: *tenant, customer: *customer, entity: EntityId::device(*id), name }
    }
}

impl<'a> From<&'a Arc<Device>> for Owner<'a> {
    fn from(device: &'a Arc<Device>) -> Self {
        Self::from(&**device)
    }
}

impl<'a> From<&'a Entity> for Owner<'a> {
    fn from(entity: &'a Entity) -> Self {
        Self {
            tenant: entity.tenant(),
            customer: entity.customer(),
            entity: entity.id(),
            name: entity.name(),
        }
    }
}

impl fmt::Display for Owner<'_> {
    /// The kind in words and the name, such as `device "truck 7"`.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} {:?}", self.entity.kind.words(), self.name)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_owner_is_named_in_words() {
        let entity = EntityId { kind: EntityKind::AssetProfile, id: Uuid::nil() };
        let owner = Owner { tenant: Uuid::nil(), customer: None, entity, name: "a \"b\"" };
        assert_eq!(owner.to_string(), r#"asset profile "a \"b\"""#);
        assert_eq!(owner.scopes(), [Scope::Server]);
        let device = Owner { entity: EntityId::device(Uuid::nil()), ..owner };
        assert_eq!(device.scopes(), Scope::ALL);
    }
}
