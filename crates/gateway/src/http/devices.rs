//! Devices in ThingsBoard's shapes, and their bulk creation.

use std::collections::BTreeSet;
use std::sync::Arc;

use axum::extract::State;
use axum::response::{IntoResponse, Response};
use hub::attributes::Scope;
use hub::caller::{Action, Caller};
use hub::registry::{BulkDevices, Device, DeviceChange, NewDevice, Provisioned};
use hub::{EntityKind, Hub};
use model::Value;
use serde::{Deserialize, Serialize};
use serde_json::{Value as JsonValue, json};
use uuid::Uuid;

use super::entities::{
    IdJson, Listing, add_customer, customer_id, ids, no_public_customer, page_answer, present, refuse,
    types_answer,
};
use super::json::{Json, Sequence, entity};
use super::relations::DeviceQueryJson;
use super::request::{JsonBody, Params, PathOf, parse_id};
use super::route_list::Routes;
use super::session::Session;
use super::state::HttpState;
use crate::error::ApiError;

/// The routes of devices.
pub(super) fn routes() -> Routes {
    Routes::default()
        .get_compressed("/api/tenant/devices", list)
        .get_compressed("/api/tenant/deviceInfos", list_infos)
        .get_compressed("/api/customer/{id}/devices", list_of_customer)
        .get_compressed("/api/customer/{id}/deviceInfos", list_infos_of_customer)
        .get_compressed("/api/devices", list_of_ids)
        .post("/api/devices", find)
        .post("/api/device", save)
        .post("/api/device-with-credentials", save_with_credentials)
        .post("/api/device/credentials", set_credentials)
        .get("/api/device/types", types)
        .get("/api/device/info/{id}", info)
        .get("/api/device/{id}", show)
        .delete("/api/device/{id}", delete)
        .get("/api/device/{id}/credentials", credentials)
        .post("/api/customer/{customer}/device/{id}", assign)
        .post("/api/customer/public/device/{id}", no_public_customer)
        .delete("/api/customer/device/{id}", unassign)
        .post("/api/tacho/devices", create_many)
}

type Answer = Result<Response, ApiError>;

pub(crate) fn device_json(device: &Device) -> JsonValue {
    json!({
        "id": entity("DEVICE", device.id),
        "createdTime": device.created_at.millis(),
        "tenantId": entity("TENANT", device.tenant),
        "customerId": customer_id(device.customer),
        "deviceProfileId": entity("DEVICE_PROFILE", device.profile.id),
        "name": device.name,
        "type": device.profile.name,
        "label": device.label,
        "firmwareId": null,
        "softwareId": null,
        "deviceData": {
            "configuration": { "type": "DEFAULT" },
            "transportConfiguration": { "type": "DEFAULT" },
        },
        "additionalInfo": device.info(),
        "version": device.version,
    })
}

/// ThingsBoard's `DeviceInfo`.
fn info_json(hub: &Hub, caller: &Caller, device: &Device) -> JsonValue {
    let mut json = device_json(device);
    add_customer(&mut json, hub, caller, device.customer);
    json["deviceProfileName"] = device.profile.name.as_str().into();
    json["active"] = is_active(hub, caller, device).into();
    json
}

/// Whether the device counts as active: its server attribute `active`, as in ThingsBoard.
fn is_active(hub: &Hub, caller: &Caller, device: &Device) -> bool {
    let found = hub.attributes(caller, device, Scope::Server, Some(&["active".to_owned()]));
    found.is_ok_and(|found| found.first().is_some_and(|one| one.value == Value::Bool(true)))
}

/// Which devices a listing shows.
#[derive(Debug, Default)]
struct Filter {
    customer: Option<Uuid>,
    profile: Option<Uuid>,
    type_name: Option<String>,
    active: Option<bool>,
}

