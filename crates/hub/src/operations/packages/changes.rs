//! Operations on packages, for callers with the permission.

use std::collections::HashSet;
use std::sync::Arc;

use kv::{Direction, KeyRange, WriteBatch};
use uuid::Uuid;

use super::upload::PackageUpload;
use crate::blocking_append::wait_durable_keys;
use crate::caller::{Action, Caller};
use crate::clock::system_now;
use crate::error::Error;
use crate::hub::Hub;
use crate::ota::limits::PACKAGES_PER_TENANT_MAX;
use crate::ota::{
    ChecksumAlgorithm, OtaError, PACKAGES, PIECES, Package, PackageFields, encode, key, pieces_from,
};
use crate::registry::{Entity, EntityKind, Page, PageRequest, Profile, RegistryError, page_of_all};
use crate::visible::sees;

impl Hub {
    /// A package of the caller's tenant. A user of a customer sees those that a device of the customer has to have.
    ///
    /// # Errors
    /// The caller may not read, or there is no such package in the tenant.
    pub fn package(&self, caller: &Caller, id: Uuid) -> Result<Arc<Package>, OtaError> {
        caller.check(Action::Read)?;
        match self.packages_of_customer(caller).is_none_or(|seen| seen.contains(&id)) {
            true => Ok(self.packages.get(caller.tenant(), id)?),
            false => Err(RegistryError::unknown("package", id).into()),
        }
    }

    /// A page of the packages of the caller's tenant, of those for which `wanted` holds.
    ///
    /// # Errors
    /// The caller may not read, or the page cannot be.
    pub fn packages_page(
        &self,
        caller: &Caller,
        request: PageRequest<'_>,
        wanted: impl Fn(&Package) -> bool,
    ) -> Result<Page<Arc<Package>>, RegistryError> {
        caller.check(Action::Read)?;
        let seen = self.packages_of_customer(caller);
        let is_seen = |package: &Package| seen.as_ref().is_none_or(|seen| seen.contains(&package.id));
        let packages = self.packages.of(caller.tenant());
        page_of_all(packages.iter().filter(|package| is_seen(package) && wanted(package)), &request)
    }

    /// The packages of the devices that a user of a customer sees; `None` for a caller who sees all.
    fn packages_of_customer(&self, caller: &Caller) -> Option<HashSet<Uuid>> {
        caller.customer()?;
        let devices =
            self.registry.entities(caller.tenant(), EntityKind::Device, |entity| sees(caller, entity));
        let packages = devices.iter().filter_map(|entity| match entity {
            Entity::Device(device) => Some(device.packages()),
            _ => None,
        });
        Some(packages.flat_map(|of_device| [of_device.firmware, of_device.software]).flatten().collect())
    }

    /// Adds a package without bytes. Waits for the disk.
    ///
    /// # Errors
    /// A limit, the title and version of another package, an unknown profile, or the key-value store refused or failed.
    pub fn add_package(&self, caller: &Caller, fields: &PackageFields<'_>) -> Result<Arc<Package>, OtaError> {
        caller.check(Action::ManageEntities)?;
        fields.check()?;
        let _lock = self.packages.lock();
        let known = self.packages.of(caller.tenant());
        if known.len() >= PACKAGES_PER_TENANT_MAX {
            let (actual, limit) = (known.len() as u64 + 1, PACKAGES_PER_TENANT_MAX as u64);
            let what = "number of packages of the tenant";
            return Err(OtaError::OverLimit { what, actual, limit, name: "PACKAGES_PER_TENANT_MAX" });
        }
        if known.iter().any(|one| one.title == fields.title && one.version == fields.version) {
            return Err(
                RegistryError::exists("package", format!("{} {}", fields.title, fields.version)).into()
            );
        }
        if let Some(profile) = fields.profile {
            self.registry.find::<Profile>(caller.tenant(), profile)?;
        }
        let now = system_now();
        let package = Arc::new(Package {
            id: Uuid::new_v4(),
            tenant: caller.tenant(),
            profile: fields.profile,
            kind: fields.kind,
            title: fields.title.to_owned(),
            version: fields.version.to_owned(),
            tag: fields.tag(),
            url: fields.url.map(str::to_owned),
            additional_info: fields.additional_info.map(str::to_owned),
            file: None,
            created_at: model::Timestamp::from_millis(now.millis()).unwrap_or(now),
        });
        self.store_package(&package)?;
        self.audit(caller, "add package", &package.tag);
        Ok(package)
    }

