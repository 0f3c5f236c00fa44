//! A device in ThingsBoard's shape.

use hub::registry::Device;
use serde_json::{Value as JsonValue, json};

use super::entities::customer_id;
use super::packages::package_id;
use crate::http::tools::json::entity;

/// ThingsBoard's `Device`.
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
        "firmwareId": package_id(device.own_packages.firmware),
        "softwareId": package_id(device.own_packages.software),
        "deviceData": {
            "configuration": { "type": "DEFAULT" },
            "transportConfiguration": { "type": device.profile.payloads.transport_type() },
        },
        "additionalInfo": device.info(),
        "version": device.version,
    })
}
