//! The end of a session token while its socket is open.

use tokio::sync::watch;

use crate::error::ApiError;
use crate::http::tools::session::Session;
use crate::http::tools::state::HttpState;
use crate::key_expiry::key_expired;

/// Returns when the token has become invalid because a user or the key has changed, or the key has expired.
pub(super) async fn token_ended(
    state: &HttpState,
    token: &str,
    changes: &mut watch::Receiver<u64>,
) -> ApiError {
    loop {
        let session = match Session::open(state, token) {
            Ok(session) => session,
            Err(error) => return error,
        };
        tokio::select! {
            changed = changes.changed() => changed.expect("BUG: the registry lives as long as the door"),
            () = key_expired(state.hub.registry(), session.caller()) => {}
        }
    }
}
