//! Devices and their access tokens.

use std::sync::Arc;

use model::Timestamp;
use model::limits::{ACCESS_TOKEN_BYTES_MAX, BULK_DEVICES_MAX};
use model::name::check_tag_value;
use parking_lot::MutexGuard;
use rusqlite::Connection;
use uuid::Uuid;

use super::checks::{check_short, check_version, checked_info, over_limit};
use super::defaults::DEFAULT_NAME;
use super::entity::{BulkDevices, Device, DeviceChange, NewDevice, Profile, Provisioned};
use super::error::RegistryError;
use super::handle::Registry;
use super::index::Index;
use super::now::now_ms;
use super::page::{Page, PageRequest, page_of};
use super::{file, random, save};
use crate::entity::EntityId;

impl Registry {
    /// The device with this access token: one hash lookup in memory under a read lock.
    pub fn device_by_token(&self, token: &str) -> Option<Arc<Device>> {
        self.index.read().device_by_token(token).cloned()
    }

    /// The device with that id.
    pub fn device_by_id(&self, id: Uuid) -> Option<Arc<Device>> {
        self.index.read().device(id).map(|(device, _)| Arc::clone(device))
    }

    /// The device of that name.
    pub fn device_by_name(&self, tenant: Uuid, name: &str) -> Option<Arc<Device>> {
        self.index.read().device_by_name(tenant, name).cloned()
    }

    /// Number of devices of all tenants.
    pub fn device_count(&self) -> usize {
        self.index.read().device_count()
    }

    /// A page of a tenant's devices, of those for which `wanted` holds.
    pub fn devices_page(
        &self,
        tenant: Uuid,
        request: PageRequest<'_>,
        wanted: impl Fn(&Device) -> bool,
    ) -> Result<Page<Arc<Device>>, RegistryError> {
        request.check()?;
        let index = self.index.read();
        Ok(page_of(index.devices_of(tenant).filter(|device| wanted(device)), &request))
    }

    /// The access token of a device.
    pub fn credentials_of(&self, device: Uuid) -> Option<Arc<str>> {
        self.index.read().device(device).map(|(_, token)| Arc::clone(token))
    }

    /// Adds a device. Waits for the disk: when this returns, the device survives a power cut.
    pub fn add_device(&self, tenant: Uuid, new: NewDevice<'_>) -> Result<Provisioned, RegistryError> {
        check_short("label", new.label)?;
        let wanted = Wanted { name: new.name.to_owned(), token: new.token.map(str::to_owned) };
        let kind = Kind {
            gateway: new.gateway,
            last_gateway: None,
            customer: new.customer,
            label: new.label.map(Into::into),
            additional_info: checked_info(new.additional_info)?,
        };
        let request = Request { tenant, profile: new.profile, existing_ok: false, kind };
        let mut added = self.provision(request, std::iter::once(wanted))?;
        Ok(added.pop().expect("BUG: one device in, one device out"))
    }

    /// Adds many devices in one transaction: all or none. Waits for the disk.
    pub fn add_devices(
        &self,
        tenant: Uuid,
        bulk: BulkDevices<'_>,
    ) -> Result<Vec<Provisioned>, RegistryError> {
        over_limit("number of devices", bulk.count, BULK_DEVICES_MAX)?;
        let end = bulk.start_index.checked_add(bulk.count as u64).ok_or_else(|| {
            let reason = format!("{} leaves no room for {} numbers", bulk.start_index, bulk.count);
            RegistryError::Invalid { what: "start index", reason }
        })?;
        let wanted = (bulk.start_index..end).map(|n| Wanted {
            name: format!("{}{n}", bulk.prefix),
            token: bulk.token_prefix.map(|prefix| format!("{prefix}{n}")),
        });
        let (profile, existing_ok) = (bulk.profile, bulk.existing_ok);
        self.provision(Request { tenant, profile, existing_ok, kind: Kind::default() }, wanted)
    }

    /// Replaces the access token of a device, by a random one if `token` is `None`. The old token is invalid from now on. Waits
    /// for the disk.
    pub fn set_token(&self, device: Uuid, token: Option<&str>) -> Result<Arc<str>, RegistryError> {
        let token: Arc<str> = token.map_or_else(random::token, str::to_owned).into();
        check_token(&token)?;
        let mut writer = self.writer.lock();
        let device = self.device_by_id(device).ok_or_else(|| RegistryError::unknown("device", device))?;
        check_token_is_free(&self.index.read(), &token, &device.name, Some(device.id))?;
        self.commit(&mut writer, "replace an access token", |transaction| {
            save::access_token(transaction, device.id, &token)
        })?;
        self.index.write().put_device(device, Arc::clone(&token));
        self.forget_cached();
        Ok(token)
    }

    /// Renames a device. Its id and its access token stay. A series has the name of its device: old values keep the old name, and
    /// new values have the new one. Waits for the disk.
    pub fn rename_device(&self, device: Uuid, name: &str) -> Result<Arc<Device>, RegistryError> {
        self.change_device(device, DeviceChange { name, ..DeviceChange::default() })
    }

