//! Entity views: a device or an asset as others see it, with some of its keys and times.

use model::Timestamp;
use uuid::Uuid;

use super::page::{Listed, SortProperty};
use crate::entity_id::EntityId;

/// A view of a device or an asset.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct EntityView {
    /// Identity.
    pub id: Uuid,
    /// Tenant of the view.
    pub tenant: Uuid,
    /// The customer that it is assigned to.
    pub customer: Option<Uuid>,
    /// The device or asset. It may have been deleted since.
    pub entity: EntityId,
    /// Name, unique in the tenant.
    pub name: String,
    /// Type, which the client chooses.
    pub kind: String,
    /// Which keys it shows: ThingsBoard's `TelemetryEntityView` as JSON text.
    pub keys: Option<Box<str>>,
    /// The first time that it shows, in milliseconds since 1970; 0 for no bound.
    pub start_ms: i64,
    /// The last time that it shows, in milliseconds since 1970; 0 for no bound.
    pub end_ms: i64,
    /// What clients keep with it: JSON text.
    pub additional_info: Option<Box<str>>,
    /// When it was added; whole milliseconds.
    pub created_at: Timestamp,
    /// Grows with each change.
    pub version: i64,
}

/// The properties of an entity view that clients set.
#[derive(Debug, Clone, Copy)]
pub struct EntityViewFields<'a> {
    /// The device or asset.
    pub entity: EntityId,
    /// Name, unique in the tenant.
    pub name: &'a str,
    /// Type, which the client chooses.
    pub kind: &'a str,
    /// Which keys it shows: ThingsBoard's `TelemetryEntityView` as JSON text.
    pub keys: Option<&'a str>,
    /// The first time that it shows, in milliseconds since 1970; 0 for no bound.
    pub start_ms: i64,
    /// The last time that it shows, in milliseconds since 1970; 0 for no bound.
    pub end_ms: i64,
    /// What clients keep with it: JSON text.
    pub additional_info: Option<&'a str>,
    /// The customer that it is assigned to.
    pub customer: Option<Uuid>,
}

impl Listed for EntityView {
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

    fn text(&self, property: SortProperty) -> Option<&str> {
        match property {
            SortProperty::Type => Some(&self.kind),
            _ => Some(&self.name),
        }
    }
}
