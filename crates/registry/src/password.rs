//! Password hashes: argon2id, deliberately slow.

use std::sync::atomic::{AtomicUsize, Ordering};

use argon2::password_hash::phc::{Output, ParamsString, PasswordHash, Salt};
use argon2::{Algorithm, Argon2, Block, Params, Version};
use model::limits::{PASSWORD_BYTES_MAX, PASSWORD_CHARS_MIN, PASSWORD_CHECKS_WAITING_MAX};
use parking_lot::Mutex;

use super::error::RegistryError;
use super::random;

/// The OWASP cheat sheet's recommendation for argon2id: 19 MiB, two passes, one lane.
const MEMORY_KIB: u32 = 19 * 1024;
const PASSES: u32 = 2;
const LANES: u32 = 1;

/// A hash of no password, with the cost of a real one. Checking it makes an unknown login as slow as a wrong password, so the
/// response time does not reveal which logins exist.
const NOBODYS_HASH: &str = "$argon2id$v=19$m=19456,t=2,p=1$dGFjaG9ncmFwaC5ub2JvZHk\
                            $AAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAA";

/// The hash of an account that cannot log in until a password is set.
pub(super) const UNUSABLE: &str = "!";

/// Hashes and checks passwords, one at a time, so a flood of logins leaves the other cores to the devices. It allocates the
/// working memory of 19 MiB once: memory that each thread allocated would stay with each thread.
#[derive(Default)]
pub(super) struct Passwords {
    waiting: AtomicUsize,
    memory: Mutex<Vec<Block>>,
}

impl std::fmt::Debug for Passwords {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Passwords").field("waiting", &self.waiting).finish_non_exhaustive()
    }
}

impl Passwords {
    /// The hash of `password` for storage, with salt and parameters (PHC string).
    pub(super) fn hash(&self, password: &str) -> Result<String, RegistryError> {
        check(password)?;
        self.in_turn(|memory| {
            let salt = Salt::new(&random::bytes::<16>()).expect("BUG: the salt has the recommended length");
            let hash = compute(password, salt, parameters(), memory);
            hash.expect("BUG: the length of the password is checked").to_string()
        })
    }

    /// Whether `password` matches `hash`. `None` means an unknown login, and takes as long.
    pub(super) fn verify(&self, password: &str, hash: Option<&str>) -> Result<bool, RegistryError> {
        if password.len() > PASSWORD_BYTES_MAX {
            // No user has a password of this length, and the client must not control the time of hashing.
            return Ok(false);
        }
        self.in_turn(|memory| {
            let Ok(expected) = PasswordHash::new(hash.unwrap_or(NOBODYS_HASH)) else { return false };
            let (Ok(parameters), Some(salt)) = (Params::try_from(&expected), expected.salt) else {
                return false;
            };
            // A foreign registry file must not control the memory of hashing.
            if parameters.m_cost() > MEMORY_KIB {
                return false;
            }
            let computed = compute(password, salt, parameters, memory);
            // Compared in constant time by the hash's own type.
            computed.is_some_and(|computed| {
                computed.algorithm == expected.algorithm && computed.hash == expected.hash
            }) && hash.is_some()
        })
    }

    fn in_turn<T>(&self, work: impl FnOnce(&mut Vec<Block>) -> T) -> Result<T, RegistryError> {
        let waiting = self.waiting.fetch_add(1, Ordering::Relaxed);
        let result = if waiting < PASSWORD_CHECKS_WAITING_MAX {
            Ok(work(&mut self.memory.lock()))
        } else {
            Err(RegistryError::LoginsBusy { waiting })
        };
        self.waiting.fetch_sub(1, Ordering::Relaxed);
        result
    }
}

fn parameters() -> Params {
    Params::new(MEMORY_KIB, PASSES, LANES, None).expect("BUG: constant parameters are in range")
}

/// The hash of a password, computed in `memory`, which keeps its size. `None` if the parameters fit no password.
fn compute(password: &str, salt: Salt, parameters: Params, memory: &mut Vec<Block>) -> Option<PasswordHash> {
    let (blocks, bytes) = (parameters.block_count(), parameters.output_len());
    if memory.len() < blocks {
        memory.resize(blocks, Block::default());
    }
    let params = ParamsString::try_from(&parameters).ok()?;
    let argon2 = Argon2::new(Algorithm::Argon2id, Version::V0x13, parameters);
    let mut output = vec![0; bytes.unwrap_or(Params::DEFAULT_OUTPUT_LEN)];
    let memory = &mut memory[..blocks];
    argon2.hash_password_into_with_memory(password.as_bytes(), &salt, &mut output, memory).ok()?;
    Some(PasswordHash {
        algorithm: Algorithm::Argon2id.ident(),
        version: Some(Version::V0x13.into()),
        params,
        salt: Some(salt),
        hash: Output::new(&output).ok(),
    })
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
    fn the_hash_for_unknown_logins_costs_the_same_and_matches_nothing() {
        let parsed = PasswordHash::new(NOBODYS_HASH).unwrap();
        let params = Params::try_from(&parsed).unwrap();
        assert_eq!((params.m_cost(), params.t_cost(), params.p_cost()), (MEMORY_KIB, PASSES, LANES));
        assert_eq!(parsed.hash.unwrap().as_bytes(), [0; 32]);
        let passwords = Passwords::default();
        assert!(!passwords.verify("", None).unwrap());
        assert!(!passwords.verify("!", Some(UNUSABLE)).unwrap());
    }

    #[test]
    fn too_short_and_too_long_passwords_are_refused() {
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
        assert_eq!(refused.blame(), model::Blame::Busy);
        passwords.waiting.store(0, Ordering::Relaxed);
        assert!(!passwords.verify("whatever", None).unwrap());
        assert_eq!(passwords.waiting.load(Ordering::Relaxed), 0);
    }
}
