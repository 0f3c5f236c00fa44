//! The requests that write.

use std::sync::Arc;
use std::time::Duration;

use axum::extract::{Request, State};
use axum::response::Response;
use hub::points::Points;

use super::answers::refusal;
use super::body;
use super::limits::PUT_BYTES_MAX;
use super::outcome::Wanted;
use super::rows::{Form, collect, name_refused, timed_out};
use crate::error::ApiError;
use crate::http::tools::request::Params;
use crate::http::tools::series_caller::SeriesCaller;
use crate::http::tools::series_rows::{Target, store_rows};
use crate::http::tools::state::HttpState;

/// `POST /api/put`: 204 once the points are on the disk.
pub(super) async fn values(
    State(state): State<Arc<HttpState>>,
    params: Params,
    caller: Result<SeriesCaller, ApiError>,
    request: Request,
) -> Response {
    put(&state, Form::Value, &params, caller, request).await.unwrap_or_else(|error| refusal(&error))
}

/// `POST /api/mput`: 204 once the points are on the disk.
pub(super) async fn fields(
    State(state): State<Arc<HttpState>>,
    params: Params,
    caller: Result<SeriesCaller, ApiError>,
    request: Request,
) -> Response {
    put(&state, Form::Fields, &params, caller, request).await.unwrap_or_else(|error| refusal(&error))
}

async fn put(
    state: &Arc<HttpState>,
    form: Form,
    params: &Params,
    caller: Result<SeriesCaller, ApiError>,
    request: Request,
) -> Result<Response, ApiError> {
    let (caller, body) = body::read(state, caller, request, PUT_BYTES_MAX).await?;
    let limit = sync_timeout(params)?;
    let body = Arc::new(body);
    let database = state.hub.own_database(&caller);
    let target = Target { caller, database, topic: form.path() };
    let (bytes, read) = (body.bytes.len(), Arc::clone(&body));
    let collect = move |points: &mut Points| {
        let malformed = |error| ApiError::bad_request(format!("Unable to parse the given JSON: {error}"));
        collect(points, form, &read.bytes).map_err(malformed)
    };
    let stored = store_rows(state, &target, bytes, collect);
    let in_time = match limit {
        Some(limit) => tokio::time::timeout(limit, stored).await.ok(),
        None => Some(stored.await),
    };
    let outcome = match in_time {
        Some(stored) => {
            let (accepted, mut outcome) = stored?;
            name_refused(&body.bytes, &accepted.refused, &mut outcome);
            outcome
        }
        None => state.reads.run(move || timed_out(&body.bytes)).await?,
    };
    Ok(outcome.answer(Wanted::of(params)))
}

/// How long the sender waits for the disk, in milliseconds; 0 is forever. OpenTSDB reads it only with `sync`, but here every answer
/// waits for the disk.
fn sync_timeout(params: &Params) -> Result<Option<Duration>, ApiError> {
    let limit = params.number::<u32>("sync_timeout")?.unwrap_or_default();
    Ok((limit > 0).then(|| Duration::from_millis(limit.into())))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_limit_of_time_is_a_whole_number_of_milliseconds() {
        let limit = |query| sync_timeout(&Params::parse(query));
        assert_eq!(limit("sync&sync_timeout=250").unwrap(), Some(Duration::from_millis(250)));
        assert_eq!((limit("sync").unwrap(), limit("sync_timeout=0").unwrap()), (None, None));
        assert!(limit("sync_timeout=-1").is_err() && limit("sync_timeout=1s").is_err());
    }
}
