//! An alarm and its states.

use std::fmt;
use std::str::FromStr;
use std::sync::Arc;

use model::Timestamp;
use sensors::alarm_rules::{ALARM_TYPE_BYTES_MAX, Propagation, Severity};
use uuid::Uuid;

use super::error::AlarmError;
use super::limits::{ALARM_DETAILS_BYTES_MAX, ALARM_RELATION_TYPES_MAX};
use crate::registry::EntityId;

/// An alarm of an entity. Times are whole milliseconds.
#[derive(Debug, Clone, PartialEq)]
pub struct Alarm {
    /// Identity.
    pub id: Uuid,
    pub tenant: Uuid,
    /// The customer that its originator had when the alarm began.
    pub customer: Option<Uuid>,
    /// When the record was made.
    pub created_at: Timestamp,
    /// The type. An entity has at most one active alarm of a type.
    pub alarm_type: Arc<str>,
    /// The entity that it is about.
    pub originator: EntityId,
    pub severity: Severity,
    /// Whether a user has seen it.
    pub acknowledged: bool,
    /// Whether it is over.
    pub cleared: bool,
    /// The user who looks after it.
    pub assignee: Option<Uuid>,
    /// When its condition began to hold.
    pub started_at: Timestamp,
    /// When its condition last held.
    pub ended_at: Timestamp,
    /// When a user acknowledged it.
    pub acknowledged_at: Option<Timestamp>,
    /// When it was cleared.
    pub cleared_at: Option<Timestamp>,
    /// When it was assigned, or the assignment was taken back.
    pub assigned_at: Option<Timestamp>,
    /// A JSON document as text.
    pub details: Box<str>,
    /// To which other entities it belongs.
    pub propagation: Propagation,
    /// How many comments it has.
    pub comments: u32,
}

/// Whether an alarm is over and whether it was acknowledged, in ThingsBoard's words (`AlarmStatus`).
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum AlarmStatus {
    /// It continues, and nobody has acknowledged it.
    ActiveUnack,
    /// It continues.
    ActiveAck,
    /// It is over, and nobody has acknowledged it.
    ClearedUnack,
    /// It is over.
    ClearedAck,
}

/// A condition on the status of alarms (`AlarmSearchStatus`).
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum SearchStatus {
    /// All alarms.
    Any,
    /// Those that continue.
    Active,
    /// Those that are over.
    Cleared,
    /// Those that were acknowledged.
    Ack,
    /// Those that were not.
    Unack,
}

/// The statement of a caller about an alarm.
#[derive(Debug, Clone, PartialEq)]
pub struct NewAlarm {
    /// An existing alarm to change; `None` for a new one.
    pub id: Option<Uuid>,
    /// The entity that it is about.
    pub originator: EntityId,
    pub alarm_type: String,
    pub severity: Severity,
    /// Acknowledge it. An alarm that is acknowledged stays so.
    pub acknowledged: bool,
    /// Clear it. An alarm that is cleared stays so.
    pub cleared: bool,
    /// The user who looks after it; nobody if it is `None`.
    pub assignee: Option<Uuid>,
    /// When it began; now if it is `None`.
    pub started_at: Option<Timestamp>,
    /// When it last held; the start, or now for an alarm that exists, if it is `None`.
    pub ended_at: Option<Timestamp>,
    /// When it was acknowledged; now if it is `None`.
    pub acknowledged_at: Option<Timestamp>,
    /// When it was cleared; now if it is `None`.
    pub cleared_at: Option<Timestamp>,
    /// When it was assigned; now if it is `None`.
    pub assigned_at: Option<Timestamp>,
    /// A JSON document as text; an alarm that exists keeps its own if it is `None`.
    pub details: Option<String>,
    /// To which other entities it belongs.
    pub propagation: Propagation,
}

impl Alarm {
    pub fn status(&self) -> AlarmStatus {
        match (self.cleared, self.acknowledged) {
            (false, false) => AlarmStatus::ActiveUnack,
            (false, true) => AlarmStatus::ActiveAck,
            (true, false) => AlarmStatus::ClearedUnack,
            (true, true) => AlarmStatus::ClearedAck,
        }
    }

