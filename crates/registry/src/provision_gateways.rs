//! Whether devices that ask for credentials may become gateways.

use serde_json::Value as Json;

/// The member of `profileData` that lets devices of the profile become gateways when they ask for credentials with `"gateway": true`.
/// A gateway may report for all devices of its tenant and reads their attributes and calls, so the default is `false`.
pub const PROVISION_GATEWAYS_MEMBER: &str = "tachoProvisionGateways";

/// Reads the member of `profileData`, JSON text.
///
/// # Errors
/// The fault, for the operator.
pub fn provisions_gateways(profile_data: Option<&str>) -> Result<bool, String> {
    // Most profiles have no such member, and data may be long.
    let Some(text) = profile_data.filter(|text| text.contains(PROVISION_GATEWAYS_MEMBER)) else {
        return Ok(false);
    };
    let json: Json = serde_json::from_str(text).map_err(|error| format!("is not JSON: {error}"))?;
    match json.get(PROVISION_GATEWAYS_MEMBER) {
        None | Some(Json::Null) => Ok(false),
        Some(Json::Bool(allowed)) => Ok(*allowed),
        Some(_) => Err(format!("{PROVISION_GATEWAYS_MEMBER} must be true or false")),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn gateways_are_refused_unless_the_profile_says_otherwise() {
        for (data, allowed) in [
            (None, Ok(false)),
            (Some(r#"{"alarms":"tachoProvisionGateways"}"#), Ok(false)),
            (Some(r#"{"tachoProvisionGateways":null}"#), Ok(false)),
            (Some(r#"{"tachoProvisionGateways":false}"#), Ok(false)),
            (Some(r#"{"tachoProvisionGateways":true}"#), Ok(true)),
            (
                Some(r#"{"tachoProvisionGateways":"yes"}"#),
                Err("tachoProvisionGateways must be true or false".to_owned()),
            ),
        ] {
            assert_eq!(provisions_gateways(data), allowed, "{data:?}");
        }
    }
}
