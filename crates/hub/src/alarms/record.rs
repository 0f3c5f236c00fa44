//! The records of alarms. `docs/format/alarms.md` describes them.
//!
//! Invariants:
//! 1. An entity has at most one record of an active alarm of each type.
//! 2. A change of an alarm, the comment of the system about it, and the evaluation state that made it are one batch: either all of
//!    them survive a crash or none.
//! 3. An answer to a caller, and a notice to a feed, come after the batch is durable.
//! 4. A record is never changed by a read.

use std::sync::Arc;

use kv::{KvError, Space};
use model::Timestamp;
use sensors::alarm_rules::{Propagation, Severity};
use serde::{Deserialize, Serialize};
use serde_json::value::RawValue;
use uuid::Uuid;

use super::alarm::Alarm;
use crate::registry::EntityId;

/// Alarms by their id.
pub(super) const ALARMS: Space = Space::new("alarms");

/// The record of an alarm.
#[derive(Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
struct Record {
    tenant: Uuid,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    customer: Option<Uuid>,
    created_ms: i64,
    #[serde(rename = "type")]
    alarm_type: Arc<str>,
    originator_kind: String,
    originator: Uuid,
    severity: Severity,
    acknowledged: bool,
    cleared: bool,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    assignee: Option<Uuid>,
    start_ms: i64,
    end_ms: i64,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    ack_ms: Option<i64>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    clear_ms: Option<i64>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    assign_ms: Option<i64>,
    details: Box<RawValue>,
    #[serde(default, skip_serializing_if = "is_default")]
    propagate: bool,
    #[serde(default, skip_serializing_if = "is_default")]
    propagate_to_owner: bool,
    #[serde(default, skip_serializing_if = "is_default")]
    propagate_to_tenant: bool,
    #[serde(default, skip_serializing_if = "is_default")]
    propagate_relation_types: Vec<Box<str>>,
    #[serde(default, skip_serializing_if = "is_default")]
    comments: u32,
}

/// The key of an alarm.
pub(super) fn key(id: Uuid) -> Vec<u8> {
    id.as_bytes().to_vec()
}

/// The record of an alarm.
pub(super) fn encode(alarm: &Alarm) -> Vec<u8> {
    let record = Record {
        tenant: alarm.tenant,
        customer: alarm.customer,
        created_ms: alarm.created_at.millis(),
        alarm_type: Arc::clone(&alarm.alarm_type),
        originator_kind: alarm.originator.kind.name().to_owned(),
        originator: alarm.originator.id,
        severity: alarm.severity,
        acknowledged: alarm.acknowledged,
        cleared: alarm.cleared,
        assignee: alarm.assignee,
        start_ms: alarm.started_at.millis(),
        end_ms: alarm.ended_at.millis(),
        ack_ms: alarm.acknowledged_at.map(Timestamp::millis),
        clear_ms: alarm.cleared_at.map(Timestamp::millis),
        assign_ms: alarm.assigned_at.map(Timestamp::millis),
        details: json_text(&alarm.details),
        propagate: alarm.propagation.related,
        propagate_to_owner: alarm.propagation.owner,
        propagate_to_tenant: alarm.propagation.tenant,
        propagate_relation_types: alarm.propagation.relation_types.clone(),
        comments: alarm.comments,
    };
    serde_json::to_vec(&record).expect("BUG: ids, numbers and texts are always JSON")
}

/// Reads what [`encode`] wrote.
pub(super) fn decode(key: &[u8], bytes: &[u8]) -> Result<Alarm, KvError> {
    let id = Uuid::from_slice(key).map_err(|error| damaged(ALARMS, key, &error))?;
    let record: Record = serde_json::from_slice(bytes).map_err(|error| damaged(ALARMS, key, &error))?;
    let kind = record.originator_kind.parse().map_err(|error: String| damaged(ALARMS, key, &error))?;
    Ok(Alarm {
        id,
        tenant: record.tenant,
        customer: record.customer,
        created_at: millis(record.created_ms),
        alarm_type: record.alarm_type,
        originator: EntityId { kind, id: record.originator },
        severity: record.severity,
        acknowledged: record.acknowledged,
        cleared: record.cleared,
        assignee: record.assignee,
        started_at: millis(record.start_ms),
        ended_at: millis(record.end_ms),
        acknowledged_at: record.ack_ms.map(millis),
        cleared_at: record.clear_ms.map(millis),
        assigned_at: record.assign_ms.map(millis),
        details: record.details.get().into(),
        propagation: Propagation {
            related: record.propagate,
            owner: record.propagate_to_owner,
            tenant: record.propagate_to_tenant,
            relation_types: record.propagate_relation_types,
        },
        comments: record.comments,
    })
}

/// JSON text as it is; a JSON string if it is not JSON.
pub(super) fn json_text(text: &str) -> Box<RawValue> {
    RawValue::from_string(text.to_owned())
        .or_else(|_| serde_json::value::to_raw_value(text))
        .expect("BUG: text is always JSON")
}

/// A time of a record.
pub(super) fn millis(millis: i64) -> Timestamp {
    Timestamp::from_millis(millis).unwrap_or(Timestamp::MAX)
}

/// A record that cannot be read.
pub(super) fn damaged(space: Space, key: &[u8], error: &dyn std::fmt::Display) -> KvError {
    let key = key.iter().map(|byte| format!("{byte:02x}")).collect::<String>();
    KvError::Corrupt { path: format!("{space}/{key}").into(), reason: error.to_string() }
}

fn is_default<T: Default + PartialEq>(value: &T) -> bool {
    *value == T::default()
}
