//! Devices.

use std::sync::Arc;

use model::limits::BULK_DEVICES_MAX;
use model::name::check_tag_value;
use parking_lot::MutexGuard;
use rusqlite::Connection;
use uuid::Uuid;

use super::checks::{check_short, check_version, checked_info, over_limit};
use super::credentials::Credentials;
use super::entity::{BulkDevices, Device, DeviceChange, Provisioned};
use super::error::RegistryError;
use super::handle::Registry;
use super::new_devices::{Kind, NewCredentials, Request, Wanted};
use super::package_ids::{PackageIds, PackageKind};
use super::page::{Page, PageRequest};
use super::save;
use crate::entity_id::EntityId;

impl Registry {
    /// The device with that id.
    pub fn device_by_id(&self, id: Uuid) -> Option<Arc<Device>> {
        self.index.read().device(id).map(|(device, _)| Arc::clone(device))
    }

    /// The device of that name.
    pub fn device_by_name(&self, tenant: Uuid, name: &str) -> Option<Arc<Device>> {
        self.find_named(tenant, name)
    }

    /// Number of devices of all tenants.
    pub fn device_count(&self) -> usize {
        self.index.read().devices().len()
    }

    /// A page of a tenant's devices, of those for which `wanted` holds.
    pub fn devices_page(
        &self,
        tenant: Uuid,
        request: PageRequest<'_>,
        wanted: impl Fn(&Device) -> bool,
    ) -> Result<Page<Arc<Device>>, RegistryError> {
        self.page(tenant, request, wanted)
    }

    /// The devices of a profile, sorted by name.
    pub fn devices_of_profile(&self, tenant: Uuid, profile: Uuid) -> Vec<Arc<Device>> {
        self.devices_where(tenant, |device| device.profile.id == profile)
    }

    /// The devices of a tenant for which `wanted` holds, sorted by name.
    pub fn devices_where(&self, tenant: Uuid, wanted: impl Fn(&Device) -> bool) -> Vec<Arc<Device>> {
        self.index.read().devices().of(tenant).filter(|device| wanted(device)).cloned().collect()
    }

    /// Number of the devices and device profiles of a tenant that have a package.
    pub fn users_of_package(&self, tenant: Uuid, package: Uuid) -> usize {
        let has =
            |packages: PackageIds| PackageKind::ALL.iter().any(|kind| packages.of(*kind) == Some(package));
        let index = self.index.read();
        let profiles = index.profiles.of(tenant).filter(|profile| has(profile.packages)).count();
        profiles + index.devices().of(tenant).filter(|device| has(device.own_packages)).count()
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
            credentials: bulk.token_prefix.map(|prefix| NewCredentials::Token(format!("{prefix}{n}"))),
        });
        let (profile, existing_ok) = (bulk.profile, bulk.existing_ok);
        self.provision(&Request { tenant, profile, existing_ok, kind: Kind::default() }, wanted)
    }

    /// Renames a device. Its id and its credentials stay. A series has the name of its device: old values keep the old name, and
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
        let (device, credentials) = {
            let index = self.index.read();
            let found = index.device(device).ok_or_else(|| RegistryError::unknown("device", device))?;
            (Arc::clone(found.0), found.1.clone())
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
        self.store_device(&mut writer, Arc::new(changed), credentials)
    }

    /// Stores a changed device. Call it under the writer's lock.
    pub(super) fn store_device(
        &self,
        writer: &mut MutexGuard<'_, Connection>,
        changed: Arc<Device>,
        credentials: Credentials,
    ) -> Result<Arc<Device>, RegistryError> {
        self.commit(writer, "change a device", |transaction| save::device(transaction, &changed))?;
        let before = self.device_by_id(changed.id);
        self.index.write().put_device(Arc::clone(&changed), credentials);
        self.forget_cached();
        if before.is_some_and(|before| before.customer != changed.customer) {
            // Sessions of users of the customer may no longer see it.
            self.signal_sessions();
        }
        Ok(changed)
    }

    /// The device with the changes, but for its additional info. Refuses what must not be.
    fn changed(&self, device: &Device, change: DeviceChange<'_>) -> Result<Device, RegistryError> {
        let DeviceChange { name, gateway, profile, label, customer, packages, .. } = change;
        if device.name != name && self.device_by_name(device.tenant, name).is_some() {
            return Err(RegistryError::exists("device", name));
        }
        let profile = match profile {
            Some(id) => self.find(device.tenant, id)?,
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
            own_packages: packages.on(device.own_packages),
            ..Device::clone(device)
        })
    }

    /// Deletes a device and its credentials. Its values stay in the store. Waits for the disk.
    pub fn delete_device(&self, device: Uuid) -> Result<Arc<Device>, RegistryError> {
        let mut writer = self.writer.lock();
        let device = self.device_by_id(device).ok_or_else(|| RegistryError::unknown("device", device))?;
        // The foreign key deletes its credentials too.
        let entity = EntityId::device(device.id);
        self.delete_row(&mut writer, "delete a device", "device", entity)?.remove_device(device.id);
        self.forget_cached();
        Ok(device)
    }

    /// Adds those of the devices that are not there, for a gateway that speaks for them; all or none, and none above a number of
    /// devices of the tenant. A profile that does not exist counts as the default one. Waits for the disk.
    pub fn add_behind_gateway(
        &self,
        gateway: &Device,
        names: &[String],
        profile: Option<&str>,
        devices_max: usize,
    ) -> Result<Vec<Provisioned>, RegistryError> {
        let tenant = gateway.tenant;
        let devices = self.index.read().devices().len_of(tenant).saturating_add(names.len());
        if devices > devices_max {
            let what = "number of devices of the tenant, with those that the gateway adds,";
            return Err(RegistryError::OverLimit { what, actual: devices, limit: devices_max });
        }
        let profile = profile.filter(|name| self.profile(tenant, name).is_some());
        let kind = Kind { last_gateway: Some(gateway.id), ..Kind::default() };
        let wanted = names.iter().map(|name| Wanted { name: name.clone(), credentials: None });
        self.provision(&Request { tenant, profile, existing_ok: true, kind }, wanted)
    }

    /// Records which gateway has connected devices last: pairs of device and gateway. Devices that are gone are left out. Waits for
    /// the disk.
    pub fn set_last_gateways(&self, pairs: &[(Uuid, Uuid)]) -> Result<(), RegistryError> {
        let mut writer = self.writer.lock();
        self.commit(&mut writer, "record the gateways of devices", |transaction| {
            let mut update = transaction.prepare("UPDATE device SET last_gateway = ?2 WHERE id = ?1")?;
            pairs.iter().try_for_each(|pair| update.execute(*pair).map(drop))
        })?;
        let mut index = self.index.write();
        for (device, gateway) in pairs {
            let Some((device, credentials)) = index.device(*device) else { continue };
            let device = Device { last_gateway: Some(*gateway), ..Device::clone(device) };
            let credentials = credentials.clone();
            index.put_device(Arc::new(device), credentials);
        }
        Ok(())
    }
}
