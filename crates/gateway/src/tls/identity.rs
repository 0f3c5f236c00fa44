//! The configuration of new handshakes.

use std::sync::Arc;

use clients::tls::{PemError, read_certificates, read_key};
use hub::certificate::Certificate;
use model::calendar::Moment;
use parking_lot::{Mutex, RwLock};
use rustls::crypto::ring;
use rustls::pki_types::CertificateDer;
use rustls::{InconsistentKeys, ServerConfig};

use super::client_certificates::client_verifier;
use super::error::TlsError;
use super::files::{FileStamps, TlsFiles};

/// The server's identity. All doors share it; a reload replaces it for new handshakes.
#[derive(Debug)]
pub struct Tls {
    files: TlsFiles,
    current: RwLock<Arc<ServerConfig>>,
    /// The files of the last attempt to load them.
    stamps: Mutex<FileStamps>,
}

impl Tls {
    /// Reads certificate and key.
    ///
    /// # Errors
    /// A file cannot be read or has unusable content, the key does not match, or the certificate has expired.
    pub fn load(files: TlsFiles) -> Result<Arc<Self>, TlsError> {
        let stamps = files.stamps();
        let config = server_config(&files)?;
        Ok(Arc::new(Self { files, current: RwLock::new(config), stamps: Mutex::new(stamps) }))
    }

    /// Reads the files again. New handshakes use them; open connections do not change.
    ///
    /// # Errors
    /// As for [`load`](Self::load). New handshakes then continue with the identity from before.
    pub fn reload(&self) -> Result<(), TlsError> {
        *self.stamps.lock() = self.files.stamps();
        let config = server_config(&self.files)?;
        *self.current.write() = config;
        Ok(())
    }

    /// Whether a file has changed since the last attempt to load it.
    pub fn has_new_files(&self) -> bool {
        *self.stamps.lock() != self.files.stamps()
    }

    /// The configuration for a new handshake.
    pub(crate) fn server_config(&self) -> Arc<ServerConfig> {
        Arc::clone(&self.current.read())
    }
}

fn server_config(files: &TlsFiles) -> Result<Arc<ServerConfig>, TlsError> {
    let certificates = read_certificates(&files.certificate)?;
    let key = read_key(&files.key)?;
    let provider = Arc::new(ring::default_provider());
    let builder = ServerConfig::builder_with_provider(provider)
        .with_safe_default_protocol_versions()
        .expect("BUG: the provider has suites for TLS 1.2 and 1.3");
    let builder = match client_verifier(files)? {
        Some(verifier) => builder.with_client_cert_verifier(verifier),
        None => builder.with_no_client_auth(),
    };
    check_validity(files, &certificates)?;
    let config = builder.with_single_cert(certificates, key).map_err(|error| match error {
        rustls::Error::InconsistentKeys(InconsistentKeys::KeyMismatch) => {
            TlsError::Mismatch { certificate: files.certificate.clone(), key: files.key.clone() }
        }
        rustls::Error::General(reason) => {
            PemError::content(&files.key, format!("the key is not usable: {reason}")).into()
        }
        other => {
            PemError::content(&files.certificate, format!("the certificate is not usable: {other}")).into()
        }
    })?;
    Ok(Arc::new(config))
}

fn check_validity(files: &TlsFiles, certificates: &[CertificateDer<'_>]) -> Result<(), TlsError> {
    let path = &files.certificate;
    let read = Certificate::from_der(&certificates[0]);
    let read = read.map_err(|reason| PemError::content(path, format!("the first certificate {reason}")))?;
    let end_s = *read.validity_s.end();
    let at = Moment::from_seconds(end_s).ok_or_else(|| {
        PemError::content(
            path,
            format!("the end of the validity, {end_s} seconds after 1970, is after the year 9999"),
        )
    })?;
    if at.micros() <= hub::clock::system_now().micros() {
        return Err(TlsError::Expired { path: path.clone(), at });
    }
    tracing::info!(certificate = %path.display(), valid_until = %at, "read a TLS certificate");
    Ok(())
}
