//! Callers and their permissions. The hub decides permissions here, once for all doors.
//!
//! A door turns a credential into a [`Caller`] and calls [`Caller::check`] before it acts.

mod identity;
mod permission;

pub use identity::Caller;
pub use permission::{Action, Forbidden, Role};
