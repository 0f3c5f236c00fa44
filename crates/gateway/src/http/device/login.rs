//! The device of the token in a path of the device API, and how long it may wait for a message.

use std::net::SocketAddr;
use std::sync::Arc;
use std::time::{Duration, Instant};

use hub::registry::Device;

use crate::acceptor::Stop;
use crate::error::ApiError;
use crate::http::limits::{POLL_TIMEOUT_DEFAULT, POLL_TIMEOUT_MAX};
use crate::http::tools::request::Params;
use crate::http::tools::state::HttpState;
use crate::refusals;

/// The device with an access token. It counts as heard.
pub(crate) fn device_of(
    state: &HttpState,
    token: &str,
    peer: Option<SocketAddr>,
) -> Result<Arc<Device>, ApiError> {
    let device = state.hub.registry().device_by_token(token).ok_or_else(|| {
        refusals::credentials(&state.hub, hub::Door::Http, peer, "the access token belongs to no device");
        let message = "no device has this access token; check it, or add the device with `tacho device add`";
        ApiError::unauthenticated("token", message)
    })?;
    state.hub.device_heard(&device);
    Ok(device)
}

/// The device of a request with a body, if its tenant may send another message.
pub(crate) fn sender_of(
    state: &HttpState,
    token: &str,
    peer: Option<SocketAddr>,
) -> Result<Arc<Device>, ApiError> {
    let device = device_of(state, token, peer)?;
    state.hub.tenant_load(device.tenant).take_message(Instant::now())?;
    Ok(device)
}

/// What a poll of a device waits for: `None` when its time is over, and when the server stops.
pub(crate) async fn polled<T>(
    state: &HttpState,
    timeout: Duration,
    next: impl Future<Output = T>,
) -> Option<T> {
    let mut stop = state.stop.clone();
    tokio::select! {
        next = next => Some(next),
        () = tokio::time::sleep(timeout) => None,
        () = Stop::Drain.reached(&mut stop) => None,
    }
}

/// How long a device waits for a message. No timeout, or 0, means the default.
pub(crate) fn poll_timeout(params: &Params) -> Result<Duration, ApiError> {
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
