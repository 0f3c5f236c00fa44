//! Kinds of entities and their ids, in ThingsBoard's words.

use std::fmt;
use std::str::FromStr;

use uuid::Uuid;

/// A kind of entity.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum EntityKind {
    Tenant,
    /// A customer of a tenant.
    Customer,
    User,
    Device,
    /// The type of devices.
    DeviceProfile,
    /// An asset: a thing that reports nothing itself, such as a depot.
    Asset,
    /// The type of assets.
    AssetProfile,
    /// A view of an entity that shows some of its keys and times.
    EntityView,
    Alarm,
}

impl EntityKind {
    /// All kinds.
    pub const ALL: [Self; 9] = [
        Self::Tenant,
        Self::Customer,
        Self::User,
        Self::Device,
        Self::DeviceProfile,
        Self::Asset,
        Self::AssetProfile,
        Self::EntityView,
        Self::Alarm,
    ];

    /// ThingsBoard's name (`EntityType`).
    pub const fn name(self) -> &'static str {
        match self {
            Self::Tenant => "TENANT",
            Self::Customer => "CUSTOMER",
            Self::User => "USER",
            Self::Device => "DEVICE",
            Self::DeviceProfile => "DEVICE_PROFILE",
            Self::Asset => "ASSET",
            Self::AssetProfile => "ASSET_PROFILE",
            Self::EntityView => "ENTITY_VIEW",
            Self::Alarm => "ALARM",
        }
    }

    /// The kind in words.
    pub const fn words(self) -> &'static str {
        match self {
            Self::Tenant => "tenant",
            Self::Customer => "customer",
            Self::User => "user",
            Self::Device => "device",
            Self::DeviceProfile => "device profile",
            Self::Asset => "asset",
            Self::AssetProfile => "asset profile",
            Self::EntityView => "entity view",
            Self::Alarm => "alarm",
        }
    }
}

impl EntityKind {
    /// Whether entities of this kind own others.
    pub const fn owns(self) -> bool {
        matches!(self, Self::Tenant | Self::Customer)
    }
}

impl fmt::Display for EntityKind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

impl FromStr for EntityKind {
    type Err = String;

    fn from_str(name: &str) -> Result<Self, String> {
        Self::ALL.into_iter().find(|kind| kind.name() == name).ok_or_else(|| {
            let names = Self::ALL.map(Self::name).join(", ");
            format!("the entity type is {name:?}; it must be one of {names}")
        })
    }
}

/// The kind and the id of an entity.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct EntityId {
    pub kind: EntityKind,
    /// The id, unique among all kinds.
    pub id: Uuid,
}

impl EntityId {
    /// The id of an entity of a kind.
    pub const fn of(kind: EntityKind, id: Uuid) -> Self {
        Self { kind, id }
    }

    /// The id of a device.
    pub const fn device(id: Uuid) -> Self {
        Self { kind: EntityKind::Device, id }
    }

    /// The id of a customer.
    pub const fn customer(id: Uuid) -> Self {
        Self { kind: EntityKind::Customer, id }
    }

    /// The id of a tenant.
    pub const fn tenant(id: Uuid) -> Self {
        Self { kind: EntityKind::Tenant, id }
    }
}

impl fmt::Display for EntityId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} {}", self.kind, self.id)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn kinds_have_names_that_parse_back() {
        for kind in EntityKind::ALL {
            assert_eq!(kind.name().parse(), Ok(kind));
        }
        assert!("TRUCK".parse::<EntityKind>().unwrap_err().contains("ENTITY_VIEW"));
    }
}
