//! The stored state of a device: server attributes, and a record for each active device.
//!
//! The record finds the active devices after a restart. Its key is the tenant's id and the device's id; it has no value.

use kv::{KeyValueStore, Space};
use model::{Value, ValueRef};
use uuid::Uuid;

use super::keys::{
    ACTIVE, INACTIVITY_ALARM_TIME, INACTIVITY_TIMEOUT, LAST_ACTIVITY_TIME, LAST_CONNECT_TIME,
    LAST_DISCONNECT_TIME,
};
use super::limits::INACTIVITY_TIMEOUT_MAX_MS;
use crate::attributes::{AttributeError, AttributeScope, Owner, Scope, read};

/// The space of the active devices.
pub(crate) const ACTIVE_DEVICES: Space = Space::new("active_devices");

/// The state of a device. Times are milliseconds since 1970; 0 means never.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct DeviceState {
    /// Whether the device is active.
    pub active: bool,
    /// The last packet or request.
    pub last_activity_ms: i64,
    pub last_connect_ms: i64,
    pub last_disconnect_ms: i64,
    /// When the device became inactive.
    pub inactivity_alarm_ms: i64,
    /// The device's own inactivity timeout in milliseconds; `None` for the default one.
    pub timeout_ms: Option<i64>,
}

/// The key of the record of an active device.
pub(crate) fn active_key(tenant: Uuid, device: Uuid) -> Vec<u8> {
    [tenant.into_bytes(), device.into_bytes()].concat()
}

/// The tenant and the device of such a key.
pub(super) fn device_in(key: &[u8]) -> Option<(Uuid, Uuid)> {
    let (tenant, device) = key.split_at_checked(16)?;
    Some((Uuid::from_slice(tenant).ok()?, Uuid::from_slice(device).ok()?))
}

impl DeviceState {
    /// Reads the stored state. A value of a wrong type counts as absent.
    pub(crate) fn read(kv: &dyn KeyValueStore, owner: Owner<'_>) -> Result<Self, AttributeError> {
        let keys = [
            ACTIVE,
            LAST_ACTIVITY_TIME,
            LAST_CONNECT_TIME,
            LAST_DISCONNECT_TIME,
            INACTIVITY_ALARM_TIME,
            INACTIVITY_TIMEOUT,
        ];
        let place = AttributeScope { owner, scope: Scope::Server };
        let mut state = Self::default();
        for attribute in read(kv, place, Some(&keys.map(str::to_owned)))? {
            let value = attribute.value.as_ref();
            match &*attribute.key {
                ACTIVE => state.active = attribute.value == Value::Bool(true),
                LAST_ACTIVITY_TIME => state.last_activity_ms = time(value),
                LAST_CONNECT_TIME => state.last_connect_ms = time(value),
                LAST_DISCONNECT_TIME => state.last_disconnect_ms = time(value),
                INACTIVITY_ALARM_TIME => state.inactivity_alarm_ms = time(value),
                _ => state.timeout_ms = timeout(value),
            }
        }
        Ok(state)
    }
}

fn time(value: ValueRef<'_>) -> i64 {
    if let ValueRef::I64(millis) = value { millis.max(0) } else { 0 }
}

/// A timeout in milliseconds: a positive number, or text with one.
fn timeout(value: ValueRef<'_>) -> Option<i64> {
    let millis = match value {
        ValueRef::I64(millis) => millis,
        ValueRef::F64(millis) => millis as i64,
        ValueRef::String(text) => text.trim().parse().ok()?,
        ValueRef::Bool(_) | ValueRef::Json(_) => return None,
    };
    (millis > 0).then_some(millis.min(INACTIVITY_TIMEOUT_MAX_MS))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_timeout_is_a_positive_number() {
        for (value, expected) in [
            (ValueRef::I64(5), Some(5)),
            (ValueRef::F64(5.9), Some(5)),
            (ValueRef::String(" 7 "), Some(7)),
            (ValueRef::F64(f64::INFINITY), Some(INACTIVITY_TIMEOUT_MAX_MS)),
            (ValueRef::I64(0), None),
            (ValueRef::I64(-5), None),
            (ValueRef::F64(f64::NAN), None),
            (ValueRef::Bool(true), None),
            (ValueRef::String("soon"), None),
        ] {
            assert_eq!(timeout(value), expected, "{value:?}");
        }
    }

    #[test]
    fn the_key_of_an_active_device_has_its_ids() {
        let (tenant, device) = (Uuid::from_u128(1), Uuid::from_u128(2));
        assert_eq!(device_in(&active_key(tenant, device)), Some((tenant, device)));
        assert_eq!(device_in(&[0; 31]), None);
    }
}
