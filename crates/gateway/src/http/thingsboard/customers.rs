//! Customers in ThingsBoard's shapes.

use std::sync::Arc;

use axum::extract::State;
use axum::http::header;
use axum::response::{IntoResponse, Response};
use hub::EntityKind;
use hub::caller::Action;
use hub::registry::{Contact, Customer, CustomerFields};
use serde::Deserialize;
use serde_json::value::RawValue;
use serde_json::{Value as JsonValue, json};

use crate::error::ApiError;
use crate::http::shapes::entities::{IdJson, Listing, add_contact, info_text, page_answer, stored_json};
use crate::http::tools::json::{Json, entity};
use crate::http::tools::request::{JsonBody, Params, PathOf, parse_id};
use crate::http::tools::route_list::Routes;
use crate::http::tools::session::Session;
use crate::http::tools::state::HttpState;

/// The routes of customers.
pub(crate) fn routes() -> Routes {
    Routes::default()
        .get("/api/customers", list)
        .get("/api/tenant/customers", by_title)
        .post("/api/customer", save)
        .get("/api/customer/{id}", show)
        .get("/api/customer/{id}/shortInfo", short_info)
        .get("/api/customer/{id}/title", title)
        .delete("/api/customer/{id}", delete)
}

type Answer = Result<Response, ApiError>;

fn customer_json(customer: &Customer) -> JsonValue {
    let mut json = json!({
        "id": entity("CUSTOMER", customer.id),
        "createdTime": customer.created_at.millis(),
        "tenantId": entity("TENANT", customer.tenant),
        "title": customer.title,
        "name": customer.title,
        "additionalInfo": stored_json(customer.additional_info.as_deref()),
        "version": customer.version,
    });
    add_contact(&mut json, &customer.contact);
    json
}

/// `GET /api/customers`
async fn list(State(state): State<Arc<HttpState>>, session: Session, params: Params) -> Answer {
    let listing = Listing::parse(&params, EntityKind::Customer)?;
    let hub = Arc::clone(&state.hub);
    let read = move || {
        let found = hub.customers_page(session.caller(), listing.request())?;
        Ok(page_answer(&found, |customer| customer_json(customer)))
    };
    state.reads.run(read).await?
}

/// `GET /api/tenant/customers?customerTitle=`
async fn by_title(State(state): State<Arc<HttpState>>, session: Session, params: Params) -> Answer {
    let title = params.text("customerTitle");
    let title = title.ok_or_else(|| ApiError::argument("name a customer in customerTitle"))?;
    Ok(Json(customer_json(&*state.hub.customer_by_title(session.caller(), title)?)).into_response())
}

/// `GET /api/customer/{id}`
async fn show(State(state): State<Arc<HttpState>>, session: Session, PathOf(id): PathOf<String>) -> Answer {
    Ok(Json(customer_json(&*state.hub.customer(session.caller(), parse_id(&id)?)?)).into_response())
}

/// `GET /api/customer/{id}/shortInfo`
async fn short_info(
    State(state): State<Arc<HttpState>>,
    session: Session,
    PathOf(id): PathOf<String>,
) -> Answer {
    let customer = state.hub.customer(session.caller(), parse_id(&id)?)?;
    Ok(Json(json!({ "title": customer.title, "isPublic": false })).into_response())
}

/// `GET /api/customer/{id}/title`: text, as in ThingsBoard.
async fn title(State(state): State<Arc<HttpState>>, session: Session, PathOf(id): PathOf<String>) -> Answer {
    let customer = state.hub.customer(session.caller(), parse_id(&id)?)?;
    Ok(([(header::CONTENT_TYPE, "application/text")], customer.title.clone()).into_response())
}

/// A customer in a request.
#[derive(Debug, Deserialize)]
#[serde(rename_all = "camelCase")]
pub(crate) struct CustomerJson {
    id: Option<IdJson>,
    title: String,
    country: Option<Box<str>>,
    state: Option<Box<str>>,
    city: Option<Box<str>>,
    address: Option<Box<str>>,
    address2: Option<Box<str>>,
    zip: Option<Box<str>>,
    phone: Option<Box<str>>,
    email: Option<Box<str>>,
    additional_info: Option<Box<RawValue>>,
    version: Option<i64>,
}

/// `POST /api/customer`: adds a customer, or changes it if the body has an `id`.
async fn save(
    State(state): State<Arc<HttpState>>,
    session: Session,
    JsonBody(new): JsonBody<CustomerJson>,
) -> Answer {
    session.check(Action::ManageEntities)?;
    let hub = Arc::clone(&state.hub);
    let store = move || {
        let CustomerJson { country, state, city, address, address2, zip, phone, email, .. } = new;
        let fields = CustomerFields {
            title: &new.title,
            contact: Contact { country, state, city, address, address2, zip, phone, email },
            additional_info: info_text(new.additional_info.as_deref()),
        };
        match new.id {
            Some(IdJson { id }) => hub.change_customer(session.caller(), id, &fields, new.version),
            None => hub.add_customer(session.caller(), &fields),
        }
    };
    Ok(Json(customer_json(&*state.changes.run(store).await??)).into_response())
}

/// `DELETE /api/customer/{id}`: deletes a customer and its users. What is assigned to it is assigned to nobody then.
async fn delete(
    State(state): State<Arc<HttpState>>,
    session: Session,
    PathOf(id): PathOf<String>,
) -> Result<(), ApiError> {
    let (hub, id) = (Arc::clone(&state.hub), parse_id(&id)?);
    state.changes.run(move || hub.delete_customer(session.caller(), id)).await??;
    Ok(())
}
