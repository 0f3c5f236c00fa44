//! The terms of a CONNECT that do not depend on who sends it.

use wire::mqtt::{Connect, ConnectReturnCode, PropertyId, ProtocolVersion, ReasonCode};

use super::super::limits;
use super::context::Context;
use super::refused_connect::RefusedConnect;

/// Refuses a client whose terms the door does not have.
pub(super) fn check_terms(connect: &Connect<'_>) -> Result<(), RefusedConnect> {
    if connect.client_id.len() > limits::CLIENT_ID_BYTES_MAX {
        return Err(RefusedConnect {
            code: ReasonCode::CLIENT_IDENTIFIER_NOT_VALID,
            return_code: ConnectReturnCode::IDENTIFIER_REJECTED,
            label: "client_id",
            cause: format!(
                "the client identifier has {} bytes, the limit is {}",
                connect.client_id.len(),
                limits::CLIENT_ID_BYTES_MAX
            ),
        });
    }
    let empty_id = match connect.version {
        // Like other servers, the door accepts more than the 23 characters of the specification.
        ProtocolVersion::V31 => {
            Some("MQTT 3.1 wants a client identifier of at least one character [MQTT31 3.1]")
        }
        ProtocolVersion::V311 if !connect.clean_start => {
            Some("an empty client identifier needs a clean session [MQTT-3.1.3-8]")
        }
        ProtocolVersion::V311 | ProtocolVersion::V5 => None,
    };
    if let Some(cause) = empty_id.filter(|_| connect.client_id.is_empty()) {
        return Err(RefusedConnect {
            code: ReasonCode::CLIENT_IDENTIFIER_NOT_VALID,
            return_code: ConnectReturnCode::IDENTIFIER_REJECTED,
            label: "client_id",
            cause: cause.into(),
        });
    }
    if connect.properties.text(PropertyId::AuthenticationMethod).is_some() {
        return Err(RefusedConnect {
            code: ReasonCode::BAD_AUTHENTICATION_METHOD,
            return_code: ConnectReturnCode::NOT_AUTHORIZED,
            label: "authentication_method",
            cause: "no authentication method is served; send the access token as user name".into(),
        });
    }
    Ok(())
}

/// The keep-alive of the client, or the operator's bound; MQTT 5 lets the server choose it [MQTT-3.2.2-21].
pub(super) fn granted_keep_alive_s(connect: &Connect<'_>, context: &Context<'_>) -> u16 {
    let most = context.options.keep_alive_max_s;
    match (connect.version, connect.keep_alive_s) {
        (ProtocolVersion::V5, asked) if most > 0 && (asked == 0 || asked > most) => most,
        (_, asked) => asked,
    }
}

/// The client identifier that the server chooses for a client without one.
pub(super) fn assigned_client_id(connect: &Connect<'_>) -> Option<String> {
    connect.client_id.is_empty().then(|| format!("tacho-{}", uuid::Uuid::new_v4().simple()))
}

/// One and a half times the keep-alive [MQTT-3.1.2-22], rounded up: never too early.
pub(super) fn silence_max_s(keep_alive_s: u16) -> u32 {
    (u32::from(keep_alive_s) * 3).div_ceil(2)
}
