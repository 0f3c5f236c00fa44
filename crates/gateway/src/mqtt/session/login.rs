//! Finds the device of a CONNECT: by its certificate, or by client identifier, user name and password.

use std::sync::Arc;
use std::time::Instant;

use hub::certificate::Certificate;
use hub::registry::{Credentials, Device, DeviceCredentialsFault};
use wire::mqtt::{Connect, ConnectReturnCode, ReasonCode};

use super::context::Context;
use super::refused_connect::RefusedConnect;

/// Finds the device. A certificate of a device decides, whatever the user name says. One that belongs to no device counts as none
/// if there is a user name: an operator may ask all clients for certificates of an authority, and devices for their tokens.
pub(super) fn authenticate(
    connect: &Connect<'_>,
    context: &Context<'_>,
) -> Result<(Arc<Device>, Credentials), RefusedConnect> {
    let user_name = connect.username.filter(|name| !name.is_empty());
    match context.certificates.first().map(|certificate| by_certificate(certificate, context)) {
        Some(Ok(found)) => Ok(found),
        Some(Err(refused)) if user_name.is_none() => Err(refused),
        _ => by_client(connect, user_name, context),
    }
}

fn by_certificate(der: &[u8], context: &Context<'_>) -> Result<(Arc<Device>, Credentials), RefusedConnect> {
    let unknown = || {
        not_authorized(
            "certificate_unknown",
            "no device has this client certificate, and there is no user name",
        )
    };
    let certificate = Certificate::from_der(der).map_err(|_| unknown())?;
    // A resumed TLS session does not check the certificate again.
    if !certificate.is_valid_at(context.now.micros().div_euclid(1_000_000)) {
        return Err(not_authorized("certificate_expired", "the client certificate is not valid now"));
    }
    context.hub.registry().device_by_certificate(&certificate.fingerprint()).ok_or_else(unknown)
}

fn by_client(
    connect: &Connect<'_>,
    user_name: Option<&str>,
    context: &Context<'_>,
) -> Result<(Arc<Device>, Credentials), RefusedConnect> {
    let found = context.hub.registry().device_of_client(connect.client_id, user_name, connect.password);
    // Tokens are too long to be guessed, and clients may send any password with them.
    let is_token = matches!(found, Ok((_, Credentials::AccessToken(_))));
    if connect.password.is_some() && !is_token {
        limit_guesses(user_name.unwrap_or(connect.client_id), found.is_ok(), context)?;
    }
    found.map_err(|fault| refusal(fault, user_name, connect.password.is_some()))
}

/// Counts a check of a password. Refuses its result, whatever it is, after too many wrong ones.
fn limit_guesses(login: &str, is_right: bool, context: &Context<'_>) -> Result<(), RefusedConnect> {
    let now = Instant::now();
    let attempt = context.hub.device_logins().begin(Some(context.peer.ip()), login, now);
    let attempt = attempt.map_err(|wait| RefusedConnect {
        code: ReasonCode::CONNECTION_RATE_EXCEEDED,
        return_code: ConnectReturnCode::SERVER_UNAVAILABLE,
        label: "login_rate",
        cause: wait.to_string(),
    })?;
    attempt.end(is_right, now);
    Ok(())
}

/// The refusal does not say which part is wrong, so that nobody can find out user names.
fn refusal(fault: DeviceCredentialsFault, user_name: Option<&str>, has_password: bool) -> RefusedConnect {
    let label = match (fault, user_name) {
        (DeviceCredentialsFault::WrongPassword, _) => "password_wrong",
        (DeviceCredentialsFault::Unknown, Some(_)) => "token_unknown",
        (DeviceCredentialsFault::Unknown, None) => "token_missing",
    };
    match (user_name, has_password) {
        (Some(_), false) => not_authorized(label, "the access token, or the user name, belongs to no device"),
        (Some(_), true) => bad_name_or_password(
            label,
            "no device has this access token, or this client identifier, user name and password",
        ),
        (None, _) => bad_name_or_password(label, "no access token: send the device's token as user name"),
    }
}

fn not_authorized(label: &'static str, cause: &str) -> RefusedConnect {
    let (code, return_code) = (ReasonCode::NOT_AUTHORIZED, ConnectReturnCode::NOT_AUTHORIZED);
    RefusedConnect { code, return_code, label, cause: cause.into() }
}

fn bad_name_or_password(label: &'static str, cause: &str) -> RefusedConnect {
    let code = ReasonCode::BAD_USER_NAME_OR_PASSWORD;
    RefusedConnect {
        code,
        return_code: ConnectReturnCode::BAD_USER_NAME_OR_PASSWORD,
        label,
        cause: cause.into(),
    }
}
