//! The routes of the HTTP door.

use std::sync::Arc;

use axum::Router;
use axum::extract::State;
use axum::http::{HeaderValue, Method, StatusCode, Uri, header};
use axum::middleware::{from_fn, from_fn_with_state, map_response_with_state};
use axum::response::Response;
use axum::routing::{delete, get, post};

use super::error_response::RefusalLabel;
use super::state::HttpState;
use super::{
    admin, admission, api_keys, attributes, auth, bulk, compression, counted_answers, dashboard, deletion,
    device_api, device_attributes, device_details, device_rpc, devices, maintenance, mqtt_socket, rpc, sql,
    stored_calls, telemetry, tenants, users, websocket,
};
use crate::error::{ApiError, ErrorCode};

/// The routes of the door.
pub(super) fn router(state: Arc<HttpState>) -> Router {
    Router::new()
        .route("/api/v1/{token}/telemetry", post(device_api::telemetry))
        .route("/api/v1/{token}/attributes", get(device_attributes::read).post(device_attributes::set))
        .route("/api/v1/{token}/attributes/updates", get(device_attributes::updates))
        .route("/api/v1/{token}/rpc", get(device_rpc::poll).post(device_rpc::call))
        .route("/api/v1/{token}/rpc/{id}", post(device_rpc::answer))
        .route("/api/rpc/oneway/{id}", post(rpc::one_way))
        .route("/api/rpc/twoway/{id}", post(rpc::two_way))
        .route("/api/plugins/rpc/oneway/{id}", post(rpc::one_way_v1))
        .route("/api/plugins/rpc/twoway/{id}", post(rpc::two_way_v1))
        .route("/api/rpc/persistent/{id}", get(stored_calls::show).delete(stored_calls::delete))
        .route("/api/rpc/persistent/device/{id}", get(stored_calls::list))
        .route("/api/auth/login", post(auth::login))
        .route("/api/auth/login/public", post(auth::login_public))
        .route("/api/auth/token", post(auth::renew))
        .route("/api/auth/user", get(auth::user))
        .route("/api/tenant/devices", get(devices::list).layer(from_fn(compression::gzip)))
        .route("/api/device", post(devices::save))
        .route("/api/device/credentials", post(devices::set_credentials))
        .route("/api/device/{id}", get(devices::show).delete(devices::delete))
        .route("/api/device/{id}/credentials", get(devices::credentials))
        .route("/api/deviceProfileInfo/default", get(devices::default_profile))
        .route("/api/tacho/devices", post(devices::create_many))
        .route("/api/tacho/devices/{id}", get(device_details::details))
        .route("/api/tacho/refusals", get(device_details::refusals))
        .route("/api/tacho/values", post(telemetry::values_of_many))
        .route("/api/tacho/tables", get(bulk::tables).post(bulk::set_table).delete(deletion::table))
        .route("/api/tacho/delete", post(deletion::rows))
        .route("/api/tacho/tables/columns", get(bulk::table_columns).delete(bulk::drop_key))
        .route("/api/tacho/export", post(bulk::export))
        .route("/api/tacho/import", post(bulk::import))
        .route("/api/tacho/import/device", get(bulk::table_of_device))
        .route("/api/tacho/check", post(maintenance::check))
        .route("/api/tacho/backup", post(maintenance::backup))
        .route("/api/tacho/users", get(users::list).post(users::add))
        .route("/api/tacho/users/{login}", delete(users::delete))
        .route("/api/tacho/users/{login}/password", post(users::set_password))
        .route("/api/tacho/users/{login}/role", post(users::set_role))
        .route("/api/tacho/api-keys", get(api_keys::list).post(api_keys::add))
        .route("/api/tacho/api-keys/{id}", delete(api_keys::delete))
        .route("/api/tacho/tenants", get(tenants::list).post(tenants::add))
        .route("/api/tacho/tenants/{name}", delete(tenants::delete))
        .route("/api/tacho/session-key", post(users::rotate_key))
        .route("/api/plugins/telemetry/{kind}/{id}/keys/timeseries", get(telemetry::keys))
        .route("/api/plugins/telemetry/{kind}/{id}/values/timeseries", get(telemetry::values))
        .route("/api/plugins/telemetry/{kind}/{id}/keys/attributes", get(attributes::keys))
        .route("/api/plugins/telemetry/{kind}/{id}/keys/attributes/{scope}", get(attributes::keys_in_scope))
        .route("/api/plugins/telemetry/{kind}/{id}/values/attributes", get(attributes::values))
        .route(
            "/api/plugins/telemetry/{kind}/{id}/values/attributes/{scope}",
            get(attributes::values_in_scope),
        )
        .route("/api/plugins/telemetry/{kind}/{id}/attributes/{scope}", post(attributes::set))
        .route("/api/plugins/telemetry/{kind}/{id}/{scope}", post(attributes::set).delete(attributes::delete))
        .route(
            "/api/plugins/telemetry/{id}/{scope}",
            post(attributes::set_of_device).delete(attributes::delete_of_device),
        )
        .route("/api/plugins/telemetry/{kind}/{id}/timeseries/delete", delete(deletion::values))
        .route("/api/ws/plugins/telemetry", get(websocket::open))
        .route("/mqtt", get(mqtt_socket::open))
        .route("/api/sql", get(sql::get).post(sql::post))
        .route("/api/status", get(admin::status))
        .route("/healthz", get(admin::alive))
        .route("/readyz", get(admin::ready))
        .route("/metrics", get(admin::metrics).layer(from_fn(compression::gzip)))
        .method_not_allowed_fallback(wrong_method)
        .fallback(dashboard::file)
        .layer(from_fn_with_state(Arc::clone(&state), counted_answers::count))
        .layer(from_fn_with_state(Arc::clone(&state), admission::admit))
        .layer(map_response_with_state(Arc::clone(&state), finish))
        .with_state(state)
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
