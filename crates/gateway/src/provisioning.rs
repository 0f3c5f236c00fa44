//! Answers devices that ask for credentials, for all doors. Payloads are ThingsBoard's.

use std::net::SocketAddr;

use hub::provisioning::{ProvisionRefused, ProvisionRequest};
use hub::registry::{Credentials, CredentialsKind, RegistryError};
use hub::{Blame, Door, Hub};
use serde_json::Value;
use wire::thingsboard::provision::{self, Answer};

use crate::refusals;

/// Gives the device its credentials, and returns the answer for it. It waits for the disk.
///
/// # Errors
/// Too many guesses came from the address, or the server cannot answer now. The device may ask again.
pub(crate) fn answer(
    hub: &Hub,
    door: Door,
    peer: Option<SocketAddr>,
    request: &provision::ProvisionRequest,
) -> Result<Answer, ProvisionRefused> {
    let credentials = match wanted(request) {
        Ok(credentials) => credentials,
        Err(reason) => return Ok(Answer::Failed(reason)),
    };
    let name = request.device_name.as_deref().map(str::trim);
    if name == Some("") {
        return Ok(Answer::Failed("deviceName is blank".to_owned()));
    }
    let given = hub.provision(
        peer.map(|peer| peer.ip()),
        &ProvisionRequest {
            key: request.provision_device_key.as_deref().unwrap_or_default(),
            secret: request.provision_device_secret.as_deref().unwrap_or_default(),
            device: name,
            credentials: credentials.as_ref(),
            gateway: request.gateway.unwrap_or(false),
        },
    );
    let refused = match given {
        Ok((_, credentials)) => return Ok(accepted(&credentials)),
        Err(refused) => refused,
    };
    hub.metrics().refused(door, "provision");
    refusals::credentials(hub, door, peer, &refused.to_string());
    match refused {
        ProvisionRefused::NotFound => Ok(Answer::NotFound),
        ProvisionRefused::Device(reason) => Ok(Answer::Failed(reason)),
        ProvisionRefused::Failed(hub::Error::Registry(error)) if error.blame() == Blame::Caller => {
            Ok(Answer::Failed(error.to_string()))
        }
        other => Err(other),
    }
}

fn accepted(credentials: &Credentials) -> Answer {
    let value = match (credentials.kind(), credentials.value()) {
        // ThingsBoard sends the parts as an object and not as text.
        (CredentialsKind::MqttBasic, Some(parts)) => serde_json::from_str(&parts).unwrap_or(Value::Null),
        (_, Some(text)) => Value::String(text),
        (_, None) => Value::from(&**credentials.id()),
    };
    Answer::Accepted { kind: credentials.kind().name(), value }
}

/// The credentials that a new device wants; `None` for a random access token.
fn wanted(request: &provision::ProvisionRequest) -> Result<Option<Credentials>, String> {
    let kind = request.credentials_type.as_deref().unwrap_or(CredentialsKind::AccessToken.name());
    let kind: CredentialsKind = kind.parse().map_err(|error| format!("credentialsType is {error}"))?;
    let of_kind: &[&str] = match kind {
        CredentialsKind::AccessToken => &["token"],
        CredentialsKind::MqttBasic => &["clientId", "username", "password"],
        CredentialsKind::X509Certificate => &["hash"],
    };
    let members = [
        ("token", &request.token),
        ("clientId", &request.client_id),
        ("username", &request.username),
        ("password", &request.password),
        ("hash", &request.hash),
    ];
    if let Some((other, _)) = members.iter().find(|(name, text)| text.is_some() && !of_kind.contains(name)) {
        return Err(format!("{other} is not part of the credentialsType {}", kind.name()));
    }
    let [token, client_id, username, password, hash] = members.map(|(_, text)| text.as_deref());
    let credentials = match kind {
        CredentialsKind::AccessToken => token.map(Credentials::access_token).transpose(),
        CredentialsKind::MqttBasic => Credentials::mqtt_basic(client_id, username, password).map(Some),
        CredentialsKind::X509Certificate => {
            let hash = hash.ok_or("hash is missing; it is the certificate, PEM or its Base64")?;
            Credentials::certificate(hash).map(Some)
        }
    };
    credentials.map_err(|error: RegistryError| error.to_string())
}
