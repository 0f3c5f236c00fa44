//! The packages of all tenants: what describes them is in memory, their bytes are in the key-value store.

use std::collections::HashMap;
use std::sync::Arc;

use kv::{Direction, KeyRange, KeyValueStore, KvError};
use parking_lot::{Mutex, MutexGuard, RwLock};
use uuid::Uuid;

use super::error::OtaError;
use super::limits::{PACKAGES_BYTES_PER_TENANT_MAX, PIECE_BYTES};
use super::package::Package;
use super::record::{PACKAGES, PIECES, decode, piece_key};
use crate::registry::RegistryError;

pub(crate) struct Packages {
    kv: Arc<dyn KeyValueStore>,
    known: RwLock<HashMap<Uuid, Arc<Package>>>,
    /// Uploads that are under way: their tenant and the bytes that they have written.
    uploads: Mutex<HashMap<Uuid, (Uuid, u64)>>,
    /// Held while a package is given to a device or a profile, and while a package is deleted.
    assigning: Mutex<()>,
}

impl std::fmt::Debug for Packages {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Packages").finish_non_exhaustive()
    }
}

impl Packages {
    /// Reads what describes the packages.
    ///
    /// # Errors
    /// A record cannot be read.
    pub(crate) fn open(kv: Arc<dyn KeyValueStore>) -> Result<Self, KvError> {
        let mut known = HashMap::new();
        for record in kv.scan(PACKAGES, &KeyRange::all(), Direction::Ascending)? {
            let (key, record) = record?;
            let package = decode(&key, &record).map_err(|reason| {
                let key: String = key.iter().map(|byte| format!("{byte:02x}")).collect();
                KvError::Corrupt { path: format!("{PACKAGES}/{key}").into(), reason }
            })?;
            known.insert(package.id, Arc::new(package));
        }
        Ok(Self { kv, known: RwLock::new(known), uploads: Mutex::default(), assigning: Mutex::default() })
    }

    /// Keeps packages from being given to devices, and from being deleted, until the guard is dropped.
    pub(crate) fn lock(&self) -> MutexGuard<'_, ()> {
        self.assigning.lock()
    }

    /// A package of a tenant.
    pub(crate) fn get(&self, tenant: Uuid, id: Uuid) -> Result<Arc<Package>, RegistryError> {
        let found = self.known.read().get(&id).filter(|package| package.tenant == tenant).cloned();
        found.ok_or_else(|| RegistryError::unknown("package", id))
    }

    /// Whether there is a package, of any tenant.
    pub(crate) fn has_file(&self, id: Uuid) -> bool {
        self.known.read().get(&id).is_some_and(|package| package.file.is_some())
    }

    /// The packages of a tenant, by title and version.
    pub(crate) fn of(&self, tenant: Uuid) -> Vec<Arc<Package>> {
        let known = self.known.read();
        let mut found: Vec<_> = known.values().filter(|package| package.tenant == tenant).cloned().collect();
        found.sort_unstable_by(|one, other| (&one.title, &one.version).cmp(&(&other.title, &other.version)));
        found
    }

    /// The ids of the packages of a tenant.
    pub(crate) fn ids_of(&self, tenant: Uuid) -> Vec<Uuid> {
        self.of(tenant).iter().map(|package| package.id).collect()
    }

    /// Adds a package, or replaces the one with the same id, after its record was committed.
    pub(crate) fn put(&self, package: Arc<Package>) {
        self.known.write().insert(package.id, package);
    }

    pub(crate) fn remove(&self, id: Uuid) {
        self.known.write().remove(&id);
    }

    /// Begins an upload. Only one is under way for a package.
    pub(crate) fn begin_upload(&self, package: &Package) -> Result<(), OtaError> {
        let mut uploads = self.uploads.lock();
        if uploads.contains_key(&package.id) {
            let message = "the package is being uploaded by another request; wait until it has ended";
            return Err(OtaError::Invalid(message.to_owned()));
        }
        uploads.insert(package.id, (package.tenant, 0));
        Ok(())
    }

    /// Counts bytes of an upload before they are written.
    pub(crate) fn count_upload(&self, package: &Package, bytes: u64) -> Result<(), OtaError> {
        let stored = |package: &Arc<Package>| package.file.as_ref().map_or(0, |file| file.bytes);
        let mut uploads = self.uploads.lock();
        let under_way = uploads.values().filter(|(tenant, _)| *tenant == package.tenant);
        let under_way: u64 = under_way.map(|(_, bytes)| bytes).sum();
        let actual = self.of(package.tenant).iter().map(stored).sum::<u64>() + under_way + bytes;
        if actual > PACKAGES_BYTES_PER_TENANT_MAX {
            let (what, limit) =
                ("length of all packages of the tenant in bytes", PACKAGES_BYTES_PER_TENANT_MAX);
            return Err(OtaError::OverLimit { what, actual, limit, name: "PACKAGES_BYTES_PER_TENANT_MAX" });
        }
        if let Some((_, counted)) = uploads.get_mut(&package.id) {
            *counted += bytes;
        }
        Ok(())
    }

    pub(crate) fn end_upload(&self, package: Uuid) {
        self.uploads.lock().remove(&package);
    }

    pub(crate) fn is_uploading(&self, package: Uuid) -> bool {
        self.uploads.lock().contains_key(&package)
    }

    /// Bytes of a package from a position on, at most to its end. It reads the disk.
    pub(crate) fn read(&self, package: &Package, begin: u64, bytes: usize) -> Result<Vec<u8>, OtaError> {
        let length = package.file.as_ref().map_or(0, |file| file.bytes);
        let end = begin.saturating_add(bytes as u64).min(length);
        let mut read = Vec::with_capacity(usize::try_from(end.saturating_sub(begin)).unwrap_or(0));
        let mut at = begin;
        while at < end {
            let (number, offset) = (at / PIECE_BYTES as u64, (at % PIECE_BYTES as u64) as usize);
            let piece = self.kv.get(PIECES, &piece_key(package.id, number))?;
            let piece = piece.as_deref().and_then(|piece| piece.get(offset..));
            let piece = piece.filter(|piece| !piece.is_empty()).ok_or(OtaError::Damaged(package.id))?;
            let wanted = usize::try_from(end - at).unwrap_or(usize::MAX).min(piece.len());
            read.extend_from_slice(&piece[..wanted]);
            at += wanted as u64;
        }
        Ok(read)
    }
}
