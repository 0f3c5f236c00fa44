//! Errors of certificates and keys. Each names the file and says what to do.

use std::path::PathBuf;

use clients::tls::PemError;
use model::calendar::Moment;

/// Why certificate and key cannot be used.
#[derive(Debug, thiserror::Error)]
pub enum TlsError {
    /// A file cannot be used.
    #[error(transparent)]
    File(#[from] PemError),
    /// The certificate has expired.
    #[error("the certificate {} expired at {at}; put a valid certificate in its place", .path.display())]
    Expired {
        path: PathBuf,
        /// The end of its validity.
        at: Moment,
    },
    /// The key belongs to another certificate.
    #[error("the key {} does not match the certificate {}", .key.display(), .certificate.display())]
    Mismatch {
        /// The file with the certificate.
        certificate: PathBuf,
        /// The file with the key.
        key: PathBuf,
    },
}
