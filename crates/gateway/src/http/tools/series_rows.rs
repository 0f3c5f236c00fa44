//! Stores the rows of a request to a time-series interface.

use hub::OpenDatabase;
use hub::caller::Caller;
use hub::points::{AcceptError, Accepted, Points};

use super::state::HttpState;
use crate::error::ApiError;
use crate::http::limits::{BUSY_TIMEOUT, INLINE_BODY_BYTES_MAX, READINGS_MAX};

/// Where the rows of a request go.
#[derive(Debug)]
pub(crate) struct Target {
    pub(crate) caller: Caller,
    pub(crate) database: OpenDatabase,
    /// The name of the request in dead letters.
    pub(crate) topic: &'static str,
}

/// Collects the rows of a body, appends them, and waits until they are on the disk. Returns what `collect` says about the others. A
/// body of `bytes` above a bound is read on a blocking thread. If a series was deleted meanwhile, or the store was too busy to make
/// one, the body is read again.
///
/// # Errors
/// `collect` refuses the body as a whole, the caller may not write, or the store does not take the rows.
pub(crate) async fn store_rows<T: Send + 'static>(
    state: &HttpState,
    target: &Target,
    bytes: usize,
    collect: impl Fn(&mut Points) -> Result<T, ApiError> + Clone + Send + 'static,
) -> Result<(Accepted, T), ApiError> {
    let mut again = AcceptError::SeriesGone;
    for _ in 0..READINGS_MAX {
        let mut points = state.hub.points(&target.caller, &target.database, state.options.door)?;
        let collect = collect.clone();
        let work = move || collect(&mut points).map(|rest| (points, rest));
        let (points, rest) =
            if bytes <= INLINE_BODY_BYTES_MAX { work()? } else { state.reads.run(work).await?? };
        match state.hub.accept_points(points, target.topic, BUSY_TIMEOUT).await {
            Ok(accepted) => return Ok((accepted, rest)),
            Err(error @ (AcceptError::SeriesGone | AcceptError::SeriesMade)) => again = error,
            Err(AcceptError::Store(error)) => return Err(error.into()),
        }
    }
    Err(ApiError::busy(again.to_string()))
}
