//! The end of a session token while its socket is open.

use tokio::sync::watch;

use crate::error::ApiError;
use crate::http::tools::session::Session;
use crate::http::tools::state::HttpState;

/// Returns when the token has become invalid because a user or the key has changed.
pub(super) async fn token_ended(
    state: &HttpState,
    token: &str,
    changes: &mut watch::Receiver<u64>,
) -> ApiError {
    while changes.changed().await.is_ok() {
        if let Err(error) = Session::open(state, token) {
            return error;
        }
    }
    // The registry lives as long as the door.
    std::future::pending().await
}
