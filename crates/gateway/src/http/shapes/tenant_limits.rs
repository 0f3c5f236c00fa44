//! The limits of tenants in requests and answers.

use std::collections::BTreeMap;
use std::num::NonZeroU32;

use hub::registry::{TenantLimit, TenantLimits};
use serde::de::Error;
use serde::{Deserialize, Deserializer, Serialize, Serializer};

/// The limits of a tenant by name; `null` and an absent member are not a limit.
#[derive(Debug, Clone, Copy, Default)]
pub(crate) struct LimitsJson(TenantLimits);

impl From<TenantLimits> for LimitsJson {
    fn from(limits: TenantLimits) -> Self {
        Self(limits)
    }
}

impl From<LimitsJson> for TenantLimits {
    fn from(limits: LimitsJson) -> Self {
        limits.0
    }
}

impl Serialize for LimitsJson {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_map(TenantLimit::ALL.map(|limit| (limit.name(), self.0.value(limit))))
    }
}

impl<'de> Deserialize<'de> for LimitsJson {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let values = BTreeMap::<String, Option<NonZeroU32>>::deserialize(deserializer)?;
        let limits = values.into_iter().try_fold(TenantLimits::default(), |limits, (name, value)| {
            let limit = TenantLimit::named(&name).ok_or_else(|| {
                let names = TenantLimit::ALL.map(TenantLimit::name).join(", ");
                D::Error::custom(format!("{name} is not a limit of a tenant; the limits are {names}"))
            })?;
            Ok(limits.with(limit, value))
        });
        limits.map(Self)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn limits_come_back_and_unknown_ones_are_refused() {
        let limits: LimitsJson = serde_json::from_str(r#"{"tablesMax":5,"seriesMax":null}"#).unwrap();
        let written = serde_json::to_value(limits).unwrap();
        assert_eq!((&written["tablesMax"], &written["seriesMax"]), (&5.into(), &serde_json::Value::Null));
        for wrong in [r#"{"tables":5}"#, r#"{"tablesMax":0}"#, r#"{"tablesMax":-1}"#] {
            assert!(serde_json::from_str::<LimitsJson>(wrong).is_err(), "{wrong}");
        }
    }
}
