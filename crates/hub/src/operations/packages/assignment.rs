//! Gives packages to devices and profiles.

use std::sync::Arc;

use kv::{Direction, KeyRange, Sequence, WriteBatch};
use uuid::Uuid;

use crate::blocking_append::wait_durable_keys;
use crate::error::Error;
use crate::hub::Hub;
use crate::ota::{CHANGES, OtaError};
use crate::registry::{
    Device, DeviceChange, EntityId, EntityKind, PackageIds, PackageKind, Profile, ProfileFields,
    RegistryError,
};

impl Hub {
    /// Changes a device in the registry, and tells it its packages if they are others then.
    pub(crate) fn change_device_and_packages(
        &self,
        old: &Device,
        change: DeviceChange<'_>,
    ) -> Result<Arc<Device>, Error> {
        let profile = change.profile.unwrap_or(old.profile.id);
        let touches = !change.packages.is_empty() || profile != old.profile.id;
        if !touches {
            return Ok(self.registry.change_device(old.id, change)?);
        }
        let lock = self.packages.lock();
        self.check_packages(old.tenant, change.packages.on(old.own_packages), Some(profile))?;
        let pending = self.begin_package_change(EntityId::device(old.id), old.tenant)?;
        let changed = self.registry.change_device(old.id, change);
        drop(lock);
        if let Ok(changed) = &changed {
            self.announce(&[old.id], &differing(old.packages(), changed.packages()))?;
        }
        self.end_package_change(&pending)?;
        Ok(changed?)
    }

    /// Changes a profile with `store`, and tells its devices their packages if they are others then.
    pub(crate) fn change_profile_and_packages(
        &self,
        old: &Profile,
        fields: &ProfileFields<'_>,
        store: impl FnOnce() -> Result<Arc<Profile>, RegistryError>,
    ) -> Result<Arc<Profile>, Error> {
        if fields.packages.is_empty() {
            return Ok(store()?);
        }
        let lock = self.packages.lock();
        self.check_packages(old.tenant, fields.packages.on(old.packages), Some(old.id))?;
        let pending =
            self.begin_package_change(EntityId::of(EntityKind::DeviceProfile, old.id), old.tenant)?;
        let changed = store();
        drop(lock);
        if let Ok(changed) = &changed {
            self.announce_profile(changed, &differing(old.packages, changed.packages))?;
        }
        self.end_package_change(&pending)?;
        Ok(changed?)
    }

    /// Checks the packages of a device or a profile that is being added, and adds it with `store`.
    pub(crate) fn with_new_packages<T>(
        &self,
        tenant: Uuid,
        packages: PackageIds,
        profile: Option<Uuid>,
        store: impl FnOnce() -> Result<T, RegistryError>,
    ) -> Result<T, Error> {
        if packages == PackageIds::default() {
            return Ok(store()?);
        }
        let _lock = self.packages.lock();
        self.check_packages(tenant, packages, profile)?;
        Ok(store()?)
    }

    /// Tells devices that were added which packages they have.
    pub(crate) fn announce_to_new(&self, devices: &[Arc<Device>]) -> Result<(), Error> {
        for kind in PackageKind::ALL {
            let with = devices.iter().filter(|device| device.packages().of(kind).is_some());
            let with: Vec<Uuid> = with.map(|device| device.id).collect();
            self.announce(&with, &[kind])?;
        }
        Ok(())
    }

    /// Sets the shared attributes about packages that a crash has left out, and returns the number of devices and profiles. The server
    /// calls it when it starts.
    ///
    /// # Errors
    /// The key-value store failed.
    pub fn resume_package_changes(&self) -> Result<usize, Error> {
        let pending: Vec<_> = self.kv.scan(CHANGES, &KeyRange::all(), Direction::Ascending)?.collect();
        let count = pending.len();
        for record in pending {
            let (key, tenant) = record?;
            let id = key.last_chunk().map(|id| Uuid::from_bytes(*id)).unwrap_or_default();
            let tenant = Uuid::from_slice(&tenant).unwrap_or_default();
            match self.registry.find::<Profile>(tenant, id) {
                Ok(profile) => self.announce_profile(&profile, &PackageKind::ALL)?,
                Err(_) => self.announce(&[id], &PackageKind::ALL)?,
            }
            self.end_package_change(&key)?;
        }
        Ok(count)
    }

    fn announce_profile(&self, profile: &Profile, kinds: &[PackageKind]) -> Result<(), OtaError> {
        let devices = self.registry.devices_of_profile(profile.tenant, profile.id);
        for kind in kinds {
            let without = devices.iter().filter(|device| device.own_packages.of(*kind).is_none());
            let without: Vec<Uuid> = without.map(|device| device.id).collect();
            self.announce(&without, &[*kind])?;
        }
        Ok(())
    }

    /// Checks that packages are of their kind, have bytes or an address, and are for devices of the profile.
    fn check_packages(
        &self,
        tenant: Uuid,
        packages: PackageIds,
        profile: Option<Uuid>,
    ) -> Result<(), OtaError> {
        for kind in PackageKind::ALL {
            let Some(id) = packages.of(kind) else { continue };
            let package = self.packages.get(tenant, id)?;
            let wrong = if package.kind != kind {
                format!("its type is {}, not {}", package.kind.name(), kind.name())
            } else if package.file.is_none() && package.url.is_none() {
                "it has no bytes yet; upload them first".to_owned()
            } else if package.profile.is_some() && package.profile != profile {
                "it is for devices of another profile".to_owned()
            } else {
                continue;
            };
            return Err(OtaError::Invalid(format!(
                "the package {:?} cannot be assigned: {wrong}",
                package.tag
            )));
        }
        Ok(())
    }

    /// Records that the packages of a device or a profile change. Waits for the disk. Returns the key of the record.
    fn begin_package_change(&self, entity: EntityId, tenant: Uuid) -> Result<kv::Key, OtaError> {
        let kind = u8::from(entity.kind != EntityKind::Device);
        let key = kv::Key::from([&[kind][..], entity.id.as_bytes()].concat());
        let mut batch = WriteBatch::new();
        batch.put(CHANGES, key.clone(), tenant.as_bytes().to_vec());
        wait_durable_keys(&*self.kv, self.kv.commit(&batch)?)?;
        Ok(key)
    }

    fn end_package_change(&self, key: &kv::Key) -> Result<Sequence, OtaError> {
        let mut batch = WriteBatch::new();
        batch.delete(CHANGES, key.clone());
        Ok(self.kv.commit(&batch)?)
    }
}

/// The kinds of packages that differ.
fn differing(old: PackageIds, new: PackageIds) -> Vec<PackageKind> {
    PackageKind::ALL.into_iter().filter(|kind| old.of(*kind) != new.of(*kind)).collect()
}
