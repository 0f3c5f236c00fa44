//! What a failure of fjall means for the store.

use std::io;
use std::path::Path;

use fjall::LsmError;
use model::resource_errors::is_transient;

use crate::KvError;

/// A write that failed.
#[derive(Debug)]
pub(super) enum Failure {
    /// The system lacks space, quota, descriptors or memory. The same write succeeds later.
    Lack(KvError),
    /// A write in the background failed earlier. fjall does not tell the error.
    Background,
    /// Any other failure. The store cannot know what is on the disk.
    Lasting(KvError),
}

impl Failure {
    /// The meaning of an error of fjall.
    pub(super) fn of(directory: &Path, verb: &'static str, error: fjall::Error) -> Self {
        match error {
            fjall::Error::Poisoned => Self::Background,
            fjall::Error::Io(error) | fjall::Error::Storage(LsmError::Io(error)) => {
                Self::of_io(directory, verb, error)
            }
            error => Self::Lasting(failure(directory, verb, error)),
        }
    }

    /// The meaning of an error of the system.
    pub(super) fn of_io(directory: &Path, verb: &'static str, error: io::Error) -> Self {
        let is_lack = is_transient(&error);
        let error = KvError::io(verb, directory, error);
        if is_lack { Self::Lack(error) } else { Self::Lasting(error) }
    }
}

/// The error of a failed read, or of a failed opening.
pub(super) fn failure(directory: &Path, verb: &'static str, error: fjall::Error) -> KvError {
    match error {
        fjall::Error::Locked => KvError::InUse { path: directory.to_owned() },
        fjall::Error::Io(error) | fjall::Error::Storage(LsmError::Io(error)) => {
            KvError::io(verb, directory, error)
        }
        fjall::Error::Poisoned => {
            KvError::io(verb, directory, io::Error::other("an earlier write has failed"))
        }
        error => KvError::Corrupt { path: directory.to_owned(), reason: error.to_string() },
    }
}

/// The error of a failed read. A lack of descriptors or memory is busy: the same read succeeds later.
pub(super) fn read_failure(directory: &Path, error: fjall::Error) -> KvError {
    match Failure::of(directory, "read", error) {
        Failure::Lack(error) => KvError::Busy { reason: error.to_string() },
        Failure::Background => failure(directory, "read", fjall::Error::Poisoned),
        Failure::Lasting(error) => error,
    }
}