    /// Changes a device, like [`rename_device`](Self::rename_device). Waits for the disk.
    pub fn change_device(
        &self,
        device: Uuid,
        change: DeviceChange<'_>,
    ) -> Result<Arc<Device>, RegistryError> {
        check_tag_value(change.name)?;
        check_short("label", change.label.flatten())?;
        let info = change.additional_info.map(checked_info).transpose()?;
        let mut writer = self.writer.lock();
        let (device, token) = {
            let index = self.index.read();
            let found = index.device(device).ok_or_else(|| RegistryError::unknown("device", device))?;
            (Arc::clone(found.0), Arc::clone(found.1))
        };
        check_version("device", &device.name, change.version, device.version)?;
        let mut changed = self.changed(&device, change)?;
        if let Some(info) = info {
            changed.additional_info = info;
        }
        if changed == *device {
            return Ok(device);
        }
        changed.version += 1;
        self.store_device(&mut writer, Arc::new(changed), token)
    }

    /// Stores a changed device. Call it under the writer's lock.
    pub(super) fn store_device(
        &self,
        writer: &mut MutexGuard<'_, Connection>,
        changed: Arc<Device>,
        token: Arc<str>,
    ) -> Result<Arc<Device>, RegistryError> {
        self.commit(writer, "change a device", |transaction| save::device(transaction, &changed))?;
        let before = self.device_by_id(changed.id);
        self.index.write().put_device(Arc::clone(&changed), token);
        self.forget_cached();
        if before.is_some_and(|before| before.customer != changed.customer) {
            // Sessions of users of the customer may no longer see it.
            self.signal_sessions();
        }
        Ok(changed)
    }

    /// The device with the changes, but for its additional info. Refuses what must not be.
    fn changed(&self, device: &Device, change: DeviceChange<'_>) -> Result<Device, RegistryError> {
        let DeviceChange { name, gateway, profile, label, customer, .. } = change;
        if device.name != name && self.device_by_name(device.tenant, name).is_some() {
            return Err(RegistryError::exists("device", name));
        }
        let profile = match profile {
            Some(id) => self.profile_by_id(device.tenant, id)?,
            None => Arc::clone(&device.profile),
        };
        let customer = customer.unwrap_or(device.customer);
        self.check_customer(device.tenant, customer)?;
        Ok(Device {
            name: name.into(),
            gateway: gateway.unwrap_or(device.gateway),
            profile,
            label: label.map_or_else(|| device.label.clone(), |label| label.map(Into::into)),
            customer,
            ..Device::clone(device)
        })
    }

    /// Deletes a device and its credentials. Its values stay in the store. Waits for the disk.
    pub fn delete_device(&self, device: Uuid) -> Result<Arc<Device>, RegistryError> {
        let mut writer = self.writer.lock();
        let device = self.device_by_id(device).ok_or_else(|| RegistryError::unknown("device", device))?;
        let ending_there = self.relations_ending_at(EntityId::device(device.id));
        self.commit(&mut writer, "delete a device", |transaction| {
            save::no_relations(transaction, EntityId::device(device.id), &ending_there)?;
            // The foreign key deletes its token too.
            transaction.execute("DELETE FROM device WHERE id = ?1", [device.id])?;
            Ok(())
        })?;
        let mut index = self.index.write();
        index.relations.remove_entity(EntityId::device(device.id));
        index.remove_device(device.id);
        drop(index);
        self.forget_cached();
        Ok(device)
    }

    /// Adds those of the devices that are not there, for a gateway that speaks for them; all or none, and none above a number of
    /// devices of the tenant. A profile that does not exist counts as the default one. Waits for the disk.
    pub(crate) fn add_behind_gateway(
        &self,
        gateway: &Device,
        names: &[String],
        profile: Option<&str>,
        devices_max: usize,
    ) -> Result<Vec<Provisioned>, RegistryError> {
        let tenant = gateway.tenant;
        let devices = self.index.read().device_count_of(tenant).saturating_add(names.len());
        if devices > devices_max {
            let what = "number of devices of the tenant, with those that the gateway adds,";
            return Err(RegistryError::OverLimit { what, actual: devices, limit: devices_max });
        }
        let profile = profile.filter(|name| self.profile(tenant, name).is_some());
        let kind = Kind { last_gateway: Some(gateway.id), ..Kind::default() };
        let wanted = names.iter().map(|name| Wanted { name: name.clone(), token: None });
        self.provision(Request { tenant, profile, existing_ok: true, kind }, wanted)
    }

    /// Records which gateway has connected devices last: pairs of device and gateway. Devices that are gone are left out. Waits for
    /// the disk.
    pub(crate) fn set_last_gateways(&self, pairs: &[(Uuid, Uuid)]) -> Result<(), RegistryError> {
        let mut writer = self.writer.lock();
        self.commit(&mut writer, "record the gateways of devices", |transaction| {
            let mut update = transaction.prepare("UPDATE device SET last_gateway = ?2 WHERE id = ?1")?;
            pairs.iter().try_for_each(|pair| update.execute(*pair).map(drop))
        })?;
        let mut index = self.index.write();
        for (device, gateway) in pairs {
            let Some((device, token)) = index.device(*device) else { continue };
            let device = Device { last_gateway: Some(*gateway), ..Device::clone(device) };
            let token = Arc::clone(token);
            index.put_device(Arc::new(device), token);
        }
        Ok(())
    }

