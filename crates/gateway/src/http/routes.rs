//! The routes of the HTTP door.

use std::sync::Arc;

use axum::Router;
use axum::extract::State;
use axum::http::{HeaderValue, Method, StatusCode, Uri, header};
use axum::middleware::{from_fn_with_state, map_response_with_state};
use axum::response::Response;

use super::tools::error_response::RefusalLabel;
use super::tools::route_list::Routes;
use super::tools::state::HttpState;
use super::{
    activation, admin, admission, alarms, api_keys, asset_profiles, assets, attributes, audit_log, auth,
    bulk, claims, counted_answers, credentials, customers, dashboard, databases, deletion, device_api,
    device_attributes, device_claim, device_details, device_packages, device_profiles, device_rpc, devices,
    entity_query, entity_views, gsn, influx, maintenance, mqtt_socket, openapi, opentsdb, packages,
    prometheus, provision, relations, rpc, sql, stored_calls, telemetry, telemetry_write, tenant_limits,
    tenants, thingsboard_keys, thingsboard_tenants, thingsboard_users, users, virtual_sensors, websocket,
};
use crate::error::{ApiError, ErrorCode};

/// The router of the door.
pub(super) fn router(state: Arc<HttpState>) -> Router {
    routes()
        .into_router()
        .method_not_allowed_fallback(wrong_method)
        .fallback(dashboard::file)
        .layer(from_fn_with_state(Arc::clone(&state), counted_answers::count))
        .layer(from_fn_with_state(Arc::clone(&state), admission::admit))
        .layer(map_response_with_state(Arc::clone(&state), finish))
        .with_state(state)
}

/// All routes of the door.
pub(super) fn routes() -> Routes {
    device_api_routes()
        .merge(thingsboard_routes())
        .merge(entity_query::routes())
        .merge(websocket::routes())
        .merge(alarms::routes())
        .merge(credentials::routes())
        .merge(devices::routes())
        .merge(claims::routes())
        .merge(device_profiles::routes())
        .merge(packages::routes())
        .merge(device_packages::routes())
        .merge(assets::routes())
        .merge(asset_profiles::routes())
        .merge(customers::routes())
        .merge(relations::routes())
        .merge(entity_views::routes())
        .merge(auth::routes())
        .merge(activation::routes())
        .merge(thingsboard_users::routes())
        .merge(thingsboard_tenants::routes())
        .merge(thingsboard_keys::routes())
        .merge(audit_log::routes())
        .merge(influx::routes())
        .merge(gsn::routes())
        .merge(prometheus::routes())
        .merge(databases::routes())
        .merge(virtual_sensors::routes())
        .merge(own_routes())
        .merge(other_routes())
        .merge(opentsdb::routes())
        .merge(openapi::routes())
}

/// ThingsBoard's interface for devices.
fn device_api_routes() -> Routes {
    Routes::default()
        .post("/api/v1/provision", provision::provision)
        .post("/api/v1/{token}/telemetry", device_api::telemetry)
        .get("/api/v1/{token}/attributes", device_attributes::read)
        .post("/api/v1/{token}/attributes", device_attributes::set)
        .get("/api/v1/{token}/attributes/updates", device_attributes::updates)
        .get("/api/v1/{token}/rpc", device_rpc::poll)
        .post("/api/v1/{token}/rpc", device_rpc::call)
        .post("/api/v1/{token}/rpc/{id}", device_rpc::answer)
        .post("/api/v1/{token}/claim", device_claim::offer)
}

/// ThingsBoard's interface for applications.
fn thingsboard_routes() -> Routes {
    Routes::default()
        .post("/api/rpc/oneway/{id}", rpc::one_way)
        .post("/api/rpc/twoway/{id}", rpc::two_way)
        .post("/api/plugins/rpc/oneway/{id}", rpc::one_way_v1)
        .post("/api/plugins/rpc/twoway/{id}", rpc::two_way_v1)
        .get("/api/rpc/persistent/{id}", stored_calls::show)
        .delete("/api/rpc/persistent/{id}", stored_calls::delete)
        .get("/api/rpc/persistent/device/{id}", stored_calls::list)
        .merge(telemetry::routes())
        .merge(telemetry_write::routes())
        .merge(attributes::routes())
        .merge(deletion::routes())
}

/// Tachograph's own interface.
fn own_routes() -> Routes {
    Routes::default()
        .post("/api/tacho/devices", device_details::create_many)
        .get("/api/tacho/devices/{id}", device_details::details)
        .get("/api/tacho/refusals", device_details::refusals)
        .get("/api/tacho/tables", bulk::tables)
        .post("/api/tacho/tables", bulk::set_table)
        .get("/api/tacho/tables/columns", bulk::table_columns)
        .delete("/api/tacho/tables/columns", bulk::drop_key)
        .post("/api/tacho/export", bulk::export)
        .post("/api/tacho/import", bulk::import)
        .get("/api/tacho/import/device", bulk::table_of_device)
        .post("/api/tacho/check", maintenance::check)
        .post("/api/tacho/backup", maintenance::backup)
        .post("/api/tacho/maintenance/flush", maintenance::flush)
        .post("/api/tacho/maintenance/compact", maintenance::compact)
        .get("/api/tacho/users", users::list)
        .post("/api/tacho/users", users::add)
        .delete("/api/tacho/users/{login}", users::delete)
        .post("/api/tacho/users/{login}/password", users::set_password)
        .post("/api/tacho/users/{login}/role", users::set_role)
        .get("/api/tacho/api-keys", api_keys::list)
        .post("/api/tacho/api-keys", api_keys::add)
        .delete("/api/tacho/api-keys/{id}", api_keys::delete)
        .get("/api/tacho/tenants", tenants::list)
        .post("/api/tacho/tenants", tenants::add)
        .delete("/api/tacho/tenants/{name}", tenants::delete)
        .post("/api/tacho/tenants/{name}/limits", tenant_limits::set)
        .post("/api/tacho/session-key", users::rotate_key)
}

/// SQL, MQTT over WebSocket, and the pages of operators.
fn other_routes() -> Routes {
    Routes::default()
        .get("/mqtt", mqtt_socket::open)
        .get("/api/sql", sql::get)
        .post("/api/sql", sql::post)
        .get("/api/status", admin::status)
        .get("/healthz", admin::alive)
        .get("/readyz", admin::ready)
        .get_compressed("/metrics", admin::metrics)
}

async fn wrong_method(method: Method, uri: Uri) -> ApiError {
    let message = format!("{} does not take {method}; the header Allow names what it takes", uri.path());
    ApiError::new(StatusCode::METHOD_NOT_ALLOWED, ErrorCode::BadRequest, "method", message)
}

/// Counts refusals, and adds the headers of every answer.
async fn finish(State(state): State<Arc<HttpState>>, mut response: Response) -> Response {
    if let Some(RefusalLabel(label)) = response.extensions().get() {
        state.refused(label);
    }
    let headers = response.headers_mut();
    headers.insert(header::X_CONTENT_TYPE_OPTIONS, HeaderValue::from_static("nosniff"));
    headers.entry(header::CACHE_CONTROL).or_insert(HeaderValue::from_static("no-store"));
    response
}
