//! What changes in the state of a device. Times are milliseconds since 1970; 0 means never.

use model::Value;

use super::keys::{
    ACTIVE, INACTIVITY_ALARM_TIME, LAST_ACTIVITY_TIME, LAST_CONNECT_TIME, LAST_DISCONNECT_TIME,
};
use super::limits::REPORT_INTERVAL_MS;

/// What is known of a device.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(super) struct DeviceFacts {
    /// The present time.
    pub(super) now_ms: i64,
    /// The last activity.
    pub(super) last_ms: i64,
    /// The inactivity timeout.
    pub(super) timeout_ms: i64,
    /// A connect that is not stored yet.
    pub(super) connected_ms: i64,
    /// A disconnect that is not stored yet.
    pub(super) disconnected_ms: i64,
    /// The stored state.
    pub(super) active: bool,
    /// The stored last activity.
    pub(super) stored_ms: i64,
    /// The stored time of inactivity.
    pub(super) alarm_ms: i64,
    /// Whether to store the last activity however small the difference is: the server stops.
    pub(super) is_last: bool,
}

/// The changes.
#[derive(Debug, Clone, PartialEq, Default)]
pub(super) struct Decision {
    pub(super) active: bool,
    pub(super) stored_ms: i64,
    pub(super) alarm_ms: i64,
    /// The attributes to write.
    pub(super) writes: Vec<(String, Value)>,
}

impl DeviceFacts {
    /// Whether the device is active at the present time.
    pub(super) fn is_active(&self) -> bool {
        self.last_ms > 0 && self.now_ms < self.last_ms.saturating_add(self.timeout_ms)
    }

