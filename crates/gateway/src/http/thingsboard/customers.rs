//! Customers in ThingsBoard's shapes.

use std::sync::Arc;

use axum::extract::State;
use axum::http::header;
use axum::response::IntoResponse;
use hub::caller::Caller;
use hub::registry::{Contact, Customer, CustomerFields};
use hub::{EntityKind, Hub};
use serde::Deserialize;
use serde_json::value::RawValue;
use serde_json::{Value as JsonValue, json};

use super::kind::{self, Delete, Find, Saved, Shown};
use crate::error::ApiError;
use crate::http::shapes::entities::{IdJson, Listing, add_contact, info_text, page_answer, stored_json};
use crate::http::tools::error_response::Answer;
use crate::http::tools::json::{Json, entity};
use crate::http::tools::request::{Params, PathOf, path_id};
use crate::http::tools::route_list::Routes;
use crate::http::tools::session::Session;
use crate::http::tools::state::HttpState;

/// The routes of customers.
pub(crate) fn routes() -> Routes {
    Routes::default()
        .get("/api/customers", list)
        .get("/api/tenant/customers", by_title)
        .post("/api/customer", kind::save::<CustomerJson>)
        .get("/api/customer/{id}", kind::show::<Customer>)
        .get("/api/customer/{id}/shortInfo", short_info)
        .get("/api/customer/{id}/title", title)
        .delete("/api/customer/{id}", kind::delete::<Customer>)
}

impl Shown for Customer {
    const FIND: Find<Self> = Hub::customer;
    /// What is assigned to it is assigned to nobody then.
    const DELETE: Delete<Self> = Hub::delete_customer;

    fn json(&self, _caller: &Caller) -> JsonValue {
        let mut json = json!({
            "id": entity("CUSTOMER", self.id),
            "createdTime": self.created_at.millis(),
            "tenantId": entity("TENANT", self.tenant),
            "title": self.title,
            "name": self.title,
            "additionalInfo": stored_json(self.additional_info.as_deref()),
            "version": self.version,
        });
        add_contact(&mut json, &self.contact);
        json
    }
}

/// `GET /api/customers`
async fn list(State(state): State<Arc<HttpState>>, session: Session, params: Params) -> Answer {
    let listing = Listing::parse(&params, EntityKind::Customer)?;
    let hub = Arc::clone(&state.hub);
    let read = move || {
        let found = hub.customers_page(session.caller(), listing.request())?;
        Ok(page_answer(&found, |customer| customer.json(session.caller())))
    };
    state.reads.run(read).await?
}

/// `GET /api/tenant/customers?customerTitle=`
async fn by_title(State(state): State<Arc<HttpState>>, session: Session, params: Params) -> Answer {
    let title = params.text("customerTitle");
    let title = title.ok_or_else(|| ApiError::argument("name a customer in customerTitle"))?;
    let customer = state.hub.find_named::<Customer>(session.caller(), title)?;
    Ok(Json(customer.json(session.caller())).into_response())
}

/// `GET /api/customer/{id}/shortInfo`
async fn short_info(
    State(state): State<Arc<HttpState>>,
    session: Session,
    PathOf(id): PathOf<String>,
) -> Answer {
    let customer = state.hub.customer(session.caller(), path_id(&id)?)?;
    Ok(Json(json!({ "title": customer.title, "isPublic": false })).into_response())
}

/// `GET /api/customer/{id}/title`: text, as in ThingsBoard.
async fn title(State(state): State<Arc<HttpState>>, session: Session, PathOf(id): PathOf<String>) -> Answer {
    let customer = state.hub.customer(session.caller(), path_id(&id)?)?;
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

impl Saved for CustomerJson {
    type Kind = Customer;

    fn store(self, hub: &Hub, caller: &Caller) -> Result<Arc<Customer>, ApiError> {
        let CustomerJson { country, state, city, address, address2, zip, phone, email, .. } = self;
        let fields = CustomerFields {
            title: &self.title,
            contact: Contact { country, state, city, address, address2, zip, phone, email },
            additional_info: info_text(self.additional_info.as_deref()),
        };
        Ok(match self.id {
            Some(IdJson { id }) => hub.change_customer(caller, id, &fields, self.version)?,
            None => hub.add_customer(caller, &fields)?,
        })
    }
}
