//! HTTP of the probes: the load generator's client, and its errors as those of a probe.

use std::time::Duration;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use clients::http::{HttpClient, HttpError, HttpLimits};

use super::error::ProbeError;
use crate::limits::HTTP_BODY_BYTES_MAX;

/// The limits of each answer.
pub(super) const LIMITS: HttpLimits =
    HttpLimits { timeout: Duration::from_secs(30), body_bytes_max: HTTP_BODY_BYTES_MAX };

/// The data that a request reads, for the errors of the probe.
#[derive(Debug, Clone, Copy)]
pub(super) struct Wanted {
    /// The values.
    pub(super) what: &'static str,
    /// The permission that the user needs for them, as a sentence.
    pub(super) remedy: &'static str,
}

/// A client of `host:port`.
pub(super) fn client(host: &str, port: u16) -> HttpClient {
    HttpClient::new(base(host, port), LIMITS)
}

/// The address, `http://host:port`.
pub(super) fn base(host: &str, port: u16) -> String {
    if host.contains(':') { format!("http://[{host}]:{port}") } else { format!("http://{host}:{port}") }
}

/// The value of the header `Authorization` for a user and a password.
pub(super) fn basic_login(user: &str, password: &str) -> String {
    format!("Basic {}", STANDARD.encode(format!("{user}:{password}")))
}

/// The error of the probe.
pub(super) fn probe_error(error: &HttpError, target: &str, wanted: Wanted) -> ProbeError {
    let (target, reason) = (target.to_owned(), error.to_string());
    let Wanted { what, remedy } = wanted;
    match error {
        HttpError::NoAnswer { .. } => ProbeError::Connect { target, reason },
        HttpError::Status(answer) if answer.status == 401 => ProbeError::Login { target, reason },
        HttpError::Status(answer) if answer.status == 403 => {
            ProbeError::Permission { target, what, reason, remedy }
        }
        HttpError::Status(_) | HttpError::NotJson(_) => ProbeError::Protocol { target, what, reason },
    }
}
