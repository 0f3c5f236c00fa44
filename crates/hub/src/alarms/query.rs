//! Searches for alarms.

use std::cmp::Ordering;
use std::collections::{HashMap, HashSet};
use std::str::FromStr;
use std::sync::Arc;

use model::Timestamp;
use sensors::alarm_rules::Severity;
use uuid::Uuid;

use super::alarm::{Alarm, SearchStatus};
use super::index::Index;
use crate::registry::{EntityId, Page};

/// A search for alarms. The default finds all, the newest first, without a page.
#[derive(Debug, Clone, Default)]
pub struct AlarmQuery {
    /// Only alarms that belong to one of these entities ([`Hub::entities_of_alarm`](crate::Hub::entities_of_alarm)); all if it is
    /// `None`.
    pub entities: Option<HashSet<EntityId>>,
    /// Whether an alarm belongs to its originator only, and not to entities to which it propagates.
    pub originators_only: bool,
    /// Conditions on the status. `Active` with `Cleared` is not a condition, and neither is `Ack` with `Unack`.
    pub statuses: Vec<SearchStatus>,
    /// Only these severities; all if there is none.
    pub severities: Vec<Severity>,
    /// Only these types; all if there is none.
    pub types: Vec<String>,
    /// Only alarms of this assignee.
    pub assignee: Option<Uuid>,
    /// Only alarms that were created at this time or later.
    pub from: Option<Timestamp>,
    /// Only alarms that were created at this time or earlier.
    pub to: Option<Timestamp>,
    /// Only alarms with this text in one of the `text_fields`, ignoring case.
    pub text: Option<String>,
    /// Where the text is searched; type, severity and status if there is none.
    pub text_fields: Vec<AlarmText>,
    /// The order of the entities of alarms, which counts before `sort`. An alarm has the place of the first of its entities.
    pub ranks: HashMap<EntityId, usize>,
    /// What they are sorted by.
    pub sort: AlarmSort,
    /// Whether the first of the order comes first; if not, the last.
    pub ascending: bool,
    /// Number of the page, from 0.
    pub page: usize,
    /// Alarms of a page, at least 1.
    pub page_size: usize,
}

/// A text of an alarm.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum AlarmText {
    /// The JSON of its details.
    Details,
    /// The text of what alarms are sorted by. Times are milliseconds since 1970.
    Of(AlarmSort),
}

/// What alarms are sorted by. Equal ones keep the order of their creation.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum AlarmSort {
    /// When the record was made.
    #[default]
    CreatedTime,
    /// When the condition began to hold.
    StartTime,
    /// When it last held.
    EndTime,
    /// When it was acknowledged.
    AckTime,
    /// When it was cleared.
    ClearTime,
    /// When it was assigned.
    AssignTime,
    Type,
    /// The severity; the most severe is first.
    Severity,
    Status,
    /// The name of the originator.
    Originator,
    /// The login of the assignee.
    Assignee,
}

impl FromStr for AlarmSort {
    type Err = String;

    fn from_str(name: &str) -> Result<Self, String> {
        const NAMES: [(&str, AlarmSort); 17] = [
            ("createdTime", AlarmSort::CreatedTime),
            ("startTs", AlarmSort::StartTime),
            ("startTime", AlarmSort::StartTime),
            ("endTs", AlarmSort::EndTime),
            ("endTime", AlarmSort::EndTime),
            ("ackTs", AlarmSort::AckTime),
            ("ackTime", AlarmSort::AckTime),
            ("clearTs", AlarmSort::ClearTime),
            ("clearTime", AlarmSort::ClearTime),
            ("assignTs", AlarmSort::AssignTime),
            ("type", AlarmSort::Type),
            ("severity", AlarmSort::Severity),
            ("status", AlarmSort::Status),
            ("originator", AlarmSort::Originator),
            ("originatorName", AlarmSort::Originator),
            ("originatorLabel", AlarmSort::Originator),
            ("assignee", AlarmSort::Assignee),
        ];
        NAMES.into_iter().find(|(known, _)| *known == name).map(|(_, sort)| sort).ok_or_else(|| {
            let names = NAMES.map(|(name, _)| name).join(", ");
            format!("alarms are not sorted by {name:?}; use one of {names}")
        })
    }
}

