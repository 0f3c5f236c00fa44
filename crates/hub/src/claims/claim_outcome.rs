//! The end of a claim.

use std::sync::Arc;

use crate::registry::Device;

/// How a claim ended.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Claimed {
    /// The device belongs to the customer of the caller now.
    Success(Arc<Device>),
    /// The device belongs to a customer already.
    Already,
    /// The device has no offer, the offer is over, or the secret is wrong.
    Failure,
}
