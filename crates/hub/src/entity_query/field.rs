//! Properties of entities by ThingsBoard's names.

use std::borrow::Cow;
use std::sync::Arc;

use model::{Value, ValueRef};

use crate::registry::{Contact, Device, Entity, EntityKind};

/// The value of a property.
#[derive(Debug, Clone, PartialEq)]
pub(crate) enum Field<'a> {
    /// The entity does not have it.
    Absent,
    Text(Cow<'a, str>),
    /// Milliseconds since 1970.
    Millis(i64),
}

/// The device, if the entity is one. Only devices have time series.
pub fn device_of(entity: &Entity) -> Option<&Arc<Device>> {
    match entity {
        Entity::Device(device) => Some(device),
        _ => None,
    }
}

/// A property of an entity. One that this kind of entity does not have is absent, as in ThingsBoard.
pub(crate) fn field<'a>(entity: &'a Entity, name: &str) -> Field<'a> {
    match name {
        "createdTime" => Field::Millis(entity.created_at().millis()),
        "entityType" => Field::Text(entity.kind().name().into()),
        "name" | "title" => Field::Text(entity.name().into()),
        "type" => Field::of(entity.type_name()),
        "label" => Field::of(label_of(entity)),
        "additionalInfo" => entity.additional_info().map_or(Field::Absent, Field::Text),
        _ => Field::of(other(entity, name)),
    }
}

/// The label; of customers, tenants and users the name, as in ThingsBoard.
fn label_of(entity: &Entity) -> Option<&str> {
    match entity.kind() {
        EntityKind::Tenant | EntityKind::Customer | EntityKind::User => Some(entity.name()),
        _ => entity.label(),
    }
}

fn other<'a>(entity: &'a Entity, name: &str) -> Option<&'a str> {
    match (entity, name) {
        (Entity::User(user), "email") => Some(&user.login),
        (Entity::User(user), "firstName") => user.first_name.as_deref(),
        (Entity::User(user), "lastName") => user.last_name.as_deref(),
        (Entity::User(user), "phone") => user.phone.as_deref(),
        (Entity::Customer(customer), _) => address(&customer.contact, name),
        (Entity::Tenant(tenant), _) => address(&tenant.contact, name),
        _ => None,
    }
}

fn address<'a>(contact: &'a Contact, name: &str) -> Option<&'a str> {
    let found = match name {
        "country" => &contact.country,
        "state" => &contact.state,
        "city" => &contact.city,
        "address" => &contact.address,
        "address2" => &contact.address2,
        "zip" => &contact.zip,
        "phone" => &contact.phone,
        "email" => &contact.email,
        _ => return None,
    };
    found.as_deref()
}

impl<'a> Field<'a> {
    fn of(text: Option<&'a str>) -> Self {
        text.map_or(Self::Absent, |text| Self::Text(text.into()))
    }

    /// It as a value for predicates.
    pub(crate) fn as_ref(&self) -> Option<ValueRef<'_>> {
        match self {
            Self::Absent => None,
            Self::Text(text) => Some(ValueRef::String(text)),
            Self::Millis(ms) => Some(ValueRef::I64(*ms)),
        }
    }

    /// It as a value of its own.
    pub(crate) fn into_value(self) -> Option<Value> {
        match self {
            Self::Absent => None,
            Self::Text(text) => Some(Value::String(text.into_owned())),
            Self::Millis(ms) => Some(Value::I64(ms)),
        }
    }
}
