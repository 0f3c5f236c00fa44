//! Writes.

use std::sync::Arc;

use axum::extract::{Request, State};
use axum::http::{HeaderMap, StatusCode};
use axum::response::Response;
use hub::points::{Accepted, Points};
use hub::registry::RegistryError;
use wire::line::Precision;

use super::answers::{Dialect, no_content};
use super::limits::WRITE_BYTES_MAX;
use super::refused_lines::RefusedLines;
use super::rows::collect;
use crate::error::ApiError;
use crate::http::tools::bodies::Sender;
use crate::http::tools::connection::Peer;
use crate::http::tools::plain_body::PlainBody;
use crate::http::tools::request::Params;
use crate::http::tools::series_caller::series_caller;
use crate::http::tools::series_rows::{Target, store_rows};
use crate::http::tools::state::HttpState;

/// `POST /write?db=NAME`: 204 once the lines are on the disk.
pub(super) async fn v1(
    State(state): State<Arc<HttpState>>,
    params: Params,
    peer: Peer,
    request: Request,
) -> Response {
    let written = write(&state, Dialect::V1, &params, peer, request).await;
    written.unwrap_or_else(|error| Dialect::V1.refusal(&never_too_many(error)))
}

/// Version 1 knows no 429: its clients drop the points of a request that gets any 4xx, and send those of a 5xx again.
fn never_too_many(error: ApiError) -> ApiError {
    match error.status {
        StatusCode::TOO_MANY_REQUESTS => ApiError { status: StatusCode::SERVICE_UNAVAILABLE, ..error },
        _ => error,
    }
}

/// `POST /api/v2/write?bucket=NAME`: 204 once the lines are on the disk.
pub(super) async fn v2(
    State(state): State<Arc<HttpState>>,
    params: Params,
    peer: Peer,
    request: Request,
) -> Response {
    let written = write(&state, Dialect::V2, &params, peer, request).await;
    written.unwrap_or_else(|error| Dialect::V2.refusal(&error))
}

async fn write(
    state: &Arc<HttpState>,
    dialect: Dialect,
    params: &Params,
    Peer(peer): Peer,
    request: Request,
) -> Result<Response, ApiError> {
    let (target, precision) = target(state, dialect, params, Peer(peer), request.headers()).await?;
    let sender = Sender::caller(&target.caller);
    let body = Arc::new(PlainBody::read(state, request, WRITE_BYTES_MAX, sender).await?);
    // The lines of a request without a time have the same one.
    let now = state.hub.receipt_time();
    let (mut accepted, mut faults) = (Accepted::default(), RefusedLines::default());
    // One batch after the other: the rows of a long body take several times its bytes.
    let mut next = Some(0);
    while let Some(from) = next {
        let (bytes, read) = (body.bytes.len() - from, Arc::clone(&body));
        let collect = move |points: &mut Points| Ok(collect(points, (&read.bytes, from), precision, now));
        let (stored, (refused, rest)) = store_rows(state, &target, bytes, collect).await?;
        accepted.extend(stored);
        faults.extend(refused);
        next = rest;
    }
    answer(dialect, &body.bytes, &accepted, faults)
}

async fn target(
    state: &HttpState,
    dialect: Dialect,
    params: &Params,
    Peer(peer): Peer,
    headers: &HeaderMap,
) -> Result<(Target, Precision), ApiError> {
    let caller = series_caller(state, headers, params, peer).await?;
    let unit = params.text("precision").unwrap_or_default();
    let (name, precision, units) = match dialect {
        Dialect::V1 => (params.text("db"), Precision::of_v1(unit), "n, u, ms, s, m or h"),
        // `db/rp`: there are no retention policies, so the name after the slash does not matter.
        Dialect::V2 => {
            let bucket = params.text("bucket").map(|bucket| bucket.split('/').next().unwrap_or(bucket));
            (bucket, Precision::of_v2(unit), "ns, us, ms or s")
        }
    };
    let precision =
        precision.ok_or_else(|| ApiError::argument(format!("invalid precision {unit:?} (use {units})")))?;
    let required = if dialect == Dialect::V1 { "database is required" } else { "bucket is required" };
    let name = name.ok_or_else(|| ApiError::argument(required))?;
    let database = state.hub.database(&caller, name).map_err(|error| match (error, dialect) {
        (RegistryError::Unknown { .. }, Dialect::V1) => {
            ApiError::not_found(format!("database not found: {name:?}"))
        }
        (RegistryError::Unknown { .. }, Dialect::V2) => {
            ApiError::not_found(format!("bucket {name:?} not found"))
        }
        (error, _) => error.into(),
    })?;
    let topic = if dialect == Dialect::V1 { "/write" } else { "/api/v2/write" };
    Ok((Target { caller, database, topic }, precision))
}

fn answer(
    dialect: Dialect,
    body: &[u8],
    accepted: &Accepted,
    mut faults: RefusedLines,
) -> Result<Response, ApiError> {
    for refused in &accepted.refused {
        let at = refused.item as usize;
        let rest = body.get(at..).unwrap_or_default();
        let line = rest.split(|byte| *byte == b'\n').next().unwrap_or_default();
        faults.add(body, at, line, &refused.reason);
    }
    if faults.is_empty() {
        return Ok(no_content());
    }
    let message = faults.message(accepted.rows > 0);
    Ok(dialect.refusal(&ApiError::argument(message)))
}
