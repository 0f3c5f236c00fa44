//! Packages of firmware and software in ThingsBoard's shapes (`OtaPackageInfo`).

use std::sync::Arc;

use axum::extract::State;
use axum::response::IntoResponse;
use hub::ota::{Package, PackageFields};
use hub::registry::{PackageKind, PageRequest, SortProperty};
use serde::Deserialize;
use serde_json::value::RawValue;
use serde_json::{Value as JsonValue, json};

use super::package_upload;
use crate::error::ApiError;
use crate::http::shapes::entities::{IdJson, Listing, info_text, page_answer, refuse};
use crate::http::shapes::packages::package_json;
use crate::http::tools::error_response::Answer;
use crate::http::tools::json::Json;
use crate::http::tools::package_file::file_answer;
use crate::http::tools::request::{JsonBody, Params, PathOf, path_id};
use crate::http::tools::route_list::Routes;
use crate::http::tools::session::Session;
use crate::http::tools::state::HttpState;

/// The routes of packages.
pub(crate) fn routes() -> Routes {
    Routes::default()
        .post("/api/otaPackage", save)
        .get("/api/otaPackage/{id}", show)
        .get("/api/otaPackage/info/{id}", show)
        .post("/api/otaPackage/{id}", package_upload::upload)
        .delete("/api/otaPackage/{id}", delete)
        .get("/api/otaPackage/{id}/download", download)
        .get("/api/otaPackages", list)
        .get("/api/otaPackages/{profile}/{type}", list_of_profile)
        .get("/api/devices/count/{type}/{profile}", count_devices)
}

/// A package in a request (`SaveOtaPackageInfoRequest`).
#[derive(Debug, Deserialize)]
#[serde(rename_all = "camelCase")]
struct PackageJson {
    id: Option<IdJson>,
    device_profile_id: Option<IdJson>,
    #[serde(rename = "type")]
    kind: String,
    title: String,
    version: String,
    tag: Option<String>,
    url: Option<String>,
    uses_url: Option<bool>,
    additional_info: Option<Box<RawValue>>,
    checksum: Option<JsonValue>,
    checksum_algorithm: Option<JsonValue>,
    data_size: Option<JsonValue>,
}

impl PackageJson {
    fn url(&self) -> Result<Option<&str>, ApiError> {
        let url = self.url.as_deref().filter(|url| !url.trim().is_empty());
        match (self.uses_url, url) {
            (Some(true), None) => {
                Err(ApiError::argument("Ota package URL should be specified! url is missing"))
            }
            (Some(false) | None, Some(_)) if self.id.is_none() => {
                Err(ApiError::argument("url has a value, and usesUrl is not true; set it, or leave url out"))
            }
            (_, url) => Ok(url),
        }
    }

    fn fields(&self) -> Result<PackageFields<'_>, ApiError> {
        let kind = self
            .kind
            .parse::<PackageKind>()
            .map_err(|reason| ApiError::argument(format!("type is {reason}")))?;
        if self.id.is_none() {
            // The server computes them from the upload.
            refuse("checksum", self.checksum.as_ref(), &[json!("")])?;
            refuse("checksumAlgorithm", self.checksum_algorithm.as_ref(), &[])?;
            refuse("dataSize", self.data_size.as_ref(), &[])?;
        }
        Ok(PackageFields {
            profile: self.device_profile_id.map(|profile| profile.id),
            kind,
            title: &self.title,
            version: &self.version,
            tag: self.tag.as_deref(),
            url: self.url()?,
            additional_info: info_text(self.additional_info.as_deref()).filter(|text| *text != "null"),
        })
    }
}

/// `POST /api/otaPackage`: adds a package without bytes, or changes `additionalInfo` of the one with the id of the body.
async fn save(
    State(state): State<Arc<HttpState>>,
    session: Session,
    JsonBody(new): JsonBody<PackageJson>,
) -> Answer {
    let hub = Arc::clone(&state.hub);
    let store = move || {
        let fields = new.fields()?;
        let package = match new.id {
            Some(IdJson { id }) => hub.change_package(session.caller(), id, &fields)?,
            None => hub.add_package(session.caller(), &fields)?,
        };
        Ok(Json(package_json(&package)).into_response())
    };
    state.changes.run(store).await?
}

