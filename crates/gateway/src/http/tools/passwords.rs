//! Remembers right passwords, so that a client that sends its password with each request is not checked slowly each time.

use std::collections::HashMap;
use std::fmt;

use hmac::{Hmac, KeyInit, Mac};
use hub::registry::User;
use parking_lot::Mutex;
use sha2::Sha256;
use uuid::Uuid;

use crate::http::limits::PASSWORDS_REMEMBERED_MAX;

/// The right passwords of users, as hashes with a key that only this process knows.
pub(crate) struct Passwords {
    key: [u8; 32],
    right: Mutex<HashMap<Uuid, Right>>,
}

/// A right password, and the epoch of the user's sessions in which it was right. Another password or role starts a new epoch.
#[derive(Clone, PartialEq, Eq)]
struct Right {
    hash: [u8; 32],
    epoch: i64,
}

impl fmt::Debug for Passwords {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Passwords").finish_non_exhaustive()
    }
}

impl Passwords {
    pub(crate) fn new() -> Self {
        let mut key = [0; 32];
        for half in key.chunks_exact_mut(16) {
            half.copy_from_slice(Uuid::new_v4().as_bytes());
        }
        Self { key, right: Mutex::default() }
    }

    /// Whether a password is known to be the user's present one.
    pub(crate) fn is_right(&self, user: &User, password: &str) -> bool {
        user.enabled && self.right.lock().get(&user.id) == Some(&self.right(user, password))
    }

    /// Remembers a password that was checked.
    pub(crate) fn remember(&self, user: &User, password: &str) {
        let right = self.right(user, password);
        let mut all = self.right.lock();
        if all.len() >= PASSWORDS_REMEMBERED_MAX {
            all.clear();
        }
        all.insert(user.id, right);
    }

    fn right(&self, user: &User, password: &str) -> Right {
        let mut mac =
            Hmac::<Sha256>::new_from_slice(&self.key).expect("BUG: HMAC takes keys of every length");
        mac.update(user.id.as_bytes());
        mac.update(password.as_bytes());
        Right { hash: mac.finalize().into_bytes().into(), epoch: user.session_epoch }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_password_is_right_for_its_user_until_the_epoch_ends() {
        let passwords = Passwords::new();
        let user = User { id: Uuid::from_u128(1), enabled: true, ..User::default() };
        assert!(!passwords.is_right(&user, "secret"));
        passwords.remember(&user, "secret");
        assert!(passwords.is_right(&user, "secret"));
        assert!(!passwords.is_right(&user, "Secret"));
        assert!(!passwords.is_right(&User { id: Uuid::from_u128(2), ..user.clone() }, "secret"));
        assert!(!passwords.is_right(&User { session_epoch: 1, ..user.clone() }, "secret"));
        assert!(!passwords.is_right(&User { enabled: false, ..user }, "secret"));
    }
}
