//! Provisioning over HTTP.

use std::sync::Arc;

use axum::body::Body;
use axum::extract::{Request, State};
use axum::response::Response;
use hub::provisioning::ProvisionRefused;
use wire::thingsboard::provision::ProvisionRequest;

use crate::error::ApiError;
use crate::http::limits::PROVISION_BODY_BYTES_MAX;
use crate::http::tools::bodies::Sender;
use crate::http::tools::connection::Peer;
use crate::http::tools::json::json_response;
use crate::http::tools::request::read_body;
use crate::http::tools::state::HttpState;
use crate::provisioning;

/// `POST /api/v1/provision`: gives a device its credentials. As in ThingsBoard the status is 200 for each answer, and `status` of
/// the answer states whether there are credentials.
pub(crate) async fn provision(
    State(state): State<Arc<HttpState>>,
    Peer(peer): Peer,
    request: Request,
) -> Result<Response, ApiError> {
    let account = state.body_account(Sender::Anonymous);
    let body = read_body(request, PROVISION_BODY_BYTES_MAX, "", account).await?;
    let asked = ProvisionRequest::parse(&body.bytes);
    let asked = asked.map_err(|wrong| ApiError::bad_request(wrong.to_string()))?;
    let hub = Arc::clone(&state.hub);
    let answer = move || provisioning::answer(&hub, hub::Door::Http, peer, &asked);
    Ok(json_response(Body::from(state.creations.run(answer).await??.json())))
}

impl From<ProvisionRefused> for ApiError {
    fn from(refused: ProvisionRefused) -> Self {
        match refused {
            ProvisionRefused::TooManyGuesses(wait) => wait.into(),
            ProvisionRefused::Failed(error) => error.into(),
            ProvisionRefused::TooManyDevices { .. } => Self::busy_provisioning(refused.to_string()),
            ProvisionRefused::NotFound | ProvisionRefused::Device(_) => {
                Self::bad_request(refused.to_string())
            }
        }
    }
}
