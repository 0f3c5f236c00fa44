//! The requests that write.

use std::sync::Arc;

use axum::extract::{Request, State};
use axum::response::Response;
use hub::caller::Caller;
use hub::points::{AcceptError, Points};

use super::answers::refusal;
use super::body::Plain;
use super::outcome::{Outcome, Wanted};
use super::rows::{Form, collect, name_refused};
use crate::error::ApiError;
use crate::http::bodies::Sender;
use crate::http::influx::limits::{INLINE_BYTES_MAX, SERIES_GONE_MAX};
use crate::http::limits::BUSY_TIMEOUT;
use crate::http::request::{Params, discard_body};
use crate::http::series_caller::SeriesCaller;
use crate::http::state::HttpState;

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
    let caller = match caller {
        Ok(SeriesCaller(caller)) => caller,
        Err(refused) => {
            discard_body(request).await;
            return Err(refused);
        }
    };
    let sender = Sender::User(caller.user_id().unwrap_or_default());
    let body = Arc::new(Plain::read(state, request, sender).await?);
    let outcome = store(state, form, &caller, &body).await?;
    Ok(outcome.answer(Wanted::of(params)))
}

async fn store(
    state: &HttpState,
    form: Form,
    caller: &Caller,
    body: &Arc<Plain>,
) -> Result<Outcome, ApiError> {
    let database = state.hub.own_database(caller);
    let mut attempts = 0;
    loop {
        attempts += 1;
        let points = state.hub.points(caller, &database, state.options.door)?;
        let (points, mut outcome) = read_points(state, form, points, body).await?;
        match state.hub.accept_points(points, form.path(), BUSY_TIMEOUT).await {
            Ok(accepted) => {
                name_refused(&body.bytes, &accepted.refused, &mut outcome);
                return Ok(outcome);
            }
            Err(AcceptError::SeriesGone) if attempts < SERIES_GONE_MAX => {}
            Err(AcceptError::SeriesGone) => return Err(ApiError::busy(AcceptError::SeriesGone.to_string())),
            Err(AcceptError::Store(error)) => return Err(error.into()),
        }
    }
}

async fn read_points(
    state: &HttpState,
    form: Form,
    mut points: Points,
    body: &Arc<Plain>,
) -> Result<(Points, Outcome), ApiError> {
    let body = Arc::clone(body);
    let length = body.bytes.len();
    let work = move || collect(&mut points, form, &body.bytes).map(|outcome| (points, outcome));
    let read = if length <= INLINE_BYTES_MAX { work() } else { state.reads.run(work).await? };
    read.map_err(|error| ApiError::bad_request(format!("Unable to parse the given JSON: {error}")))
}
