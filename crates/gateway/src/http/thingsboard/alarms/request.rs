//! Requests about alarms.

use std::collections::HashSet;
use std::str::FromStr;

use hub::alarms::{AlarmError, AlarmQuery, AlarmSort, AlarmStatus, NewAlarm, Propagation, SearchStatus};
use hub::{Blame, EntityId, EntityKind};
use model::Timestamp;
use serde::Deserialize;
use serde_json::value::RawValue;
use uuid::Uuid;

use super::json::text;
use crate::error::{ApiError, ErrorCode};
use crate::http::limits::ALARM_PAGE_MAX;
use crate::http::tools::request::Params;

/// An entity in a body.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "camelCase")]
pub(crate) struct EntityJson {
    pub(crate) entity_type: Option<String>,
    pub(crate) id: Uuid,
}

impl EntityJson {
    /// The entity, whose kind must be named.
    pub(crate) fn entity(&self, what: &str) -> Result<EntityId, ApiError> {
        let kind = self.entity_type.as_deref();
        let kind = kind.ok_or_else(|| ApiError::argument(format!("{what} has no entityType")))?;
        Ok(EntityId { kind: parsed(kind)?, id: self.id })
    }
}

/// The body of an alarm.
#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
pub(crate) struct AlarmBody {
    id: Option<EntityJson>,
    originator: EntityJson,
    #[serde(rename = "type")]
    alarm_type: String,
    severity: String,
    #[serde(default)]
    acknowledged: bool,
    #[serde(default)]
    cleared: bool,
    assignee_id: Option<EntityJson>,
    start_ts: Option<i64>,
    end_ts: Option<i64>,
    ack_ts: Option<i64>,
    clear_ts: Option<i64>,
    assign_ts: Option<i64>,
    details: Option<Box<RawValue>>,
    #[serde(default)]
    propagate: bool,
    #[serde(default)]
    propagate_to_owner: bool,
    #[serde(default)]
    propagate_to_tenant: bool,
    propagate_relation_types: Option<Vec<String>>,
}

impl AlarmBody {
    pub(super) fn alarm(self) -> Result<NewAlarm, ApiError> {
        let types = self.propagate_relation_types.unwrap_or_default();
        Ok(NewAlarm {
            id: self.id.map(|id| id.id),
            originator: self.originator.entity("the originator")?,
            alarm_type: self.alarm_type,
            severity: parsed(&self.severity)?,
            acknowledged: self.acknowledged,
            cleared: self.cleared,
            assignee: self.assignee_id.map(|id| id.id),
            started_at: time("startTs", self.start_ts)?,
            ended_at: time("endTs", self.end_ts)?,
            acknowledged_at: time("ackTs", self.ack_ts)?,
            cleared_at: time("clearTs", self.clear_ts)?,
            assigned_at: time("assignTs", self.assign_ts)?,
            details: text(self.details.as_deref()),
            propagation: Propagation {
                related: self.propagate,
                owner: self.propagate_to_owner,
                tenant: self.propagate_to_tenant,
                relation_types: types.into_iter().map(Into::into).collect(),
            },
        })
    }
}

/// A time of a body in milliseconds; 0 counts as absent.
pub(crate) fn time(name: &str, millis: Option<i64>) -> Result<Option<Timestamp>, ApiError> {
    let Some(millis) = millis.filter(|millis| *millis != 0) else { return Ok(None) };
    let time = Timestamp::from_millis(millis).filter(|_| millis > 0);
    let wrong = || ApiError::argument(format!("{name} is {millis}; it must be milliseconds since 1970"));
    time.map(Some).ok_or_else(wrong)
}

/// The entity of a path.
pub(super) fn entity_of(kind: &str, id: &str) -> Result<EntityId, ApiError> {
    Ok(EntityId { kind: parsed::<EntityKind>(kind)?, id: id_of(id, "an entity")? })
}

/// An id of a path.
pub(super) fn id_of(id: &str, what: &str) -> Result<Uuid, ApiError> {
    let wrong = |_| ApiError::argument(format!("{id:?} is not the id of {what}; ids are UUIDs"));
    Uuid::parse_str(id).map_err(wrong)
}

/// The search of version 1: one condition on the status.
pub(super) fn query_v1(params: &Params, entity: Option<EntityId>) -> Result<AlarmQuery, ApiError> {
    let mut query = query(params, entity)?;
    query.statuses = statuses(params)?;
    Ok(query)
}

/// The search of version 2: lists of statuses, severities and types.
pub(super) fn query_v2(params: &Params, entity: Option<EntityId>) -> Result<AlarmQuery, ApiError> {
    let mut query = query(params, entity)?;
    query.statuses = list(params, "statusList")?;
    query.severities = list(params, "severityList")?;
    query.types = params.list("typeList").map(str::to_owned).collect();
    Ok(query)
}

