//! Device profiles in ThingsBoard's shapes. A profile has a table of its own, which is named after it.

use std::collections::BTreeMap;
use std::sync::Arc;

use axum::extract::State;
use axum::response::IntoResponse;
use hub::caller::{Action, Caller};
use hub::registry::{CertificateChain, Profile, ProfileFields, ProvisionStrategy, ProvisionTerms};
use hub::{EntityKind, Hub};
use serde::Deserialize;
use serde_json::value::RawValue;
use serde_json::{Value as JsonValue, json};

use super::kind::{self, Delete, Find, Shown};
use crate::error::ApiError;
use crate::http::shapes::entities::{IdJson, Listing, info_text, page_answer, stored_json};
use crate::http::shapes::packages::{package_change, package_id};
use crate::http::tools::error_response::Answer;
use crate::http::tools::json::{Json, entity};
use crate::http::tools::request::{JsonBody, Params, PathOf, path_id};
use crate::http::tools::route_list::Routes;
use crate::http::tools::session::Session;
use crate::http::tools::state::HttpState;

/// The routes of device profiles.
pub(crate) fn routes() -> Routes {
    Routes::default()
        .get("/api/deviceProfiles", list)
        .get("/api/deviceProfileInfos", list_infos)
        .get("/api/deviceProfile/names", names)
        .get("/api/deviceProfile/{id}", kind::show::<Profile>)
        .get("/api/deviceProfileInfo/default", default_info)
        .get("/api/deviceProfileInfo/{id}", info)
        .post("/api/deviceProfile", save)
        .post("/api/deviceProfile/{id}/default", set_default)
        .delete("/api/deviceProfile/{id}", kind::delete::<Profile>)
}

impl Shown for Profile {
    const FIND: Find<Self> = Hub::profile;
    /// A profile that devices have is refused. The table stays.
    const DELETE: Delete<Self> = Hub::delete_profile;

    fn json(&self, caller: &Caller) -> JsonValue {
        profile_json(self, caller)
    }
}

/// Key and secret of provisioning are for callers who may see credentials: with them one adds devices.
fn profile_json(profile: &Profile, caller: &Caller) -> JsonValue {
    let mut data = match &profile.data {
        Some(data) => stored_json(Some(data)),
        None => json!({
            "configuration": { "type": "DEFAULT" },
            "transportConfiguration": { "type": "DEFAULT" },
            "alarms": null,
        }),
    };
    let ProvisionTerms { strategy, key, secret, chain } = &profile.provision;
    let shown = |text: &Option<Box<str>>| text.clone().filter(|_| caller.may(Action::SeeCredentials));
    data["provisionConfiguration"] =
        json!({ "type": strategy.name(), "provisionDeviceSecret": shown(secret) });
    if let Some(chain) = chain {
        data["provisionConfiguration"]["certificateRegExPattern"] = chain.pattern().into();
        data["provisionConfiguration"]["allowCreateNewDevicesByX509Certificate"] = chain.allows_new().into();
    }
    json!({
        "id": entity("DEVICE_PROFILE", profile.id),
        "createdTime": profile.created_at.millis(),
        "tenantId": entity("TENANT", profile.tenant),
        "name": profile.name,
        "description": profile.description,
        "image": null,
        "type": "DEFAULT",
        "transportType": profile.payloads.transport_type(),
        "provisionType": strategy.name(),
        "defaultRuleChainId": null,
        "defaultDashboardId": null,
        "defaultQueueName": null,
        "provisionDeviceKey": shown(key),
        "firmwareId": package_id(profile.packages.firmware),
        "softwareId": package_id(profile.packages.software),
        "defaultEdgeRuleChainId": null,
        "default": profile.is_default,
        "profileData": data,
        "version": profile.version,
    })
}

/// ThingsBoard's `DeviceProfileInfo`.
fn info_json(profile: &Profile) -> JsonValue {
    json!({
        "id": entity("DEVICE_PROFILE", profile.id),
        "tenantId": entity("TENANT", profile.tenant),
        "name": profile.name,
        "type": "DEFAULT",
        "transportType": profile.payloads.transport_type(),
        "image": null,
        "defaultDashboardId": null,
    })
}

