//! Failures of databases.

use std::error::Error;
use std::fmt::Display;

use virtual_sensors::DatabaseAddress;

use super::limits::CAUSE_CHARACTERS_MAX;

/// A database that refused or did not answer. The text has no password.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{address}: cannot {act}: {cause}")]
pub(crate) struct DatabaseError {
    address: String,
    act: String,
    cause: String,
    /// Whether the database refuses the values of a row, and not the statement or the connection.
    pub(crate) is_of_data: bool,
}

impl DatabaseError {
    /// A failure while a client does something, such as `insert into street`.
    pub(crate) fn new(address: &DatabaseAddress, act: impl Display, cause: impl Display) -> Self {
        let cause = cause.to_string().chars().take(CAUSE_CHARACTERS_MAX).collect();
        Self { address: address.to_string(), act: act.to_string(), cause, is_of_data: false }
    }

    /// The same for a database that refuses the values of a row.
    pub(crate) fn of_data(self, is_of_data: bool) -> Self {
        Self { is_of_data, ..self }
    }
}

/// An error with its causes.
pub(super) fn with_causes(error: &dyn Error) -> String {
    let mut text = error.to_string();
    let mut next = error.source();
    while let Some(cause) = next {
        let cause_text = cause.to_string();
        if !text.contains(&cause_text) {
            text.push_str(": ");
            text.push_str(&cause_text);
        }
        next = cause.source();
    }
    text
}