/// What the searcher knows about other entities.
pub(crate) trait Surroundings {
    /// Whether the caller sees the alarm.
    fn sees(&self, alarm: &Alarm) -> bool;
    /// The entities that the alarm belongs to: its originator first, then those to which it propagates.
    fn entities(&self, alarm: &Alarm) -> Vec<EntityId>;
    /// The name that an alarm is sorted by.
    fn originator_name(&self, alarm: &Alarm) -> String;
    /// The login that an alarm is sorted by.
    fn assignee_name(&self, alarm: &Alarm) -> String;
}

impl AlarmQuery {
    /// Whether an alarm meets all conditions.
    fn finds(&self, alarm: &Alarm, text: Option<&str>, around: &impl Surroundings) -> bool {
        self.meets_status(alarm)
            && (self.severities.is_empty() || self.severities.contains(&alarm.severity))
            && (self.types.is_empty() || self.types.iter().any(|name| **name == *alarm.alarm_type))
            && self.assignee.is_none_or(|assignee| alarm.assignee == Some(assignee))
            && self.from.is_none_or(|from| alarm.created_at >= from)
            && self.to.is_none_or(|to| alarm.created_at <= to)
            && self.entities.as_ref().is_none_or(|entities| {
                entities.contains(&alarm.originator)
                    || !self.originators_only
                        && around.entities(alarm).iter().any(|entity| entities.contains(entity))
            })
            && text.is_none_or(|text| {
                let default = [AlarmSort::Type, AlarmSort::Severity, AlarmSort::Status].map(AlarmText::Of);
                let fields = if self.text_fields.is_empty() { &default[..] } else { &self.text_fields[..] };
                fields.iter().any(|field| text_of(*field, alarm, around).to_lowercase().contains(text))
            })
    }

    fn meets_status(&self, alarm: &Alarm) -> bool {
        let asks = |status| self.statuses.contains(&status);
        let by = |yes, no, is: bool| asks(yes) == asks(no) || asks(if is { yes } else { no });
        by(SearchStatus::Cleared, SearchStatus::Active, alarm.cleared)
            && by(SearchStatus::Ack, SearchStatus::Unack, alarm.acknowledged)
    }

