//! The body of a request about the claim of a device: that of the device and that of the user.

use wire::thingsboard::claim::ClaimRequest;

use crate::error::ApiError;

pub(crate) fn read_claim(body: &[u8]) -> Result<ClaimRequest, ApiError> {
    ClaimRequest::parse(body).map_err(|wrong| ApiError::bad_request(wrong.to_string()))
}