/// `GET /api/otaPackage/{id}` and `GET /api/otaPackage/info/{id}`. The bytes have a path of their own.
async fn show(State(state): State<Arc<HttpState>>, session: Session, PathOf(id): PathOf<String>) -> Answer {
    let package = state.hub.package(session.caller(), path_id(&id)?)?;
    Ok(Json(package_json(&package)).into_response())
}

/// `DELETE /api/otaPackage/{id}`. A package that devices or profiles have is refused.
async fn delete(
    State(state): State<Arc<HttpState>>,
    session: Session,
    PathOf(id): PathOf<String>,
) -> Result<(), ApiError> {
    let (hub, id) = (Arc::clone(&state.hub), path_id(&id)?);
    Ok(state.changes.run(move || hub.delete_package(session.caller(), id)).await??)
}

/// `GET /api/otaPackages`
async fn list(State(state): State<Arc<HttpState>>, session: Session, params: Params) -> Answer {
    page(&state, &session, &params, |_| true)
}

/// `GET /api/otaPackages/{deviceProfileId}/{type}`: those that devices of the profile may have.
async fn list_of_profile(
    State(state): State<Arc<HttpState>>,
    session: Session,
    PathOf((profile, kind)): PathOf<(String, String)>,
    params: Params,
) -> Answer {
    let (profile, kind) = (path_id(&profile)?, parse_kind(&kind)?);
    page(&state, &session, &params, |package| {
        package.kind == kind
            && package.profile.is_none_or(|own| own == profile)
            && (package.file.is_some() || package.url.is_some())
    })
}

fn page(state: &HttpState, session: &Session, params: &Params, wanted: impl Fn(&Package) -> bool) -> Answer {
    let listing = Listing::parse_sorted(params, |name| match name {
        "createdTime" => Ok(SortProperty::CreatedTime),
        "title" | "name" => Ok(SortProperty::Name),
        "version" => Ok(SortProperty::Label),
        other => Err(format!(
            "the sortProperty is {other:?}; packages are sorted by one of createdTime, title, version"
        )),
    })?;
    let found = state.hub.packages_page(session.caller(), listing.request(), wanted)?;
    Ok(page_answer(&found, |package| package_json(package)))
}

/// `GET /api/devices/count/{otaPackageType}/{deviceProfileId}`: the devices of a profile without a package of their own.
async fn count_devices(
    State(state): State<Arc<HttpState>>,
    session: Session,
    PathOf((kind, profile)): PathOf<(String, String)>,
) -> Answer {
    let (kind, profile) = (parse_kind(&kind)?, path_id(&profile)?);
    let hub = Arc::clone(&state.hub);
    let read = move || {
        hub.profile(session.caller(), profile)?;
        let request = PageRequest { page_size: 1, ..PageRequest::default() };
        let wanted = |device: &hub::registry::Device| {
            device.profile.id == profile && device.own_packages.of(kind).is_none()
        };
        let found = hub.page(session.caller(), request, wanted)?;
        Ok(Json(found.total_elements).into_response())
    };
    state.reads.run(read).await?
}

/// `GET /api/otaPackage/{id}/download`
async fn download(
    State(state): State<Arc<HttpState>>,
    session: Session,
    PathOf(id): PathOf<String>,
) -> Answer {
    let package = state.hub.package(session.caller(), path_id(&id)?)?;
    // The permission to read the bytes is another one than that to read about them.
    state.hub.package_bytes(session.caller(), package.id, 0, 0)?;
    let hub = Arc::clone(&state.hub);
    let id = package.id;
    file_answer(&package, move |begin, bytes| hub.package_bytes(session.caller(), id, begin, bytes))
}

fn parse_kind(text: &str) -> Result<PackageKind, ApiError> {
    text.parse::<PackageKind>().map_err(|reason| ApiError::argument(format!("the type is {reason}")))
}
