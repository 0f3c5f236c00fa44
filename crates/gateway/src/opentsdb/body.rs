//! Bodies, and who sends them.

use axum::extract::Request;
use hub::caller::Caller;

use crate::error::ApiError;
use crate::http::tools::bodies::Sender;
use crate::http::tools::plain_body::PlainBody;
use crate::http::tools::series_caller::SeriesCaller;
use crate::http::tools::state::HttpState;

/// The caller of a request, and its body of at most `limit` bytes.
pub(super) async fn read(
    state: &HttpState,
    caller: Result<SeriesCaller, ApiError>,
    request: Request,
    limit: usize,
) -> Result<(Caller, PlainBody), ApiError> {
    let SeriesCaller(caller) = caller?;
    let sender = Sender::caller(&caller);
    let body = PlainBody::read(state, request, limit, sender).await?;
    Ok((caller, body))
}
