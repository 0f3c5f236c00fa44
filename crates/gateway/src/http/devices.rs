//! Devices in ThingsBoard's shapes, and their bulk creation.

use std::sync::Arc;

use axum::extract::State;
use axum::response::{IntoResponse, Response};
use hub::Hub;
use hub::caller::{Action, Caller};
use hub::registry::{BulkDevices, Device, DeviceChange, NewDevice, PageRequest, Profile, Provisioned};
use serde::{Deserialize, Serialize};
use serde_json::{Value as JsonValue, json};
use uuid::Uuid;

use super::json::{Json, Sequence, entity};
use super::limits::SORTED_DEVICES_MAX;
use super::request::{JsonBody, Params, PathOf, parse_id};
use super::session::Session;
use super::state::HttpState;
use crate::error::ApiError;

/// ThingsBoard's null id (`EntityId.NULL_UUID`): devices here belong to no customer.
const NULL_UUID: Uuid = Uuid::from_u128(0x1381_4000_1dd2_11b2_8080_8080_8080_8080);

pub(crate) fn device_json(device: &Device) -> JsonValue {
    json!({
        "id": entity("DEVICE", device.id),
        "createdTime": device.created_at.millis(),
        "tenantId": entity("TENANT", device.tenant),
        "customerId": entity("CUSTOMER", NULL_UUID),
        "deviceProfileId": entity("DEVICE_PROFILE", device.profile.id),
        "name": device.name,
        "type": device.profile.name,
        "label": null,
        "additionalInfo": additional_info(device),
    })
}

/// ThingsBoard's `additionalInfo`: whether the device is a gateway, and the gateway that last connected it. `null` without either.
fn additional_info(device: &Device) -> JsonValue {
    let mut info = serde_json::Map::new();
    if device.gateway {
        info.insert("gateway".into(), true.into());
    }
    if let Some(gateway) = device.last_gateway {
        info.insert("lastConnectedGateway".into(), gateway.to_string().into());
    }
    if info.is_empty() { JsonValue::Null } else { info.into() }
}

/// `GET /api/tenant/devices?deviceName=` for one, `?pageSize=&page=` for a page.
pub(crate) async fn list(
    State(state): State<Arc<HttpState>>,
    session: Session,
    params: Params,
) -> Result<Response, ApiError> {
    if let Some(name) = params.text("deviceName") {
        let device = state.hub.device_by_name(session.caller(), name)?;
        return Ok(Json(device_json(&device)).into_response());
    }
    let listing = Listing::parse(&params)?;
    let hub = Arc::clone(&state.hub);
    // Filtering visits every device, so it runs on a blocking thread.
    state.reads.run(move || listing.page(&hub, session.caller())).await?
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum SortBy {
    Name,
    CreatedTime,
}

#[derive(Debug)]
struct Listing {
    page: usize,
    page_size: usize,
    filter: Option<String>,
    sort_by: SortBy,
    descending: bool,
}

impl Listing {
    fn parse(params: &Params) -> Result<Self, ApiError> {
        let page_size = params.number("pageSize")?.ok_or_else(|| {
            ApiError::argument("name a device (deviceName) or the page you want (pageSize and page)")
        })?;
        let sort_by = match params.text("sortProperty") {
            None | Some("name") => SortBy::Name,
            Some("createdTime") => SortBy::CreatedTime,
            Some(other) => {
                let message = format!("sortProperty is {other:?}; devices are sorted by name or createdTime");
                return Err(ApiError::argument(message));
            }
        };
        let descending = params.descending()?;
        let filter = params.text("textSearch").map(str::to_owned);
        Ok(Self { page: params.number("page")?.unwrap_or(0), page_size, filter, sort_by, descending })
    }

    fn page(&self, hub: &Hub, caller: &Caller) -> Result<Response, ApiError> {
        let by_name = self.sort_by == SortBy::Name && !self.descending;
        let (page, page_size) = match (by_name, self.page_size) {
            (true, _) | (false, 0) => (self.page, self.page_size),
            (false, _) => (0, SORTED_DEVICES_MAX),
        };
        let request = PageRequest { page, page_size, filter: self.filter.as_deref() };
        let mut found = hub.devices_page(caller, request)?;
        if !by_name {
            if found.has_next {
                let (total, limit) = (found.total_elements, SORTED_DEVICES_MAX);
                return Err(ApiError::argument(format!(
                    "{total} devices are too many to sort, the limit is {limit}; narrow textSearch or sort by name"
                )));
            }
            self.sort(&mut found.data);
            let skipped = self.page.saturating_mul(self.page_size);
            found.data = found.data.into_iter().skip(skipped).take(self.page_size).collect();
            found.total_pages = found.total_elements.div_ceil(self.page_size);
            let seen = skipped.saturating_add(found.data.len());
            found.has_next = seen < found.total_elements && !found.data.is_empty();
        }
        let answer = PageJson {
            data: Sequence(|| found.data.iter().map(|device| device_json(device))),
            total_pages: found.total_pages,
            total_elements: found.total_elements,
            has_next: found.has_next,
        };
        Ok(Json(answer).into_response())
    }

    /// Sorts devices, which are in the order of their names. Equal times keep that order.
    fn sort(&self, devices: &mut [Arc<Device>]) {
        match (self.sort_by, self.descending) {
            (SortBy::Name, _) => devices.reverse(),
            (SortBy::CreatedTime, false) => devices.sort_by_key(|device| device.created_at),
            (SortBy::CreatedTime, true) => {
                devices.sort_by_key(|device| std::cmp::Reverse(device.created_at));
            }
        }
    }
}

/// ThingsBoard's `PageData`.
#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct PageJson<T> {
    pub(super) data: T,
    pub(super) total_pages: usize,
    pub(super) total_elements: usize,
    pub(super) has_next: bool,
}

