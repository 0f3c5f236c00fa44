//! Entities as queries see them.

use std::borrow::Cow;
use std::sync::Arc;

use model::{Value, ValueRef};

use crate::entity::EntityId;
use crate::registry::Device;

/// An entity that a query has found.
#[derive(Debug, Clone)]
pub enum Entity {
    /// A device.
    Device(Arc<Device>),
}

/// The value of a property.
#[derive(Debug, Clone, PartialEq)]
pub(super) enum Field<'a> {
    /// The entity does not have it.
    Absent,
    /// Text.
    Text(Cow<'a, str>),
    /// Milliseconds since 1970.
    Millis(i64),
}

impl Entity {
    /// The id.
    pub fn id(&self) -> EntityId {
        match self {
            Self::Device(device) => EntityId::device(device.id),
        }
    }

    /// The name.
    pub fn name(&self) -> &str {
        match self {
            Self::Device(device) => &device.name,
        }
    }

    /// Whether it is the same object, or one with the same properties.
    pub fn is_same(&self, other: &Self) -> bool {
        match (self, other) {
            (Self::Device(one), Self::Device(other)) => Arc::ptr_eq(one, other) || one == other,
        }
    }

    /// The profile or type, if the entity has one.
    pub fn profile(&self) -> Option<&str> {
        match self {
            Self::Device(device) => Some(&device.profile.name),
        }
    }

    /// The device, if it is one.
    pub fn device(&self) -> Option<&Arc<Device>> {
        match self {
            Self::Device(device) => Some(device),
        }
    }

    /// A property by ThingsBoard's name. A property that this kind of entity does not have is absent, as in ThingsBoard.
    pub(super) fn field(&self, name: &str) -> Field<'_> {
        match (self, name) {
            (_, "entityType") => Field::Text(self.id().kind.name().into()),
            (_, "name" | "title") => Field::Text(self.name().into()),
            (_, "type") => self.profile().map_or(Field::Absent, |name| Field::Text(name.into())),
            (Self::Device(device), "createdTime") => Field::Millis(device.created_at.millis()),
            _ => Field::Absent,
        }
    }
}

impl Field<'_> {
    /// It as a value for predicates.
    pub(super) fn as_ref(&self) -> Option<ValueRef<'_>> {
        match self {
            Self::Absent => None,
            Self::Text(text) => Some(ValueRef::String(text)),
            Self::Millis(ms) => Some(ValueRef::I64(*ms)),
        }
    }

    /// It as a value of its own.
    pub(super) fn into_value(self) -> Option<Value> {
        match self {
            Self::Absent => None,
            Self::Text(text) => Some(Value::String(text.into_owned())),
            Self::Millis(ms) => Some(Value::I64(ms)),
        }
    }
}
