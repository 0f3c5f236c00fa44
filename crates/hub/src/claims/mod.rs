//! Claiming of devices, as in ThingsBoard: a device says with which secret, and for how long, a user of a customer may claim it. The
//! claim assigns the device to the customer.
//!
//! 1. An offer is durable before its device gets an ack.
//! 2. A device that is assigned to a customer cannot be claimed: the registry refuses the assignment if the device has changed since it
//!    was read.
//! 3. A claim with a wrong secret ends the offer of the device, so nobody can guess again; only an offer in an attribute stays.

mod claim_outcome;
mod error;
pub mod limits;
mod record;

pub use claim_outcome::Claimed;
pub use error::ClaimError;
pub(crate) use record::{CLAIMS, Offer, claim_key, has_expired};