impl Filter {
    fn parse(params: &Params, customer: Option<Uuid>) -> Result<Self, ApiError> {
        let profile = params.text("deviceProfileId").map(parse_id).transpose()?;
        let type_name = params.text("type").map(str::to_owned);
        let active = params.text("active").map(|_| params.flag("active")).transpose()?;
        Ok(Self { customer, profile, type_name, active })
    }

    fn accepts(&self, device: &Device) -> bool {
        self.customer.is_none_or(|customer| device.customer == Some(customer))
            && self.profile.is_none_or(|profile| device.profile.id == profile)
            && self.type_name.as_deref().is_none_or(|name| device.profile.name == name)
    }
}

/// `GET /api/tenant/devices?deviceName=` for one, `?pageSize=&page=` for a page.
pub(crate) async fn list(State(state): State<Arc<HttpState>>, session: Session, params: Params) -> Answer {
    if let Some(name) = params.text("deviceName") {
        let device = state.hub.device_by_name(session.caller(), name)?;
        return Ok(Json(device_json(&device)).into_response());
    }
    page(&state, session, &params, None, false).await
}

/// `GET /api/tenant/deviceInfos`
async fn list_infos(State(state): State<Arc<HttpState>>, session: Session, params: Params) -> Answer {
    page(&state, session, &params, None, true).await
}

/// `GET /api/customer/{customerId}/devices`
async fn list_of_customer(
    State(state): State<Arc<HttpState>>,
    session: Session,
    PathOf(customer): PathOf<String>,
    params: Params,
) -> Answer {
    let customer = state.hub.customer(session.caller(), parse_id(&customer)?)?.id;
    page(&state, session, &params, Some(customer), false).await
}

/// `GET /api/customer/{customerId}/deviceInfos`
async fn list_infos_of_customer(
    State(state): State<Arc<HttpState>>,
    session: Session,
    PathOf(customer): PathOf<String>,
    params: Params,
) -> Answer {
    let customer = state.hub.customer(session.caller(), parse_id(&customer)?)?.id;
    page(&state, session, &params, Some(customer), true).await
}

async fn page(
    state: &HttpState,
    session: Session,
    params: &Params,
    customer: Option<Uuid>,
    with_infos: bool,
) -> Answer {
    let listing = Listing::parse(params, EntityKind::Device)?;
    let filter = Filter::parse(params, customer)?;
    if filter.active.is_some() && !with_infos {
        return Err(ApiError::argument("active applies to deviceInfos; leave it out"));
    }
    let hub = Arc::clone(&state.hub);
    // It visits every device, so it runs on a blocking thread.
    let read = move || {
        let caller = session.caller();
        let wanted = |device: &Device| {
            filter.accepts(device)
                && filter.active.is_none_or(|active| is_active(&hub, caller, device) == active)
        };
        let found = hub.devices_page_of(caller, listing.request(), wanted)?;
        Ok(page_answer(&found, |device| match with_infos {
            true => info_json(&hub, caller, device),
            false => device_json(device),
        }))
    };
    state.reads.run(read).await?
}

/// `GET /api/devices?deviceIds=`: those of the devices that the caller sees.
async fn list_of_ids(State(state): State<Arc<HttpState>>, session: Session, params: Params) -> Answer {
    session.check(Action::Read)?;
    let ids = ids(&params, "deviceIds")?;
    let found = ids.into_iter().filter_map(|id| state.hub.visible_device(session.caller(), id).ok());
    let found: Vec<_> = found.map(|device| device_json(&device)).collect();
    Ok(Json(found).into_response())
}

/// `POST /api/devices`: devices that relations lead to.
async fn find(
    State(state): State<Arc<HttpState>>,
    session: Session,
    JsonBody(query): JsonBody<DeviceQueryJson>,
) -> Answer {
    let (types, query) = query.parse()?;
    let hub = Arc::clone(&state.hub);
    let read = move || {
        let found = hub.related_entities(session.caller(), &query, EntityKind::Device)?;
        let wanted = found.iter().filter_map(|entity| match entity {
            hub::Entity::Device(device) if types.contains(&device.profile.name) => Some(device_json(device)),
            _ => None,
        });
        Ok(Json(wanted.collect::<Vec<_>>()).into_response())
    };
    state.reads.run(read).await?
}

