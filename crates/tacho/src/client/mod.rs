//! The HTTP client of the commands: finds a running server, logs in and sends requests.

mod api;
mod find;

pub(crate) use api::{Api, ApiError, client_of, escaped, message_of};
pub(crate) use find::{RuntimeFile, ServerArgs};