/// `GET /api/device/{id}`
pub(crate) async fn show(
    State(state): State<Arc<HttpState>>,
    session: Session,
    PathOf(id): PathOf<String>,
) -> Result<Response, ApiError> {
    Ok(Json(device_json(&*session.device(&state.hub, parse_id(&id)?)?)).into_response())
}

/// `GET /api/device/{id}/credentials`. It needs a permission of its own, because the token allows writing as the device.
pub(crate) async fn credentials(
    State(state): State<Arc<HttpState>>,
    session: Session,
    PathOf(id): PathOf<String>,
) -> Result<Response, ApiError> {
    let (hub, id) = (Arc::clone(&state.hub), parse_id(&id)?);
    // It waits for the row of the audit table.
    let (device, token) = state.changes.run(move || hub.credentials(session.caller(), id)).await??;
    Ok(Json(credentials_json(&device, &token)).into_response())
}

fn credentials_json(device: &Device, token: &str) -> JsonValue {
    json!({
        // Credentials have no id here, but ThingsBoard's clients require one.
        "id": { "id": device.id },
        "deviceId": entity("DEVICE", device.id),
        "credentialsType": ACCESS_TOKEN,
        "credentialsId": token,
        "credentialsValue": null,
    })
}

/// The only kind of credentials.
const ACCESS_TOKEN: &str = "ACCESS_TOKEN";

/// Credentials in a request.
#[derive(Debug, Deserialize)]
#[serde(rename_all = "camelCase")]
pub(crate) struct CredentialsJson {
    device_id: EntityJson,
    credentials_type: Option<String>,
    credentials_id: Option<String>,
}

/// `POST /api/device/credentials`: sets another access token for a device, a random one if the body names none.
pub(crate) async fn set_credentials(
    State(state): State<Arc<HttpState>>,
    session: Session,
    JsonBody(new): JsonBody<CredentialsJson>,
) -> Result<Response, ApiError> {
    session.check(Action::SeeCredentials)?;
    if let Some(other) = new.credentials_type.filter(|kind| kind != ACCESS_TOKEN) {
        let message = format!("credentialsType is {other:?}; only {ACCESS_TOKEN} is there");
        return Err(ApiError::argument(message));
    }
    let (hub, id) = (Arc::clone(&state.hub), new.device_id.id);
    let token = new.credentials_id.filter(|token| !token.is_empty());
    let set = move || hub.set_token(session.caller(), id, token.as_deref());
    let (device, token) = state.changes.run(set).await??;
    Ok(Json(credentials_json(&device, &token)).into_response())
}

/// `DELETE /api/device/{id}`. The values of the device stay in the store.
pub(crate) async fn delete(
    State(state): State<Arc<HttpState>>,
    session: Session,
    PathOf(id): PathOf<String>,
) -> Result<(), ApiError> {
    let (hub, id) = (Arc::clone(&state.hub), parse_id(&id)?);
    state.changes.run(move || hub.delete_device(session.caller(), id)).await??;
    Ok(())
}

/// A device in a request. Other members of ThingsBoard's Device are ignored.
#[derive(Debug, Deserialize)]
#[serde(rename_all = "camelCase")]
pub(crate) struct DeviceJson {
    id: Option<EntityJson>,
    name: String,
    #[serde(rename = "type")]
    profile: Option<String>,
    device_profile_id: Option<EntityJson>,
    additional_info: Option<AdditionalInfoJson>,
}

/// ThingsBoard's `additionalInfo`. Other members are ignored.
#[derive(Debug, Deserialize)]
struct AdditionalInfoJson {
    gateway: Option<bool>,
}

#[derive(Debug, Deserialize)]
struct EntityJson {
    id: Uuid,
}

impl DeviceJson {
    /// The name of the requested profile, if any.
    fn profile(&self, hub: &Hub, caller: &Caller) -> Result<Option<String>, ApiError> {
        match &self.device_profile_id {
            Some(EntityJson { id }) => profile_name(&hub.profiles(caller)?, *id).map(Some),
            None => Ok(self.profile.clone()),
        }
    }
}