    /// The entities that the alarm belongs to, without those above it along relations: its originator, and its owners if it
    /// propagates to them.
    pub fn entities(&self) -> impl Iterator<Item = EntityId> {
        let Propagation { owner, tenant, .. } = self.propagation;
        let customer = self.customer.filter(|_| owner).map(EntityId::customer);
        let tenant = (tenant || owner && self.customer.is_none()).then(|| EntityId::tenant(self.tenant));
        [Some(self.originator), customer, tenant].into_iter().flatten()
    }
}

impl AlarmStatus {
    /// All statuses.
    pub const ALL: [Self; 4] = [Self::ActiveUnack, Self::ActiveAck, Self::ClearedUnack, Self::ClearedAck];

    /// ThingsBoard's name.
    pub const fn name(self) -> &'static str {
        match self {
            Self::ActiveUnack => "ACTIVE_UNACK",
            Self::ActiveAck => "ACTIVE_ACK",
            Self::ClearedUnack => "CLEARED_UNACK",
            Self::ClearedAck => "CLEARED_ACK",
        }
    }

    /// The conditions that only this status meets.
    pub fn conditions(self) -> [SearchStatus; 2] {
        match self {
            Self::ActiveUnack => [SearchStatus::Active, SearchStatus::Unack],
            Self::ActiveAck => [SearchStatus::Active, SearchStatus::Ack],
            Self::ClearedUnack => [SearchStatus::Cleared, SearchStatus::Unack],
            Self::ClearedAck => [SearchStatus::Cleared, SearchStatus::Ack],
        }
    }
}

impl FromStr for AlarmStatus {
    type Err = String;

    fn from_str(name: &str) -> Result<Self, String> {
        Self::ALL.into_iter().find(|status| status.name() == name).ok_or_else(|| {
            let names = Self::ALL.map(Self::name).join(", ");
            format!("the status is {name:?}; it must be one of {names}")
        })
    }
}

impl fmt::Display for AlarmStatus {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

impl SearchStatus {
    /// All conditions.
    pub const ALL: [Self; 5] = [Self::Any, Self::Active, Self::Cleared, Self::Ack, Self::Unack];

    /// ThingsBoard's name.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Any => "ANY",
            Self::Active => "ACTIVE",
            Self::Cleared => "CLEARED",
            Self::Ack => "ACK",
            Self::Unack => "UNACK",
        }
    }
}

impl FromStr for SearchStatus {
    type Err = String;

    fn from_str(name: &str) -> Result<Self, String> {
        Self::ALL.into_iter().find(|status| status.name() == name).ok_or_else(|| {
            let names = Self::ALL.map(Self::name).join(", ");
            format!("the status is {name:?}; it must be one of {names}")
        })
    }
}

impl NewAlarm {
    /// Refuses what no alarm can have.
    pub(crate) fn check(&self) -> Result<(), AlarmError> {
        if self.alarm_type.is_empty() {
            return Err(AlarmError::Invalid("the alarm has no type; name one".into()));
        }
        over_limit("bytes of the type", self.alarm_type.len(), ALARM_TYPE_BYTES_MAX, "ALARM_TYPE_BYTES_MAX")?;
        let types = &self.propagation.relation_types;
        over_limit("types of relations", types.len(), ALARM_RELATION_TYPES_MAX, "ALARM_RELATION_TYPES_MAX")?;
        for name in types {
            let what = "bytes of a type of relations";
            over_limit(what, name.len(), ALARM_TYPE_BYTES_MAX, "ALARM_TYPE_BYTES_MAX")?;
        }
        check_details(self.details.as_deref())
    }
}

/// Refuses details that are too long.
pub(crate) fn check_details(details: Option<&str>) -> Result<(), AlarmError> {
    let bytes = details.map_or(0, str::len);
    over_limit("bytes of the details", bytes, ALARM_DETAILS_BYTES_MAX, "ALARM_DETAILS_BYTES_MAX")
}

pub(crate) fn over_limit(
    what: &'static str,
    actual: usize,
    limit: usize,
    name: &'static str,
) -> Result<(), AlarmError> {
    if actual > limit { Err(AlarmError::OverLimit { what, actual, limit, name }) } else { Ok(()) }
}
