//! API keys: secrets with which programs log in as a user, with that user's role or a lower one, until they expire.
//!
//! A key is 32 random bytes as text, so one SHA-256 protects it like a slow hash protects a password. It is shown once.

use std::fmt::Write as _;
use std::sync::Arc;

use model::Timestamp;
use model::limits::API_KEYS_PER_USER_MAX;
use model::name::check_tag_value;
use sha2::{Digest, Sha256};
use uuid::Uuid;

use super::error::RegistryError;
use super::handle::Registry;
use super::system_time::now_ms;
use super::user::{ApiKey, User};
use super::{file, random, save};
use crate::identity::Caller;
use crate::permission::Role;
use crate::session_token::TokenError;

/// The beginning of every key. It lets people and programs that search for secrets recognise one.
pub const API_KEY_PREFIX: &str = "tacho_";

/// An API key to add.
#[derive(Debug, Clone, Copy)]
pub struct NewApiKey<'a> {
    /// Login of its user.
    pub login: &'a str,
    /// Name, unique for the user.
    pub name: &'a str,
    /// Its role. It permits nothing that the role of the user does not permit.
    pub role: Role,
    /// When it expires; never when it is `None`.
    pub expires_at: Option<Timestamp>,
}

impl Registry {
    /// Adds a key and returns it with its secret, which cannot be read later. Waits for the disk.
    pub fn add_api_key(&self, new: NewApiKey<'_>) -> Result<(Arc<ApiKey>, String), RegistryError> {
        check_tag_value(new.name)?;
        let mut writer = self.writer.lock();
        let user = self.user_by_login(new.login).ok_or_else(|| RegistryError::unknown("user", new.login))?;
        self.check_new_key(&user, &new)?;
        let secret = secret();
        let key = Arc::new(ApiKey {
            id: file::new_id(),
            user: user.id,
            name: new.name.to_owned(),
            role: new.role,
            created_at: now_ms(),
            expires_at: new.expires_at.and_then(|time| Timestamp::from_millis(time.millis())),
        });
        let hash = hash(&secret);
        self.commit(&mut writer, "add an API key", |transaction| save::api_key(transaction, &key, hash))?;
        self.index.write().put_api_key(hash, Arc::clone(&key));
        Ok((key, secret))
    }

    /// The keys of a user, sorted by name.
    pub fn api_keys(&self, user: Uuid) -> Vec<Arc<ApiKey>> {
        let mut keys: Vec<_> = self.index.read().api_keys().filter(|key| key.user == user).cloned().collect();
        keys.sort_by(|one, other| one.name.cmp(&other.name));
        keys
    }

    /// The key with an id.
    pub fn api_key(&self, id: Uuid) -> Result<Arc<ApiKey>, RegistryError> {
        let index = self.index.read();
        index
            .api_keys()
            .find(|key| key.id == id)
            .cloned()
            .ok_or_else(|| RegistryError::unknown("API key", id))
    }

    /// Deletes a key and ends its sessions. Waits for the disk.
    pub fn delete_api_key(&self, id: Uuid) -> Result<Arc<ApiKey>, RegistryError> {
        let mut writer = self.writer.lock();
        let key = self.api_key(id)?;
        self.commit(&mut writer, "delete an API key", |transaction| {
            transaction.execute("DELETE FROM api_key WHERE id = ?1", [id])?;
            Ok(())
        })?;
        self.index.write().remove_api_key(id);
        self.signal_sessions();
        Ok(key)
    }

    /// The caller of a key. Refuses an unknown or expired key. Reads only memory.
    pub fn check_api_key(&self, secret: &str, now: Timestamp) -> Result<Caller, TokenError> {
        let index = self.index.read();
        let key = index.api_key(&hash(secret)).ok_or(TokenError::UnknownKey)?;
        if key.expires_at.is_some_and(|end| now >= end) {
            return Err(TokenError::ExpiredKey);
        }
        let user = index.user(key.user).filter(|user| user.enabled).ok_or(TokenError::Ended)?;
        Ok(Caller::api_key(user, key))
    }

    fn check_new_key(&self, user: &User, new: &NewApiKey<'_>) -> Result<(), RegistryError> {
        let of_user = self.api_keys(user.id);
        if of_user.len() >= API_KEYS_PER_USER_MAX {
            let (actual, limit) = (of_user.len() + 1, API_KEYS_PER_USER_MAX);
            return Err(RegistryError::OverLimit { what: "number of API keys of a user", actual, limit });
        }
        if of_user.iter().any(|key| key.name == new.name) {
            return Err(RegistryError::exists("API key", new.name));
        }
        let highest = user.role;
        // A key of the role customer would say nothing for a user without a customer.
        let fits = highest.includes(new.role) && (new.role != Role::Customer || user.customer.is_some());
        if !fits || new.role == Role::Public {
            let reason = format!("is {}; a key of {} has at most the role {highest}", new.role, user.login);
            return Err(RegistryError::Invalid { what: "role of the API key", reason });
        }
        if new.expires_at.is_some_and(|end| end <= now_ms()) {
            let reason = "is in the past; choose a later one".to_owned();
            return Err(RegistryError::Invalid { what: "expiry of the API key", reason });
        }
        Ok(())
    }
}

/// A new secret.
fn secret() -> String {
    let mut text = API_KEY_PREFIX.to_owned();
    for byte in random::bytes::<32>() {
        let _ = write!(text, "{byte:02x}");
    }
    text
}

fn hash(secret: &str) -> [u8; 32] {
    Sha256::digest(secret.as_bytes()).into()
}
