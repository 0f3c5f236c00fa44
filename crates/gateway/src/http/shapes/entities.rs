//! The common part of all kinds of entities over REST: ids, pages, addresses and `additionalInfo` in ThingsBoard's shapes.

use axum::response::{IntoResponse, Response};
use hub::caller::Caller;
use hub::registry::{Contact, Page, PageRequest, SortProperty};
use hub::{EntityId, EntityKind, Hub};
use serde::{Deserialize, Deserializer, Serialize};
use serde_json::Value as JsonValue;
use serde_json::value::RawValue;
use uuid::Uuid;

use crate::error::ApiError;
use crate::http::limits::{DEVICES_PER_READ_MAX, PAGE_ENTITIES_MAX};
use crate::http::tools::json::{Json, Sequence, entity};
use crate::http::tools::request::{Params, parse_id};

/// ThingsBoard's null id (`EntityId.NULL_UUID`): that of no customer.
pub(crate) const NULL_UUID: Uuid = Uuid::from_u128(0x1381_4000_1dd2_11b2_8080_8080_8080_8080);

/// An id in a request. ThingsBoard's clients send the kind too, which the place of the id says already.
#[derive(Debug, Clone, Copy, Deserialize)]
pub(crate) struct IdJson {
    pub(crate) id: Uuid,
}

impl IdJson {
    /// The id of a customer; `None` for the null id.
    pub(crate) fn customer(self) -> Option<Uuid> {
        Some(self.id).filter(|id| *id != NULL_UUID)
    }
}

/// An id with its kind in a request.
#[derive(Debug, Clone, Deserialize)]
#[serde(rename_all = "camelCase")]
pub(crate) struct EntityIdJson {
    entity_type: String,
    id: Uuid,
}

impl EntityIdJson {
    pub(crate) fn parse(&self) -> Result<EntityId, ApiError> {
        let kind = self.entity_type.parse().map_err(ApiError::argument)?;
        Ok(EntityId { kind, id: self.id })
    }
}

/// ThingsBoard's form of an id of any kind.
pub(crate) fn entity_id(id: EntityId) -> JsonValue {
    entity(id.kind.name(), id.id)
}

/// ThingsBoard's form of the customer that something is assigned to.
pub(crate) fn customer_id(customer: Option<Uuid>) -> JsonValue {
    entity("CUSTOMER", customer.unwrap_or(NULL_UUID))
}

/// JSON text that the registry keeps, as JSON.
pub(crate) fn stored_json(text: Option<&str>) -> JsonValue {
    text.and_then(|text| serde_json::from_str(text).ok()).unwrap_or_default()
}

/// A member that may be absent, `null`, or have a value.
pub(crate) fn present<'de, D: Deserializer<'de>, T: Deserialize<'de>>(
    deserializer: D,
) -> Result<Option<Option<T>>, D::Error> {
    Option::deserialize(deserializer).map(Some)
}

/// `additionalInfo` in a request; `null` means none.
pub(crate) fn info_text(info: Option<&RawValue>) -> Option<&str> {
    info.map(RawValue::get)
}

/// Members of ThingsBoard's entities that have no meaning here: refused unless they are absent, `null` or have ThingsBoard's default.
pub(crate) fn refuse(member: &str, value: Option<&JsonValue>, default: &[JsonValue]) -> Result<(), ApiError> {
    match value {
        Some(value) if !value.is_null() && !default.contains(value) => {
            let default = default.iter().map(|value| format!(" or {value}")).collect::<String>();
            Err(ApiError::argument(format!(
                "{member} is {value}, which this server does not have; use null{default}"
            )))
        }
        _ => Ok(()),
    }
}

/// A page that a request asks for. All parameters are ThingsBoard's.
#[derive(Debug)]
pub(crate) struct Listing {
    page: usize,
    page_size: usize,
    filter: Option<String>,
    sort: SortProperty,
    descending: bool,
}

impl Listing {
    pub(crate) fn parse(params: &Params, kind: EntityKind) -> Result<Self, ApiError> {
        Self::parse_sorted(params, |name| SortProperty::parse(kind, name).map_err(|error| error.to_string()))
    }

    /// Like [`parse`](Self::parse) for entries whose properties `property` knows.
    pub(crate) fn parse_sorted(
        params: &Params,
        property: impl FnOnce(&str) -> Result<SortProperty, String>,
    ) -> Result<Self, ApiError> {
        let page_size = params.page_size(PAGE_ENTITIES_MAX)?;
        let page: u32 = params.number("page")?.unwrap_or(0);
        let sort = params.text("sortProperty").map(property).transpose();
        let sort = sort.map_err(ApiError::argument)?.unwrap_or_default();
        Ok(Self {
            page: page as usize,
            page_size,
            filter: params.text("textSearch").map(str::to_owned),
            sort,
            descending: params.descending()?,
        })
    }

