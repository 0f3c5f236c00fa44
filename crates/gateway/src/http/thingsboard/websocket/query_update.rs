//! Messages of subscriptions by queries (ThingsBoard's `CmdUpdate` and its kinds).

use serde::Serialize;
use serde::ser::Serializer;

use super::update::{error_code, text};
use crate::error::ApiError;
use crate::http::limits::ALARM_QUERY_ENTITIES_MAX;
use crate::http::thingsboard::entity_query::AlarmDataPage;

/// The kind of a message.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum UpdateType {
    EntityData,
    EntityCount,
    AlarmData,
    AlarmCount,
    AlarmStatus,
    Notifications,
    NotificationsCount,
}

impl UpdateType {
    /// ThingsBoard's name (`CmdUpdateType`).
    const fn name(self) -> &'static str {
        match self {
            Self::EntityData => "ENTITY_DATA",
            Self::EntityCount => "COUNT_DATA",
            Self::AlarmData => "ALARM_DATA",
            Self::AlarmCount => "ALARM_COUNT_DATA",
            Self::AlarmStatus => "ALARM_STATUS",
            Self::Notifications => "NOTIFICATIONS",
            Self::NotificationsCount => "NOTIFICATIONS_COUNT",
        }
    }

    /// The kind of the messages that answer a command.
    pub(crate) fn of_command(name: &str) -> Option<Self> {
        Some(match name {
            "ENTITY_DATA" | "ENTITY_DATA_UNSUBSCRIBE" => Self::EntityData,
            "ENTITY_COUNT" | "ENTITY_COUNT_UNSUBSCRIBE" => Self::EntityCount,
            "ALARM_DATA" | "ALARM_DATA_UNSUBSCRIBE" => Self::AlarmData,
            "ALARM_COUNT" | "ALARM_COUNT_UNSUBSCRIBE" => Self::AlarmCount,
            "ALARM_STATUS" | "ALARM_STATUS_UNSUBSCRIBE" => Self::AlarmStatus,
            "NOTIFICATIONS"
            | "NOTIFICATIONS_UNSUBSCRIBE"
            | "MARK_NOTIFICATIONS_AS_READ"
            | "MARK_ALL_NOTIFICATIONS_AS_READ" => Self::Notifications,
            "NOTIFICATIONS_COUNT" => Self::NotificationsCount,
            _ => return None,
        })
    }
}

impl Serialize for UpdateType {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.serialize_str(self.name())
    }
}

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct DataMessage<'a, D, U> {
    cmd_id: i64,
    error_code: u16,
    error_msg: Option<&'a str>,
    cmd_update_type: UpdateType,
    data: Option<D>,
    update: Option<U>,
    allowed_entities: usize,
    /// Only in messages with alarms.
    #[serde(skip_serializing_if = "Option::is_none")]
    total_entities: Option<usize>,
}

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct StatusMessage<'a> {
    cmd_id: i64,
    error_code: u16,
    error_msg: Option<&'a str>,
    cmd_update_type: UpdateType,
    active: bool,
}

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct CountMessage<'a> {
    cmd_id: i64,
    error_code: u16,
    error_msg: Option<&'a str>,
    cmd_update_type: UpdateType,
    count: usize,
}

/// A message with the whole page of a subscription.
pub(crate) fn page_message(
    id: i64,
    kind: UpdateType,
    page: &impl Serialize,
    allowed_entities: usize,
) -> Result<String, ApiError> {
    text(&DataMessage {
        cmd_id: id,
        error_code: 0,
        error_msg: None,
        cmd_update_type: kind,
        data: Some(page),
        update: None::<()>,
        allowed_entities,
        total_entities: None,
    })
}

/// A message with the whole page of a subscription of alarms, and the number of entities that its query names.
pub(crate) fn alarm_page_message(
    id: i64,
    page: &AlarmDataPage,
    total_entities: usize,
) -> Result<String, ApiError> {
    text(&DataMessage {
        cmd_id: id,
        error_code: 0,
        error_msg: None,
        cmd_update_type: UpdateType::AlarmData,
        data: Some(page),
        update: None::<()>,
        allowed_entities: ALARM_QUERY_ENTITIES_MAX,
        total_entities: Some(total_entities),
    })
}

/// A message that states whether an entity has active alarms.
pub(crate) fn alarm_status_message(id: i64, active: bool) -> String {
    let kind = UpdateType::AlarmStatus;
    let message = StatusMessage { cmd_id: id, error_code: 0, error_msg: None, cmd_update_type: kind, active };
    text(&message).expect("BUG: a boolean fits into an answer")
}

/// A message with changes of a subscription.
pub(crate) fn changes_message(
    id: i64,
    kind: UpdateType,
    changes: &impl Serialize,
    allowed_entities: usize,
) -> Result<String, ApiError> {
    text(&DataMessage {
        cmd_id: id,
        error_code: 0,
        error_msg: None,
        cmd_update_type: kind,
        data: None::<()>,
        update: Some(changes),
        allowed_entities,
        total_entities: None,
    })
}

/// A message with a count.
pub(crate) fn count_message(id: i64, kind: UpdateType, count: usize) -> String {
    let message = CountMessage { cmd_id: id, error_code: 0, error_msg: None, cmd_update_type: kind, count };
    text(&message).expect("BUG: a number fits into an answer")
}

/// A message with an error.
pub(crate) fn query_error_message(id: i64, kind: UpdateType, error: &ApiError) -> String {
    let (error_code, error_msg) = (error_code(error), Some(error.message.as_str()));
    let message = match kind {
        UpdateType::EntityCount | UpdateType::AlarmCount => {
            text(&CountMessage { cmd_id: id, error_code, error_msg, cmd_update_type: kind, count: 0 })
        }
        UpdateType::AlarmStatus => {
            text(&StatusMessage { cmd_id: id, error_code, error_msg, cmd_update_type: kind, active: false })
        }
        _ => text(&DataMessage {
            cmd_id: id,
            error_code,
            error_msg,
            cmd_update_type: kind,
            data: None::<()>,
            update: None::<()>,
            allowed_entities: 0,
            total_entities: (kind == UpdateType::AlarmData).then_some(0),
        }),
    };
    message.expect("BUG: a reason fits into an answer")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn messages_have_thingsboards_shapes() {
        assert_eq!(
            changes_message(3, UpdateType::EntityData, &[1], 10_000).unwrap(),
            r#"{"cmdId":3,"errorCode":0,"errorMsg":null,"cmdUpdateType":"ENTITY_DATA","data":null,"update":[1],"allowedEntities":10000}"#
        );
        assert_eq!(
            count_message(4, UpdateType::EntityCount, 7),
            r#"{"cmdId":4,"errorCode":0,"errorMsg":null,"cmdUpdateType":"COUNT_DATA","count":7}"#
        );
        assert_eq!(
            query_error_message(5, UpdateType::EntityData, &ApiError::argument("no")),
            r#"{"cmdId":5,"errorCode":2,"errorMsg":"no","cmdUpdateType":"ENTITY_DATA","data":null,"update":null,"allowedEntities":0}"#
        );
        assert_eq!(
            alarm_status_message(6, true),
            r#"{"cmdId":6,"errorCode":0,"errorMsg":null,"cmdUpdateType":"ALARM_STATUS","active":true}"#
        );
    }
}
