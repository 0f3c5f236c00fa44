//! What devices, assets and entity views share over REST: customers have them, and they have infos and types.

use std::collections::BTreeSet;
use std::sync::Arc;

use axum::extract::State;
use axum::response::IntoResponse;
use hub::caller::{Action, Caller};
use hub::registry::{Kind, RegistryError};
use hub::{Entity, Hub};
use serde_json::{Value as JsonValue, json};
use uuid::Uuid;

use super::kind::Shown;
use super::relations::DeviceQueryJson;
use crate::error::ApiError;
use crate::http::shapes::entities::{Listing, ids, page_answer};
use crate::http::tools::error_response::Answer;
use crate::http::tools::json::{Json, entity};
use crate::http::tools::request::{JsonBody, Params, PathOf, path_id};
use crate::http::tools::session::Session;
use crate::http::tools::state::HttpState;

/// Whether a listing shows an entity.
pub(crate) type Wanted<T> = Box<dyn Fn(&Hub, &Caller, &T) -> bool + Send>;

pub(crate) type Assign<T> = fn(&Hub, &Caller, Uuid, Option<Uuid>) -> Result<Arc<T>, RegistryError>;

/// A kind of entities that are assigned to customers.
pub(crate) trait Assigned: Kind + Shown {
    /// The path that lists them.
    const LIST: &'static str;
    /// The parameter of that path for the one with a name.
    const NAME: &'static str;
    const ASSIGN: Assign<Self>;

    /// ThingsBoard's form with the names of the customer and the type.
    fn info(&self, hub: &Hub, caller: &Caller) -> JsonValue;
    /// The conditions in the parameters of a listing.
    fn wanted(params: &Params, with_infos: bool) -> Result<Wanted<Self>, ApiError>;
}

/// `GET /api/tenant/devices?deviceName=` for one, `?pageSize=&page=` for a page.
pub(crate) async fn list<T: Assigned>(
    State(state): State<Arc<HttpState>>,
    session: Session,
    params: Params,
) -> Answer {
    if let Some(name) = params.text(T::NAME) {
        let found = state.hub.find_named::<T>(session.caller(), name)?;
        return Ok(Json(found.json(session.caller())).into_response());
    }
    page::<T>(&state, session, &params, None, false).await
}

/// `GET /api/tenant/deviceInfos`
pub(crate) async fn list_infos<T: Assigned>(
    State(state): State<Arc<HttpState>>,
    session: Session,
    params: Params,
) -> Answer {
    page::<T>(&state, session, &params, None, true).await
}

/// `GET /api/customer/{customerId}/devices`
pub(crate) async fn list_of_customer<T: Assigned>(
    State(state): State<Arc<HttpState>>,
    session: Session,
    PathOf(customer): PathOf<String>,
    params: Params,
) -> Answer {
    let customer = state.hub.customer(session.caller(), path_id(&customer)?)?.id;
    page::<T>(&state, session, &params, Some(customer), false).await
}

/// `GET /api/customer/{customerId}/deviceInfos`
pub(crate) async fn list_infos_of_customer<T: Assigned>(
    State(state): State<Arc<HttpState>>,
    session: Session,
    PathOf(customer): PathOf<String>,
    params: Params,
) -> Answer {
    let customer = state.hub.customer(session.caller(), path_id(&customer)?)?.id;
    page::<T>(&state, session, &params, Some(customer), true).await
}

/// A page of entities: those of a customer, or all that the caller sees.
async fn page<T: Assigned>(
    state: &HttpState,
    session: Session,
    params: &Params,
    customer: Option<Uuid>,
    with_infos: bool,
) -> Answer {
    let listing = Listing::parse(params, T::KIND)?;
    let wanted = T::wanted(params, with_infos)?;
    let hub = Arc::clone(&state.hub);
    // It visits every entity, so it runs on a blocking thread.
    let read = move || {
        let caller = session.caller();
        let wanted = |one: &T| {
            customer.is_none_or(|customer| (T::CUSTOMER)(one) == Some(customer)) && wanted(&hub, caller, one)
        };
        let found = hub.page(caller, listing.request(), wanted)?;
        Ok(page_answer(&found, |one| match with_infos {
            true => one.info(&hub, caller),
            false => one.json(caller),
        }))
    };
    state.reads.run(read).await?
}

/// `GET /api/devices?deviceIds=`: those of the entities that the caller sees.
pub(crate) async fn list_of_ids<T: Assigned>(
    State(state): State<Arc<HttpState>>,
    session: Session,
    params: Params,
) -> Answer {
    session.check(Action::Read)?;
    let ids = ids(&params, &format!("{}Ids", T::KIND.name().to_lowercase()))?;
    let caller = session.caller();
    let found = ids.into_iter().filter_map(|id| (T::FIND)(&state.hub, caller, id).ok());
    Ok(Json(found.map(|one| one.json(caller)).collect::<Vec<_>>()).into_response())
}

