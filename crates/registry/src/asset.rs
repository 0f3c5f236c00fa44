//! Assets: things that report nothing themselves, such as depots; and their profiles.

use std::sync::Arc;

use model::Timestamp;
use uuid::Uuid;

use super::page::{Listed, SortProperty};

/// The type of an asset.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct AssetProfile {
    /// Identity.
    pub id: Uuid,
    /// Tenant of the profile.
    pub tenant: Uuid,
    /// Name, unique in the tenant.
    pub name: String,
    /// Its kind for.
    pub description: Option<Box<str>>,
    /// Whether assets that are added without a profile get it. One profile of each tenant is it.
    pub is_default: bool,
    /// When it was added; whole milliseconds.
    pub created_at: Timestamp,
    /// Grows with each change.
    pub version: i64,
}

impl Listed for AssetProfile {
    fn id(&self) -> Uuid {
        self.id
    }

    fn tenant(&self) -> Uuid {
        self.tenant
    }

    fn name(&self) -> &str {
        &self.name
    }

    fn created_at(&self) -> Timestamp {
        self.created_at
    }
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Asset {
    /// Identity.
    pub id: Uuid,
    /// Tenant of the asset.
    pub tenant: Uuid,
    /// The customer that it is assigned to.
    pub customer: Option<Uuid>,
    /// Name, unique in the tenant.
    pub name: String,
    /// Profile of the asset. Assets of one profile share the object.
    pub profile: Arc<AssetProfile>,
    /// A second name, for people.
    pub label: Option<Box<str>>,
    /// What clients keep with it: JSON text.
    pub additional_info: Option<Box<str>>,
    /// When it was added; whole milliseconds.
    pub created_at: Timestamp,
    /// Grows with each change.
    pub version: i64,
}

/// The properties of an asset that clients set.
#[derive(Debug, Clone, Copy, Default)]
pub struct AssetFields<'a> {
    /// Name, unique in the tenant.
    pub name: &'a str,
    /// The id of its profile; the default one when it is `None`.
    pub profile: Option<Uuid>,
    /// A second name, for people.
    pub label: Option<&'a str>,
    /// What clients keep with it: JSON text.
    pub additional_info: Option<&'a str>,
    /// The customer that it is assigned to.
    pub customer: Option<Uuid>,
}

impl Listed for Asset {
    fn id(&self) -> Uuid {
        self.id
    }

    fn tenant(&self) -> Uuid {
        self.tenant
    }

    fn name(&self) -> &str {
        &self.name
    }

    fn created_at(&self) -> Timestamp {
        self.created_at
    }

    fn label(&self) -> Option<&str> {
        self.label.as_deref()
    }

    fn text(&self, property: SortProperty) -> Option<&str> {
        match property {
            SortProperty::Label => self.label(),
            SortProperty::Type => Some(&self.profile.name),
            _ => Some(&self.name),
        }
    }
}
