//! What a device and a type of alarm remember between events.

use model::Timestamp;
use serde::{Deserialize, Serialize};

use super::rule::AlarmType;
use super::severity::Severity;

/// The state of one type of alarm of one device.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
pub struct AlarmState {
    /// The severity of the active alarm; `None` without one.
    pub severity: Option<Severity>,
    /// One for each rule that creates, in the order of the severities, and one for the rule that clears.
    pub rules: Vec<RuleState>,
}

/// How long or how often the condition of a rule has held.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
pub struct RuleState {
    /// Events for which the condition has held in a row.
    #[serde(default, skip_serializing_if = "is_default")]
    pub events: u64,
    /// How long the condition has held by the times of the events, in microseconds.
    #[serde(default, skip_serializing_if = "is_default")]
    pub duration_us: i64,
    /// The last event for which it held.
    #[serde(default, skip_serializing_if = "is_default")]
    pub last: Option<LastEvent>,
}

/// An event for which a condition held.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct LastEvent {
    /// Its own time, in microseconds since 1970.
    pub ts_us: i64,
    /// The time of the server when it was evaluated, in microseconds since 1970.
    pub seen_us: i64,
}

impl AlarmState {
    /// The state without an alarm.
    pub fn new(alarm: &AlarmType) -> Self {
        Self { severity: None, rules: vec![RuleState::default(); alarm.create.len() + 1] }
    }

    /// Whether the state fits the rules; rules can change their number.
    pub fn fits(&self, alarm: &AlarmType) -> bool {
        self.rules.len() == alarm.create.len() + 1
    }

    /// Someone has cleared or deleted the alarm: all conditions begin again. Returns whether this changes the state.
    pub fn ended(&mut self) -> bool {
        let before = self.severity.take();
        let mut changed = before.is_some();
        for rule in &mut self.rules {
            changed |= rule.reset();
        }
        changed
    }
}

impl RuleState {
    /// The condition does not hold. Returns whether this changes the state.
    pub(super) fn reset(&mut self) -> bool {
        let changed = *self != Self::default();
        *self = Self::default();
        changed
    }

    /// The condition holds for an event.
    pub(super) fn holds(&mut self, ts: Timestamp, now: Timestamp) {
        self.events = self.events.saturating_add(1);
        let (ts_us, seen_us) = (ts.micros(), now.micros());
        match &mut self.last {
            // An event of a late point: the condition holds, but no time has passed.
            Some(last) if ts_us <= last.ts_us => {}
            Some(last) => {
                self.duration_us = self.duration_us.saturating_add(ts_us.saturating_sub(last.ts_us));
                *last = LastEvent { ts_us, seen_us };
            }
            None => self.last = Some(LastEvent { ts_us, seen_us }),
        }
    }

    /// How long the condition has held at a time of the server. The clock of the device counts between events, that of the server
    /// since the last one.
    pub(super) fn held_us(&self, now: Timestamp) -> Option<i64> {
        let last = self.last?;
        Some(self.duration_us.saturating_add(now.micros().saturating_sub(last.seen_us).max(0)))
    }
}

fn is_default<T: Default + PartialEq>(value: &T) -> bool {
    *value == T::default()
}
