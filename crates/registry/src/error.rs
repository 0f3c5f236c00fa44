//! Errors of the registry.

use std::io;
use std::path::{Path, PathBuf};

use model::{Blame, NameError};
use rusqlite::ErrorCode;

use super::credentials_kind::CredentialsKind;
use crate::permission::Forbidden;

/// An error of the registry. The text is for people; code uses [`RegistryError::blame`].
#[derive(Debug, thiserror::Error)]
pub enum RegistryError {
    /// A name breaks the rules.
    #[error(transparent)]
    Name(#[from] NameError),
    /// A value other than a name breaks the rules.
    #[error("the {what} {reason}")]
    Invalid {
        /// Kind of the value, such as "access token".
        what: &'static str,
        /// The fault, and the rule.
        reason: String,
    },
    /// The request is larger than a limit allows.
    #[error("the {what} is {actual}, the limit is {limit}")]
    OverLimit {
        /// The counted quantity.
        what: &'static str,
        /// Its value.
        actual: usize,
        limit: usize,
    },
    /// The name is taken.
    #[error("the {what} {name:?} exists already; choose another name or delete it first")]
    Exists {
        /// Kind of the object.
        what: &'static str,
        name: String,
    },
    /// Another device has the credentials. The text begins with ThingsBoard's, and contains no credentials.
    #[error(
        "Device credentials are already assigned to another device! The {} for {wanted_by:?} {}; every device needs its own",
        .kind.words(),
        holder(.held_by.as_deref())
    )]
    CredentialsTaken {
        kind: CredentialsKind,
        /// Name of the device that should get them.
        wanted_by: String,
        /// Name of the device that has them; `None` for a device of another tenant, which the caller must not learn.
        held_by: Option<String>,
    },
    /// Another device profile has the key of provisioning. The text begins with ThingsBoard's.
    #[error(
        "Device profile with such provision device key already exists! Choose another provisionDeviceKey"
    )]
    ProvisionKeyTaken,
    /// The caller lacks a permission.
    #[error(transparent)]
    Forbidden(#[from] Forbidden),
    /// The tenant would have no administrator.
    #[error("{login} is the last administrator; add another one first (tacho user add --role administrator)")]
    LastAdministrator {
        /// The user's login.
        login: String,
    },
    /// The object does not exist.
    #[error("there is no {what} {name:?}; check the spelling or create it first")]
    Unknown {
        /// Kind of the object.
        what: &'static str,
        /// Its name or id.
        name: String,
    },
    /// Another caller has changed the object meanwhile.
    #[error("the {what} {name:?} has version {found} and not {expected}; read it again, then change it")]
    VersionConflict {
        /// Kind of the object.
        what: &'static str,
        name: String,
        /// The version that the caller has seen.
        expected: i64,
        /// Its version.
        found: i64,
    },
    /// Other objects need the object.
    #[error("the {what} {name:?} is that of {count} {users}; give them another one or delete them first")]
    StillUsed {
        /// Kind of the object.
        what: &'static str,
        name: String,
        /// Number of the objects that need it.
        count: usize,
        /// Kind of the objects that need it, in the plural.
        users: &'static str,
    },
    /// Too many password checks wait.
    #[error("{waiting} logins wait for their turn, which is the limit; try again in a second")]
    LoginsBusy {
        /// Number of waiting checks.
        waiting: usize,
    },
    /// Another process has the file open.
    #[error("{} is in use by another process; stop it, or ask the running server instead", .path.display())]
    InUse {
        /// The registry's file.
        path: PathBuf,
    },
    /// The file was written by a newer release.
    #[error(
        "{} has format version {found}, this release knows version {known}; use the newer release",
        .path.display()
    )]
    TooNew {
        /// The registry's file.
        path: PathBuf,
        /// Its version.
        found: i32,
        /// The version this release reads.
        known: i32,
    },
    /// The file was written by a build from before the first release.
    #[error(
        "{} has format version {found}, this release knows version {known}; open it once with a server built from commit {commit}, \
         which reads and upgrades it",
        .path.display()
    )]
    TooOld {
        /// The registry's file.
        path: PathBuf,
        /// Its version.
        found: i32,
        /// The version this release reads.
        known: i32,
        /// The last commit that reads the version.
        commit: &'static str,
    },
    /// The file is a database, but not a registry, or it lacks required content.
    #[error("{} is not a registry: {reason}; restore it from a backup", .path.display())]
    NotARegistry { path: PathBuf, reason: String },
    /// SQLite failed.
    #[error("cannot {what} in {}: {source}", .path.display())]
    Sqlite {
        /// The attempted operation.
        what: &'static str,
        path: PathBuf,
        /// The error of SQLite.
        #[source]
        source: rusqlite::Error,
    },
    /// The operating system failed.
    #[error("cannot {verb} {}: {source}", .path.display())]
    Io {
        /// The attempted operation.
        verb: &'static str,
        path: PathBuf,
        /// The error of the system.
        #[source]
        source: io::Error,
    },
}

