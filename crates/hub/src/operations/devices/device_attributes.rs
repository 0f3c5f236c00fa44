//! Attributes: operations of devices, and of callers with the permission.

use kv::{Direction, KeyRange, KeyValueStore, KvError, Sequence, Space, WriteBatch};
use model::{Timestamp, Value};
use uuid::Uuid;

use crate::attributes::limits::{AUDITED_KEYS_MAX, DELETED_AT_ONCE_MAX};
use crate::attributes::{
    ATTRIBUTES, AttributeError, AttributeScope, AttributeWatch, Change, Owner, Scope, of_tenant, read,
    removal, update,
};
use crate::blocking_append::wait_durable_keys;
use crate::caller::{Action, Caller};
use crate::claims::{CLAIMS, claim_key};
use crate::clock::system_now;
use crate::device_messages::Attribute;
use crate::device_state::{ACTIVE_DEVICES, active_key};
use crate::error::Error;
use crate::hub::Hub;
use crate::registry::{Device, EntityId, EntityKind, RegistryError};

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
    /// key-value store is durable up to the returned sequence ([`kv_durable`](Self::kv_durable)).
    pub fn set_client_attributes(
        &self,
        device: &Device,
        entries: &[(String, Value)],
    ) -> Result<Sequence, AttributeError> {
        let place = AttributeScope { owner: device.into(), scope: Scope::Client };
        self.change_attributes(place, |kv| update(kv, place, entries, now()))
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
            _ => read(&*self.kv, AttributeScope { owner: device.into(), scope }, keys),
        };
        Ok(OwnAttributes { client: of(Scope::Client, client)?, shared: of(Scope::Shared, shared)? })
    }

    /// The attributes of an entity in a scope: of these keys, or all. It may read the disk.
    pub fn attributes<'a>(
        &self,
        caller: &Caller,
        owner: impl Into<Owner<'a>>,
        scope: Scope,
        keys: Option<&[String]>,
    ) -> Result<Vec<Attribute>, AttributeError> {
        let owner = owner.into();
        owner.check_read(caller)?;
        let mut found = read(&*self.kv, AttributeScope { owner, scope }, keys)?;
        self.show_last_activity(owner, scope, keys, &mut found);
        Ok(found)
    }

    /// Sets shared or server attributes of an entity: all or none. Waits for the disk.
    pub fn set_attributes<'a>(
        &self,
        caller: &Caller,
        owner: impl Into<Owner<'a>>,
        scope: Scope,
        entries: &[(String, Value)],
    ) -> Result<(), AttributeError> {
        let place = place_to_write(caller, owner.into(), scope)?;
        if scope == Scope::Client {
            return Err(AttributeError::OnlyDevice { device: place.owner.name.to_owned() });
        }
        let keys = entries.iter().map(|(key, _)| key.as_str());
        Self::check_kept(place.owner, scope, keys.clone())?;
        let sequence = self.change_attributes(place, |kv| update(kv, place, entries, now()))?;
        wait_durable_keys(&*self.kv, sequence)?;
        self.follow_timeout(place.owner, scope, keys.clone());
        self.audit(caller, "set attributes", &subject(place, keys));
        Ok(())
    }

    /// Deletes attributes of an entity. Keys that do not exist are ignored. Waits for the disk.
    pub fn delete_attributes<'a>(
        &self,
        caller: &Caller,
        owner: impl Into<Owner<'a>>,
        scope: Scope,
        keys: &[String],
    ) -> Result<(), AttributeError> {
        let place = place_to_write(caller, owner.into(), scope)?;
        let named = keys.iter().map(String::as_str);
        Self::check_kept(place.owner, scope, named.clone())?;
        let sequence = self.change_attributes(place, |kv| removal(kv, place, keys))?;
        wait_durable_keys(&*self.kv, sequence)?;
        self.follow_timeout(place.owner, scope, named.clone());
        self.audit(caller, "delete attributes", &subject(place, named));
        Ok(())
    }

    /// A subscriber of changes of attributes, which watches nothing yet. The caller watches entities that it has found through the
    /// hub.
    pub fn watch_attributes(&self, caller: &Caller) -> Result<AttributeWatch, AttributeError> {
        caller.check(Action::Read)?;
        Ok(self.attribute_feed.subscribe())
    }

    /// Deletes the attributes of a device and then the device itself with `delete`. Nobody writes attributes meanwhile. Waits
    /// for the disk.
    pub(crate) fn delete_with_attributes<T>(
        &self,
        device: &Device,
        delete: impl FnOnce() -> Result<T, RegistryError>,
    ) -> Result<T, Error> {
        let wait = |sequence| wait_durable_keys(&*self.kv, sequence);
        let also = |batch: &mut WriteBatch| {
            batch.delete(ACTIVE_DEVICES, active_key(device.tenant, device.id));
            batch.delete(CLAIMS, claim_key(device.tenant, device.id));
        };
        let deleted = self
            .attribute_writer
            .delete_with((device.tenant, device.id), also, wait, || delete().map_err(Error::from))?;
        self.forget_state(device.id);
        Ok(deleted)
    }

    /// Deletes an entity with `delete`, which may refuse, and then its attributes and alarms. Waits for the disk.
    pub(crate) fn delete_then_attributes<'a, T>(
        &self,
        owner: impl Into<Owner<'a>>,
        delete: impl FnOnce() -> Result<T, RegistryError>,
    ) -> Result<T, Error> {
        let Owner { tenant, entity, .. } = owner.into();
        let wait = |sequence| wait_durable_keys(&*self.kv, sequence);
        let owner = (tenant, entity.id);
        let deleted = self.attribute_writer.delete_after(owner, wait, || delete().map_err(Error::from))?;
        // If the server ends here, its next start deletes the alarms.
        self.delete_alarms_of(entity)?;
        Ok(deleted)
    }

    /// Deletes the attributes and the offers of all entities of a deleted tenant. Waits for the disk.
    pub(crate) fn delete_attributes_of_tenant(&self, tenant: Uuid) -> Result<(), KvError> {
        for space in [ATTRIBUTES, ACTIVE_DEVICES, CLAIMS] {
            while let Some(sequence) = self.delete_some(space, tenant)? {
                wait_durable_keys(&*self.kv, sequence)?;
            }
        }
        Ok(())
    }

    /// Deletes keys of a tenant; `None` if there are none.
    fn delete_some(&self, space: Space, tenant: Uuid) -> Result<Option<Sequence>, KvError> {
        let keys = self.kv.scan(space, &KeyRange::prefix(of_tenant(tenant)), Direction::Ascending)?;
        let mut batch = WriteBatch::new();
        for record in keys.take(DELETED_AT_ONCE_MAX) {
            batch.delete(space, record?.0);
        }
        match batch.is_empty() {
            true => Ok(None),
            false => Ok(Some(self.kv.commit(&batch)?)),
        }
    }

    fn change_attributes(
        &self,
        place: AttributeScope<'_>,
        plan: impl FnOnce(&dyn KeyValueStore) -> Result<Change, AttributeError>,
    ) -> Result<Sequence, AttributeError> {
        let Owner { tenant, entity, .. } = place.owner;
        let sequence = self.attribute_writer.change(place, || self.exists(tenant, entity), plan)?;
        let rules_read = match entity.kind {
            EntityKind::Device => {
                let device = self.registry.device_by_id(entity.id);
                device.is_some_and(|device| self.rule_book.of(device.profile.id).is_some())
            }
            EntityKind::Customer | EntityKind::Tenant => self.rule_book.reads_owners(tenant),
            _ => false,
        };
        if rules_read {
            self.alarm_inbox.attributes_changed(entity, sequence);
            self.tap.wake_up();
        }
        Ok(sequence)
    }

    /// Whether the registry has an entity.
    fn exists(&self, tenant: Uuid, entity: EntityId) -> bool {
        match entity.kind {
            EntityKind::Device => self.registry.device_by_id(entity.id).is_some(),
            _ => self.registry.entity(tenant, entity).is_ok(),
        }
    }
}

