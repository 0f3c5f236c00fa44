//! The reasons why a target cannot be looked at.

use std::io;
use std::path::PathBuf;

/// A target cannot be looked at. The message says whose fault it is and what to do.
#[derive(Debug, thiserror::Error)]
pub enum ProbeError {
    /// Nobody answers at the address.
    #[error("cannot connect to {target}: {reason}")]
    Connect {
        /// The target, without its password.
        target: String,
        /// The cause.
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
        /// The cause.
        reason: String,
    },
    /// The file of a client cannot be used.
    #[error("--client-config {}: {reason}", .path.display())]
    ClientConfig {
        /// The file.
        path: PathBuf,
        /// The cause.
        reason: String,
    },
    /// This machine has no `/proc`.
    #[error("cannot read {path}: only Linux with /proc can be looked at")]
    Host {
        /// The file.
        path: &'static str,
        /// The cause.
        source: io::Error,
    },
}
