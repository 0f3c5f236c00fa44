//! Management of devices, for callers with the permission. A device that a caller does not see is unknown to it.

use std::sync::Arc;

use uuid::Uuid;

use crate::caller::{Action, Caller};
use crate::error::Error;
use crate::hub::Hub;
use crate::registry::{
    BulkDevices, Credentials, Device, DeviceChange, EntityId, NewDevice, Page, PageRequest, Provisioned,
    RegistryError,
};

impl Hub {
    /// The device with an id.
    pub fn device(&self, caller: &Caller, id: Uuid) -> Result<Arc<Device>, RegistryError> {
        self.find(caller, id)
    }

    /// The device with a name.
    pub fn device_by_name(&self, caller: &Caller, name: &str) -> Result<Arc<Device>, RegistryError> {
        self.find_named(caller, name)
    }

    /// A page of the devices that the caller sees.
    pub fn devices_page(
        &self,
        caller: &Caller,
        request: PageRequest<'_>,
    ) -> Result<Page<Arc<Device>>, RegistryError> {
        self.page(caller, request, |_| true)
    }

    /// Adds a device. Waits for the disk.
    pub fn add_device(&self, caller: &Caller, new: NewDevice<'_>) -> Result<Provisioned, Error> {
        caller.check(Action::ManageDevices)?;
        let tenant = caller.tenant();
        let profile = new.profile.and_then(|name| self.registry.profile(tenant, name));
        let profile =
            profile.or_else(|| self.registry.default_profile(tenant).ok()).map(|profile| profile.id);
        let add = || self.registry.add_device(tenant, new);
        let added = self.with_new_packages(tenant, new.packages, profile, add)?;
        self.announce_to_new(std::slice::from_ref(&added.device))?;
        self.audit_of(caller, "add device", new.name, EntityId::device(added.device.id));
        Ok(added)
    }

    /// Adds many devices: all or none. Waits for the disk.
    pub fn add_devices(&self, caller: &Caller, bulk: BulkDevices<'_>) -> Result<Vec<Provisioned>, Error> {
        caller.check(Action::ManageDevices)?;
        let devices = self.registry.add_devices(caller.tenant(), bulk)?;
        let new = devices.iter().filter(|device| device.created).map(|new| Arc::clone(&new.device));
        self.announce_to_new(&new.collect::<Vec<_>>())?;
        let created = devices.iter().filter(|device| device.created).count();
        self.audit(caller, "add devices", &format!("{created} named {}...", bulk.prefix));
        Ok(devices)
    }

    /// Changes a device ([`crate::registry::Registry::change_device`]). Waits for the disk.
    pub fn change_device(
        &self,
        caller: &Caller,
        id: Uuid,
        change: DeviceChange<'_>,
    ) -> Result<Arc<Device>, Error> {
        caller.check(Action::ManageDevices)?;
        let old = self.own_device(caller, id)?;
        let changed = self.change_device_and_packages(&old, change)?;
        self.audit_of(caller, "change device", &changes(&old, &changed), EntityId::device(id));
        Ok(changed)
    }

    /// Assigns a device to a customer, or to nobody. Waits for the disk.
    pub fn assign_device(
        &self,
        caller: &Caller,
        id: Uuid,
        customer: Option<Uuid>,
    ) -> Result<Arc<Device>, RegistryError> {
        caller.check(Action::ManageDevices)?;
        let old = self.own_device(caller, id)?;
        let change = DeviceChange { name: &old.name, customer: Some(customer), ..DeviceChange::default() };
        let changed = self.registry.change_device(id, change)?;
        let act = if customer.is_some() { "assign device" } else { "unassign device" };
        self.audit_of(caller, act, &changes(&old, &changed), EntityId::device(id));
        Ok(changed)
    }

    /// Deletes a device with its credentials, attributes and alarms. Its values stay in the store. Waits for the disk.
    pub fn delete_device(&self, caller: &Caller, id: Uuid) -> Result<Arc<Device>, Error> {
        caller.check(Action::ManageDevices)?;
        let device = self.own_device(caller, id)?;
        let deleted = self.delete_with_attributes(&device, || self.registry.delete_device(id))?;
        // If the server ends here, its next start deletes the alarms.
        self.delete_alarms_of(EntityId::device(id))?;
        self.audit_of(caller, "delete device", &deleted.name, EntityId::device(id));
        Ok(deleted)
    }

    /// The credentials of a device. Waits for the disk: the audit table gets a row.
    pub fn credentials(
        &self,
        caller: &Caller,
        id: Uuid,
    ) -> Result<(Arc<Device>, Credentials), RegistryError> {
        caller.check(Action::SeeCredentials)?;
        let device = self.own_device(caller, id)?;
        // Another caller can delete the device at this moment.
        let found = self.registry.credentials_of(id).ok_or_else(|| RegistryError::unknown("device", id))?;
        self.audit_of(caller, "read credentials of device", &device.name, EntityId::device(id));
        Ok((device, found))
    }

    /// Replaces the credentials of a device. Its open sessions end. Waits for the disk.
    pub fn set_credentials(
        &self,
        caller: &Caller,
        id: Uuid,
        credentials: Credentials,
    ) -> Result<Arc<Device>, RegistryError> {
        caller.check(Action::SeeCredentials)?;
        let device = self.own_device(caller, id)?;
        self.registry.set_credentials(id, credentials)?;
        self.audit_of(caller, "replace credentials of device", &device.name, EntityId::device(id));
        Ok(device)
    }
}

/// What has changed of a device, for the audit table.
fn changes(old: &Device, new: &Device) -> String {
    let mut parts = vec![old.name.clone()];
    if old.name != new.name {
        parts.push(format!("to {}", new.name));
    }
    if old.gateway != new.gateway {
        parts.push(if new.gateway { "is a gateway" } else { "is not a gateway" }.to_owned());
    }
    if old.profile.id != new.profile.id {
        parts.push(format!("profile {}", new.profile.name));
    }
    if old.customer != new.customer {
        parts.push(new.customer.map_or("no customer".to_owned(), |customer| format!("customer {customer}")));
    }
    if old.own_packages != new.own_packages {
        parts.push("packages".to_owned());
    }
    if old.label != new.label {
        parts.push("label".to_owned());
    }
    if old.additional_info != new.additional_info {
        parts.push("additionalInfo".to_owned());
    }
    parts.join(", ")
}