/// The conditions of `searchStatus` or `status`.
pub(super) fn statuses(params: &Params) -> Result<Vec<SearchStatus>, ApiError> {
    match (params.text("searchStatus"), params.text("status")) {
        (Some(_), Some(_)) => {
            Err(ApiError::bad_request("searchStatus and status cannot both be named; leave one of them out"))
        }
        (Some(search), None) => Ok(vec![parsed(search)?]),
        (None, Some(status)) => Ok(parsed::<AlarmStatus>(status)?.conditions().to_vec()),
        (None, None) => Ok(Vec::new()),
    }
}

/// The assignee of a search.
pub(super) fn assignee(params: &Params) -> Result<Option<Uuid>, ApiError> {
    params.text("assigneeId").map(|id| id_of(id, "a user")).transpose()
}

fn query(params: &Params, entity: Option<EntityId>) -> Result<AlarmQuery, ApiError> {
    let (page, page_size) = page(params)?;
    let sort = params.text("sortProperty").map(parsed::<AlarmSort>).transpose()?;
    let descending = params.descending()?;
    let moment = |name| {
        let millis: Option<i64> = params.number(name)?;
        time(name, millis)
    };
    Ok(AlarmQuery {
        entities: entity.map(|entity| HashSet::from([entity])),
        assignee: assignee(params)?,
        from: moment("startTime")?,
        to: moment("endTime")?,
        text: params.text("textSearch").map(str::to_owned),
        // Without an order the newest come first.
        ascending: sort.is_some() && !descending,
        sort: sort.unwrap_or_default(),
        page,
        page_size,
        ..AlarmQuery::default()
    })
}

/// `page` and `pageSize`.
pub(super) fn page(params: &Params) -> Result<(usize, usize), ApiError> {
    Ok((params.number("page")?.unwrap_or(0), params.page_size(ALARM_PAGE_MAX)?))
}

fn list<T: FromStr<Err = String>>(params: &Params, name: &str) -> Result<Vec<T>, ApiError> {
    params.list(name).map(parsed).collect()
}

/// A name of a body or a parameter.
pub(crate) fn parsed<T: FromStr<Err = String>>(text: &str) -> Result<T, ApiError> {
    text.parse().map_err(|reason: String| ApiError::argument(reason))
}

impl From<AlarmError> for ApiError {
    fn from(error: AlarmError) -> Self {
        let message = error.to_string();
        match (error.blame(), error) {
            (_, AlarmError::Forbidden(error)) => error.into(),
            (_, AlarmError::Registry(error)) => error.into(),
            (_, AlarmError::Kv(error)) => error.into(),
            (_, AlarmError::Unknown(_) | AlarmError::UnknownComment { .. }) => Self::not_found(message),
            (_, AlarmError::Already(_)) => Self::bad_request(message),
            (Blame::Caller, _) => Self::argument(message),
            (Blame::Busy, _) => Self::busy(message),
            (Blame::Operator, _) => Self::internal(message),
        }
    }
}

/// The refusal of a comment of the system or of nobody.
pub(super) fn wrong_comment(message: &str) -> ApiError {
    let status = axum::http::StatusCode::BAD_REQUEST;
    ApiError::new(status, ErrorCode::BadRequest, "comment", message)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_versions_of_searches_name_statuses_in_different_ways() {
        let v1 = |text: &str| query_v1(&Params::parse(text), None);
        let v2 = |text: &str| query_v2(&Params::parse(text), None);
        let query = v1("pageSize=10&status=CLEARED_UNACK&startTime=5&endTime=0").unwrap();
        assert_eq!(query.statuses, [SearchStatus::Cleared, SearchStatus::Unack]);
        assert_eq!((query.from.map(Timestamp::millis), query.to), (Some(5), None));
        assert!(!query.ascending, "the newest come first");
        let query = v2(
            "pageSize=10&statusList=ACTIVE,ACK&severityList=MAJOR&typeList=a&typeList=b,c&sortProperty=type",
        )
        .unwrap();
        assert_eq!(query.statuses, [SearchStatus::Active, SearchStatus::Ack]);
        assert_eq!((query.types.len(), query.severities.len(), query.ascending), (3, 1, true));
        for (text, part) in [
            ("page=1", "pageSize"),
            ("pageSize=1&searchStatus=OPEN", "CLEARED"),
            ("pageSize=1&searchStatus=ACK&status=ACTIVE_ACK", "cannot both"),
            ("pageSize=1&sortProperty=color", "createdTime"),
            ("pageSize=1&assigneeId=me", "a user"),
        ] {
            let error = v1(text).unwrap_err();
            assert!(error.message.contains(part), "{text}: {}", error.message);
        }
        assert!(v2("pageSize=1&severityList=HIGH").unwrap_err().message.contains("CRITICAL"));
    }
}
