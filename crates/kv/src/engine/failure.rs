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
        let is_lack = is_transient(&error) || hidden(&error).is_some_and(|hidden| is_transient(&hidden));
        let error = KvError::io(verb, directory, error);
        if is_lack { Self::Lack(error) } else { Self::Lasting(error) }
    }
}

/// The error of the system in one that a library has made of it. The library for temporary files adds their path and hides the number of
/// the error but in the text.
fn hidden(error: &io::Error) -> Option<io::Error> {
    let text = error.get_ref()?.to_string();
    let (number, _) = text.split_once("(os error ")?.1.split_once(')')?;
    Some(io::Error::from_raw_os_error(number.parse().ok()?))
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_lack_is_found_behind_the_text_of_a_library() {
        let is_lack = |error| matches!(Failure::of_io(Path::new("d"), "open", error), Failure::Lack(_));
        let system = io::Error::from_raw_os_error;
        let named = |error: io::Error| io::Error::new(error.kind(), format!("{error} at path \"x\""));
        for number in [libc::ENOSPC, libc::EDQUOT, libc::EMFILE, libc::ENFILE, libc::ENOMEM] {
            assert!(is_lack(system(number)) && is_lack(named(system(number))), "{number}");
        }
        assert!(!is_lack(system(libc::EIO)) && !is_lack(named(system(libc::EIO))));
        assert!(!is_lack(io::Error::other("a write failed")));
    }
}
