//! The PEM files of TLS.

use std::fs::File;
use std::io::{self, Read};
use std::path::{Path, PathBuf};
use std::str::FromStr;
use std::time::SystemTime;

use rustls::pki_types::pem::{self, PemObject};
use rustls::pki_types::{CertificateDer, PrivateKeyDer};

use super::error::TlsError;
use super::limits::FILE_BYTES_MAX;

/// Whether TLS clients of all doors have certificates.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum ClientCertificates {
    /// The server asks for none.
    #[default]
    Off,
    /// A client may have one.
    Optional,
    /// The handshake of a client without one fails.
    Required,
}

impl FromStr for ClientCertificates {
    type Err = String;

    fn from_str(name: &str) -> Result<Self, String> {
        match name {
            "off" => Ok(Self::Off),
            "optional" => Ok(Self::Optional),
            "required" => Ok(Self::Required),
            _ => Err("it is one of off, optional, required".into()),
        }
    }
}

/// The files of the server's identity.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct TlsFiles {
    /// The server's certificate, followed by the intermediate ones.
    pub certificate: PathBuf,
    /// Its private key: PKCS#8, PKCS#1 or SEC1, not encrypted.
    pub key: PathBuf,
    /// Whether clients have certificates.
    pub client_certificates: ClientCertificates,
    /// The authorities of client certificates. `None` accepts any certificate; only its device is then known by it.
    pub client_ca: Option<PathBuf>,
}

/// Modification time and size of each file; `None` for a file that cannot be read.
pub(super) type FileStamps = Vec<Option<(SystemTime, u64)>>;

impl TlsFiles {
    pub(super) fn stamps(&self) -> FileStamps {
        let stamp = |path: &PathBuf| {
            let metadata = std::fs::metadata(path).ok()?;
            Some((metadata.modified().ok()?, metadata.len()))
        };
        [&self.certificate, &self.key].into_iter().chain(&self.client_ca).map(stamp).collect()
    }
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

pub(super) fn content(path: &Path, reason: impl Into<String>) -> TlsError {
    TlsError::Content { path: path.into(), reason: reason.into() }
}

fn read(path: &Path) -> Result<Vec<u8>, TlsError> {
    let failed = |source: io::Error| TlsError::Read { path: path.into(), source };
    let mut text = Vec::new();
    let file = File::open(path).map_err(failed)?;
    file.take(FILE_BYTES_MAX + 1).read_to_end(&mut text).map_err(failed)?;
    if text.len() as u64 > FILE_BYTES_MAX {
        return Err(content(path, format!("it has more than {FILE_BYTES_MAX} bytes")));
    }
    Ok(text)
}
