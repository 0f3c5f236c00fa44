//! Bodies, and who sends them.

use axum::extract::Request;
use hub::caller::Caller;

use crate::error::ApiError;
use crate::http::tools::bodies::Sender;
use crate::http::tools::plain_body::PlainBody;
use crate::http::tools::request::discard_body;
use crate::http::tools::series_caller::SeriesCaller;
use crate::http::tools::state::HttpState;

/// The caller of a request, and its body of at most `limit` bytes. The body of a caller who is refused is read and discarded.
pub(super) async fn read(
    state: &HttpState,
    caller: Result<SeriesCaller, ApiError>,
    request: Request,
    limit: usize,
) -> Result<(Caller, PlainBody), ApiError> {
    let caller = match caller {
        Ok(SeriesCaller(caller)) => caller,
        Err(refused) => {
            discard_body(request).await;
            return Err(refused);
        }
    };
    let sender = Sender::User(caller.user_id().unwrap_or_default());
    let body = PlainBody::read(state, request, limit, sender).await?;
    Ok((caller, body))
}
