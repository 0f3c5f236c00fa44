//! Writes.

use std::sync::Arc;

use axum::extract::{Request, State};
use axum::http::{HeaderMap, StatusCode, header};
use axum::response::Response;
use hub::OpenDatabase;
use hub::caller::Caller;
use hub::points::{AcceptError, Accepted, Points};
use hub::registry::RegistryError;
use model::Timestamp;
use wire::line::Precision;

use super::answers::{Dialect, no_content};
use super::faults::Faults;
use super::limits::{INLINE_BYTES_MAX, SERIES_GONE_MAX, WRITE_BYTES_MAX};
use super::rows::collect;
use crate::error::{ApiError, ErrorCode};
use crate::http::bodies::Sender;
use crate::http::connection::Peer;
use crate::http::limits::BUSY_TIMEOUT;
use crate::http::packed::unpack_gzip;
use crate::http::request::{HeldBody, Params, discard_body, read_body};
use crate::http::series_caller::series_caller;
use crate::http::state::HttpState;

/// `POST /write?db=NAME`: 204 once the lines are on the disk.
pub(super) async fn v1(
    State(state): State<Arc<HttpState>>,
    params: Params,
    peer: Peer,
    request: Request,
) -> Response {
    let written = write(&state, Dialect::V1, &params, peer, request).await;
    written.unwrap_or_else(|error| Dialect::V1.refusal(&error))
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

/// Where and how a request writes.
struct Target {
    caller: Caller,
    database: OpenDatabase,
    precision: Precision,
}

async fn write(
    state: &Arc<HttpState>,
    dialect: Dialect,
    params: &Params,
    Peer(peer): Peer,
    request: Request,
) -> Result<Response, ApiError> {
    let target = match target(state, dialect, params, Peer(peer), request.headers()).await {
        Ok(target) => target,
        Err(refused) => {
            discard_body(request).await;
            return Err(refused);
        }
    };
    let gzip = is_gzip(request.headers());
    let sender = Sender::User(target.caller.user_id().unwrap_or_default());
    let body = read_body(request, WRITE_BYTES_MAX, "", state.bodies.begin(sender)).await?;
    let body =
        Arc::new(Unpacked { gzip: gzip?, body, account: state.bodies.begin(sender) }.unpack(state).await?);
    let topic = if dialect == Dialect::V1 { "/write" } else { "/api/v2/write" };
    // The lines of a request without a time have the same one.
    let now = state.hub.receipt_time();
    let mut attempts = 0;
    loop {
        attempts += 1;
        let points = state.hub.points(&target.caller, &target.database, state.options.door)?;
        let (points, faults) = read_lines(state, points, &body, target.precision, now).await?;
        match state.hub.accept_points(points, topic, BUSY_TIMEOUT).await {
            Ok(accepted) => return answer(dialect, &body.0, &accepted, faults),
            Err(AcceptError::SeriesGone) if attempts < SERIES_GONE_MAX => {}
            Err(AcceptError::SeriesGone) => return Err(ApiError::busy(AcceptError::SeriesGone.to_string())),
            Err(AcceptError::Store(error)) => return Err(error.into()),
        }
    }
}

async fn target(
    state: &HttpState,
    dialect: Dialect,
    params: &Params,
    Peer(peer): Peer,
    headers: &HeaderMap,
) -> Result<Target, ApiError> {
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
    Ok(Target { caller, database, precision })
}

/// Whether the body is packed with gzip.
fn is_gzip(headers: &HeaderMap) -> Result<bool, ApiError> {
    match headers.get(header::CONTENT_ENCODING).map(|value| value.to_str().unwrap_or_default()) {
        None | Some("" | "identity") => Ok(false),
        Some("gzip" | "x-gzip") => Ok(true),
        Some(other) => Err(ApiError::new(
            StatusCode::UNSUPPORTED_MEDIA_TYPE,
            ErrorCode::BadRequest,
            "encoding",
            format!("the content encoding {other:?} is not supported; send gzip or none"),
        )),
    }
}

/// A body that may be packed.
struct Unpacked {
    gzip: bool,
    body: HeldBody,
    account: crate::http::bodies::HeldBytes,
}

/// Bytes of a body, with the accounts that they are on.
struct Plain(
    bytes::Bytes,
    #[expect(dead_code, reason = "holds the accounts")] (HeldBody, crate::http::bodies::HeldBytes),
);

impl Unpacked {
    async fn unpack(mut self, state: &HttpState) -> Result<Plain, ApiError> {
        if !self.gzip {
            return Ok(Plain(self.body.bytes.clone(), (self.body, self.account)));
        }
        let work = move || {
            let bytes = unpack_gzip(&self.body.bytes, WRITE_BYTES_MAX, &mut self.account)?;
            Ok(Plain(bytes.into(), (self.body, self.account)))
        };
        state.reads.run(work).await?
    }
}

async fn read_lines(
    state: &HttpState,
    mut points: Points,
    body: &Arc<Plain>,
    precision: Precision,
    now: Timestamp,
) -> Result<(Points, Faults), ApiError> {
    let body = Arc::clone(body);
    let length = body.0.len();
    let work = move || {
        let faults = collect(&mut points, &body.0, precision, now);
        (points, faults)
    };
    if length <= INLINE_BYTES_MAX { Ok(work()) } else { Ok(state.reads.run(work).await?) }
}

fn answer(
    dialect: Dialect,
    body: &[u8],
    accepted: &Accepted,
    mut faults: Faults,
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
