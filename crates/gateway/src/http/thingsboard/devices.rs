//! Devices in ThingsBoard's shapes.

use std::sync::Arc;

use axum::extract::State;
use axum::response::IntoResponse;
use hub::Hub;
use hub::attributes::Scope;
use hub::caller::{Action, Caller};
use hub::registry::{Credentials, Device, DeviceChange, NewDevice, PackageIds};
use model::Value;
use serde::Deserialize;
use serde_json::Value as JsonValue;

use super::assigned::{self, Assign, Assigned, Wanted};
use super::credentials::CredentialsJson;
use super::kind::{self, Delete, Find, Shown};
use crate::error::ApiError;
use crate::http::shapes::devices::device_json;
use crate::http::shapes::entities::{IdJson, add_customer, no_public_customer, present};
use crate::http::shapes::packages::package_change;
use crate::http::tools::error_response::Answer;
use crate::http::tools::json::Json;
use crate::http::tools::request::{JsonBody, Params, parse_id};
use crate::http::tools::route_list::Routes;
use crate::http::tools::session::Session;
use crate::http::tools::state::HttpState;

/// The routes of devices.
pub(crate) fn routes() -> Routes {
    Routes::default()
        .get_compressed("/api/tenant/devices", assigned::list::<Device>)
        .get_compressed("/api/tenant/deviceInfos", assigned::list_infos::<Device>)
        .get_compressed("/api/customer/{id}/devices", assigned::list_of_customer::<Device>)
        .get_compressed("/api/customer/{id}/deviceInfos", assigned::list_infos_of_customer::<Device>)
        .get_compressed("/api/devices", assigned::list_of_ids::<Device>)
        .post("/api/devices", assigned::find::<Device>)
        .post("/api/device", save)
        .post("/api/device-with-credentials", save_with_credentials)
        .get("/api/device/types", assigned::types::<Device>)
        .get("/api/device/info/{id}", assigned::info::<Device>)
        .get("/api/device/{id}", assigned::show::<Device>)
        .delete("/api/device/{id}", kind::delete::<Device>)
        .post("/api/customer/{customer}/device/{id}", assigned::assign::<Device>)
        .post("/api/customer/public/device/{id}", no_public_customer)
        .delete("/api/customer/device/{id}", assigned::unassign::<Device>)
}

/// Whether the device counts as active: its server attribute `active`, as in ThingsBoard.
fn is_active(hub: &Hub, caller: &Caller, device: &Device) -> bool {
    let found = hub.attributes(caller, device, Scope::Server, Some(&["active".to_owned()]));
    found.is_ok_and(|found| found.first().is_some_and(|one| one.value == Value::Bool(true)))
}

impl Shown for Device {
    const FIND: Find<Self> = Hub::device;
    const DELETE: Delete<Self> = Hub::delete_device;

    fn json(&self, _caller: &Caller) -> JsonValue {
        device_json(self)
    }
}

impl Assigned for Device {
    const LIST: &'static str = "/api/tenant/devices";
    const NAME: &'static str = "deviceName";
    const ASSIGN: Assign<Self> = Hub::assign_device;

    fn info(&self, hub: &Hub, caller: &Caller) -> JsonValue {
        let mut json = device_json(self);
        add_customer(&mut json, hub, caller, self.customer);
        json["deviceProfileName"] = self.profile.name.as_str().into();
        json["active"] = is_active(hub, caller, self).into();
        json
    }

    fn wanted(params: &Params, with_infos: bool) -> Result<Wanted<Self>, ApiError> {
        let profile = params.text("deviceProfileId").map(parse_id).transpose()?;
        let type_name = params.text("type").map(str::to_owned);
        let active = params.text("active").map(|_| params.flag("active")).transpose()?;
        if active.is_some() && !with_infos {
            return Err(ApiError::argument("active applies to deviceInfos; leave it out"));
        }
        Ok(Box::new(move |hub, caller, device| {
            profile.is_none_or(|profile| device.profile.id == profile)
                && type_name.as_deref().is_none_or(|name| device.profile.name == name)
                && active.is_none_or(|active| is_active(hub, caller, device) == active)
        }))
    }
}

/// A device in a request. Members that are absent leave a device as it is.
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
    firmware_id: Option<IdJson>,
    software_id: Option<IdJson>,
}

impl DeviceJson {
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
    fn store(
        &self,
        hub: &Hub,
        caller: &Caller,
        credentials: Option<Credentials>,
    ) -> Result<Arc<Device>, ApiError> {
        let profile = self.profile(hub, caller)?;
        let (gateway, info) = self.info();
        let customer = self.customer_id.map(IdJson::customer);
        let packages = package_change(self.firmware_id, self.software_id);
        let Some(IdJson { id }) = self.id else {
            let new = NewDevice {
                name: &self.name,
                profile: profile.as_ref().map(|profile| profile.name.as_str()),
                token: None,
                credentials: credentials.as_ref(),
                gateway: gateway.unwrap_or(false),
                label: self.label.as_ref().and_then(|label| label.as_deref()),
                additional_info: info.as_ref().and_then(|info| info.as_deref()),
                customer: customer.flatten(),
                packages: packages.on(PackageIds::default()),
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
            packages,
            version: self.version,
        };
        let changed = hub.change_device(caller, id, change)?;
        if let Some(credentials) = credentials {
            hub.set_credentials(caller, id, credentials)?;
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
    let token = params.text("accessToken").map(Credentials::access_token).transpose()?;
    let hub = Arc::clone(&state.hub);
    if new.id.is_some() && token.is_some() {
        let message = "accessToken is for a new device; POST /api/device/credentials replaces a token";
        return Err(ApiError::argument(message));
    }
    let pool = if new.id.is_none() { &state.creations } else { &state.changes };
    let store = move || new.store(&hub, session.caller(), token);
    Ok(Json(device_json(&*pool.run(store).await??)).into_response())
}

/// A device with its credentials in a request.
#[derive(Debug, Deserialize)]
pub(crate) struct DeviceWithCredentialsJson {
    device: DeviceJson,
    credentials: CredentialsJson,
}

/// `POST /api/device-with-credentials`: like `POST /api/device`, with the credentials of the body.
async fn save_with_credentials(
    State(state): State<Arc<HttpState>>,
    session: Session,
    JsonBody(new): JsonBody<DeviceWithCredentialsJson>,
) -> Answer {
    session.check(Action::ManageDevices)?;
    session.check(Action::SeeCredentials)?;
    let (hub, credentials) = (Arc::clone(&state.hub), new.credentials.read()?);
    let pool = if new.device.id.is_none() { &state.creations } else { &state.changes };
    let store = move || new.device.store(&hub, session.caller(), Some(credentials));
    Ok(Json(device_json(&*pool.run(store).await??)).into_response())
}
