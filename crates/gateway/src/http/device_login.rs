//! The device of the token in a path of the device API.

use std::net::SocketAddr;
use std::sync::Arc;

use hub::registry::Device;

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