/// `GET /api/device/types`: the names of the profiles that devices have.
async fn types(State(state): State<Arc<HttpState>>, session: Session) -> Answer {
    let hub = Arc::clone(&state.hub);
    let read = move || {
        let devices = hub.visible_entities(session.caller(), EntityKind::Device)?;
        let names: BTreeSet<String> =
            devices.iter().filter_map(|device| device.type_name().map(str::to_owned)).collect();
        Ok(types_answer(session.caller().tenant(), "DEVICE", names.into_iter()))
    };
    state.reads.run(read).await?
}

/// `GET /api/device/{id}`
pub(crate) async fn show(
    State(state): State<Arc<HttpState>>,
    session: Session,
    PathOf(id): PathOf<String>,
) -> Answer {
    Ok(Json(device_json(&*session.device(&state.hub, parse_id(&id)?)?)).into_response())
}

/// `GET /api/device/info/{id}`
async fn info(State(state): State<Arc<HttpState>>, session: Session, PathOf(id): PathOf<String>) -> Answer {
    let (hub, device) = (Arc::clone(&state.hub), session.device(&state.hub, parse_id(&id)?)?);
    Ok(state.reads.run(move || Json(info_json(&hub, session.caller(), &device)).into_response()).await?)
}

/// `GET /api/device/{id}/credentials`. It needs a permission of its own, because the token allows writing as the device.
pub(crate) async fn credentials(
    State(state): State<Arc<HttpState>>,
    session: Session,
    PathOf(id): PathOf<String>,
) -> Answer {
    let (hub, id) = (Arc::clone(&state.hub), parse_id(&id)?);
    // It waits for the row of the audit table.
    let (device, token) = state.changes.run(move || hub.credentials(session.caller(), id)).await??;
    Ok(Json(credentials_json(&device, &token)).into_response())
}

fn credentials_json(device: &Device, token: &str) -> JsonValue {
    json!({
        // Credentials have no id here, but ThingsBoard's clients require one.
        "id": { "id": device.id },
        "createdTime": device.created_at.millis(),
        "deviceId": entity("DEVICE", device.id),
        "credentialsType": ACCESS_TOKEN,
        "credentialsId": token,
        "credentialsValue": null,
        "version": device.version,
    })
}

/// The only kind of credentials.
const ACCESS_TOKEN: &str = "ACCESS_TOKEN";

/// Credentials in a request.
#[derive(Debug, Deserialize)]
#[serde(rename_all = "camelCase")]
pub(crate) struct CredentialsJson {
    device_id: Option<IdJson>,
    credentials_type: Option<String>,
    credentials_id: Option<String>,
}

impl CredentialsJson {
    /// The access token; `None` for a random one.
    fn token(&self) -> Result<Option<String>, ApiError> {
        if let Some(other) = self.credentials_type.as_deref().filter(|kind| *kind != ACCESS_TOKEN) {
            let message = format!("credentialsType is {other:?}; only {ACCESS_TOKEN} is there");
            return Err(ApiError::argument(message));
        }
        Ok(self.credentials_id.clone().filter(|token| !token.is_empty()))
    }
}