/// `GET /api/deviceProfiles`
async fn list(State(state): State<Arc<HttpState>>, session: Session, params: Params) -> Answer {
    let listing = Listing::parse(&params, EntityKind::DeviceProfile)?;
    let found = state.hub.page::<Profile>(session.caller(), listing.request(), |_| true)?;
    Ok(page_answer(&found, |profile| profile_json(profile, session.caller())))
}

/// `GET /api/deviceProfileInfos?transportType=`
async fn list_infos(State(state): State<Arc<HttpState>>, session: Session, params: Params) -> Answer {
    let transport = params.text("transportType");
    let listing = Listing::parse(&params, EntityKind::DeviceProfile)?;
    let wanted = |profile: &Profile| transport.is_none_or(|kind| kind == profile.payloads.transport_type());
    let found = state.hub.page(session.caller(), listing.request(), wanted)?;
    Ok(page_answer(&found, |profile| info_json(profile)))
}

/// `GET /api/deviceProfile/names?activeOnly=`: with `activeOnly` those that devices have.
async fn names(State(state): State<Arc<HttpState>>, session: Session, params: Params) -> Answer {
    let active_only = params.flag("activeOnly")?;
    let hub = Arc::clone(&state.hub);
    let read = move || {
        let mut profiles = hub.profiles(session.caller())?;
        if active_only {
            let used = hub.used_profiles(session.caller(), EntityKind::Device)?;
            profiles.retain(|profile| used.contains(&profile.id));
        }
        let one = |profile: &Arc<Profile>| json!({ "id": entity("DEVICE_PROFILE", profile.id), "name": profile.name });
        Ok(Json(profiles.iter().map(one).collect::<Vec<_>>()).into_response())
    };
    state.reads.run(read).await?
}

/// `GET /api/deviceProfileInfo/default`
async fn default_info(State(state): State<Arc<HttpState>>, session: Session) -> Answer {
    Ok(Json(info_json(&*state.hub.default_profile(session.caller())?)).into_response())
}

/// `GET /api/deviceProfileInfo/{id}`
async fn info(State(state): State<Arc<HttpState>>, session: Session, PathOf(id): PathOf<String>) -> Answer {
    let profile = state.hub.profile(session.caller(), path_id(&id)?)?;
    Ok(Json(info_json(&profile)).into_response())
}

/// A profile in a request. `default` changes with its own request, as in ThingsBoard.
#[derive(Debug, Deserialize)]
#[serde(rename_all = "camelCase")]
pub(crate) struct ProfileJson {
    id: Option<IdJson>,
    name: String,
    description: Option<String>,
    profile_data: Option<Box<RawValue>>,
    version: Option<i64>,
    transport_type: Option<String>,
    provision_type: Option<String>,
    provision_device_key: Option<String>,
    firmware_id: Option<IdJson>,
    software_id: Option<IdJson>,
}

impl ProfileJson {
    /// `profileData` without the terms of provisioning, and these terms if the body has some.
    fn data(&self) -> Result<(Option<String>, Option<ProvisionTerms>), ApiError> {
        let mut members: BTreeMap<String, Box<RawValue>> = match info_text(self.profile_data.as_deref()) {
            None | Some("null") => BTreeMap::new(),
            Some(text) => serde_json::from_str(text)
                .map_err(|_| ApiError::argument("profileData must be a JSON object or null"))?,
        };
        self.check_transport(members.get("transportConfiguration").map(|text| &**text))?;
        let configuration = members.remove("provisionConfiguration");
        let data = (!members.is_empty()).then(|| json_text(&members));
        let configuration = configuration.map(|text| serde_json::from_str(text.get())).transpose();
        let configuration: Option<Option<ProvisionConfigurationJson>> = configuration.map_err(|error| {
            ApiError::argument(format!(
                "profileData.provisionConfiguration is not the JSON wanted here: {error}"
            ))
        })?;
        Ok((data, self.provision_terms(configuration.flatten())?))
    }

