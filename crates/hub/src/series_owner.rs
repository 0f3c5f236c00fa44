//! What has a series of its own: devices and assets.

use std::borrow::Cow;
use std::sync::Arc;

use model::series::DEVICE_TAG;
use model::{SeriesKey, TableName};
use store::Durability;
use uuid::Uuid;

use crate::caller::{Action, Caller, Forbidden};
use crate::registry::{Device, EntityId};

/// The table of all assets of a tenant.
pub const ASSETS_TABLE: &str = "assets";

/// A device or an asset, with its series: the tag with its name in its table.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SeriesOwner<'a> {
    pub tenant: Uuid,
    /// The customer that it is assigned to.
    pub customer: Option<Uuid>,
    /// Its kind and id.
    pub entity: EntityId,
    /// The profile of a device.
    pub device_profile: Option<Uuid>,
    /// Its name, the value of its tag.
    pub name: Cow<'a, str>,
    pub tag: &'static str,
    /// The table of its rows.
    pub table: Cow<'a, TableName>,
    /// The durability that an ack of its rows promises.
    pub durability: Durability,
}

impl SeriesOwner<'_> {
    /// The key of its series in a table.
    pub(crate) fn key_in(&self, table: &TableName) -> Result<SeriesKey, store::StoreError> {
        Ok(SeriesKey::new(table, &[(self.tag, &self.name)])?)
    }

    /// Checks a permission of a caller on it.
    pub(crate) fn check(&self, caller: &Caller, action: Action) -> Result<(), Forbidden> {
        caller.check_on(action, self.tenant, self.customer)
    }
}

impl<'a> From<&'a Device> for SeriesOwner<'a> {
    fn from(device: &'a Device) -> Self {
        Self {
            tenant: device.tenant,
            customer: device.customer,
            entity: EntityId::device(device.id),
            device_profile: Some(device.profile.id),
            name: Cow::Borrowed(&device.name),
            tag: DEVICE_TAG,
            table: Cow::Borrowed(&device.profile.table),
            durability: device.profile.durability,
        }
    }
}

impl<'a> From<&'a Arc<Device>> for SeriesOwner<'a> {
    fn from(device: &'a Arc<Device>) -> Self {
        Self::from(&**device)
    }
}

impl<'a> From<&'a SeriesOwner<'_>> for SeriesOwner<'a> {
    fn from(owner: &'a SeriesOwner<'_>) -> Self {
        let SeriesOwner { tenant, customer, entity, device_profile, name, tag, table, durability } = owner;
        Self {
            tenant: *tenant,
            customer: *customer,
            entity: *entity,
            device_profile: *device_profile,
            name: Cow::Borrowed(name),
            tag,
            table: Cow::Borrowed(table),
            durability: *durability,
        }
    }
}

impl SeriesOwner<'_> {
    /// The same without references.
    pub(crate) fn into_owned(self) -> SeriesOwner<'static> {
        let Self { tenant, customer, entity, device_profile, name, tag, table, durability } = self;
        let (name, table) = (Cow::Owned(name.into_owned()), Cow::Owned(table.into_owned()));
        SeriesOwner { tenant, customer, entity, device_profile, name, tag, table, durability }
    }
}
