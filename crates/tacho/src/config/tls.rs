//! Checks `[tls]` against itself and against the doors.

use gateway::tls::{ClientCertificates, TlsFiles};

use super::error::ConfigError;
use super::raw::RawTls;

/// The files of `[tls]`; `None` if it names none.
pub(super) fn files(raw: &RawTls) -> Result<Option<TlsFiles>, ConfigError> {
    let empty = |key, reason: &str| Err(ConfigError::value(key, "empty", reason));
    let client_certificates = client_certificates(raw)?;
    let client_ca = (!raw.client_ca.is_empty()).then(|| (&raw.client_ca).into());
    let asks_clients = client_ca.is_some() || client_certificates != ClientCertificates::Off;
    match (raw.certificate.is_empty(), raw.key.is_empty()) {
        (true, true) if !asks_clients => Ok(None),
        (true, _) => empty("tls.certificate", "name the file with the server's certificate (PEM)"),
        (false, true) => empty("tls.key", "name the file with the key of tls.certificate (PEM)"),
        (false, false) => Ok(Some(TlsFiles {
            certificate: (&raw.certificate).into(),
            key: (&raw.key).into(),
            client_certificates,
            client_ca,
        })),
    }
}

fn client_certificates(raw: &RawTls) -> Result<ClientCertificates, ConfigError> {
    let key = "tls.client_certificates";
    let name = match (raw.client_certificates.as_str(), raw.client_ca.is_empty()) {
        ("", true) => "off",
        ("", false) => "required",
        (name, _) => name,
    };
    let found = name.parse().map_err(|reason: String| ConfigError::value(key, name, &reason))?;
    match (found, raw.client_ca.is_empty()) {
        (ClientCertificates::Off, false) => {
            let reason = "tls.client_ca needs optional or required";
            Err(ConfigError::value(key, "off", reason))
        }
        (ClientCertificates::Required, true) => {
            let reason = "name the file with the authorities that have signed the certificates";
            Err(ConfigError::value("tls.client_ca", "empty", reason))
        }
        _ => Ok(found),
    }
}

/// Refuses settings that need a certificate if there is none. `settings`: the names of such settings, and whether they are set.
pub(super) fn check_needs(
    tls: Option<&TlsFiles>,
    settings: [(&'static str, bool); 3],
) -> Result<(), ConfigError> {
    match settings.into_iter().find(|(_, is_set)| *is_set) {
        Some((key, _)) if tls.is_none() => {
            let reason = "TLS needs a certificate; set certificate and key of [tls]";
            Err(ConfigError::value(key, "set", reason))
        }
        _ => Ok(()),
    }
}