    /// `transportType` must be the type of `profileData.transportConfiguration`, which the hub checks.
    fn check_transport(&self, configuration: Option<&RawValue>) -> Result<(), ApiError> {
        #[derive(Deserialize)]
        struct TypeJson {
            #[serde(rename = "type")]
            kind: Option<String>,
        }
        let named = configuration
            .and_then(|text| serde_json::from_str::<Option<TypeJson>>(text.get()).ok().flatten());
        let named = named.and_then(|named| named.kind).unwrap_or_else(|| "DEFAULT".to_owned());
        match self.transport_type.as_deref() {
            Some(kind) if kind != named => Err(ApiError::argument(format!(
                "transportType is {kind:?} and profileData.transportConfiguration.type is {named:?}; they must be the same"
            ))),
            _ => Ok(()),
        }
    }

    fn provision_terms(
        &self,
        configuration: Option<ProvisionConfigurationJson>,
    ) -> Result<Option<ProvisionTerms>, ApiError> {
        let configuration = configuration.unwrap_or_default();
        let (kind, secret) = (&configuration.kind, &configuration.provision_device_secret);
        let strategy = match (&self.provision_type, kind) {
            (Some(one), Some(other)) if one != other => {
                let message = format!(
                    "provisionType is {one:?} and profileData.provisionConfiguration.type is {other:?}; they must be the same"
                );
                return Err(ApiError::argument(message));
            }
            (Some(strategy), _) | (None, Some(strategy)) => strategy,
            (None, None) if self.provision_device_key.is_some() || secret.is_some() => {
                return Err(ApiError::argument(
                    "provisionType is missing; provisionDeviceKey and provisionDeviceSecret need it",
                ));
            }
            (None, None) => return Ok(None),
        };
        let wrong = |error| ApiError::argument(format!("provisionType is {error}"));
        let strategy: ProvisionStrategy = strategy.parse().map_err(wrong)?;
        let secret = secret.as_deref();
        if strategy == ProvisionStrategy::X509CertificateChain {
            let pattern = configuration.certificate_reg_ex_pattern.as_deref();
            let allow_new = configuration.allow_create_new_devices_by_x509_certificate.unwrap_or(false);
            let chain = CertificateChain::new(secret.unwrap_or_default(), pattern, allow_new)?;
            return Ok(Some(ProvisionTerms::of_chain(chain)));
        }
        Ok(Some(ProvisionTerms::new(strategy, self.provision_device_key.as_deref(), secret)?))
    }
}

/// ThingsBoard's `DeviceProfileProvisionConfiguration`.
#[derive(Debug, Default, Deserialize)]
#[serde(rename_all = "camelCase")]
struct ProvisionConfigurationJson {
    #[serde(rename = "type")]
    kind: Option<String>,
    provision_device_secret: Option<String>,
    certificate_reg_ex_pattern: Option<String>,
    allow_create_new_devices_by_x509_certificate: Option<bool>,
}

fn json_text(members: &BTreeMap<String, Box<RawValue>>) -> String {
    serde_json::to_string(members).expect("BUG: JSON that was read can be written")
}

/// `POST /api/deviceProfile`: adds a profile, or changes it if the body has an `id`. The table of a profile keeps its name.
async fn save(
    State(state): State<Arc<HttpState>>,
    session: Session,
    JsonBody(new): JsonBody<ProfileJson>,
) -> Answer {
    session.check(Action::ManageEntities)?;
    let hub = Arc::clone(&state.hub);
    let (data, provision) = new.data()?;
    let store = move || {
        let fields = ProfileFields {
            name: &new.name,
            description: new.description.as_deref(),
            data: data.as_deref(),
            provision: provision.as_ref(),
            packages: package_change(new.firmware_id, new.software_id),
        };
        let stored = match new.id {
            Some(IdJson { id }) => hub.change_profile(session.caller(), id, fields, new.version),
            None => hub.add_profile(session.caller(), fields),
        };
        stored.map(|profile| profile_json(&profile, session.caller()))
    };
    Ok(Json(state.changes.run(store).await??).into_response())
}

/// `POST /api/deviceProfile/{id}/default`: devices that are added without a profile get this one.
async fn set_default(
    State(state): State<Arc<HttpState>>,
    session: Session,
    PathOf(id): PathOf<String>,
) -> Answer {
    let (hub, id) = (Arc::clone(&state.hub), path_id(&id)?);
    let set = move || {
        let profile = hub.set_default_profile(session.caller(), id);
        profile.map(|profile| profile_json(&profile, session.caller()))
    };
    Ok(Json(state.changes.run(set).await??).into_response())
}
