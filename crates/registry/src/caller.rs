//! Callers and their permissions. The hub decides permissions here, once for all doors.
//!
//! A door turns a credential into a [`Caller`] and passes it to the hub, which calls [`Caller::check`] before it acts. A door
//! may check first, so that it refuses before it reads a long body.

pub use crate::identity::Caller;
pub use crate::permission::{Action, Forbidden, Refused, Role, permits};
