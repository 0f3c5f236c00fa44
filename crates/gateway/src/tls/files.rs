//! The files of TLS: their names, and whether they have changed.

use std::path::PathBuf;
use std::str::FromStr;
use std::time::SystemTime;

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