/// `POST /api/device/credentials`: sets another access token for a device, a random one if the body names none.
pub(crate) async fn set_credentials(
    State(state): State<Arc<HttpState>>,
    session: Session,
    JsonBody(new): JsonBody<CredentialsJson>,
) -> Answer {
    session.check(Action::SeeCredentials)?;
    let token = new.token()?;
    let device = new.device_id.ok_or_else(|| ApiError::argument("deviceId is missing; name the device"))?;
    let hub = Arc::clone(&state.hub);
    let set = move || hub.set_token(session.caller(), device.id, token.as_deref());
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

/// `POST /api/customer/{customerId}/device/{deviceId}`: assigns a device to a customer.
async fn assign(
    State(state): State<Arc<HttpState>>,
    session: Session,
    PathOf((customer, id)): PathOf<(String, String)>,
) -> Answer {
    let (hub, customer, id) = (Arc::clone(&state.hub), parse_id(&customer)?, parse_id(&id)?);
    let assign = move || hub.assign_device(session.caller(), id, Some(customer));
    Ok(Json(device_json(&*state.changes.run(assign).await??)).into_response())
}

/// `DELETE /api/customer/device/{deviceId}`: ends the assignment of a device.
async fn unassign(
    State(state): State<Arc<HttpState>>,
    session: Session,
    PathOf(id): PathOf<String>,
) -> Answer {
    let (hub, id) = (Arc::clone(&state.hub), parse_id(&id)?);
    let unassign = move || {
        if hub.visible_device(session.caller(), id)?.customer.is_none() {
            return Err(ApiError::argument("the device is assigned to no customer"));
        }
        Ok(hub.assign_device(session.caller(), id, None)?)
    };
    Ok(Json(device_json(&*state.changes.run(unassign).await??)).into_response())
}

/// A device in a request. Members that are absent leave a device as it is, and those of ThingsBoard that are not named here have
/// no effect.
#[derive(Debug, Deserialize)]
#[serde(rename_all = "camelCase")]
pub(crate) struct DeviceJson {
    id: Option<IdJson>,
    name: String,
    #[serde(rename = "type")]
    type_name: Option<String>,
    device_profile_id: Option<IdJson>,
    customer_id: Option<IdJson>,
    #[serde(default, deserialize_with = "present")]
    label: Option<Option<String>>,
    #[serde(default, deserialize_with = "present")]
    additional_info: Option<Option<serde_json::Map<String, JsonValue>>>,
    version: Option<i64>,
    firmware_id: Option<JsonValue>,
    software_id: Option<JsonValue>,
    device_data: Option<DeviceDataJson>,
}

/// ThingsBoard's `DeviceData`.
#[derive(Debug, Deserialize)]
#[serde(rename_all = "camelCase")]
struct DeviceDataJson {
    configuration: Option<TypeJson>,
    transport_configuration: Option<TypeJson>,
}

#[derive(Debug, Deserialize)]
struct TypeJson {
    #[serde(rename = "type")]
    name: JsonValue,
}

impl DeviceJson {
    fn check(&self) -> Result<(), ApiError> {
        refuse("firmwareId", self.firmware_id.as_ref(), &[])?;
        refuse("softwareId", self.software_id.as_ref(), &[])?;
        let Some(data) = &self.device_data else { return Ok(()) };
        for (member, of) in [
            ("deviceData.configuration.type", &data.configuration),
            ("deviceData.transportConfiguration.type", &data.transport_configuration),
        ] {
            refuse(member, of.as_ref().map(|of| &of.name), &[json!("DEFAULT")])?;
        }
        Ok(())
    }

    /// The profile that the body names, by its id or as its type. A type without a profile gets one, as in ThingsBoard.
    fn profile(&self, hub: &Hub, caller: &Caller) -> Result<Option<Arc<hub::registry::Profile>>, ApiError> {
        let named = self.type_name.as_deref().filter(|name| !name.is_empty());
        match (self.device_profile_id, named) {
            (Some(IdJson { id }), _) => Ok(Some(hub.profile(caller, id)?)),
            (None, Some(name)) => Ok(Some(hub.profile_named(caller, name)?)),
            (None, None) => Ok(None),
        }
    }

    /// Whether the device is a gateway, and the rest of `additionalInfo` as JSON text.
    fn info(&self) -> (Option<bool>, Option<Option<String>>) {
        match &self.additional_info {
            None => (None, None),
            Some(None) => (Some(false), Some(None)),
            Some(Some(info)) => {
                let mut rest = info.clone();
                let gateway = rest.remove("gateway").and_then(|gateway| gateway.as_bool()).unwrap_or(false);
                rest.remove("lastConnectedGateway");
                let text = (!rest.is_empty()).then(|| JsonValue::Object(rest).to_string());
                (Some(gateway), Some(text))
            }
        }
    }

    /// Adds the device, or changes the one with its id. It waits for the disk.
    fn store(&self, hub: &Hub, caller: &Caller, token: Option<&str>) -> Result<Arc<Device>, ApiError> {
        self.check()?;
        let profile = self.profile(hub, caller)?;
        let (gateway, info) = self.info();
        let customer = self.customer_id.map(IdJson::customer);
        let Some(IdJson { id }) = self.id else {
            let new = NewDevice {
                name: &self.name,
                profile: profile.as_ref().map(|profile| profile.name.as_str()),
                token,
                gateway: gateway.unwrap_or(false),
                label: self.label.as_ref().and_then(|label| label.as_deref()),
                additional_info: info.as_ref().and_then(|info| info.as_deref()),
                customer: customer.flatten(),
            };
            return Ok(hub.add_device(caller, new)?.device);
        };
        let change = DeviceChange {
            name: &self.name,
            gateway,
            profile: profile.map(|profile| profile.id),
            label: self.label.as_ref().map(|label| label.as_deref()),
            additional_info: info.as_ref().map(|info| info.as_deref()),
            customer,
            version: self.version,
        };
        let changed = hub.change_device(caller, id, change)?;
        if token.is_some() {
            hub.set_token(caller, id, token)?;
        }
        Ok(changed)
    }
}

/// `POST /api/device?accessToken=`: adds a device, or changes it if the body has an `id`. New values of a renamed device have
/// its new name, and those of a device with another profile go to the table of that profile; old values stay where they are. With
/// `{"additionalInfo":{"gateway":true}}` the device is a gateway.
pub(crate) async fn save(
    State(state): State<Arc<HttpState>>,
    session: Session,
    params: Params,
    JsonBody(new): JsonBody<DeviceJson>,
) -> Answer {
    session.check(Action::ManageDevices)?;
    let (hub, token) = (Arc::clone(&state.hub), params.text("accessToken").map(str::to_owned));
    if new.id.is_some() && token.is_some() {
        let message = "accessToken is for a new device; POST /api/device/credentials replaces a token";
        return Err(ApiError::argument(message));
    }
    let store = move || new.store(&hub, session.caller(), token.as_deref());
    Ok(Json(device_json(&*state.changes.run(store).await??)).into_response())
}

/// A device with its credentials in a request.
#[derive(Debug, Deserialize)]
pub(crate) struct DeviceWithCredentialsJson {
    device: DeviceJson,
    credentials: CredentialsJson,
}

/// `POST /api/device-with-credentials`: like `POST /api/device`, with the access token of the body.
async fn save_with_credentials(
    State(state): State<Arc<HttpState>>,
    session: Session,
    JsonBody(new): JsonBody<DeviceWithCredentialsJson>,
) -> Answer {
    session.check(Action::ManageDevices)?;
    session.check(Action::SeeCredentials)?;
    let (hub, token) = (Arc::clone(&state.hub), new.credentials.token()?);
    let store = move || new.device.store(&hub, session.caller(), token.as_deref());
    Ok(Json(device_json(&*state.changes.run(store).await??)).into_response())
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn bulk_requests_refuse_members_they_do_not_know() {
        let error = serde_json::from_str::<BulkJson>(r#"{"count":1,"prefix":"d","tokens":"t"}"#).unwrap_err();
        assert!(error.to_string().contains("tokens"), "{error}");
    }
}
