//! Reads `profileData.alarms`. Members that are not named here have no effect, as in ThingsBoard.

mod keys;
mod node;
mod predicate;
mod rule;
mod schedule;

use serde_json::Value as Json;

use super::error::RuleError;
use super::keys::{Key, KeySet};
use super::limits::{ALARM_TYPE_BYTES_MAX, ALARM_TYPES_PER_PROFILE_MAX};
use super::rule::{AlarmRules, AlarmType, Propagation};
use super::schedule::Schedule;
use super::severity::Severity;
use node::Node;

impl AlarmRules {
    /// Reads the alarms of `profileData`. A profile without `alarms` has no rules.
    ///
    /// # Errors
    /// Names the place in the JSON and the fault.
    pub fn parse(profile_data: &Json) -> Result<Self, RuleError> {
        read(profile_data)
    }
}

/// The schedule of an attribute's JSON text; `None` if it is none, as in ThingsBoard.
pub(super) fn schedule_of(text: &str, replaced: &Schedule) -> Option<Schedule> {
    let json = serde_json::from_str(text).ok()?;
    schedule::replacement(&Node::root("schedule", &json), replaced).ok()
}

fn read(profile_data: &Json) -> Result<AlarmRules, RuleError> {
    let Some(alarms) = profile_data.get("alarms").filter(|alarms| !alarms.is_null()) else {
        return Ok(AlarmRules::default());
    };
    let alarms = Node::root("alarms", alarms);
    let list = alarms.list(ALARM_TYPES_PER_PROFILE_MAX, "ALARM_TYPES_PER_PROFILE_MAX")?;
    let mut rules = AlarmRules::default();
    for node in list {
        let alarm = alarm_type(&node, &mut rules.keys)?;
        if rules.alarms.iter().any(|other| other.name == alarm.name) {
            let reason = format!("{:?} is the type of another alarm of the profile", alarm.name);
            return Err(node.member("alarmType").fault(reason));
        }
        rules.alarms.push(alarm);
    }
    Ok(rules)
}

fn alarm_type(node: &Node<'_>, keys: &mut Vec<Key>) -> Result<AlarmType, RuleError> {
    let name = node.member("alarmType");
    let name_text = name.text()?;
    if name_text.is_empty() || name_text.len() > ALARM_TYPE_BYTES_MAX {
        let bytes = name_text.len();
        let limit = ALARM_TYPE_BYTES_MAX;
        return Err(
            name.fault(format!("has {bytes} bytes; it must have 1 to {limit} (ALARM_TYPE_BYTES_MAX)"))
        );
    }
    // ThingsBoard makes an id in its page; a profile that was written by hand may have none.
    let id = node.member("id").optional_text()?.unwrap_or(name_text);
    let rules = node.member("createRules");
    let mut create = Vec::new();
    for (severity, rule) in rules.entries()? {
        let severity: Severity = severity.parse().map_err(|reason| rules.fault(reason))?;
        if !rule.is_absent() {
            create.push((severity, rule::rule(&rule, keys)?));
        }
    }
    if create.is_empty() {
        return Err(rules.fault("has no rule; an alarm needs a rule for at least one severity".into()));
    }
    create.sort_by_key(|(severity, _)| *severity);
    let clear = node.member("clearRule");
    let clear = if clear.is_absent() { None } else { Some(rule::rule(&clear, keys)?) };
    let (id, name) = (id.into(), name_text.into());
    let rules = create.iter().map(|(_, rule)| rule).chain(&clear);
    let read = rules.fold(KeySet::EMPTY, |read, rule| read.with(rule.keys));
    Ok(AlarmType { id, name, propagation: propagation(node)?, create, clear, keys: read })
}

fn propagation(node: &Node<'_>) -> Result<Propagation, RuleError> {
    let types = node.member("propagateRelationTypes");
    let types = if types.is_absent() {
        Vec::new()
    } else {
        let list = types.list(ALARM_TYPES_PER_PROFILE_MAX, "ALARM_TYPES_PER_PROFILE_MAX")?;
        list.iter().map(|node| node.text().map(Into::into)).collect::<Result<_, _>>()?
    };
    Ok(Propagation {
        related: node.member("propagate").flag()?,
        owner: node.member("propagateToOwner").flag()?,
        tenant: node.member("propagateToTenant").flag()?,
        relation_types: types,
    })
}