    pub(crate) fn request(&self) -> PageRequest<'_> {
        PageRequest {
            page: self.page,
            page_size: self.page_size,
            filter: self.filter.as_deref(),
            sort: self.sort,
            descending: self.descending,
        }
    }
}

/// ThingsBoard's `PageData`.
#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
pub(crate) struct PageJson<T> {
    pub(crate) data: T,
    pub(crate) total_pages: usize,
    pub(crate) total_elements: usize,
    pub(crate) has_next: bool,
}

/// The answer with a page.
pub(crate) fn page_answer<T>(page: &Page<T>, item: impl Fn(&T) -> JsonValue) -> Response {
    let Page { data, total_pages, total_elements, has_next } = page;
    let answer = PageJson {
        data: Sequence(|| data.iter().map(&item)),
        total_pages: *total_pages,
        total_elements: *total_elements,
        has_next: *has_next,
    };
    Json(answer).into_response()
}

/// The ids of a list in a parameter, such as `deviceIds`.
pub(crate) fn ids(params: &Params, name: &str) -> Result<Vec<Uuid>, ApiError> {
    let ids: Vec<Uuid> = params.list(name).map(|id| parse_id(id.trim())).collect::<Result<_, _>>()?;
    if ids.is_empty() {
        return Err(ApiError::argument(format!("name ids in {name}")));
    }
    if ids.len() > DEVICES_PER_READ_MAX {
        let count = ids.len();
        let message =
            format!("{name} has {count} ids, the limit is {DEVICES_PER_READ_MAX} (DEVICES_PER_READ_MAX)");
        return Err(ApiError::argument(message));
    }
    Ok(ids)
}

/// The title of a customer and whether it is the public one, for ThingsBoard's infos.
pub(crate) fn add_customer(json: &mut JsonValue, hub: &Hub, caller: &Caller, customer: Option<Uuid>) {
    let customer = customer.and_then(|id| hub.customer(caller, id).ok());
    json["customerTitle"] = customer.map(|customer| customer.title.clone()).into();
    json["customerIsPublic"] = false.into();
}

/// Adds addresses to an object.
pub(crate) fn add_contact(json: &mut JsonValue, contact: &Contact) {
    let Contact { country, state, city, address, address2, zip, phone, email } = contact;
    for (name, value) in [
        ("country", country),
        ("state", state),
        ("city", city),
        ("address", address),
        ("address2", address2),
        ("zip", zip),
        ("phone", phone),
        ("email", email),
    ] {
        json[name] = value.as_deref().into();
    }
}

/// The answer to a request for what ThingsBoard calls public: there are no public customers.
pub(crate) async fn no_public_customer() -> ApiError {
    ApiError::argument(
        "there are no public customers here; assign it to a customer, or let readers without a login in with http.public_read",
    )
}

/// The kind of an entity and its id in parameters, such as `fromType` and `fromId`.
pub(crate) fn entity_in(params: &Params, kind: &str, id: &str) -> Result<Option<EntityId>, ApiError> {
    let (kind_text, id_text) = (params.text(kind), params.text(id));
    match (kind_text, id_text) {
        (None, None) => Ok(None),
        (Some(kind), Some(id)) => {
            Ok(Some(EntityId { kind: kind.parse().map_err(ApiError::argument)?, id: parse_id(id)? }))
        }
        _ => Err(ApiError::argument(format!("name both {kind} and {id}"))),
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn listings_name_the_wrong_parameter() {
        for (query, part) in [
            ("", "pageSize"),
            ("pageSize=x", "pageSize is \"x\""),
            ("pageSize=10&page=-1", "page is \"-1\""),
            ("pageSize=10&page=4294967296", "page is"),
            ("pageSize=10&sortProperty=speed", "createdTime, deviceProfileName, label, name, type"),
            ("pageSize=10&sortOrder=down", "ASC or DESC"),
        ] {
            let error = Listing::parse(&Params::parse(query), EntityKind::Device).unwrap_err();
            assert_eq!(error.status.as_u16(), 400);
            assert!(error.message.contains(part), "{query}: {}", error.message);
        }
        let far = Listing::parse(&Params::parse("pageSize=10&page=2147483647"), EntityKind::Device).unwrap();
        assert_eq!(far.request().page, 2_147_483_647);
    }

    #[test]
    fn members_without_a_meaning_are_refused() {
        assert!(refuse("type", Some(&json!("DEFAULT")), &[json!("DEFAULT")]).is_ok());
        assert!(refuse("image", None, &[]).is_ok() && refuse("image", Some(&JsonValue::Null), &[]).is_ok());
        let refused = refuse("type", Some(&json!("SNMP")), &[json!("DEFAULT")]).unwrap_err();
        assert_eq!(
            refused.message,
            r#"type is "SNMP", which this server does not have; use null or "DEFAULT""#
        );
    }
}
