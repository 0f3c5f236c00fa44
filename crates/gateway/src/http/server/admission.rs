//! Answers to connections and requests above a limit of the door.

use std::io::{Read, Write};
use std::net::Shutdown;
use std::sync::Arc;

use axum::extract::{Request, State};
use axum::http::StatusCode;
use axum::middleware::Next;
use axum::response::{IntoResponse, Response};
use tokio::net::TcpStream;

use crate::door::LimitExceeded;
use crate::error::{ApiError, ErrorCode, RETRY_BUSY_S};
use crate::http::tools::state::HttpState;
use crate::refusals;

/// Counts a request, and refuses it above the limit of the door. Those who watch the server always get an answer.
pub(crate) async fn admit(State(state): State<Arc<HttpState>>, request: Request, next: Next) -> Response {
    if !is_probe(request.uri().path())
        && let Err(exceeded) = state.gate.admit_request()
    {
        // The layer around this one counts the refusal.
        refusals::door_limit(&state.hub, &exceeded, None);
        return error(&exceeded, StatusCode::TOO_MANY_REQUESTS).into_response();
    }
    next.run(request).await
}

/// Whether a path is for those who watch the server.
pub(crate) fn is_probe(path: &str) -> bool {
    ["/healthz", "/readyz", "/metrics"].contains(&path)
}

/// The error for a client whose connection is refused.
pub(crate) fn unavailable(exceeded: &LimitExceeded) -> ApiError {
    error(exceeded, StatusCode::SERVICE_UNAVAILABLE)
}

fn error(exceeded: &LimitExceeded, status: StatusCode) -> ApiError {
    let label = exceeded.limit.name();
    let error = ApiError::new(status, ErrorCode::TooManyRequests, label, exceeded.to_string());
    ApiError { retry_after_s: Some(RETRY_BUSY_S), ..error }
}

/// Answers a rejected connection and closes it, without waiting for its request.
pub(crate) fn reject(stream: TcpStream, exceeded: &LimitExceeded) {
    let body = unavailable(exceeded).body();
    let mut answer = format!(
        "HTTP/1.1 503 Service Unavailable\r\ncontent-type: application/json\r\nretry-after: {RETRY_BUSY_S}\r\n\
         connection: close\r\ncontent-length: {}\r\n\r\n",
        body.len()
    )
    .into_bytes();
    answer.extend_from_slice(&body);
    if let Ok(mut stream) = stream.into_std() {
        // The socket does not block, and a new one has room for the answer. Reading the request keeps the close from
        // resetting the connection before the peer has read the answer. Errors do not matter: the connection is closed anyway.
        let _ = stream.write(&answer);
        let _ = stream.read(&mut [0; 4096]);
        let _ = stream.shutdown(Shutdown::Write);
    }
}
