//! A check of a body before its handler reads it.

use crate::error::ApiError;

/// What the body of a request must have.
pub(crate) trait BodyRules: Send + Sync {
    /// Refuses a body.
    fn check(&self, body: &[u8]) -> Result<(), ApiError>;
}

/// The rules for the body of a request. A layer puts them among the extensions of the request, and `read_body` applies them.
#[derive(Clone, Copy)]
pub(crate) struct BodyCheck(pub(crate) &'static dyn BodyRules);
