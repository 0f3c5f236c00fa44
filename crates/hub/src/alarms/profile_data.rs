//! The alarm rules in the data of device profiles.

use sensors::alarm_rules::{AlarmRules, KeySource, RuleError};

use super::engine::{FIELDS, RuleBook};
use crate::registry::limits::PROFILE_DATA_BYTES_MAX;
use crate::registry::{Registry, RegistryError};

/// Reads the alarm rules of `profileData`, JSON text. A profile without rules has none.
///
/// # Errors
/// Names the place in the JSON and the fault.
pub fn check_profile_data(profile_data: &str) -> Result<AlarmRules, RuleError> {
    let bytes = profile_data.len();
    if bytes > PROFILE_DATA_BYTES_MAX {
        let limit = PROFILE_DATA_BYTES_MAX;
        let reason = format!("has {bytes} bytes, the limit is {limit} (PROFILE_DATA_BYTES_MAX)");
        return Err(RuleError { path: "alarms".into(), reason });
    }
    let wrong = |error| RuleError { path: "alarms".into(), reason: format!("is not JSON: {error}") };
    let json = serde_json::from_str(profile_data).map_err(wrong)?;
    let rules = AlarmRules::parse(&json)?;
    for key in rules.keys() {
        let name = &key.name;
        let reason = match key.source {
            KeySource::EntityField if !FIELDS.contains(&&**name) => {
                format!("the rules read the field {name:?}; a device has {}", FIELDS.join(", "))
            }
            _ => continue,
        };
        return Err(RuleError { path: "alarms".into(), reason });
    }
    Ok(rules)
}

/// The rules of a profile's data.
///
/// # Errors
/// Like [`check_profile_data`], as a refusal of the registry.
pub(crate) fn rules_of(profile_data: Option<&str>) -> Result<AlarmRules, RegistryError> {
    let rules = profile_data.map(check_profile_data).transpose();
    let refused = |error: RuleError| RegistryError::Invalid {
        what: "device profile",
        reason: format!("has wrong rules: {error}"),
    };
    Ok(rules.map_err(refused)?.unwrap_or_default())
}

/// The rules of all profiles of the registry. Rules that cannot be read are left out, so that the server starts.
pub(crate) fn all_rules(registry: &Registry) -> RuleBook {
    let book = RuleBook::default();
    for profile in registry.all_profiles() {
        match rules_of(profile.data.as_deref()) {
            Ok(rules) => drop(book.set(profile.tenant, profile.id, rules)),
            Err(error) => {
                tracing::warn!(profile = profile.name, %error, "a device profile is used without alarm rules");
            }
        }
    }
    book
}
