//! Errors of TLS. Each says what to do.

use std::io;

use rustls::{AlertDescription, CertificateError};

use super::pem::PemError;

/// Why a client of TLS cannot be configured.
#[derive(Debug, thiserror::Error)]
pub enum TlsError {
    /// A file cannot be used.
    #[error(transparent)]
    File(#[from] PemError),
    /// The system has no authorities.
    #[error(
        "this system has no certificates of authorities ({cause}): name the file of the server's authority, or install the \
         package ca-certificates"
    )]
    NoRoots {
        /// What was looked at.
        cause: String,
    },
    /// The host is not a name that a certificate can have.
    #[error(
        "`{host}` is not a name of a server that a certificate can have: write a host name or an IP address"
    )]
    Name {
        /// The host.
        host: String,
    },
}

/// Why a handshake failed, or a connection broke afterwards. It is the source of an [`io::Error`]; [`TlsFailure::of`]
/// finds it there.
#[derive(Debug, Clone, PartialEq, thiserror::Error)]
pub enum TlsFailure {
    /// No trusted authority signed the certificate.
    #[error("no trusted authority signed the certificate of the server: {0}")]
    UnknownAuthority(&'static str),
    /// The certificate is for other names.
    #[error("the certificate of the server is not for `{0}`: connect with a name of the certificate")]
    OtherName(String),
    /// The certificate is not valid at this time.
    #[error("the certificate of the server has expired or is not valid yet: look at the clocks, or renew it")]
    NotValidNow,
    /// The server speaks no TLS.
    #[error("the server does not speak TLS on this port: look at the port, or connect without TLS")]
    PlainText,
    /// The server speaks TLS, and the client does not.
    #[error("the server speaks TLS on this port: connect with TLS (https://, mqtts://, rediss://)")]
    Encrypted,
    /// The server wants a certificate of the client.
    #[error(
        "the server wants a certificate of the client, signed by its authority: pass a certificate and its key"
    )]
    NoIdentity,
    /// The server closed the connection during the handshake.
    #[error("the server closed the connection during the TLS handshake: look at its log, and at the port")]
    Closed,
    /// Another reason.
    #[error("TLS failed: {0}")]
    Other(rustls::Error),
}

/// How to name the authority's file, in the words of most addresses.
const HOW_TO_TRUST: &str = "name the authority's file (cafile=FILE; --cafile FILE)";

impl TlsFailure {
    pub(super) fn new(error: rustls::Error) -> Self {
        use rustls::Error as E;
        match error {
            // A signature is bad if another authority of the same name made it.
            E::InvalidCertificate(CertificateError::UnknownIssuer | CertificateError::BadSignature) => {
                Self::UnknownAuthority(HOW_TO_TRUST)
            }
            E::InvalidCertificate(CertificateError::NotValidForNameContext { expected, .. }) => {
                Self::OtherName(expected.to_str().into_owned())
            }
            E::InvalidCertificate(
                CertificateError::Expired
                | CertificateError::ExpiredContext { .. }
                | CertificateError::NotValidYet
                | CertificateError::NotValidYetContext { .. },
            ) => Self::NotValidNow,
            E::InvalidMessage(rustls::InvalidMessage::InvalidContentType) => Self::PlainText,
            E::AlertReceived(
                AlertDescription::CertificateRequired
                | AlertDescription::BadCertificate
                | AlertDescription::UnknownCA,
            ) => Self::NoIdentity,
            other => Self::Other(other),
        }
    }

    /// The failure behind an I/O error.
    pub fn of(error: &io::Error) -> Option<&Self> {
        error.get_ref()?.downcast_ref()
    }

    /// Replaces an error of the library by one that says what to do.
    pub fn explain(error: io::Error) -> io::Error {
        if error.kind() == io::ErrorKind::UnexpectedEof {
            return Self::Closed.into_io();
        }
        match error.downcast::<rustls::Error>() {
            Ok(cause) => Self::new(cause).into_io(),
            Err(error) => error,
        }
    }

    /// Whether the first bytes of an answer without TLS are an alert of TLS.
    pub fn is_alert(answer: &[u8]) -> bool {
        // Its type, and the first byte of the versions 1.0 to 1.3.
        answer.starts_with(&[0x15, 0x03])
    }

    /// The failure as an I/O error.
    pub fn into_io(self) -> io::Error {
        let kind =
            if self == Self::Closed { io::ErrorKind::UnexpectedEof } else { io::ErrorKind::InvalidData };
        io::Error::new(kind, self)
    }
}