impl RegistryError {
    /// The party that can resolve the error. No wildcard arm: a new variant must decide.
    pub fn blame(&self) -> Blame {
        match self {
            Self::Name(_)
            | Self::Invalid { .. }
            | Self::OverLimit { .. }
            | Self::Exists { .. }
            | Self::CredentialsTaken { .. }
            | Self::ProvisionKeyTaken
            | Self::Forbidden(_)
            | Self::LastAdministrator { .. }
            | Self::VersionConflict { .. }
            | Self::StillUsed { .. }
            | Self::Unknown { .. } => Blame::Caller,
            Self::LoginsBusy { .. } => Blame::Busy,
            Self::Sqlite { source, .. } if source.sqlite_error_code() == Some(ErrorCode::DiskFull) => {
                Blame::Busy
            }
            Self::Io { source, .. } if model::is_transient(source) => Blame::Busy,
            Self::InUse { .. }
            | Self::TooNew { .. }
            | Self::TooOld { .. }
            | Self::NotARegistry { .. }
            | Self::Sqlite { .. }
            | Self::Io { .. } => Blame::Operator,
        }
    }

    /// Wraps an I/O error with the operation and the file.
    pub(crate) fn io(verb: &'static str, path: &Path) -> impl FnOnce(io::Error) -> Self {
        move |source| Self::Io { verb, path: path.into(), source }
    }

    /// Wraps an error of SQLite with the operation and the file.
    pub(crate) fn sqlite(what: &'static str, path: &Path) -> impl FnOnce(rusqlite::Error) -> Self {
        move |source| match source.sqlite_error_code() {
            Some(ErrorCode::DatabaseBusy | ErrorCode::DatabaseLocked) => Self::InUse { path: path.into() },
            _ => Self::Sqlite { what, path: path.into(), source },
        }
    }

    /// The object does not exist.
    pub fn unknown(what: &'static str, name: impl ToString) -> Self {
        Self::Unknown { what, name: name.to_string() }
    }

    /// The name is taken.
    pub fn exists(what: &'static str, name: impl Into<String>) -> Self {
        Self::Exists { what, name: name.into() }
    }
}

fn holder(held_by: Option<&str>) -> String {
    match held_by {
        Some(name) => format!("is that of the device {name:?}"),
        None => "is taken".to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_full_disk_is_busy_and_a_broken_one_is_the_operators_fault() {
        let sqlite = |code| {
            let source = rusqlite::Error::SqliteFailure(rusqlite::ffi::Error::new(code), None);
            RegistryError::sqlite("add a device", Path::new("/x/registry.db"))(source)
        };
        assert_eq!(sqlite(rusqlite::ffi::SQLITE_FULL).blame(), Blame::Busy);
        assert_eq!(sqlite(rusqlite::ffi::SQLITE_IOERR).blame(), Blame::Operator);
        let busy = sqlite(rusqlite::ffi::SQLITE_BUSY);
        assert!(matches!(busy, RegistryError::InUse { .. }), "{busy}");
        assert_eq!(RegistryError::unknown("device", "a").blame(), Blame::Caller);
    }

    #[test]
    fn messages_name_the_remedy() {
        let exists = RegistryError::exists("device", "dev-1").to_string();
        assert_eq!(exists, "the device \"dev-1\" exists already; choose another name or delete it first");
    }
}
