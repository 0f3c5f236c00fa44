//! The reasons why a target cannot be looked at.

use std::io;
use std::path::PathBuf;

use crate::statement::Statement;

/// A target cannot be looked at. The message states whose fault it is and what to do.
#[derive(Debug, thiserror::Error)]
pub enum ProbeError {
    /// Nobody answers at the address.
    #[error("cannot connect to {target}: {reason}")]
    Connect {
        /// The target, without its password.
        target: String,
        reason: String,
    },
    /// The target refuses user and password.
    #[error(
        "{target} refuses the login: {reason}. Check user and password of the URL; the password can also be in \
         TACHO_TARGET_PASSWORD"
    )]
    Login {
        /// The target, without its password.
        target: String,
        /// The target's answer.
        reason: String,
    },
    /// The user lacks a permission without which nothing can be read.
    #[error("the user of {target} may not read {what}: {reason}. {remedy}")]
    Permission {
        /// The target, without its password.
        target: String,
        /// The values that cannot be read.
        what: &'static str,
        /// The target's answer.
        reason: String,
        /// The grant that allows it, as a sentence.
        remedy: &'static str,
    },
    /// Another product answers.
    #[error("{target} is not {expected}: {reason}")]
    OtherProduct {
        /// The target, without its password.
        target: String,
        /// The product that the URL names.
        expected: &'static str,
        /// The answer that shows it.
        reason: String,
    },
    /// The target answers what its protocol does not allow, or closes the connection.
    #[error("{target} broke off or broke the protocol while the command read {what}: {reason}")]
    Protocol {
        /// The target, without its password.
        target: String,
        /// The values that were read.
        what: &'static str,
        reason: String,
    },
    /// The file of a client cannot be used.
    #[error("--client-config {}: {reason}", .path.display())]
    ClientConfig { path: PathBuf, reason: String },
    /// This machine has no `/proc`.
    #[error("cannot read {path}: only Linux with /proc can be looked at")]
    Host { path: &'static str, source: io::Error },
}

/// A statement was not carried out.
#[derive(Debug, thiserror::Error)]
pub enum StatementError {
    /// The user may not do it.
    #[error("the user may not do this: {0}")]
    Permission(String),
    /// The target refuses the statement.
    #[error("the target refuses it: {0}")]
    Refused(String),
    /// The connection broke. Nobody knows whether the target has carried the statement out.
    #[error("the target is gone: {0}")]
    Lost(String),
    /// The statement changes the machine of the target, and that is another one.
    #[error("the target is on another machine: run the command there, with a loopback address")]
    OtherMachine,
    /// The statement belongs to another kind of target.
    #[error("`{0}` is not a statement for this target")]
    Other(Statement),
}

impl StatementError {
    /// A file of the kernel could not be written.
    pub(super) fn of_file(error: &io::Error) -> Self {
        match error.kind() {
            io::ErrorKind::PermissionDenied => Self::Permission(error.to_string()),
            _ => Self::Refused(error.to_string()),
        }
    }
}
