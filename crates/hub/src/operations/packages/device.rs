//! Packages as devices read them.

use std::sync::Arc;

use crate::hub::Hub;
use crate::ota::limits::PACKAGE_CHUNK_BYTES_MAX;
use crate::ota::{OtaError, Package, PackageFile, PackageRequest};
use crate::registry::{Device, PackageKind};

impl Hub {
    /// The package of a kind that a device has, with its bytes on this server.
    ///
    /// # Errors
    /// It has none, or the package is elsewhere.
    pub fn package_of(&self, device: &Device, kind: PackageKind) -> Result<Arc<Package>, OtaError> {
        let name = kind.name();
        let id = device.packages().of(kind);
        let id =
            id.ok_or_else(|| OtaError::NotFound(format!("the device has no package of the type {name}")))?;
        let package = self.packages.get(device.tenant, id)?;
        match (&package.file, &package.url) {
            (Some(_), _) => Ok(package),
            (None, Some(_)) => {
                let prefix = kind.prefix();
                Err(OtaError::NotFound(format!(
                    "the package is elsewhere; the shared attribute {prefix}_url says where"
                )))
            }
            (None, None) => Err(OtaError::NotFound("the package has no bytes".to_owned())),
        }
    }

    /// A chunk of the package that a device has. It reads the disk.
    ///
    /// # Errors
    /// The device has no such package, the package no such chunk, a limit, or the key-value store failed.
    pub fn package_chunk(&self, device: &Device, request: PackageRequest) -> Result<Vec<u8>, OtaError> {
        let package = self.package_of(device, request.kind)?;
        let length = package.file.as_ref().map_or(0, |file: &PackageFile| file.bytes);
        let (bytes, begin) = match request.chunk_bytes {
            0 => (usize::try_from(length).unwrap_or(usize::MAX), if request.chunk == 0 { 0 } else { length }),
            bytes => (bytes, request.chunk.saturating_mul(bytes as u64)),
        };
        if bytes > PACKAGE_CHUNK_BYTES_MAX {
            let (actual, limit) = (bytes as u64, PACKAGE_CHUNK_BYTES_MAX as u64);
            let what = "length of a chunk in bytes";
            return Err(OtaError::OverLimit { what, actual, limit, name: "PACKAGE_CHUNK_BYTES_MAX" });
        }
        if begin >= length {
            let chunk = request.chunk;
            return Err(OtaError::NotFound(format!(
                "the package has {length} bytes and no chunk {chunk} of {bytes}"
            )));
        }
        self.packages.read(&package, begin, bytes)
    }

    /// Bytes of a package that a device reads as a whole. It reads the disk.
    ///
    /// # Errors
    /// The key-value store failed.
    pub fn bytes_of_package(&self, package: &Package, begin: u64, bytes: usize) -> Result<Vec<u8>, OtaError> {
        self.packages.read(package, begin, bytes)
    }
}
