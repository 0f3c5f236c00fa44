//! Errors of certificates and keys. Each names the file and says what to do.

use std::io;
use std::path::PathBuf;

use model::calendar::Moment;

/// Why certificate and key cannot be used.
#[derive(Debug, thiserror::Error)]
pub enum TlsError {
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
    /// The certificate has expired.
    #[error("the certificate {} expired at {at}; put a valid certificate in its place", .path.display())]
    Expired {
        /// The file.
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
