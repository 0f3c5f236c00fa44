//! The alarm rules of a device profile, in ThingsBoard's form (`profileData.alarms`).
//!
//! [`AlarmRules::parse`] reads the rules. [`Values`] keeps the newest value of each key that the rules read, for one device.
//! [`AlarmState`] keeps, for one device and one type of alarm, whether the alarm is active and how long or how often the
//! conditions have held. [`on_event`] and [`on_timer`] decide what happens to the alarm.
//!
//! `docs/protocol/alarms.md` describes the rules and the differences to ThingsBoard.

mod details;
mod error;
mod evaluate;
mod keys;
pub mod limits;
mod operand;
mod parse;
mod rule;
mod schedule;
mod severity;
mod state;
mod values;

#[cfg(test)]
mod tests;

pub use error::RuleError;
pub use evaluate::{Event, EventKind, Transition, next_deadline, on_event, on_timer};
pub use keys::{Key, KeyIndex, KeySet, KeySource};
pub use limits::ALARM_TYPE_BYTES_MAX;
pub use rule::{AlarmRules, AlarmType, Propagation, Rule};
pub use severity::Severity;
pub use state::{AlarmState, LastEvent, RuleState};
pub use values::{Observed, Values};
