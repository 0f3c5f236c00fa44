//! The HTTP side of the commands: a small blocking client of a running server, and how that server is found.

mod api;
mod find;

pub(crate) use api::{Api, ApiError, escaped, message_of};
pub(crate) use find::{RuntimeFile, ServerArgs};
