//! The HTTP client of the commands: finds a running server, logs in and sends requests.

mod api;
mod find;
mod retry;

pub(crate) use api::{Api, ApiError, client_of, escaped, message_of};
pub(crate) use find::{RuntimeFile, ServerArgs};
pub(crate) use retry::pause_before_retry;
