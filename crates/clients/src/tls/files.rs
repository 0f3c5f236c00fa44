//! The PEM files of a client.

use std::fs::File;
use std::io::{self, Read as _};
use std::path::Path;

use rustls::RootCertStore;
use rustls::pki_types::pem::{self, PemObject as _};
use rustls::pki_types::{CertificateDer, PrivateKeyDer};

use super::error::TlsError;
use crate::limits::PEM_BYTES_MAX;

/// The authorities of a file, at least one.
pub(super) fn read_authorities(path: &Path) -> Result<RootCertStore, TlsError> {
    let mut roots = RootCertStore::empty();
    for certificate in read_certificates(path)? {
        let added = roots.add(certificate);
        added.map_err(|error| content(path, format!("a certificate is not an authority: {error}")))?;
    }
    Ok(roots)
}

/// All certificates of a file, at least one.
pub(super) fn read_certificates(path: &Path) -> Result<Vec<CertificateDer<'static>>, TlsError> {
    let text = read(path)?;
    let found: Result<Vec<_>, _> = CertificateDer::pem_slice_iter(&text).collect();
    let found = found.map_err(|error| content(path, format!("the PEM text is damaged: {error}")))?;
    if found.is_empty() {
        return Err(content(path, "it has no certificate (no line \"-----BEGIN CERTIFICATE-----\")"));
    }
    Ok(found)
}

/// The first private key of a file.
pub(super) fn read_key(path: &Path) -> Result<PrivateKeyDer<'static>, TlsError> {
    let text = read(path)?;
    PrivateKeyDer::from_pem_slice(&text).map_err(|error| match error {
        pem::Error::NoItemsFound => content(
            path,
            "it has no private key (no line \"-----BEGIN PRIVATE KEY-----\"); an encrypted key cannot be read",
        ),
        other => content(path, format!("the PEM text is damaged: {other}")),
    })
}

/// The authorities of the system, at least one.
pub(super) fn system_authorities() -> Result<RootCertStore, TlsError> {
    let found = rustls_native_certs::load_native_certs();
    let mut roots = RootCertStore::empty();
    // Systems keep some certificates that no verifier takes.
    let (taken, _) = roots.add_parsable_certificates(found.certs);
    if taken == 0 {
        let cause = found.errors.first().map_or_else(|| "none was found".to_owned(), ToString::to_string);
        return Err(TlsError::NoRoots { cause });
    }
    Ok(roots)
}

pub(super) fn content(path: &Path, reason: impl Into<String>) -> TlsError {
    TlsError::Content { path: path.into(), reason: reason.into() }
}

fn read(path: &Path) -> Result<Vec<u8>, TlsError> {
    let failed = |source: io::Error| TlsError::Read { path: path.into(), source };
    let mut text = Vec::new();
    let file = File::open(path).map_err(failed)?;
    file.take(PEM_BYTES_MAX + 1).read_to_end(&mut text).map_err(failed)?;
    if text.len() as u64 > PEM_BYTES_MAX {
        return Err(content(path, format!("it has more than {PEM_BYTES_MAX} bytes")));
    }
    Ok(text)
}
