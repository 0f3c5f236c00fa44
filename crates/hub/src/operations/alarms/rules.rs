//! The alarm rules of device profiles.

use std::collections::HashMap;
use std::sync::Arc;

use sensors::alarm_rules::AlarmRules;

use crate::hub::Hub;
use crate::registry::Profile;
use crate::series_owner::SeriesOwner;

impl Hub {
    /// Evaluates other alarm rules for the devices of a profile from now on. Alarms that rules made stay as they are. It may read
    /// files: call it on a thread that may block.
    pub(crate) fn set_profile_rules(&self, profile: &Profile, rules: AlarmRules) {
        if !self.rule_book.set(profile.tenant, profile.id, rules) {
            return;
        }
        let mut reported = HashMap::new();
        if let Some(rules) = self.rule_book.of(profile.id) {
            let keys = rules.telemetry();
            for device in self.registry.devices_of_profile(profile.tenant, profile.id) {
                let owner = SeriesOwner::from(&device);
                let key = owner.key_in(&owner.table).ok();
                let Some(series) = key.and_then(|key| self.store.find_series(&key)) else { continue };
                match self.store.latest(series, Some(&keys)) {
                    Ok(latest) => {
                        let latest = latest.iter().map(|latest| latest.ts).max();
                        reported.extend(latest.map(|ts| (device.id, ts.micros())));
                        self.tap.want(series, device.id, rules.wanted());
                    }
                    // The next checkpoint of the evaluation tries again.
                    Err(error) => {
                        tracing::warn!(device = device.name, %error, "cannot read the values of a device");
                    }
                }
            }
        }
        self.alarm_inbox.rules_changed(profile.id, reported);
        // Doors that know series of the devices look them up again, so that none is missed.
        self.registry.forget_cached();
        self.tap.wake_up();
    }

    /// Tells the rules that a user has ended an alarm.
    pub(super) fn tell_rules_of_end(&self, alarm: &Arc<crate::alarms::Alarm>) {
        self.alarm_inbox.alarm_ended(alarm.originator.id);
        self.tap.wake_up();
    }
}
