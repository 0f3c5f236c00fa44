//! Management of devices, for callers with the permission. A device of another tenant is unknown to a caller.

use std::sync::Arc;

use uuid::Uuid;

use crate::caller::{Action, Caller};
use crate::entity::EntityId;
use crate::error::Error;
use crate::hub::Hub;
use crate::registry::{
    BulkDevices, DEFAULT_NAME, Device, DeviceChange, NewDevice, Page, PageRequest, Profile, Provisioned,
    RegistryError,
};

impl Hub {
    /// The device with an id.
    pub fn device(&self, caller: &Caller, id: Uuid) -> Result<Arc<Device>, RegistryError> {
        caller.check(Action::Read)?;
        self.own_device(caller, id)
    }

    /// The device with a name.
    pub fn device_by_name(&self, caller: &Caller, name: &str) -> Result<Arc<Device>, RegistryError> {
        caller.check(Action::Read)?;
        let device = self.registry.device_by_name(caller.tenant(), name);
        device.ok_or_else(|| RegistryError::unknown("device", name))
    }

    /// A page of the devices of the caller's tenant, sorted by name (by code points).
    pub fn devices_page(
        &self,
        caller: &Caller,
        request: PageRequest<'_>,
    ) -> Result<Page<Arc<Device>>, RegistryError> {
        caller.check(Action::Read)?;
        self.registry.devices_page(caller.tenant(), request)
    }

    /// The profiles of the caller's tenant, sorted by name.
    pub fn profiles(&self, caller: &Caller) -> Result<Vec<Arc<Profile>>, RegistryError> {
        caller.check(Action::Read)?;
        Ok(self.registry.profiles(caller.tenant()))
    }

    /// The profile of devices that are added without one.
    pub fn default_profile(&self, caller: &Caller) -> Result<Arc<Profile>, RegistryError> {
        caller.check(Action::Read)?;
        let profile = self.registry.profile(caller.tenant(), DEFAULT_NAME);
        profile.ok_or_else(|| RegistryError::unknown("profile", DEFAULT_NAME))
    }

    /// Adds a device. Waits for the disk.
    pub fn add_device(&self, caller: &Caller, new: NewDevice<'_>) -> Result<Provisioned, RegistryError> {
        caller.check(Action::ManageDevices)?;
        let added = self.registry.add_device(caller.tenant(), new)?;
        self.audit(caller, "add device", new.name);
        Ok(added)
    }

    /// Adds many devices: all or none. Waits for the disk.
    pub fn add_devices(
        &self,
        caller: &Caller,
        bulk: BulkDevices<'_>,
    ) -> Result<Vec<Provisioned>, RegistryError> {
        caller.check(Action::ManageDevices)?;
        let devices = self.registry.add_devices(caller.tenant(), bulk)?;
        let created = devices.iter().filter(|device| device.created).count();
        self.audit(caller, "add devices", &format!("{created} named {}...", bulk.prefix));
        Ok(devices)
    }

    /// Renames a device ([`crate::registry::Registry::rename_device`]), and makes it a gateway or an ordinary device. Waits for the
    /// disk.
    pub fn change_device(
        &self,
        caller: &Caller,
        id: Uuid,
        change: DeviceChange<'_>,
    ) -> Result<Arc<Device>, RegistryError> {
        caller.check(Action::ManageDevices)?;
        let old = self.own_device(caller, id)?;
        let changed = self.registry.change_device(id, change)?;
        if change.gateway.is_some_and(|gateway| gateway != old.gateway) {
            let act = if changed.gateway { "make device a gateway" } else { "make device no gateway" };
            self.audit(caller, act, &changed.name);
        }
        if old.name != changed.name || change.gateway.is_none() {
            self.audit(caller, "rename device", &format!("{} to {}", old.name, changed.name));
        }
        Ok(changed)
    }

    /// Deletes a device with its credentials, attributes and alarms. Its values stay in the store. Waits for the disk.
    pub fn delete_device(&self, caller: &Caller, id: Uuid) -> Result<Arc<Device>, Error> {
        caller.check(Action::ManageDevices)?;
        let device = self.own_device(caller, id)?;
        let deleted = self.delete_with_attributes(&device, || self.registry.delete_device(id))?;
        // If the server ends here, its next start deletes the alarms.
        self.delete_alarms_of(EntityId::device(id))?;
        self.audit(caller, "delete device", &deleted.name);
        Ok(deleted)
    }

    /// The access token of a device. Waits for the disk: the audit table gets a row.
    pub fn credentials(&self, caller: &Caller, id: Uuid) -> Result<(Arc<Device>, Arc<str>), RegistryError> {
        caller.check(Action::SeeCredentials)?;
        let device = self.own_device(caller, id)?;
        // Another caller can delete the device at this moment.
        let token = self.registry.credentials_of(id).ok_or_else(|| RegistryError::unknown("device", id))?;
        self.audit(caller, "read token of device", &device.name);
        Ok((device, token))
    }

    /// Replaces the access token of a device, by a random one if `token` is `None`. Waits for the disk.
    pub fn set_token(
        &self,
        caller: &Caller,
        id: Uuid,
        token: Option<&str>,
    ) -> Result<(Arc<Device>, Arc<str>), RegistryError> {
        caller.check(Action::SeeCredentials)?;
        let device = self.own_device(caller, id)?;
        let token = self.registry.set_token(id, token)?;
        self.audit(caller, "replace token of device", &device.name);
        Ok((device, token))
    }

    /// A device of the caller's tenant.
    pub(crate) fn own_device(&self, caller: &Caller, id: Uuid) -> Result<Arc<Device>, RegistryError> {
        let device = self.registry.device_by_id(id).filter(|device| device.tenant == caller.tenant());
        device.ok_or_else(|| RegistryError::unknown("device", id))
    }
}