/// The place of attributes that a user writes. Shared attributes are commands: the device gets them.
fn place_to_write<'a>(
    caller: &Caller,
    owner: Owner<'a>,
    scope: Scope,
) -> Result<AttributeScope<'a>, AttributeError> {
    let action = match scope {
        Scope::Client | Scope::Server => Action::Write,
        Scope::Shared => Action::Command,
    };
    caller.check_on(action, owner.tenant, owner.customer)?;
    if !owner.scopes().contains(&scope) {
        return Err(AttributeError::NoScope { entity: owner.to_string(), scope });
    }
    Ok(AttributeScope { owner, scope })
}

/// The time of an update: whole milliseconds, as clients see it.
fn now() -> Timestamp {
    let now = system_now();
    Timestamp::from_millis(now.millis()).unwrap_or(now)
}

/// The place and the first keys, for the audit table.
fn subject<'a>(place: AttributeScope<'_>, keys: impl ExactSizeIterator<Item = &'a str>) -> String {
    let (name, scope, count) = (place.owner.name, place.scope, keys.len());
    let named: Vec<&str> = keys.take(AUDITED_KEYS_MAX).collect();
    let more = if count > named.len() { format!(" and {} more", count - named.len()) } else { String::new() };
    format!("{name} {scope}: {}{more}", named.join(", "))
}
