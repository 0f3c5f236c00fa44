//! The credentials of devices in ThingsBoard's shapes.

use std::sync::Arc;

use axum::extract::State;
use axum::response::IntoResponse;
use hub::caller::Action;
use hub::registry::{Credentials, CredentialsKind, Device};
use serde::Deserialize;
use serde_json::{Value as JsonValue, json};

use crate::error::ApiError;
use crate::http::shapes::entities::IdJson;
use crate::http::tools::error_response::Answer;
use crate::http::tools::json::{Json, entity};
use crate::http::tools::request::{JsonBody, PathOf, path_id};
use crate::http::tools::route_list::Routes;
use crate::http::tools::session::Session;
use crate::http::tools::state::HttpState;

/// The routes of credentials.
pub(crate) fn routes() -> Routes {
    Routes::default().get("/api/device/{id}/credentials", show).post("/api/device/credentials", set)
}

/// Credentials in a request.
#[derive(Debug, Deserialize)]
#[serde(rename_all = "camelCase")]
pub(crate) struct CredentialsJson {
    device_id: Option<IdJson>,
    credentials_type: Option<String>,
    credentials_id: Option<String>,
    credentials_value: Option<JsonValue>,
}

impl CredentialsJson {
    /// The credentials; a random access token if the body names none.
    pub(crate) fn read(&self) -> Result<Credentials, ApiError> {
        let kind = self.credentials_type.as_deref().unwrap_or(CredentialsKind::AccessToken.name());
        let kind: CredentialsKind =
            kind.parse().map_err(|error| ApiError::argument(format!("credentialsType is {error}")))?;
        let value = match &self.credentials_value {
            None | Some(JsonValue::Null) => None,
            Some(JsonValue::String(text)) => Some(text.as_str()).filter(|text| !text.is_empty()),
            Some(_) => return Err(ApiError::argument("credentialsValue must be a string")),
        };
        let missing = || {
            ApiError::argument("credentialsValue is missing; it holds ThingsBoard's credentials of this kind")
        };
        Ok(match kind {
            CredentialsKind::AccessToken if value.is_some() => {
                return Err(ApiError::argument(
                    "credentialsValue is not part of an ACCESS_TOKEN; leave it out",
                ));
            }
            CredentialsKind::AccessToken => {
                match self.credentials_id.as_deref().filter(|token| !token.is_empty()) {
                    Some(token) => Credentials::access_token(token)?,
                    None => Credentials::random_token(),
                }
            }
            // The server computes their ids, and does not read one that the body names.
            CredentialsKind::MqttBasic => Credentials::mqtt_basic_of_json(value.ok_or_else(missing)?)?,
            CredentialsKind::X509Certificate => Credentials::certificate(value.ok_or_else(missing)?)?,
        })
    }
}

/// `GET /api/device/{id}/credentials`. It needs a permission of its own, because credentials allow writing as the device.
async fn show(State(state): State<Arc<HttpState>>, session: Session, PathOf(id): PathOf<String>) -> Answer {
    let (hub, id) = (Arc::clone(&state.hub), path_id(&id)?);
    // It waits for the row of the audit table.
    let (device, credentials) = state.changes.run(move || hub.credentials(session.caller(), id)).await??;
    Ok(Json(credentials_json(&device, &credentials)).into_response())
}

/// `POST /api/device/credentials`: gives a device other credentials. Its open sessions end.
async fn set(
    State(state): State<Arc<HttpState>>,
    session: Session,
    JsonBody(new): JsonBody<CredentialsJson>,
) -> Answer {
    session.check(Action::SeeCredentials)?;
    let credentials = new.read()?;
    let device = new.device_id.ok_or_else(|| ApiError::argument("deviceId is missing; name the device"))?;
    let (hub, wanted) = (Arc::clone(&state.hub), credentials.clone());
    let set = move || hub.set_credentials(session.caller(), device.id, wanted);
    let device = state.changes.run(set).await??;
    Ok(Json(credentials_json(&device, &credentials)).into_response())
}

fn credentials_json(device: &Device, credentials: &Credentials) -> JsonValue {
    json!({
        // Credentials have no id of an entity here, but ThingsBoard's clients require one.
        "id": { "id": device.id },
        "createdTime": device.created_at.millis(),
        "deviceId": entity("DEVICE", device.id),
        "credentialsType": credentials.kind().name(),
        "credentialsId": &**credentials.id(),
        "credentialsValue": credentials.value(),
        "version": device.version,
    })
}
