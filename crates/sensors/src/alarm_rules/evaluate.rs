//! The decisions: what an event or a passed time does to an alarm.
//!
//! The decisions are those of ThingsBoard's rule node of device profiles: the rules that create are asked from the most severe
//! one down, and the first true one decides. Only if none is true, and the alarm is active, the rule that clears is asked. An event
//! asks a rule only if the rule reads a key of the event.

use model::Timestamp;

use super::keys::KeySet;
use super::parse::schedule_of;
use super::rule::{AlarmType, Rule, Spec, Subject};
use super::severity::Severity;
use super::state::{AlarmState, RuleState};
use super::values::Values;
use crate::predicate::Mode;

/// What an event brought.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum EventKind {
    /// Telemetry. It asks the rules that read one of its keys.
    Telemetry,
    /// Attributes. They ask only rules that read no telemetry.
    Attributes,
}

/// New values of a device. They are in its [`Values`] already.
#[derive(Debug, Clone, Copy)]
pub struct Event {
    /// What it brought.
    pub kind: EventKind,
    /// The keys that changed.
    pub keys: KeySet,
    /// The time of the values.
    pub ts: Timestamp,
    /// The time of the server.
    pub now: Timestamp,
}

/// What happens to an alarm.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Transition {
    /// The alarm begins.
    Create {
        /// The severity of its rule.
        severity: Severity,
    },
    /// A rule is true again, or one that is more severe.
    Update {
        /// The severity of the rule.
        severity: Severity,
        /// Whether the alarm had another severity before.
        changed: bool,
    },
    /// The alarm ends.
    Clear,
}

/// What a rule says.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Verdict {
    True,
    False,
    /// The condition holds, but not long or often enough.
    NotYet,
}

/// Decides about an event. `mismatches` counts values that are not numbers and are compared with numbers.
pub fn on_event(
    alarm: &AlarmType,
    state: &mut AlarmState,
    values: &Values,
    event: &Event,
    mismatches: &mut u64,
) -> Option<Transition> {
    let concerns = |rule: &Rule| match event.kind {
        EventKind::Telemetry => rule.keys.meets(event.keys),
        EventKind::Attributes => !rule.reads_telemetry && rule.keys.meets(event.keys),
    };
    decide(alarm, state, |rule, state| {
        concerns(rule).then(|| rule.on_event(state, values, event, mismatches))
    })
}

/// Decides about the time that has passed: only durations end by it.
pub fn on_timer(
    alarm: &AlarmType,
    state: &mut AlarmState,
    values: &Values,
    now: Timestamp,
) -> Option<Transition> {
    decide(alarm, state, |rule, state| Some(rule.on_timer(state, values, now)))
}

/// When [`on_timer`] can decide something, if no event comes before; `None` if only an event can.
pub fn next_deadline(alarm: &AlarmType, state: &AlarmState, values: &Values) -> Option<Timestamp> {
    let create = alarm.create.iter().zip(&state.rules);
    let create = create.filter(|((severity, _), _)| state.severity.is_none_or(|active| *severity < active));
    let clear = alarm.clear.iter().zip(state.rules.last()).filter(|_| state.severity.is_some());
    let rules = create.map(|((_, rule), state)| (rule, state)).chain(clear);
    rules.filter_map(|(rule, state)| rule.deadline(state, values)).min()
}

/// Asks the rules in their order. `ask` answers `None` for a rule that the event does not concern.
fn decide(
    alarm: &AlarmType,
    state: &mut AlarmState,
    mut ask: impl FnMut(&Rule, &mut RuleState) -> Option<Verdict>,
) -> Option<Transition> {
    let AlarmState { severity: active, rules } = state;
    let (clear_state, create_states) = rules.split_last_mut()?;
    let mut found = None;
    for ((severity, rule), state) in alarm.create.iter().zip(create_states.iter_mut()) {
        match ask(rule, state) {
            Some(Verdict::True) => {
                found = Some(*severity);
                break;
            }
            Some(Verdict::False) => {
                state.reset();
            }
            Some(Verdict::NotYet) | None => {}
        }
    }
    if let Some(severity) = found {
        clear_state.reset();
        return match *active {
            None => {
                *active = Some(severity);
                Some(Transition::Create { severity })
            }
            // An alarm keeps its highest severity until it is cleared.
            Some(before) if before < severity => None,
            Some(before) => {
                *active = Some(severity);
                Some(Transition::Update { severity, changed: before != severity })
            }
        };
    }
    let clear = alarm.clear.as_ref().filter(|_| active.is_some())?;
    match ask(clear, clear_state)? {
        Verdict::True => {
            state.ended();
            Some(Transition::Clear)
        }
        Verdict::False => {
            clear_state.reset();
            None
        }
        Verdict::NotYet => None,
    }
}

impl Rule {
    fn on_event(
        &self,
        state: &mut RuleState,
        values: &Values,
        event: &Event,
        mismatches: &mut u64,
    ) -> Verdict {
        if !self.applies(values, event.ts) || !self.holds(values, mismatches) {
            return Verdict::False;
        }
        let reached = match &self.spec {
            Spec::Simple => true,
            Spec::Duration { .. } => {
                state.holds(event.ts, event.now);
                state.duration_us > self.required_us(values)
            }
            Spec::Repeating { count } => {
                state.holds(event.ts, event.now);
                state.events as f64 >= count.number(values)
            }
        };
        if reached { Verdict::True } else { Verdict::NotYet }
    }

    fn on_timer(&self, state: &RuleState, values: &Values, now: Timestamp) -> Verdict {
        match (&self.spec, state.held_us(now)) {
            (Spec::Simple | Spec::Repeating { .. }, _) => Verdict::NotYet,
            (Spec::Duration { .. }, None) => Verdict::False,
            (Spec::Duration { .. }, Some(_)) if !self.applies(values, now) => Verdict::False,
            (Spec::Duration { .. }, Some(held_us)) if held_us > self.required_us(values) => Verdict::True,
            (Spec::Duration { .. }, Some(_)) => Verdict::NotYet,
        }
    }

    fn deadline(&self, state: &RuleState, values: &Values) -> Option<Timestamp> {
        let last = state.last.filter(|_| matches!(self.spec, Spec::Duration { .. }))?;
        let left_us = self.required_us(values).saturating_sub(state.duration_us).max(0);
        Some(Timestamp::from_micros(last.seen_us).saturating_add_micros(left_us.saturating_add(1)))
    }

    fn required_us(&self, values: &Values) -> i64 {
        match &self.spec {
            // The conversion saturates.
            Spec::Duration { value, unit_us } => (value.number(values) * *unit_us as f64) as i64,
            Spec::Simple | Spec::Repeating { .. } => 0,
        }
    }

    /// Whether the rule applies at a time. An attribute that is not a schedule replaces none, as in ThingsBoard.
    fn applies(&self, values: &Values, at: Timestamp) -> bool {
        let default = &self.schedule.default;
        let replacement = self.schedule.dynamic_value(values);
        let replacement = replacement.and_then(|value| schedule_of(&Mode::Rule.text(value), default));
        replacement.as_ref().unwrap_or(default).is_active(at)
    }

    /// Whether all filters hold. A key without a value holds in none.
    fn holds(&self, values: &Values, mismatches: &mut u64) -> bool {
        self.filters.iter().all(|filter| {
            let value = match &filter.subject {
                Subject::Key(key) => values.get(*key).map(|observed| observed.value.as_ref()),
                Subject::Constant(value) => Some(value.as_ref()),
            };
            value.is_some_and(|value| filter.predicate.holds(Some(value), Mode::Rule, values, mismatches))
        })
    }
}
