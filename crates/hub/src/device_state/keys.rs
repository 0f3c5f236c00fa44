//! The names of the state's attributes. They are ThingsBoard's.

/// Whether the device is active.
pub(super) const ACTIVE: &str = "active";
/// The last connect, in milliseconds since 1970.
pub(super) const LAST_CONNECT_TIME: &str = "lastConnectTime";
pub(super) const LAST_DISCONNECT_TIME: &str = "lastDisconnectTime";
/// The last packet or request.
pub(crate) const LAST_ACTIVITY_TIME: &str = "lastActivityTime";
/// When the device became inactive.
pub(super) const INACTIVITY_ALARM_TIME: &str = "inactivityAlarmTime";
/// Milliseconds of silence after which the device is inactive. Users write it.
pub(crate) const INACTIVITY_TIMEOUT: &str = "inactivityTimeout";

/// Whether the server itself writes this server attribute of devices.
pub(crate) fn is_kept(key: &str) -> bool {
    [ACTIVE, LAST_CONNECT_TIME, LAST_DISCONNECT_TIME, LAST_ACTIVITY_TIME, INACTIVITY_ALARM_TIME]
        .contains(&key)
}
