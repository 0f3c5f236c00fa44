//! Reads a schedule: `AlarmSchedule`.

use chrono_tz::Tz;

use super::node::Node;
use super::predicate::dynamic;
use crate::alarm_rules::error::RuleError;
use crate::alarm_rules::keys::Key;
use crate::alarm_rules::operand::Operand;
use crate::alarm_rules::schedule::{DAY_MS, Hours, Schedule, Weekdays};

const WEEKDAYS: usize = 7;

#[derive(Debug, Clone, Copy)]
enum ScheduleType {
    Any,
    Specific,
    Custom,
}

/// A schedule, which an attribute may replace.
pub(super) fn schedule(node: &Node<'_>, keys: &mut Vec<Key>) -> Result<Operand<Schedule>, RuleError> {
    let dynamic = dynamic(&node.member("dynamicValue"), keys)?;
    let default = if node.is_absent() { Schedule::Always } else { of_type(node, schedule_type(node)?)? };
    Ok(Operand { default, dynamic })
}

/// The schedule of an attribute, which has the type of the schedule that it replaces unless it names one.
pub(super) fn replacement(node: &Node<'_>, replaced: &Schedule) -> Result<Schedule, RuleError> {
    let of_replaced = match replaced {
        Schedule::Always => ScheduleType::Any,
        Schedule::Specific { .. } => ScheduleType::Specific,
        Schedule::Custom { .. } => ScheduleType::Custom,
    };
    let names_type = !node.member("type").is_absent();
    of_type(node, if names_type { schedule_type(node)? } else { of_replaced })
}

fn schedule_type(node: &Node<'_>) -> Result<ScheduleType, RuleError> {
    node.member("type").one_of(&[
        ("ANY_TIME", ScheduleType::Any),
        ("SPECIFIC_TIME", ScheduleType::Specific),
        ("CUSTOM", ScheduleType::Custom),
    ])
}

fn of_type(node: &Node<'_>, schedule_type: ScheduleType) -> Result<Schedule, RuleError> {
    match schedule_type {
        ScheduleType::Any => Ok(Schedule::Always),
        ScheduleType::Specific => specific(node),
        ScheduleType::Custom => custom(node),
    }
}

fn specific(node: &Node<'_>) -> Result<Schedule, RuleError> {
    let mut days = Weekdays::default();
    for day in node.member("daysOfWeek").list(WEEKDAYS, "days of a week")? {
        days.add(weekday(&day)?);
    }
    Ok(Schedule::Specific { zone: zone(node)?, days, hours: hours(node)? })
}

fn custom(node: &Node<'_>) -> Result<Schedule, RuleError> {
    let mut days = Box::new([None; WEEKDAYS]);
    let mut seen = [false; WEEKDAYS];
    for item in node.member("items").list(WEEKDAYS, "days of a week")? {
        let day = weekday(&item.member("dayOfWeek"))?;
        if std::mem::replace(&mut seen[day], true) {
            return Err(item.fault("is the second one of its day; a day has one item".into()));
        }
        if item.member("enabled").flag()? {
            days[day] = Some(hours(&item)?);
        }
    }
    Ok(Schedule::Custom { zone: zone(node)?, days })
}

/// The day from 0 for Monday on; the JSON counts from 1.
fn weekday(node: &Node<'_>) -> Result<usize, RuleError> {
    let day = node.whole()?;
    let found = usize::try_from(day - 1).ok().filter(|day| *day < WEEKDAYS);
    found.ok_or_else(|| node.fault(format!("is {day}; days are 1 (Monday) to 7 (Sunday)")))
}

/// An end of 0 is the end of the day, as in ThingsBoard.
fn hours(node: &Node<'_>) -> Result<Hours, RuleError> {
    let of_day = |name| {
        let node = node.member(name);
        match node.whole()? {
            ms @ 0..=DAY_MS => Ok(ms),
            ms => Err(node.fault(format!("is {ms}; it must be 0 to {DAY_MS} milliseconds of a day"))),
        }
    };
    let (starts_ms, ends_ms) = (of_day("startsOn")?, of_day("endsOn")?);
    Ok(Hours { starts_ms, ends_ms: if ends_ms == 0 { DAY_MS } else { ends_ms } })
}

fn zone(node: &Node<'_>) -> Result<Tz, RuleError> {
    let zone = node.member("timezone");
    let name = zone.text()?;
    name.parse()
        .map_err(|_| zone.fault(format!("{name:?} is not a time zone; use a name such as Europe/Berlin")))
}
