//! Checks `[tls]` against itself and against the doors.

use gateway::tls::TlsFiles;

use super::error::ConfigError;
use super::raw::RawTls;

/// The files of `[tls]`; `None` if it names none.
pub(super) fn files(raw: &RawTls) -> Result<Option<TlsFiles>, ConfigError> {
    let empty = |key, reason: &str| Err(ConfigError::value(key, "empty", reason));
    match (raw.certificate.is_empty(), raw.key.is_empty(), raw.client_ca.is_empty()) {
        (true, true, true) => Ok(None),
        (true, ..) => empty("tls.certificate", "name the file with the server's certificate (PEM)"),
        (false, true, _) => empty("tls.key", "name the file with the key of tls.certificate (PEM)"),
        (false, false, no_client_ca) => Ok(Some(TlsFiles {
            certificate: (&raw.certificate).into(),
            key: (&raw.key).into(),
            client_ca: (!no_client_ca).then(|| (&raw.client_ca).into()),
        })),
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
