//! Alarms and comments as JSON.

use hub::Hub;
use hub::alarms::{Alarm, AlarmComment};
use hub::registry::{Entity, User};
use model::Timestamp;
use serde_json::value::RawValue;
use serde_json::{Value as JsonValue, json};

use crate::http::tools::json::entity;

/// ThingsBoard's `Alarm`.
pub(crate) fn alarm_json(alarm: &Alarm) -> JsonValue {
    let millis = |time: Option<Timestamp>| time.map_or(0, Timestamp::millis);
    let details: JsonValue = serde_json::from_str(&alarm.details).unwrap_or(JsonValue::Null);
    json!({
        "id": entity("ALARM", alarm.id),
        "createdTime": alarm.created_at.millis(),
        "tenantId": entity("TENANT", alarm.tenant),
        "customerId": alarm.customer.map(|id| entity("CUSTOMER", id)),
        "type": &*alarm.alarm_type,
        "originator": entity(alarm.originator.kind.name(), alarm.originator.id),
        "severity": alarm.severity.name(),
        "acknowledged": alarm.acknowledged,
        "cleared": alarm.cleared,
        "assigneeId": alarm.assignee.map(|id| entity("USER", id)),
        "startTs": alarm.started_at.millis(),
        "endTs": alarm.ended_at.millis(),
        "ackTs": millis(alarm.acknowledged_at),
        "clearTs": millis(alarm.cleared_at),
        "assignTs": millis(alarm.assigned_at),
        "details": details,
        "propagate": alarm.propagation.related,
        "propagateToOwner": alarm.propagation.owner,
        "propagateToTenant": alarm.propagation.tenant,
        "propagateRelationTypes": alarm.propagation.relation_types,
        "name": &*alarm.alarm_type,
        "status": alarm.status().name(),
    })
}

/// ThingsBoard's `AlarmInfo`: the alarm with the names of its originator and its assignee.
pub(crate) fn alarm_info_json(hub: &Hub, alarm: &Alarm) -> JsonValue {
    let mut info = alarm_json(alarm);
    let originator = hub.originator(alarm);
    let name = originator.as_ref().map(Entity::name);
    let label = originator.as_ref().and_then(Entity::label).filter(|label| !label.is_empty());
    info["originatorName"] = name.into();
    info["originatorLabel"] = label.or(name).into();
    info["assignee"] = hub.assignee(alarm).map_or(JsonValue::Null, |user| assignee(&user));
    info
}

/// ThingsBoard's `AlarmAssignee`.
fn assignee(user: &User) -> JsonValue {
    json!({
        "id": entity("USER", user.id),
        "firstName": user.first_name,
        "lastName": user.last_name,
        "email": user.login,
    })
}

/// ThingsBoard's `AlarmComment`.
pub(super) fn comment_json(comment: &AlarmComment) -> JsonValue {
    let content: JsonValue = serde_json::from_str(&comment.comment).unwrap_or(JsonValue::Null);
    json!({
        "id": { "id": comment.id },
        "createdTime": comment.created_at.millis(),
        "alarmId": entity("ALARM", comment.alarm),
        "userId": comment.user.map(|id| entity("USER", id)),
        "type": if comment.system { "SYSTEM" } else { "OTHER" },
        "comment": content,
        "name": &*comment.comment,
    })
}

/// ThingsBoard's `AlarmCommentInfo`: the comment with the name of its user.
pub(super) fn comment_info_json(hub: &Hub, comment: &AlarmComment) -> JsonValue {
    let mut info = comment_json(comment);
    let user = comment.user.and_then(|id| hub.registry().user_by_id(id));
    let user = user.as_deref();
    info["firstName"] = user.and_then(|user| user.first_name.as_deref()).into();
    info["lastName"] = user.and_then(|user| user.last_name.as_deref()).into();
    info["email"] = user.map(|user| user.login.as_str()).into();
    info
}

/// JSON text of a body; `None` for `null` and if it is absent.
pub(super) fn text(raw: Option<&RawValue>) -> Option<String> {
    raw.map(|raw| raw.get().to_owned()).filter(|text| text != "null")
}
