//! The routes of the HTTP door.

use std::sync::Arc;

use axum::Router;
use axum::extract::State;
use axum::http::{HeaderValue, Method, StatusCode, Uri, header};
use axum::middleware::{from_fn_with_state, map_response_with_state};
use axum::response::Response;

use super::{admission, counted_answers, mqtt_socket};
use crate::error::{ApiError, ErrorCode};
use crate::http::tacho::dashboard;
use crate::http::tools::error_response::RefusalLabel;
use crate::http::tools::route_list::Routes;
use crate::http::tools::state::HttpState;
use crate::http::{device, tacho, thingsboard};

/// The router of a door with the routes of other interfaces.
pub(super) fn router(state: Arc<HttpState>, others: Routes) -> Router {
    own_routes()
        .merge(others)
        .into_router()
        .method_not_allowed_fallback(wrong_method)
        .fallback(dashboard::file)
        .layer(from_fn_with_state(Arc::clone(&state), counted_answers::count))
        .layer(from_fn_with_state(Arc::clone(&state), admission::admit))
        .layer(map_response_with_state(Arc::clone(&state), finish))
        .with_state(state)
}

/// The routes of ThingsBoard's interfaces and of our own.
pub(crate) fn own_routes() -> Routes {
    device::routes().merge(thingsboard::routes()).merge(tacho::routes()).get("/mqtt", mqtt_socket::open)
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