    /// Changes what clients keep with a package. Its other properties never change, as in ThingsBoard. Waits for the disk.
    ///
    /// # Errors
    /// The package is unknown, another property is to change, a limit, or the key-value store refused or failed.
    pub fn change_package(
        &self,
        caller: &Caller,
        id: Uuid,
        fields: &PackageFields<'_>,
    ) -> Result<Arc<Package>, OtaError> {
        caller.check(Action::ManageEntities)?;
        fields.check()?;
        let _lock = self.packages.lock();
        let old = self.packages.get(caller.tenant(), id)?;
        let same = fields.profile == old.profile
            && fields.kind == old.kind
            && fields.title == old.title
            && fields.version == old.version
            && fields.tag() == old.tag
            && fields.url == old.url.as_deref();
        if !same {
            let message = "only additionalInfo of a package can change; add another package instead";
            return Err(OtaError::Invalid(message.to_owned()));
        }
        if self.packages.is_uploading(id) {
            let message = "the package is being uploaded; change it when that has ended";
            return Err(OtaError::Invalid(message.to_owned()));
        }
        let additional_info = fields.additional_info.map(str::to_owned);
        let package = Arc::new(Package { additional_info, ..Package::clone(&old) });
        self.store_package(&package)?;
        self.audit(caller, "change package", &package.tag);
        Ok(package)
    }

    /// Begins the upload of the bytes of a package that has none.
    ///
    /// # Errors
    /// The package is unknown, has bytes or an address, or another upload of it is under way.
    pub fn upload_package(
        self: &Arc<Self>,
        caller: &Caller,
        id: Uuid,
        algorithm: ChecksumAlgorithm,
    ) -> Result<PackageUpload, OtaError> {
        caller.check(Action::ManageEntities)?;
        let package = self.packages.get(caller.tenant(), id)?;
        PackageUpload::new(Arc::clone(self), caller.clone(), package, algorithm)
    }

    /// Bytes of a package from a position on, at most to its end, for a caller. It reads the disk.
    ///
    /// # Errors
    /// The caller may not administer, the package is unknown, or the key-value store failed.
    pub fn package_bytes(
        &self,
        caller: &Caller,
        id: Uuid,
        begin: u64,
        bytes: usize,
    ) -> Result<Vec<u8>, OtaError> {
        caller.check(Action::ManageEntities)?;
        let package = self.packages.get(caller.tenant(), id)?;
        self.packages.read(&package, begin, bytes)
    }

    /// Deletes a package with its bytes. Refuses one that devices or profiles have. Waits for the disk.
    ///
    /// # Errors
    /// The package is unknown, used or being uploaded, or the key-value store refused or failed.
    pub fn delete_package(&self, caller: &Caller, id: Uuid) -> Result<(), OtaError> {
        caller.check(Action::ManageEntities)?;
        let _lock = self.packages.lock();
        let package = self.packages.get(caller.tenant(), id)?;
        let count = self.registry.users_of_package(package.tenant, id);
        if count > 0 {
            let (what, users) = ("package", "devices and device profiles");
            return Err(RegistryError::StillUsed { what, name: package.tag.clone(), count, users }.into());
        }
        if self.packages.is_uploading(id) {
            let message = "the package is being uploaded; delete it when that has ended";
            return Err(OtaError::Invalid(message.to_owned()));
        }
        self.erase_package(id)?;
        self.audit(caller, "delete package", &package.tag);
        Ok(())
    }

    /// Deletes what uploads have left that did not end. Returns the number of the packages.
    ///
    /// # Errors
    /// The key-value store failed.
    pub fn clean_packages(&self) -> Result<usize, Error> {
        let mut cleaned = 0;
        let mut from = KeyRange::all();
        while let Some(record) = self.kv.scan(PIECES, &from, Direction::Ascending)?.next() {
            let (piece, _) = record?;
            let Some(package) = piece.first_chunk().map(|id| Uuid::from_bytes(*id)) else { break };
            let pieces = pieces_from(package, 0);
            // The uploader says so before the first piece is there.
            if !self.packages.is_uploading(package) && !self.packages.has_file(package) {
                let mut batch = WriteBatch::new();
                batch.delete_range(PIECES, pieces.clone());
                self.kv.commit(&batch)?;
                cleaned += 1;
            }
            let Some(end) = pieces.to() else { break };
            from = KeyRange::starting_at(end.clone());
        }
        Ok(cleaned)
    }

    /// Deletes the packages of a deleted tenant. Waits for the disk.
    pub(crate) fn delete_packages_of_tenant(&self, tenant: Uuid) -> Result<(), OtaError> {
        let _lock = self.packages.lock();
        self.packages.ids_of(tenant).into_iter().try_for_each(|id| self.erase_package(id))
    }

    fn store_package(&self, package: &Arc<Package>) -> Result<(), OtaError> {
        let mut batch = WriteBatch::new();
        batch.put(PACKAGES, key(package.id), encode(package));
        wait_durable_keys(&*self.kv, self.kv.commit(&batch)?)?;
        self.packages.put(Arc::clone(package));
        Ok(())
    }

    fn erase_package(&self, id: Uuid) -> Result<(), OtaError> {
        let mut batch = WriteBatch::new();
        batch.delete(PACKAGES, key(id)).delete_range(PIECES, pieces_from(id, 0));
        let sequence = self.kv.commit(&batch)?;
        self.packages.remove(id);
        Ok(wait_durable_keys(&*self.kv, sequence)?)
    }
}
