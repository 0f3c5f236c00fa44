//! Spaces: the separate orders of keys.

use std::fmt;

use parking_lot::Mutex;

use crate::KvError;
use crate::limits::{SPACE_NAME_BYTES_MAX, SPACES_MAX};

/// The name of a space: an order of keys of its own. A name has 1 to 32 characters of `[a-z_]`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Space(&'static str);

impl Space {
    /// A space of the program.
    ///
    /// # Panics
    /// If the name breaks the rules; in a constant this is an error of the compiler.
    pub const fn new(name: &'static str) -> Self {
        assert!(is_name(name.as_bytes()), "BUG: a space is named by 1 to 32 characters of [a-z_]");
        Self(name)
    }

    /// The space of this name, which comes from a file. Names are kept for the life of the process, at most [`SPACES_MAX`].
    ///
    /// # Errors
    /// [`KvError::SpaceName`] and [`KvError::OverLimit`].
    pub fn named(name: &str) -> Result<Self, KvError> {
        static NAMES: Mutex<Vec<&'static str>> = Mutex::new(Vec::new());
        if !is_name(name.as_bytes()) {
            return Err(KvError::SpaceName(name.chars().take(2 * SPACE_NAME_BYTES_MAX).collect()));
        }
        let mut names = NAMES.lock();
        if let Some(known) = names.iter().find(|known| **known == name) {
            return Ok(Self(known));
        }
        KvError::check_limit("number of spaces", names.len() + 1, SPACES_MAX)?;
        let kept: &'static str = Box::leak(name.into());
        names.push(kept);
        Ok(Self(kept))
    }

    /// The name.
    pub const fn name(self) -> &'static str {
        self.0
    }
}

impl fmt::Display for Space {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.0)
    }
}

const fn is_name(name: &[u8]) -> bool {
    let mut at = 0;
    while at < name.len() {
        if !(name[at].is_ascii_lowercase() || name[at] == b'_') {
            return false;
        }
        at += 1;
    }
    !name.is_empty() && name.len() <= SPACE_NAME_BYTES_MAX
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_have_rules_and_are_kept_once() {
        const SESSIONS: Space = Space::new("sessions");
        assert_eq!(Space::named("sessions").unwrap(), SESSIONS);
        let twice = [Space::named("retained").unwrap(), Space::named("retained").unwrap()];
        assert!(std::ptr::eq(twice[0].name(), twice[1].name()));
        for wrong in ["", "Upper", "a-b", "a/b", "a1", &"x".repeat(33)] {
            assert!(matches!(Space::named(wrong), Err(KvError::SpaceName(_))), "{wrong:?}");
        }
    }
}
