//! Password hashes: argon2id, deliberately slow.

use std::sync::atomic::{AtomicUsize, Ordering};

use argon2::password_hash::phc::PasswordHash;
use argon2::password_hash::{PasswordHasher, PasswordVerifier};
use argon2::{Algorithm, Argon2, Params, Version};
use model::limits::{PASSWORD_BYTES_MAX, PASSWORD_CHARS_MIN, PASSWORD_CHECKS_WAITING_MAX};
use parking_lot::Mutex;

use super::{RegistryError, random};

/// The OWASP cheat sheet's recommendation for argon2id: 19 MiB, two passes, one lane.
const MEMORY_KIB: u32 = 19 * 1024;
const PASSES: u32 = 2;
const LANES: u32 = 1;

/// A hash that belongs to no password, with the same cost as a real one. Checking it makes an unknown login as slow as
/// a wrong password, so that the time of the answer does not tell which logins exist.
const NOBODYS_HASH: &str = "$argon2id$v=19$m=19456,t=2,p=1$dGFjaG9ncmFwaC5ub2JvZHk\
                            $AAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAA";

/// The hash of an account that cannot log in until a password is set.
pub(super) const UNUSABLE: &str = "!";

/// Hashes and checks passwords, one at a time: memory stays at 19 MiB and a flood of logins leaves the other cores to
/// the devices.
#[derive(Debug, Default)]
pub(super) struct Passwords {
    waiting: AtomicUsize,
    turn: Mutex<()>,
}

impl Passwords {
    /// The hash to store for `password`, salt and parameters included (PHC string).
    pub(super) fn hash(&self, password: &str) -> Result<String, RegistryError> {
        check(password)?;
        self.in_turn(|| {
            let salt = random::bytes::<16>();
            let hash = argon2().hash_password_with_salt(password.as_bytes(), &salt);
            hash.expect("BUG: the length of the password is checked and the salt has the recommended one")
                .to_string()
        })
    }

    /// Whether `password` is the one of `hash`; `None` stands for an unknown login and takes as long.
    pub(super) fn verify(&self, password: &str, hash: Option<&str>) -> Result<bool, RegistryError> {
        if password.len() > PASSWORD_BYTES_MAX {
            // Nobody has such a password, and hashing it would let the sender choose how long we work.
            return Ok(false);
        }
        self.in_turn(|| {
            let parsed = PasswordHash::new(hash.unwrap_or(NOBODYS_HASH));
            let Ok(parsed) = parsed else { return false };
            argon2().verify_password(password.as_bytes(), &parsed).is_ok() && hash.is_some()
        })
    }

    fn in_turn<T>(&self, work: impl FnOnce() -> T) -> Result<T, RegistryError> {
        let waiting = self.waiting.fetch_add(1, Ordering::Relaxed);
        let result = if waiting < PASSWORD_CHECKS_WAITING_MAX {
            let _turn = self.turn.lock();
            Ok(work())
        } else {
            Err(RegistryError::LoginsBusy { waiting })
        };
        self.waiting.fetch_sub(1, Ordering::Relaxed);
        result
    }
}

fn argon2() -> Argon2<'static> {
    let params = Params::new(MEMORY_KIB, PASSES, LANES, None).expect("BUG: constant parameters are in range");
    Argon2::new(Algorithm::Argon2id, Version::V0x13, params)
}

fn check(password: &str) -> Result<(), RegistryError> {
    if password.len() > PASSWORD_BYTES_MAX {
        let (actual, limit) = (password.len(), PASSWORD_BYTES_MAX);
        return Err(RegistryError::OverLimit { what: "password's length in bytes", actual, limit });
    }
    if password.chars().count() < PASSWORD_CHARS_MIN {
        let reason = format!("is shorter than {PASSWORD_CHARS_MIN} characters; choose a longer one");
        return Err(RegistryError::Invalid { what: "password", reason });
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_hash_knows_its_password_only_and_carries_the_parameters() {
        let passwords = Passwords::default();
        let hash = passwords.hash("correct horse").unwrap();
        assert!(hash.starts_with("$argon2id$v=19$m=19456,t=2,p=1$"), "{hash}");
        assert!(passwords.verify("correct horse", Some(&hash)).unwrap());
        assert!(!passwords.verify("correct horsf", Some(&hash)).unwrap());
        assert_ne!(hash, passwords.hash("correct horse").unwrap(), "the salt differs");
    }

    #[test]
    fn nobodys_hash_costs_what_a_real_one_costs_and_opens_nothing() {
        let parsed = PasswordHash::new(NOBODYS_HASH).unwrap();
        let params = Params::try_from(&parsed).unwrap();
        assert_eq!((params.m_cost(), params.t_cost(), params.p_cost()), (MEMORY_KIB, PASSES, LANES));
        assert_eq!(parsed.hash.unwrap().as_bytes(), [0; 32]);
        let passwords = Passwords::default();
        assert!(!passwords.verify("", None).unwrap());
        assert!(!passwords.verify("!", Some(UNUSABLE)).unwrap());
    }

    #[test]
    fn short_and_endless_passwords_are_refused() {
        let passwords = Passwords::default();
        assert!(passwords.hash("seven77").unwrap_err().to_string().contains("8 characters"));
        let endless = "x".repeat(PASSWORD_BYTES_MAX + 1);
        assert!(passwords.hash(&endless).unwrap_err().to_string().contains("1025"));
        assert!(!passwords.verify(&endless, None).unwrap());
    }

    #[test]
    fn a_flood_of_logins_is_refused_beyond_the_limit_and_recovers() {
        let passwords = Passwords::default();
        passwords.waiting.store(PASSWORD_CHECKS_WAITING_MAX, Ordering::Relaxed);
        let refused = passwords.verify("whatever", None).unwrap_err();
        assert_eq!(refused.blame(), store::Blame::Busy);
        passwords.waiting.store(0, Ordering::Relaxed);
        assert!(!passwords.verify("whatever", None).unwrap());
        assert_eq!(passwords.waiting.load(Ordering::Relaxed), 0);
    }
}
