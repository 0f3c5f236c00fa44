//! Packages of firmware and software in ThingsBoard's shape, and the members of devices and profiles about them.

use hub::ota::Package;
use hub::registry::PackageChange;
use serde_json::{Value as JsonValue, json};
use uuid::Uuid;

use super::entities::{IdJson, stored_json};
use crate::http::tools::json::entity;

/// ThingsBoard's `OtaPackageInfo`.
pub(crate) fn package_json(package: &Package) -> JsonValue {
    let file = package.file.as_ref();
    json!({
        "id": entity("OTA_PACKAGE", package.id),
        "createdTime": package.created_at.millis(),
        "tenantId": entity("TENANT", package.tenant),
        "deviceProfileId": package.profile.map(|id| entity("DEVICE_PROFILE", id)),
        "type": package.kind.name(),
        "title": package.title,
        "name": package.title,
        "version": package.version,
        "tag": package.tag,
        "url": package.url,
        "hasData": file.is_some() || package.url.is_some(),
        "fileName": file.map(|file| file.name.as_str()),
        "contentType": file.map(|file| file.content_type.as_str()),
        "checksumAlgorithm": file.map(|file| file.algorithm.name()),
        "checksum": file.map(|file| file.checksum.as_str()),
        "dataSize": file.map(|file| file.bytes),
        "additionalInfo": stored_json(package.additional_info.as_deref()),
    })
}

/// The id of a package of a device or a profile in ThingsBoard's form.
pub(crate) fn package_id(id: Option<Uuid>) -> JsonValue {
    id.map(|id| entity("OTA_PACKAGE", id)).into()
}

/// The packages that a device or a profile in a request is to have. As in ThingsBoard, an absent member takes the package
/// away: its clients leave out what is `null`.
pub(crate) fn package_change(firmware: Option<IdJson>, software: Option<IdJson>) -> PackageChange {
    let id = |named: Option<IdJson>| Some(named.map(|named| named.id));
    PackageChange { firmware: id(firmware), software: id(software) }
}
