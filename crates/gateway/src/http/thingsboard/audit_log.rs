//! The audit table in ThingsBoard's shapes.

use std::sync::Arc;

use axum::extract::State;
use axum::response::Response;
use hub::audit_log::{AuditRequest, AuditedAct};
use hub::caller::{Action, Caller};
use hub::{EntityId, EntityKind, Hub};
use model::{TimeRange, Timestamp};
use serde_json::{Value as JsonValue, json};
use uuid::Uuid;

use crate::error::ApiError;
use crate::http::limits::PAGE_ENTITIES_MAX;
use crate::http::shapes::entities::{customer_id, entity_id, page_answer};
use crate::http::tools::json::entity;
use crate::http::tools::request::{Params, PathOf, path_id};
use crate::http::tools::route_list::Routes;
use crate::http::tools::session::Session;
use crate::http::tools::state::HttpState;

/// The routes of the audit log.
pub(crate) fn routes() -> Routes {
    Routes::default()
        .get("/api/audit/logs", list)
        .get("/api/audit/logs/user/{id}", list_of_user)
        .get("/api/audit/logs/customer/{id}", list_of_customer)
        .get("/api/audit/logs/entity/{kind}/{id}", list_of_entity)
}

type Answer = Result<Response, ApiError>;

/// ThingsBoard's `ActionType` of each act. Acts that are not here are `UPDATED`.
const ACTION_TYPES: [(&str, &str); 12] = [
    ("add ", "ADDED"),
    ("delete values", "TIMESERIES_DELETED"),
    ("delete attributes", "ATTRIBUTES_DELETED"),
    ("set attributes", "ATTRIBUTES_UPDATED"),
    ("delete relations", "RELATIONS_DELETED"),
    ("delete relation", "RELATION_DELETED"),
    ("save relation", "RELATION_ADD_OR_UPDATE"),
    ("delete ", "DELETED"),
    ("unassign ", "UNASSIGNED_FROM_CUSTOMER"),
    ("assign ", "ASSIGNED_TO_CUSTOMER"),
    ("read credentials", "CREDENTIALS_READ"),
    ("replace credentials", "CREDENTIALS_UPDATED"),
];

fn action_type(act: &str) -> &'static str {
    match act {
        "call device" | "store call of device" => "RPC_CALL",
        "disable user" => "SUSPENDED",
        "enable user" => "ACTIVATED",
        _ => ACTION_TYPES
            .iter()
            .find(|(prefix, _)| act.starts_with(prefix))
            .map_or("UPDATED", |(_, name)| name),
    }
}

fn act_json(hub: &Hub, tenant: Uuid, act: &AuditedAct) -> JsonValue {
    let user = hub.registry().user_by_login(&act.login).filter(|user| user.tenant == tenant);
    // The time is unique, so it identifies the act.
    let id = Uuid::from_u128(u128::from(act.at.micros().unsigned_abs()));
    json!({
        "id": { "id": id },
        "createdTime": act.at.millis(),
        "tenantId": entity("TENANT", tenant),
        "customerId": customer_id(user.as_ref().and_then(|user| user.customer)),
        "entityId": act.entity.map(entity_id),
        "entityName": act.subject,
        "userId": entity("USER", user.map(|user| user.id).unwrap_or_default()),
        "userName": act.login,
        "actionType": action_type(&act.act),
        "actionData": { "act": act.act, "subject": act.subject, "role": act.role },
        "actionStatus": "SUCCESS",
        "actionFailureDetails": "",
    })
}

/// `GET /api/audit/logs`
async fn list(State(state): State<Arc<HttpState>>, session: Session, params: Params) -> Answer {
    page(&state, session, &params, AuditRequest::default(), |_, _, _| true).await
}

/// `GET /api/audit/logs/user/{userId}`: what a user did.
async fn list_of_user(
    State(state): State<Arc<HttpState>>,
    session: Session,
    PathOf(id): PathOf<String>,
    params: Params,
) -> Answer {
    let request = AuditRequest { user: Some(path_id(&id)?), ..AuditRequest::default() };
    page(&state, session, &params, request, |_, _, _| true).await
}

