//! The device of the token in a path of the device API, and how long it may wait for a message.

use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;

use hub::registry::Device;

use super::limits::{POLL_TIMEOUT_DEFAULT, POLL_TIMEOUT_MAX};
use super::request::Params;
use super::state::HttpState;
use crate::error::ApiError;
use crate::refusals;

/// The device with an access token.
pub(super) fn device_of(
    state: &HttpState,
    token: &str,
    peer: Option<SocketAddr>,
) -> Result<Arc<Device>, ApiError> {
    state.hub.registry().device_by_token(token).ok_or_else(|| {
        refusals::token(&state.hub, hub::Door::Http, peer, "the access token belongs to no device");
        let message = "no device has this access token; check it, or add the device with `tacho device add`";
        ApiError::unauthenticated("token", message)
    })
}

/// How long a device waits for a message. No timeout, or 0, means the default.
pub(super) fn poll_timeout(params: &Params) -> Result<Duration, ApiError> {
    let asked = params.number::<u64>("timeout")?.filter(|millis| *millis > 0);
    Ok(asked.map_or(POLL_TIMEOUT_DEFAULT, Duration::from_millis).min(POLL_TIMEOUT_MAX))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_poll_has_a_timeout_within_bounds() {
        let timeout = |query: &str| poll_timeout(&Params::parse(query)).map(|timeout| timeout.as_millis());
        assert_eq!(timeout("timeout=20"), Ok(20));
        assert_eq!((timeout(""), timeout("timeout=0")), (Ok(60_000), Ok(60_000)));
        assert_eq!(timeout("timeout=99999999"), Ok(300_000));
        assert!(timeout("timeout=soon").is_err());
    }
}
