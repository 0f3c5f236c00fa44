//! PEM files: the certificates, keys and authorities of our clients, of the connectors and of the server.

use std::fs::File;
use std::io::{self, Read as _};
use std::path::{Path, PathBuf};

use rustls::RootCertStore;
use rustls::pki_types::pem::{self, PemObject as _};
use rustls::pki_types::{CertificateDer, PrivateKeyDer};

use crate::limits::PEM_BYTES_MAX;

/// Why a PEM file cannot be used. Each error names the file.
#[derive(Debug, thiserror::Error)]
pub enum PemError {
    /// The file cannot be read.
    #[error("cannot read {}: {source}", .path.display())]
    Read {
        /// The file.
        path: PathBuf,
        /// The cause.
        #[source]
        source: io::Error,
    },
    /// The content of the file is unusable.
    #[error("{}: {reason}", .path.display())]
    Content {
        /// The file.
        path: PathBuf,
        /// What is wrong with it, and what is expected.
        reason: String,
    },
}

impl PemError {
    /// The error for the content of a file.
    pub fn content(path: &Path, reason: impl Into<String>) -> Self {
        Self::Content { path: path.into(), reason: reason.into() }
    }
}

/// The authorities of a file, at least one.
///
/// # Errors
/// Those of [`read_certificates`], and a certificate that cannot be an authority.
pub fn read_authorities(path: &Path) -> Result<RootCertStore, PemError> {
    let mut roots = RootCertStore::empty();
    for certificate in read_certificates(path)? {
        let added = roots.add(certificate);
        added.map_err(|error| {
            PemError::content(path, format!("a certificate is not an authority: {error}"))
        })?;
    }
    Ok(roots)
}

/// All certificates of a file, at least one.
///
/// # Errors
/// The file cannot be read, is too large or damaged, or has no certificate.
pub fn read_certificates(path: &Path) -> Result<Vec<CertificateDer<'static>>, PemError> {
    let text = read(path)?;
    let found: Result<Vec<_>, _> = CertificateDer::pem_slice_iter(&text).collect();
    let found = found.map_err(|error| damaged(path, &error))?;
    if found.is_empty() {
        return Err(PemError::content(
            path,
            "it has no certificate (no line \"-----BEGIN CERTIFICATE-----\")",
        ));
    }
    Ok(found)
}

/// The first private key of a file.
///
/// # Errors
/// The file cannot be read, is too large or damaged, or has no private key that can be read without a password.
pub fn read_key(path: &Path) -> Result<PrivateKeyDer<'static>, PemError> {
    let text = read(path)?;
    PrivateKeyDer::from_pem_slice(&text).map_err(|error| match error {
        pem::Error::NoItemsFound => PemError::content(
            path,
            "it has no private key (no line \"-----BEGIN PRIVATE KEY-----\"); an encrypted key cannot be read",
        ),
        other => damaged(path, &other),
    })
}

fn damaged(path: &Path, error: &pem::Error) -> PemError {
    PemError::content(path, format!("the PEM text is damaged: {error}"))
}

fn read(path: &Path) -> Result<Vec<u8>, PemError> {
    let failed = |source: io::Error| PemError::Read { path: path.into(), source };
    let mut text = Vec::new();
    // The opening of a named pipe waits for its writer.
    if !std::fs::metadata(path).map_err(failed)?.is_file() {
        return Err(PemError::content(path, "it is not a file"));
    }
    let file = File::open(path).map_err(failed)?;
    file.take(PEM_BYTES_MAX + 1).read_to_end(&mut text).map_err(failed)?;
    if text.len() as u64 > PEM_BYTES_MAX {
        return Err(PemError::content(path, format!("it has more than {PEM_BYTES_MAX} bytes")));
    }
    Ok(text)
}

#[cfg(test)]
mod tests {
    use rcgen::{CertificateParams, KeyPair};

    use super::*;

    fn error_of<T>(result: Result<T, PemError>) -> String {
        result.err().expect("the file is not usable").to_string()
    }

    #[test]
    fn certificates_authorities_and_a_key_are_read_from_one_file() {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("all.pem");
        let key = KeyPair::generate().unwrap();
        let [one, other] = [(); 2].map(|()| CertificateParams::default().self_signed(&key).unwrap());
        std::fs::write(&path, format!("text\n{}{}{}", one.pem(), key.serialize_pem(), other.pem())).unwrap();
        assert_eq!(read_certificates(&path).unwrap(), [one.der().clone(), other.der().clone()]);
        assert_eq!(read_authorities(&path).unwrap().len(), 2);
        assert_eq!(read_key(&path).unwrap().secret_der(), key.serialize_der());
    }

    #[test]
    fn errors_name_the_file_and_the_reason() {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("a.pem");
        assert!(error_of(read_key(&path)).starts_with(&format!("cannot read {}: ", path.display())));
        assert!(error_of(read_key(directory.path())).ends_with("it is not a file"));
        std::fs::write(&path, "nothing").unwrap();
        assert!(error_of(read_authorities(&path)).contains("a.pem: it has no certificate (no line"));
        assert!(error_of(read_key(&path)).contains("a.pem: it has no private key (no line"));
        std::fs::write(&path, "-----BEGIN CERTIFICATE-----\n!\n-----END CERTIFICATE-----\n").unwrap();
        assert!(error_of(read_certificates(&path)).contains("a.pem: the PEM text is damaged: "));
        // Base64 of three bytes, which are not a certificate.
        std::fs::write(&path, "-----BEGIN CERTIFICATE-----\nAAAA\n-----END CERTIFICATE-----\n").unwrap();
        assert!(error_of(read_authorities(&path)).contains("a.pem: a certificate is not an authority: "));
        std::fs::write(&path, vec![b'x'; PEM_BYTES_MAX as usize + 1]).unwrap();
        assert!(
            error_of(read_key(&path)).ends_with(&format!("a.pem: it has more than {PEM_BYTES_MAX} bytes"))
        );
    }
}