    /// Decides as ThingsBoard does (`checkAndUpdateState`, `updateInactivityStateIfExpired`).
    pub(super) fn decide(&self) -> Decision {
        let mut writes = Vec::new();
        let mut write = |key: &str, value: Value| writes.push((key.to_owned(), value));
        let time = Value::I64;
        if self.connected_ms > 0 {
            write(LAST_CONNECT_TIME, time(self.connected_ms));
        }
        if self.disconnected_ms > 0 {
            write(LAST_DISCONNECT_TIME, time(self.disconnected_ms));
        }
        let active = self.is_active();
        let mut alarm_ms = self.alarm_ms;
        match (self.active, active) {
            (false, true) => {
                write(ACTIVE, Value::Bool(true));
                if self.last_ms <= alarm_ms {
                    // A longer timeout has made it active again.
                    alarm_ms = 0;
                    write(INACTIVITY_ALARM_TIME, time(alarm_ms));
                }
            }
            // Also a device that was heard and silent again before the thread came to it.
            (_, false) if self.active || self.last_ms > self.stored_ms => {
                write(ACTIVE, Value::Bool(false));
                alarm_ms = self.now_ms;
                write(INACTIVITY_ALARM_TIME, time(alarm_ms));
            }
            _ => {}
        }
        let behind_ms = self.last_ms.saturating_sub(self.stored_ms);
        let is_due = behind_ms >= REPORT_INTERVAL_MS || !(self.active && active) || self.is_last;
        let stored_ms = if is_due { self.last_ms.max(self.stored_ms) } else { self.stored_ms };
        if stored_ms > self.stored_ms {
            write(LAST_ACTIVITY_TIME, time(stored_ms));
        }
        Decision { active, stored_ms, alarm_ms, writes }
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn written(seen: DeviceFacts) -> Vec<(String, Value)> {
        seen.decide().writes
    }

    fn entry(key: &str, value: Value) -> (String, Value) {
        (key.to_owned(), value)
    }

    #[test]
    fn the_first_activity_makes_a_device_active() {
        let seen = DeviceFacts {
            now_ms: 1_001,
            last_ms: 1_000,
            timeout_ms: 500,
            connected_ms: 1_000,
            ..DeviceFacts::default()
        };
        let expected = [
            entry(LAST_CONNECT_TIME, Value::I64(1_000)),
            entry(ACTIVE, Value::Bool(true)),
            entry(LAST_ACTIVITY_TIME, Value::I64(1_000)),
        ];
        assert_eq!(written(seen), expected);
    }

    #[test]
    fn silence_makes_it_inactive_at_the_timeout_and_not_before() {
        let seen = DeviceFacts {
            now_ms: 1_499,
            last_ms: 1_000,
            timeout_ms: 500,
            active: true,
            stored_ms: 900,
            ..DeviceFacts::default()
        };
        assert_eq!(written(seen), []);
        let silent = DeviceFacts { now_ms: 1_500, ..seen };
        let expected = [
            entry(ACTIVE, Value::Bool(false)),
            entry(INACTIVITY_ALARM_TIME, Value::I64(1_500)),
            entry(LAST_ACTIVITY_TIME, Value::I64(1_000)),
        ];
        assert_eq!(written(silent), expected);
        let after = silent.decide();
        let again = DeviceFacts {
            active: after.active,
            alarm_ms: after.alarm_ms,
            stored_ms: after.stored_ms,
            ..silent
        };
        assert_eq!(written(again), []);
        // A longer timeout.
        let longer = DeviceFacts { timeout_ms: 900, ..again };
        assert_eq!(
            written(longer),
            [entry(ACTIVE, Value::Bool(true)), entry(INACTIVITY_ALARM_TIME, Value::I64(0))]
        );
    }

    #[test]
    fn a_short_activity_leaves_its_times() {
        let seen = DeviceFacts {
            now_ms: 1_500,
            last_ms: 1_000,
            timeout_ms: 1,
            stored_ms: 900,
            ..DeviceFacts::default()
        };
        let expected = [
            entry(ACTIVE, Value::Bool(false)),
            entry(INACTIVITY_ALARM_TIME, Value::I64(1_500)),
            entry(LAST_ACTIVITY_TIME, Value::I64(1_000)),
        ];
        assert_eq!(written(seen), expected);
    }

    #[test]
    fn the_last_activity_is_written_once_a_minute_and_at_the_end() {
        let seen = DeviceFacts {
            now_ms: 60_500,
            last_ms: 60_499,
            timeout_ms: 90_000,
            active: true,
            stored_ms: 500,
            ..DeviceFacts::default()
        };
        assert_eq!(written(seen), []);
        let due = DeviceFacts { last_ms: 60_500, ..seen };
        assert_eq!(written(due), [entry(LAST_ACTIVITY_TIME, Value::I64(60_500))]);
        assert_eq!(
            written(DeviceFacts { is_last: true, ..seen }),
            [entry(LAST_ACTIVITY_TIME, Value::I64(60_499))]
        );
        let late = DeviceFacts { disconnected_ms: 60_499, ..seen };
        assert_eq!(written(late), [entry(LAST_DISCONNECT_TIME, Value::I64(60_499))]);
    }

    proptest! {
        /// After what was decided is stored, nothing is left to do at the same time, and the stored time never goes back.
        #[test]
        fn a_decision_is_complete(
            now_ms in 1_i64..400_000,
            last_ms in 0_i64..400_000,
            timeout_ms in 1_i64..200_000,
            active: bool,
            stored_ms in 0_i64..400_000,
            alarm_ms in 0_i64..400_000,
            is_last: bool,
        ) {
            let seen = DeviceFacts { now_ms, last_ms, timeout_ms, active, stored_ms, alarm_ms, is_last, ..DeviceFacts::default() };
            let Decision { active, stored_ms: after_ms, alarm_ms, writes } = seen.decide();
            prop_assert_eq!(active, last_ms > 0 && now_ms - last_ms < timeout_ms);
            prop_assert!(after_ms >= stored_ms);
            prop_assert_eq!(writes.iter().any(|(key, _)| key == LAST_ACTIVITY_TIME), after_ms > stored_ms);
            let next = DeviceFacts { active, stored_ms: after_ms, alarm_ms, ..seen };
            prop_assert_eq!(next.decide().writes, []);
        }
    }
}