    /// The alarms of a tenant that the query finds, the newest first.
    pub(crate) fn found<'a>(
        &'a self,
        index: &'a Index,
        tenant: Uuid,
        around: &'a impl Surroundings,
    ) -> impl Iterator<Item = &'a Arc<Alarm>> + 'a {
        let text = self.text.as_deref().filter(|text| !text.is_empty()).map(str::to_lowercase);
        let found = move |alarm: &&Arc<Alarm>| {
            alarm.tenant == tenant && self.finds(alarm, text.as_deref(), around) && around.sees(alarm)
        };
        let propagates = index.tenant(tenant).is_some_and(|tenant| tenant.propagates_along_relations());
        let one = self.entities.as_ref().filter(|entities| entities.len() == 1);
        let one = one.and_then(|entities| entities.iter().next());
        // Without propagation an entity is the originator of all its alarms.
        let one = one.filter(|entity| self.originators_only || !propagates && !entity.kind.owns());
        let of_one = one.into_iter().flat_map(move |entity| index.of_originator(*entity));
        let of_tenant = one.is_none().then(|| index.of_tenant(tenant)).into_iter().flatten();
        of_one.chain(of_tenant).filter(found)
    }

    /// The page of the query.
    pub(crate) fn page_of(
        &self,
        index: &Index,
        tenant: Uuid,
        around: &impl Surroundings,
    ) -> Page<Arc<Alarm>> {
        let mut found: Vec<Arc<Alarm>> = self.found(index, tenant, around).cloned().collect();
        found.reverse();
        self.sort_alarms(&mut found, around);
        let total_elements = found.len();
        let page_size = self.page_size.max(1);
        let skipped = self.page.saturating_mul(page_size);
        let data: Vec<_> = found.into_iter().skip(skipped).take(page_size).collect();
        let has_next = !data.is_empty() && skipped.saturating_add(data.len()) < total_elements;
        Page { data, total_pages: total_elements.div_ceil(page_size), total_elements, has_next }
    }

    /// Sorts alarms, which are in the order of their creation.
    fn sort_alarms(&self, alarms: &mut [Arc<Alarm>], around: &impl Surroundings) {
        let by_name = |alarms: &mut [Arc<Alarm>], name: &dyn Fn(&Alarm) -> String| {
            alarms.sort_by_cached_key(|alarm| name(alarm));
        };
        match self.sort {
            AlarmSort::CreatedTime => {}
            AlarmSort::Originator => by_name(alarms, &|alarm| around.originator_name(alarm)),
            AlarmSort::Assignee => by_name(alarms, &|alarm| around.assignee_name(alarm)),
            sort => alarms.sort_by(|one, other| compare(sort, one, other)),
        }
        if !self.ascending {
            alarms.reverse();
        }
        if !self.ranks.is_empty() {
            let rank = |entity: EntityId| self.ranks.get(&entity).copied();
            alarms.sort_by_cached_key(|alarm| {
                let of_originator = rank(alarm.originator);
                of_originator
                    .or_else(|| around.entities(alarm).into_iter().find_map(rank))
                    .unwrap_or(usize::MAX)
            });
        }
    }
}

impl FromStr for AlarmText {
    type Err = String;

    fn from_str(name: &str) -> Result<Self, String> {
        match name {
            "details" => Ok(Self::Details),
            name => name.parse().map(Self::Of),
        }
    }
}

fn text_of(field: AlarmText, alarm: &Alarm, around: &impl Surroundings) -> String {
    let AlarmText::Of(sort) = field else { return alarm.details.clone().into() };
    let millis = |time: Option<Timestamp>| time.map_or_else(String::new, |time| time.millis().to_string());
    match sort {
        AlarmSort::CreatedTime => millis(Some(alarm.created_at)),
        AlarmSort::StartTime => millis(Some(alarm.started_at)),
        AlarmSort::EndTime => millis(Some(alarm.ended_at)),
        AlarmSort::AckTime => millis(alarm.acknowledged_at),
        AlarmSort::ClearTime => millis(alarm.cleared_at),
        AlarmSort::AssignTime => millis(alarm.assigned_at),
        AlarmSort::Type => alarm.alarm_type.to_string(),
        AlarmSort::Severity => alarm.severity.name().to_owned(),
        AlarmSort::Status => alarm.status().name().to_owned(),
        AlarmSort::Originator => around.originator_name(alarm),
        AlarmSort::Assignee => around.assignee_name(alarm),
    }
}

fn compare(sort: AlarmSort, one: &Alarm, other: &Alarm) -> Ordering {
    match sort {
        AlarmSort::StartTime => one.started_at.cmp(&other.started_at),
        AlarmSort::EndTime => one.ended_at.cmp(&other.ended_at),
        AlarmSort::AckTime => one.acknowledged_at.cmp(&other.acknowledged_at),
        AlarmSort::ClearTime => one.cleared_at.cmp(&other.cleared_at),
        AlarmSort::AssignTime => one.assigned_at.cmp(&other.assigned_at),
        AlarmSort::Type => one.alarm_type.cmp(&other.alarm_type),
        AlarmSort::Severity => one.severity.cmp(&other.severity),
        AlarmSort::Status => one.status().cmp(&other.status()),
        AlarmSort::CreatedTime | AlarmSort::Originator | AlarmSort::Assignee => Ordering::Equal,
    }
}
