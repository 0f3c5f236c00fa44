//! The actions of the rules on alarms.

use model::Timestamp;
use sensors::alarm_rules::{Severity, Transition};

use super::device::DeviceState;

/// What happens to an alarm of a device.
#[derive(Debug)]
pub(super) struct RuleAction {
    /// The place of the device.
    pub(super) at: usize,
    /// The number of the alarm among those of the profile.
    pub(super) alarm: usize,
    pub(super) what: AlarmAction,
    pub(super) now: Timestamp,
}

/// An act.
#[derive(Debug)]
pub(super) enum AlarmAction {
    Raise { severity: Severity, started_at: Timestamp, ended_at: Timestamp, details: Option<Box<str>> },
    Clear { details: Option<Box<str>> },
}

impl RuleAction {
    /// The act of a transition. `ts` is the time of the values that made it.
    pub(super) fn of(
        (at, device): (usize, &DeviceState),
        alarm: usize,
        transition: Transition,
        ts: Timestamp,
        now: Timestamp,
    ) -> Self {
        let started_at = whole_millis(ts.min(now));
        let raise = |severity, ended_at| {
            let details = details(device, alarm, Some(severity));
            AlarmAction::Raise { severity, started_at, ended_at, details }
        };
        let what = match transition {
            Transition::Create { severity } => raise(severity, started_at),
            Transition::Update { severity, .. } => raise(severity, whole_millis(now)),
            Transition::Clear => AlarmAction::Clear { details: details(device, alarm, None) },
        };
        Self { at, alarm, what, now: whole_millis(now) }
    }
}

/// The details of an alarm: those of the rule of a severity, or of the rule that clears.
pub(super) fn details(device: &DeviceState, alarm: usize, severity: Option<Severity>) -> Option<Box<str>> {
    let rules = &device.profile.rules;
    let alarm = &rules.alarms()[alarm];
    let rule = match severity {
        Some(severity) => alarm.rule(severity),
        None => alarm.clear_rule(),
    };
    let details = rule?.details(rules, &device.values)?;
    Some(serde_json::Value::from(details).to_string().into())
}

/// A time as records keep it.
pub(super) fn whole_millis(time: Timestamp) -> Timestamp {
    Timestamp::from_millis(time.millis()).unwrap_or(time)
}