/// `POST /api/device?accessToken=`: adds a device, or changes it if the body has an `id`. New values of a renamed device have
/// its new name; old values keep the old name. With `{"additionalInfo":{"gateway":true}}` the device is a gateway.
pub(crate) async fn save(
    State(state): State<Arc<HttpState>>,
    session: Session,
    params: Params,
    JsonBody(new): JsonBody<DeviceJson>,
) -> Result<Response, ApiError> {
    session.check(Action::ManageDevices)?;
    let hub = Arc::clone(&state.hub);
    let profile = new.profile(&hub, session.caller())?;
    let token = params.text("accessToken").map(str::to_owned);
    let gateway = new.additional_info.as_ref().and_then(|info| info.gateway);
    if let Some(EntityJson { id }) = new.id {
        let device = session.device(&hub, id)?;
        if token.is_some() {
            let message = "accessToken is for a new device; POST /api/device/credentials replaces a token";
            return Err(ApiError::argument(message));
        }
        if profile.is_some_and(|profile| profile != device.profile.name) {
            let message = "the profile of a device cannot be changed yet; leave `type` as it is";
            return Err(ApiError::bad_request(message));
        }
        let change =
            move || hub.change_device(session.caller(), id, DeviceChange { name: &new.name, gateway });
        let changed = state.changes.run(change).await??;
        return Ok(Json(device_json(&changed)).into_response());
    }
    let add = move || {
        let (profile, token) = (profile.as_deref(), token.as_deref());
        let gateway = gateway.unwrap_or(false);
        hub.add_device(session.caller(), NewDevice { name: &new.name, profile, token, gateway })
    };
    let added = state.changes.run(add).await??;
    Ok(Json(device_json(&added.device)).into_response())
}

fn profile_name(profiles: &[Arc<Profile>], id: Uuid) -> Result<String, ApiError> {
    let profile = profiles.iter().find(|profile| profile.id == id);
    let unknown = || ApiError::argument(format!("there is no device profile {id}; name its name in `type`"));
    Ok(profile.ok_or_else(unknown)?.name.clone())
}

/// Many devices: `<prefix><n>` with the tokens `<tokenPrefix><n>`.
#[derive(Debug, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub(crate) struct BulkJson {
    count: usize,
    #[serde(default)]
    start_index: u64,
    prefix: String,
    token_prefix: Option<String>,
    profile: Option<String>,
    #[serde(default)]
    existing_ok: bool,
    #[serde(default)]
    list: bool,
}

/// `POST /api/tacho/devices`: all or none, in one transaction.
pub(crate) async fn create_many(
    State(state): State<Arc<HttpState>>,
    session: Session,
    JsonBody(bulk): JsonBody<BulkJson>,
) -> Result<Response, ApiError> {
    session.check(Action::ManageDevices)?;
    let (hub, list) = (Arc::clone(&state.hub), bulk.list);
    let add = move || {
        let devices = BulkDevices {
            count: bulk.count,
            start_index: bulk.start_index,
            prefix: &bulk.prefix,
            token_prefix: bulk.token_prefix.as_deref(),
            profile: bulk.profile.as_deref(),
            existing_ok: bulk.existing_ok,
        };
        hub.add_devices(session.caller(), devices).map(|provisioned| bulk_answer(&provisioned, list))
    };
    Ok(state.changes.run(add).await??)
}

fn bulk_answer(provisioned: &[Provisioned], list: bool) -> Response {
    #[derive(Serialize)]
    struct Listed<'a> {
        name: &'a str,
        token: &'a str,
    }
    #[derive(Serialize)]
    struct Answer<T> {
        created: usize,
        existing: usize,
        #[serde(skip_serializing_if = "Option::is_none")]
        devices: Option<T>,
    }
    let created = provisioned.iter().filter(|new| new.created).count();
    let listed = || provisioned.iter().map(|new| Listed { name: &new.device.name, token: &new.token });
    let devices = list.then_some(Sequence(listed));
    Json(Answer { created, existing: provisioned.len() - created, devices }).into_response()
}

/// `GET /api/deviceProfileInfo/default`
pub(crate) async fn default_profile(
    State(state): State<Arc<HttpState>>,
    session: Session,
) -> Result<Response, ApiError> {
    let profile = state.hub.default_profile(session.caller())?;
    let body = json!({
        "id": entity("DEVICE_PROFILE", profile.id),
        "tenantId": entity("TENANT", profile.tenant),
        "name": profile.name,
        "type": "DEFAULT",
        "transportType": "DEFAULT",
        "image": null,
        "defaultDashboardId": null,
    });
    Ok(Json(body).into_response())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn listings_name_the_wrong_parameter() {
        for (query, part) in [
            ("", "pageSize"),
            ("pageSize=x", "pageSize is \"x\""),
            ("pageSize=10&page=-1", "page is \"-1\""),
            ("pageSize=10&sortProperty=label", "name or createdTime"),
            ("pageSize=10&sortOrder=down", "ASC or DESC"),
        ] {
            let error = Listing::parse(&Params::parse(query)).unwrap_err();
            assert_eq!(error.status.as_u16(), 400);
            assert!(error.message.contains(part), "{query}: {}", error.message);
        }
    }

    #[test]
    fn bulk_requests_refuse_members_they_do_not_know() {
        let error = serde_json::from_str::<BulkJson>(r#"{"count":1,"prefix":"d","tokens":"t"}"#).unwrap_err();
        assert!(error.to_string().contains("tokens"), "{error}");
    }
}
