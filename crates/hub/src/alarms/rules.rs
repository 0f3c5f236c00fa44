//! The alarm rules of device profiles.

use std::collections::HashMap;
use std::sync::Arc;

use sensors::alarm_rules::limits::PROFILE_DATA_BYTES_MAX;
use sensors::alarm_rules::{AlarmRules, KeySource, RuleError};
use store::StoreError;

use super::engine::FIELDS;
use crate::hub::Hub;
use crate::series_owner::SeriesOwner;
use crate::registry::Profile;

impl Hub {
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
                KeySource::CustomerAttribute | KeySource::TenantAttribute => format!(
                    "the rules read the attribute {name:?} of a customer or a tenant, which have no attributes \
                     here; use an attribute of the device (CURRENT_DEVICE without inherit)"
                ),
                KeySource::EntityField if !FIELDS.contains(&&**name) => {
                    format!("the rules read the field {name:?}; a device has {}", FIELDS.join(", "))
                }
                _ => continue,
            };
            return Err(RuleError { path: "alarms".into(), reason });
        }
        Ok(rules)
    }

    /// Evaluates other alarm rules for the devices of a profile from now on. Alarms that rules made stay as they are. It may read
    /// files: call it on a thread that may block.
    ///
    /// # Errors
    /// The store fails.
    pub fn set_profile_rules(&self, profile: &Profile, rules: AlarmRules) -> Result<(), StoreError> {
        if !self.rule_book.set(profile.id, rules) {
            return Ok(());
        }
        let mut reported = HashMap::new();
        if let Some(rules) = self.rule_book.of(profile.id) {
            let keys = rules.telemetry();
            for device in self.registry.devices_of_profile(profile.id) {
                let owner = SeriesOwner::from(&device);
                let Some(series) = self.store.find_series(&owner.key_in(&owner.table)?) else { continue };
                let latest = self.store.latest(series, Some(&keys))?.iter().map(|latest| latest.ts).max();
                self.tap.want(series, device.id, rules.wanted());
                reported.extend(latest.map(|ts| (device.id, ts.micros())));
            }
        }
        self.alarm_inbox.rules_changed(profile.id, reported);
        // Doors that know series of the devices look them up again, so that none is missed.
        self.registry.forget_cached();
        self.tap.wake_up();
        Ok(())
    }

    /// Tells the rules that a user has ended an alarm.
    pub(super) fn tell_rules_of_end(&self, alarm: &Arc<super::Alarm>) {
        self.alarm_inbox.alarm_ended(alarm.originator.id);
        self.tap.wake_up();
    }
}