/// `POST /api/devices`: entities that relations lead to.
pub(crate) async fn find<T: Assigned>(
    State(state): State<Arc<HttpState>>,
    session: Session,
    JsonBody(query): JsonBody<DeviceQueryJson>,
) -> Answer {
    let (types, query) = query.parse()?;
    let hub = Arc::clone(&state.hub);
    let read = move || {
        let caller = session.caller();
        let mut found = hub.related_entities(caller, &query, T::KIND)?;
        found.retain(|one| one.type_name().is_some_and(|name| types.iter().any(|one| one == name)));
        let found = found.iter().filter_map(|one| (T::FIND)(&hub, caller, one.id().id).ok());
        let found: Vec<_> = found.map(|one| one.json(caller)).collect();
        Ok(Json(found).into_response())
    };
    state.reads.run(read).await?
}

/// `GET /api/device/types`: the types in use, in ThingsBoard's `EntitySubtype`.
pub(crate) async fn types<T: Assigned>(State(state): State<Arc<HttpState>>, session: Session) -> Answer {
    let hub = Arc::clone(&state.hub);
    let read = move || {
        let entities = hub.visible_entities(session.caller(), T::KIND)?;
        let names: BTreeSet<&str> = entities.iter().filter_map(Entity::type_name).collect();
        let tenant = session.caller().tenant();
        let one = |name| json!({ "tenantId": entity("TENANT", tenant), "entityType": T::KIND.name(), "type": name });
        Ok(Json(names.into_iter().map(one).collect::<Vec<_>>()).into_response())
    };
    state.reads.run(read).await?
}

/// `GET /api/device/{id}`
pub(crate) async fn show<T: Assigned>(
    State(state): State<Arc<HttpState>>,
    session: Session,
    PathOf(id): PathOf<String>,
) -> Answer {
    let found = one::<T>(&state.hub, session.caller(), path_id(&id)?)?;
    Ok(Json(found.json(session.caller())).into_response())
}

/// `GET /api/device/info/{id}`
pub(crate) async fn info<T: Assigned>(
    State(state): State<Arc<HttpState>>,
    session: Session,
    PathOf(id): PathOf<String>,
) -> Answer {
    let (hub, id) = (Arc::clone(&state.hub), path_id(&id)?);
    let read = move || {
        let found = one::<T>(&hub, session.caller(), id)?;
        Ok(Json(found.info(&hub, session.caller())).into_response())
    };
    state.reads.run(read).await?
}

/// `POST /api/customer/{customerId}/device/{deviceId}`: assigns an entity to a customer.
pub(crate) async fn assign<T: Assigned>(
    State(state): State<Arc<HttpState>>,
    session: Session,
    PathOf((customer, id)): PathOf<(String, String)>,
) -> Answer {
    let (hub, customer, id) = (Arc::clone(&state.hub), path_id(&customer)?, path_id(&id)?);
    let assign = move || {
        let assigned = (T::ASSIGN)(&hub, session.caller(), id, Some(customer))?;
        Ok(Json(assigned.json(session.caller())).into_response())
    };
    state.changes.run(assign).await?
}

/// `DELETE /api/customer/device/{deviceId}`: ends the assignment of an entity.
pub(crate) async fn unassign<T: Assigned>(
    State(state): State<Arc<HttpState>>,
    session: Session,
    PathOf(id): PathOf<String>,
) -> Answer {
    let (hub, id) = (Arc::clone(&state.hub), path_id(&id)?);
    let unassign = move || {
        let assigned = one::<T>(&hub, session.caller(), id)?;
        if (T::CUSTOMER)(&assigned).is_none() {
            let message = format!("the {} is assigned to no customer", T::KIND.words());
            return Err(ApiError::argument(message));
        }
        let free = (T::ASSIGN)(&hub, session.caller(), id, None)?;
        Ok(Json(free.json(session.caller())).into_response())
    };
    state.changes.run(unassign).await?
}

/// An entity that the caller sees. The refusal names the path that lists the others.
fn one<T: Assigned>(hub: &Hub, caller: &Caller, id: Uuid) -> Result<Arc<T>, ApiError> {
    (T::FIND)(hub, caller, id).map_err(|error| match error {
        RegistryError::Unknown { what, .. } => {
            ApiError::not_found(format!("there is no {what} {id}; GET {} lists what there is", T::LIST))
        }
        error => error.into(),
    })
}
