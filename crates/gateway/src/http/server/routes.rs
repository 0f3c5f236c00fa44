//! The routes of the HTTP door.

use std::sync::Arc;

use axum::Router;
use axum::extract::State;
use axum::http::{HeaderValue, Method, StatusCode, Uri, header};
use axum::middleware::{from_fn_with_state, map_response_with_state};
use axum::response::Response;

use super::{admission, counted_answers, mqtt_socket};
use crate::error::{ApiError, ErrorCode};
use crate::http::tacho::{dashboard, openapi};
use crate::http::tools::error_response::RefusalLabel;
use crate::http::tools::route_list::Routes;
use crate::http::tools::state::HttpState;
use crate::http::{device, tacho, thingsboard};

/// The router of a door with the routes of other interfaces.
pub(super) fn router(state: Arc<HttpState>, others: Routes) -> Router {
    let check = from_fn_with_state(Arc::clone(&state), openapi::check);
    let described = described_routes().into_router().route_layer(check);
    device_routes()
        .merge(others)
        .into_router()
        .merge(described)
        .method_not_allowed_fallback(wrong_method)
        .fallback(dashboard::file)
        .layer(from_fn_with_state(Arc::clone(&state), counted_answers::count))
        .layer(from_fn_with_state(Arc::clone(&state), admission::admit))
        .layer(map_response_with_state(Arc::clone(&state), finish))
        .with_state(state)
}

/// The routes of ThingsBoard's interfaces and of our own.
#[cfg(test)]
pub(crate) fn own_routes() -> Routes {
    device_routes().merge(described_routes())
}

/// The routes for devices. What they send is telemetry with any names.
fn device_routes() -> Routes {
    device::routes().get("/mqtt", mqtt_socket::open)
}

/// The routes whose requests have nothing but what their operations describe.
pub(crate) fn described_routes() -> Routes {
    thingsboard::routes().merge(tacho::routes())
}

async fn wrong_method(method: Method, uri: Uri) -> Result<StatusCode, ApiError> {
    // axum adds the header Allow, which is the answer (RFC 9110 §9.3.7).
    if method == Method::OPTIONS {
        return Ok(StatusCode::OK);
    }
    let message = format!("{} does not take {method}; the header Allow names what it takes", uri.path());
    Err(ApiError::new(StatusCode::METHOD_NOT_ALLOWED, ErrorCode::BadRequest, "method", message))
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
