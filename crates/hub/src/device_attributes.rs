//! Attributes of devices: operations of devices, and of callers with the permission.

use kv::{Direction, KeyRange, KvError, Sequence, WriteBatch};
use model::{Timestamp, Value};
use uuid::Uuid;

use crate::attributes::limits::{AUDITED_KEYS_MAX, DELETED_AT_ONCE_MAX};
use crate::attributes::{
    ATTRIBUTES, AttributeError, Change, Place, Scope, of_device, of_tenant, read, removal, update,
};
use crate::blocking_append::wait_durable_keys;
use crate::caller::{Action, Caller};
use crate::clock::system_now;
use crate::device_messages::Attribute;
use crate::error::Error;
use crate::hub::Hub;
use crate::registry::{Device, RegistryError};
use crate::visible::check_device;

/// What a device gets when it asks for its attributes.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct OwnAttributes {
    /// Client attributes, sorted by key.
    pub client: Vec<Attribute>,
    /// Shared attributes, sorted by key.
    pub shared: Vec<Attribute>,
}

impl Hub {
    /// Sets client attributes for the device that sends them: all or none. It may read the disk. The caller may ack when the
    /// store of keys is durable up to the returned sequence ([`kv_durable`](Self::kv_durable)).
    pub fn set_client_attributes(
        &self,
        device: &Device,
        entries: &[(String, Value)],
    ) -> Result<Sequence, AttributeError> {
        let place = Place { device, scope: Scope::Client };
        self.change_attributes(place, |hub| update(&*hub.kv, place, entries, now()))
    }

    /// The attributes that a device asks for: by keys, or all of both scopes if it names no list. With one list it gets only those
    /// of its scope, as in ThingsBoard. It may read the disk.
    pub fn attributes_for_device(
        &self,
        device: &Device,
        client: Option<&[String]>,
        shared: Option<&[String]>,
    ) -> Result<OwnAttributes, AttributeError> {
        let everything = client.is_none() && shared.is_none();
        let of = |scope, keys: Option<&[String]>| match (keys, everything) {
            (None, false) => Ok(Vec::new()),
            _ => read(&*self.kv, Place { device, scope }, keys),
        };
        Ok(OwnAttributes { client: of(Scope::Client, client)?, shared: of(Scope::Shared, shared)? })
    }

    /// The attributes of a device in a scope: of these keys, or all. It may read the disk.
    pub fn attributes(
        &self,
        caller: &Caller,
        device: &Device,
        scope: Scope,
        keys: Option<&[String]>,
    ) -> Result<Vec<Attribute>, AttributeError> {
        check_device(caller, device, Action::Read)?;
        read(&*self.kv, Place { device, scope }, keys)
    }

    /// Sets shared or server attributes of a device: all or none. Waits for the disk.
    pub fn set_attributes(
        &self,
        caller: &Caller,
        device: &Device,
        scope: Scope,
        entries: &[(String, Value)],
    ) -> Result<(), AttributeError> {
        check_device(caller, device, action_of(scope))?;
        if scope == Scope::Client {
            return Err(AttributeError::OnlyDevice { device: device.name.clone() });
        }
        let place = Place { device, scope };
        let sequence = self.change_attributes(place, |hub| update(&*hub.kv, place, entries, now()))?;
        wait_durable_keys(&*self.kv, sequence)?;
        let keys = entries.iter().map(|(key, _)| key.as_str());
        self.audit(caller, "set attributes", &subject(place, keys));
        Ok(())
    }

    /// Deletes attributes of a device. Keys that do not exist are ignored. Waits for the disk.
    pub fn delete_attributes(
        &self,
        caller: &Caller,
        device: &Device,
        scope: Scope,
        keys: &[String],
    ) -> Result<(), AttributeError> {
        check_device(caller, device, action_of(scope))?;
        let place = Place { device, scope };
        let sequence = self.change_attributes(place, |hub| removal(&*hub.kv, place, keys))?;
        wait_durable_keys(&*self.kv, sequence)?;
        self.audit(caller, "delete attributes", &subject(place, keys.iter().map(String::as_str)));
        Ok(())
    }

    /// Deletes the attributes of a device and then the device itself with `delete`. Nobody writes attributes meanwhile. Waits
    /// for the disk.
    pub(crate) fn delete_with_attributes<T>(
        &self,
        device: &Device,
        delete: impl FnOnce() -> Result<T, RegistryError>,
    ) -> Result<T, Error> {
        let _lock = self.attribute_locks.lock(device.id);
        let mut batch = WriteBatch::new();
        batch.delete_range(ATTRIBUTES, KeyRange::prefix(of_device(device)));
        let sequence = self.kv.commit(&batch)?;
        // First the attributes: if the server ends here, the device is there and can be deleted again.
        wait_durable_keys(&*self.kv, sequence)?;
        Ok(delete()?)
    }

    /// Deletes the attributes of all devices of a deleted tenant. Waits for the disk.
    pub(crate) fn delete_attributes_of_tenant(&self, tenant: Uuid) -> Result<(), KvError> {
        loop {
            let keys =
                self.kv.scan(ATTRIBUTES, &KeyRange::prefix(of_tenant(tenant)), Direction::Ascending)?;
            let mut batch = WriteBatch::new();
            for record in keys.take(DELETED_AT_ONCE_MAX) {
                batch.delete(ATTRIBUTES, record?.0);
            }
            if batch.is_empty() {
                return Ok(());
            }
            wait_durable_keys(&*self.kv, self.kv.commit(&batch)?)?;
        }
    }

    fn change_attributes(
        &self,
        place: Place<'_>,
        plan: impl FnOnce(&Self) -> Result<Change, AttributeError>,
    ) -> Result<Sequence, AttributeError> {
        let device = place.device.id;
        let _lock = self.attribute_locks.lock(device);
        // A deletion of the device holds the same lock.
        if self.registry.device_by_id(device).is_none() {
            return Err(RegistryError::unknown("device", &place.device.name).into());
        }
        let Change { batch, message } = plan(self)?;
        let sequence = self.kv.commit(&batch)?;
        if let Some(message) = message.filter(|_| place.scope == Scope::Shared) {
            self.pushes.add(sequence, device, message, || self.kv.progress().durable);
        }
        if self.rule_book.of(place.device.profile.id).is_some() {
            self.alarm_inbox.attributes_changed(device, sequence);
            self.tap.wake_up();
        }
        Ok(sequence)
    }
}

/// What a user needs to write attributes. Shared attributes are commands: the device gets them.
const fn action_of(scope: Scope) -> Action {
    match scope {
        Scope::Client | Scope::Server => Action::Write,
        Scope::Shared => Action::Command,
    }
}

/// The time of an update: whole milliseconds, as clients see it.
fn now() -> Timestamp {
    let now = system_now();
    Timestamp::from_millis(now.millis()).unwrap_or(now)
}

/// The place and the first keys, for the audit table.
fn subject<'a>(place: Place<'_>, keys: impl ExactSizeIterator<Item = &'a str>) -> String {
    let (device, scope, count) = (&place.device.name, place.scope, keys.len());
    let named: Vec<&str> = keys.take(AUDITED_KEYS_MAX).collect();
    let more = if count > named.len() { format!(" and {} more", count - named.len()) } else { String::new() };
    format!("{device} {scope}: {}{more}", named.join(", "))
}
