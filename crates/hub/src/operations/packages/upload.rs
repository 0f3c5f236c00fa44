//! An upload: the bytes of a package become durable batch by batch, and the package has them with the last one.

use std::sync::Arc;

use kv::WriteBatch;

use crate::caller::Caller;
use crate::hub::Hub;
use crate::ota::limits::{
    PACKAGE_BUSY_TIMEOUT, PACKAGE_BYTES_MAX, PACKAGE_TEXT_BYTES_MAX, PIECE_BYTES, UPLOAD_BATCH_BYTES,
};
use crate::ota::{
    Checksum, ChecksumAlgorithm, OtaError, PACKAGES, PIECES, Package, PackageFile, encode, key, piece_key,
    pieces_from, within,
};

/// Bytes of a package that come one after the other. If it is dropped before its end, the package stays without bytes.
#[derive(Debug)]
pub struct PackageUpload {
    hub: Arc<Hub>,
    caller: Caller,
    package: Arc<Package>,
    algorithm: ChecksumAlgorithm,
    checksum: Checksum,
    /// Bytes that are not written yet.
    waiting: Vec<u8>,
    /// Pieces that are written.
    pieces: u64,
    bytes: u64,
}

impl PackageUpload {
    pub(super) fn new(
        hub: Arc<Hub>,
        caller: Caller,
        package: Arc<Package>,
        algorithm: ChecksumAlgorithm,
    ) -> Result<Self, OtaError> {
        hub.packages.begin_upload(&package)?;
        let (checksum, waiting) = (Checksum::new(algorithm), Vec::new());
        let upload = Self { hub, caller, package, algorithm, checksum, waiting, pieces: 0, bytes: 0 };
        // Another upload can have ended since the caller found the package.
        let current = upload.hub.packages.get(upload.package.tenant, upload.package.id)?;
        match current.file.is_some() || current.url.is_some() {
            true => Err(OtaError::Invalid(
                "the package has its bytes, or an address, already; they never change, add another package"
                    .to_owned(),
            )),
            false => Ok(upload),
        }
    }

    /// Adds bytes.
    ///
    /// # Errors
    /// A limit, or the key-value store refused or failed.
    pub async fn add(&mut self, bytes: &[u8]) -> Result<(), OtaError> {
        let total = self.bytes + bytes.len() as u64;
        if total > PACKAGE_BYTES_MAX {
            let (what, limit) = ("length of the package in bytes", PACKAGE_BYTES_MAX);
            return Err(OtaError::OverLimit { what, actual: total, limit, name: "PACKAGE_BYTES_MAX" });
        }
        self.hub.packages.count_upload(&self.package, bytes.len() as u64)?;
        self.bytes = total;
        self.checksum.add(bytes);
        let mut rest = bytes;
        while !rest.is_empty() {
            let (now, later) = rest.split_at(rest.len().min(UPLOAD_BATCH_BYTES - self.waiting.len()));
            self.waiting.extend_from_slice(now);
            rest = later;
            if self.waiting.len() == UPLOAD_BATCH_BYTES {
                let batch = self.batch();
                self.hub.kv_commit_and_wait(&batch, PACKAGE_BUSY_TIMEOUT).await?;
            }
        }
        Ok(())
    }

    /// Ends the upload: the package has the bytes when this returns. `expected` is the checksum that the client has computed.
    ///
    /// # Errors
    /// There are no bytes, the checksum is another one, a limit, or the key-value store refused or failed.
    pub async fn finish(
        mut self,
        expected: Option<&str>,
        name: &str,
        content_type: &str,
    ) -> Result<Arc<Package>, OtaError> {
        within("name of the file", name.len(), PACKAGE_TEXT_BYTES_MAX, "PACKAGE_TEXT_BYTES_MAX")?;
        within("content type", content_type.len(), PACKAGE_TEXT_BYTES_MAX, "PACKAGE_TEXT_BYTES_MAX")?;
        if self.bytes == 0 {
            return Err(OtaError::Invalid("the file is empty; upload the bytes of the package".to_owned()));
        }
        let checksum = self.checksum.clone().finish();
        if let Some(expected) = expected.filter(|expected| !expected.eq_ignore_ascii_case(&checksum)) {
            let algorithm = self.algorithm.name();
            return Err(OtaError::Invalid(format!(
                "Wrong otaPackage file! Its {algorithm} checksum is {checksum} and not {expected}"
            )));
        }
        let file = PackageFile {
            name: name.to_owned(),
            content_type: content_type.to_owned(),
            bytes: self.bytes,
            algorithm: self.algorithm,
            checksum,
        };
        let package = Arc::new(Package { file: Some(file), ..Package::clone(&self.package) });
        let mut batch = self.batch();
        // An earlier upload that did not end may have left more pieces.
        batch.delete_range(PIECES, pieces_from(package.id, self.pieces));
        batch.put(PACKAGES, key(package.id), encode(&package));
        // Another request can have deleted the package since, or be about to.
        let hub = Arc::clone(&self.hub);
        hub.packages.get(package.tenant, package.id)?;
        hub.kv_commit_and_wait(&batch, PACKAGE_BUSY_TIMEOUT).await?;
        hub.packages.put(Arc::clone(&package));
        hub.audit_and_wait(&self.caller, "upload package", &package.tag).await;
        Ok(package)
    }

    /// The waiting bytes as pieces.
    fn batch(&mut self) -> WriteBatch {
        let mut batch = WriteBatch::new();
        for piece in self.waiting.chunks(PIECE_BYTES) {
            batch.put(PIECES, piece_key(self.package.id, self.pieces), piece.to_vec());
            self.pieces += 1;
        }
        self.waiting.clear();
        batch
    }
}

impl Drop for PackageUpload {
    fn drop(&mut self) {
        self.hub.packages.end_upload(self.package.id);
    }
}