/// `GET /api/audit/logs/entity/{entityType}/{entityId}`: what was done with an entity.
async fn list_of_entity(
    State(state): State<Arc<HttpState>>,
    session: Session,
    PathOf((kind, id)): PathOf<(String, String)>,
    params: Params,
) -> Answer {
    let kind: EntityKind = kind.parse().map_err(ApiError::argument)?;
    let entity = Some(EntityId { kind, id: path_id(&id)? });
    page(&state, session, &params, AuditRequest { entity, ..AuditRequest::default() }, |_, _, _| true).await
}

/// `GET /api/audit/logs/customer/{customerId}`: what was done with a customer, with what is assigned to it now, and by its users.
async fn list_of_customer(
    State(state): State<Arc<HttpState>>,
    session: Session,
    PathOf(id): PathOf<String>,
    params: Params,
) -> Answer {
    session.check(Action::ReadAudit)?;
    let customer = state.hub.customer(session.caller(), path_id(&id)?)?.id;
    let wanted = move |hub: &Hub, caller: &Caller, act: &AuditedAct| {
        let entity = act.entity.and_then(|entity| hub.visible_entity(caller, entity).ok());
        let user = hub.registry().user_by_login(&act.login);
        entity.is_some_and(|entity| entity.customer() == Some(customer))
            || user.is_some_and(|user| user.customer == Some(customer))
    };
    page(&state, session, &params, AuditRequest::default(), wanted).await
}

async fn page(
    state: &HttpState,
    session: Session,
    params: &Params,
    request: AuditRequest,
    wanted: impl Fn(&Hub, &Caller, &AuditedAct) -> bool + Send + 'static,
) -> Answer {
    session.check(Action::ReadAudit)?;
    let request = parse(params, request)?;
    let types: Vec<String> = params.list("actionTypes").map(str::to_owned).collect();
    let hub = Arc::clone(&state.hub);
    let read = move || {
        let caller = session.caller();
        let found = hub.audited_acts(caller, &request, |act| {
            (types.is_empty() || types.iter().any(|name| name == action_type(&act.act)))
                && wanted(&hub, caller, act)
        })?;
        Ok(page_answer(&found, |act| act_json(&hub, caller.tenant(), act)))
    };
    state.reads.run(read).await?
}

fn parse(params: &Params, request: AuditRequest) -> Result<AuditRequest, ApiError> {
    if let Some(other) = params.text("sortProperty").filter(|name| *name != "createdTime") {
        return Err(ApiError::argument(format!("sortProperty is {other:?}; acts are sorted by createdTime")));
    }
    let page_size = params.page_size(PAGE_ENTITIES_MAX)?;
    let page: u32 = params.number("page")?.unwrap_or(0);
    let time = |name: &str, default: Timestamp| {
        let millis: Option<i64> = params.number(name)?;
        let wrong = || ApiError::argument(format!("{name} is not a time in milliseconds"));
        millis.map_or(Ok(default), |millis| Timestamp::from_millis(millis).ok_or_else(wrong))
    };
    let begin = time("startTime", TimeRange::ALL.start)?;
    let end = time("endTime", TimeRange::ALL.end)?;
    // ThingsBoard's end is part of the range.
    let end = if params.text("endTime").is_some() { end.saturating_add_micros(1_000) } else { end };
    // Without an order the newest come first, which is what people look for.
    let ascending = params.text("sortOrder").is_some() && !params.descending()?;
    Ok(AuditRequest {
        range: Some(TimeRange::new(begin, end)),
        filter: params.text("textSearch").map(str::to_owned),
        ascending,
        page: page as usize,
        page_size,
        ..request
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn acts_have_thingsboards_types() {
        for (act, name) in [
            ("add device", "ADDED"),
            ("delete device", "DELETED"),
            ("delete relations", "RELATIONS_DELETED"),
            ("set attributes", "ATTRIBUTES_UPDATED"),
            ("unassign device", "UNASSIGNED_FROM_CUSTOMER"),
            ("call device", "RPC_CALL"),
            ("back up", "UPDATED"),
        ] {
            assert_eq!(action_type(act), name, "{act}");
        }
    }

    #[test]
    fn wrong_requests_are_refused() {
        let refused =
            |query: &str| parse(&Params::parse(query), AuditRequest::default()).unwrap_err().message;
        assert!(refused("page=0").contains("pageSize"));
        assert!(refused("pageSize=1&sortProperty=userName").contains("createdTime"));
        assert!(refused("pageSize=1&startTime=soon").contains("startTime"));
        let newest = parse(&Params::parse("pageSize=1"), AuditRequest::default()).unwrap();
        assert!(!newest.ascending);
    }
}