    fn provision(
        &self,
        request: Request<'_>,
        wanted: impl Iterator<Item = Wanted>,
    ) -> Result<Vec<Provisioned>, RegistryError> {
        let mut writer = self.writer.lock();
        let devices = self.plan(request, wanted)?;
        if devices.iter().any(|new| new.created) {
            self.commit(&mut writer, "add devices", |transaction| insert(transaction, &devices))?;
            self.index.write().put_devices(&devices);
        }
        Ok(devices)
    }

    /// Plans a request: the devices to create and the existing ones. Fails if the request must be refused.
    fn plan(
        &self,
        request: Request<'_>,
        wanted: impl Iterator<Item = Wanted>,
    ) -> Result<Vec<Provisioned>, RegistryError> {
        self.check_tenant(request.tenant)?;
        self.check_customer(request.tenant, request.kind.customer)?;
        let index = self.index.read();
        let profile = match request.profile {
            Some(name) => index.profiles.by_name(request.tenant, name),
            None => index.default_profile(request.tenant),
        };
        let unknown = || RegistryError::unknown("profile", request.profile.unwrap_or(DEFAULT_NAME));
        let profile = profile.ok_or_else(unknown)?;
        let now = now_ms();
        wanted.map(|wanted| wanted.plan(&index, &request, profile, now)).collect()
    }
}

/// The common properties of all devices of a request.
struct Request<'a> {
    tenant: Uuid,
    profile: Option<&'a str>,
    existing_ok: bool,
    kind: Kind,
}

/// What the new devices of a request have in common besides their profile.
#[derive(Debug, Default)]
struct Kind {
    gateway: bool,
    last_gateway: Option<Uuid>,
    customer: Option<Uuid>,
    label: Option<Box<str>>,
    additional_info: Option<Box<str>>,
}

struct Wanted {
    name: String,
    token: Option<String>,
}

impl Wanted {
    fn plan(
        self,
        index: &Index,
        request: &Request<'_>,
        profile: &Arc<Profile>,
        now: Timestamp,
    ) -> Result<Provisioned, RegistryError> {
        check_tag_value(&self.name)?;
        if let Some(device) = index.device_by_name(request.tenant, &self.name) {
            return self.keep(index, request, device);
        }
        let token: Arc<str> = self.token.unwrap_or_else(random::token).into();
        check_token(&token)?;
        check_token_is_free(index, &token, &self.name, None)?;
        let Kind { gateway, last_gateway, customer, label, additional_info } = &request.kind;
        let device = Device {
            id: file::new_id(),
            tenant: request.tenant,
            name: self.name,
            profile: Arc::clone(profile),
            created_at: now,
            gateway: *gateway,
            last_gateway: *last_gateway,
            customer: *customer,
            label: label.clone(),
            additional_info: additional_info.clone(),
            version: 1,
        };
        Ok(Provisioned { device: Arc::new(device), token, created: true })
    }

    fn keep(
        self,
        index: &Index,
        request: &Request<'_>,
        device: &Arc<Device>,
    ) -> Result<Provisioned, RegistryError> {
        // A gateway does not change the profile of a device that is there.
        let same_profile = request.kind.last_gateway.is_some()
            || request.profile.is_none_or(|profile| profile == device.profile.name);
        match index.device(device.id) {
            Some((device, token))
                if request.existing_ok
                    && same_profile
                    && self.token.is_none_or(|wanted| *wanted == **token) =>
            {
                Ok(Provisioned { device: Arc::clone(device), token: Arc::clone(token), created: false })
            }
            _ => Err(RegistryError::exists("device", self.name)),
        }
    }
}

fn insert(transaction: &rusqlite::Transaction<'_>, devices: &[Provisioned]) -> rusqlite::Result<()> {
    devices.iter().filter(|new| new.created).try_for_each(|new| {
        save::device(transaction, &new.device)?;
        save::access_token(transaction, new.device.id, &new.token)
    })
}

/// Checks an access token: visible ASCII, because it is used as MQTT user name and in URL paths.
fn check_token(token: &str) -> Result<(), RegistryError> {
    over_limit("access token's length in bytes", token.len(), ACCESS_TOKEN_BYTES_MAX)?;
    if token.is_empty() || !token.bytes().all(|byte| byte.is_ascii_graphic()) {
        let reason = "must be 1 or more visible ASCII characters without blanks".into();
        return Err(RegistryError::Invalid { what: "access token", reason });
    }
    Ok(())
}

fn check_token_is_free(
    index: &Index,
    token: &str,
    wanted_by: &str,
    device: Option<Uuid>,
) -> Result<(), RegistryError> {
    match index.device_by_token(token) {
        Some(holder) if Some(holder.id) != device => {
            let held_by = holder.name.clone();
            Err(RegistryError::TokenTaken { wanted_by: wanted_by.into(), held_by })
        }
        _ => Ok(()),
    }
}
