//! The rules of a profile.

use model::Value;

use super::keys::{Key, KeyIndex, KeySet, KeySource};
use super::operand::{Operand, Predicate};
use super::schedule::Schedule;
use super::severity::Severity;

/// All alarm rules of a device profile.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct AlarmRules {
    pub(super) keys: Vec<Key>,
    pub(super) alarms: Vec<AlarmType>,
}

/// A type of alarm with the rules that create and clear it (ThingsBoard's `DeviceProfileAlarm`).
#[derive(Debug, Clone, PartialEq)]
pub struct AlarmType {
    /// Identity within the profile.
    pub id: Box<str>,
    /// The type of its alarms.
    pub name: Box<str>,
    /// To which other entities its alarms belong.
    pub propagation: Propagation,
    /// The rules that create the alarm, the most severe first.
    pub(super) create: Vec<(Severity, Rule)>,
    /// The rule that clears it.
    pub(super) clear: Option<Rule>,
    /// The keys that its rules read.
    pub(super) keys: KeySet,
}

/// To which entities besides its originator an alarm belongs.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Propagation {
    /// To entities with relations to the originator.
    pub related: bool,
    /// To the owner of the originator: its customer, or its tenant.
    pub owner: bool,
    pub tenant: bool,
    /// The types of relations; all if there is none.
    pub relation_types: Vec<Box<str>>,
}

/// A rule (ThingsBoard's `AlarmRule`).
#[derive(Debug, Clone, PartialEq)]
pub struct Rule {
    pub(super) filters: Vec<Filter>,
    pub(super) spec: Spec,
    /// When it applies. An attribute that replaces it has a schedule as JSON.
    pub(super) schedule: Operand<Schedule>,
    pub(super) details: Option<Box<str>>,
    pub(super) dashboard: Option<Box<str>>,
    /// The keys that it reads.
    pub(super) keys: KeySet,
    /// Whether it reads telemetry.
    pub(super) reads_telemetry: bool,
}

/// A filter of a condition: all of them must hold.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct Filter {
    pub(super) subject: Subject,
    pub(super) predicate: Predicate,
}

/// What a filter looks at.
#[derive(Debug, Clone, PartialEq)]
pub(super) enum Subject {
    Key(KeyIndex),
    Constant(Value),
}

/// When a condition that holds makes the rule true.
#[derive(Debug, Clone, PartialEq)]
pub(super) enum Spec {
    /// At once.
    Simple,
    /// After it has held for longer than `value` times `unit_us`.
    Duration { value: Operand<f64>, unit_us: i64 },
    /// When it has held for `count` events in a row.
    Repeating { count: Operand<f64> },
}

impl AlarmRules {
    /// Whether there is no rule.
    pub fn is_empty(&self) -> bool {
        self.alarms.is_empty()
    }

    /// The types of alarms, in the order of the profile.
    pub fn alarms(&self) -> &[AlarmType] {
        &self.alarms
    }

    /// The keys that the rules read; a [`KeyIndex`] counts them.
    pub fn keys(&self) -> &[Key] {
        &self.keys
    }

    /// The number of a key; `None` if no rule reads it.
    pub fn key(&self, source: KeySource, name: &str) -> Option<KeyIndex> {
        let at = self.keys.iter().position(|key| key.source == source && *key.name == *name)?;
        KeyIndex::try_from(at).ok()
    }
}

impl AlarmType {
    /// Whether a rule reads one of the keys.
    pub fn concerns(&self, keys: KeySet) -> bool {
        self.keys.meets(keys)
    }

    /// Whether the alarm has a rule that clears it.
    pub fn clears(&self) -> bool {
        self.clear.is_some()
    }

    /// The severities of the rules that create it, the most severe first.
    pub fn severities(&self) -> impl Iterator<Item = Severity> {
        self.create.iter().map(|(severity, _)| *severity)
    }

    /// The rule that creates the alarm with a severity.
    pub fn rule(&self, severity: Severity) -> Option<&Rule> {
        self.create.iter().find(|(of_rule, _)| *of_rule == severity).map(|(_, rule)| rule)
    }

    /// The rule that clears the alarm.
    pub fn clear_rule(&self) -> Option<&Rule> {
        self.clear.as_ref()
    }
}
