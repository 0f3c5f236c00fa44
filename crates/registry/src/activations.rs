//! Activation: a user without a password chooses one with the token of a link.

use std::sync::Arc;

use uuid::Uuid;

use super::error::RegistryError;
use super::handle::Registry;
use super::index::Account;
use super::limits::ACTIVATION_SECONDS;
use super::random;
use super::system_time::now_ms;
use super::user::{Activation, User};

impl Registry {
    /// The activation of a user who has no password yet; another one if it has expired. Waits for the disk.
    pub fn activation(&self, tenant: Uuid, id: Uuid) -> Result<Activation, RegistryError> {
        let mut writer = self.writer.lock();
        let account = self.account_with(tenant, id)?;
        match &account.activation {
            Some(activation) if activation.expires_at > now_ms() => Ok(activation.clone()),
            Some(_) => {
                let activation = new_activation();
                let changed = Account { activation: Some(activation.clone()), ..Account::clone(&account) };
                self.store_account(&mut writer, "renew an activation", changed)?;
                Ok(activation)
            }
            None => {
                let reason = format!("{} has a password already", account.user.login);
                Err(RegistryError::Invalid { what: "user", reason })
            }
        }
    }

    /// The user whom a token activates. Refuses an unknown or expired token.
    pub fn user_to_activate(&self, token: &str) -> Result<Arc<User>, RegistryError> {
        let index = self.index.read();
        let is_it = |activation: &Activation| activation.token == token && activation.expires_at > now_ms();
        let found = index.accounts().find(|account| account.activation.as_ref().is_some_and(is_it));
        found.map(|account| Arc::clone(&account.user)).ok_or_else(unknown_activation)
    }

    /// Gives the user of an activation token the first password. Slow like [`authenticate`](Self::authenticate).
    pub fn activate(&self, token: &str, password: &str) -> Result<Arc<User>, RegistryError> {
        let id = self.user_to_activate(token)?.id;
        let password_hash = self.passwords.hash(password)?;
        let mut writer = self.writer.lock();
        let user = self.user_to_activate(token)?;
        if user.id != id {
            return Err(unknown_activation());
        }
        let (password_changed_at, version) = (now_ms(), user.version + 1);
        let user = Arc::new(User { password_changed_at, version, ..User::clone(&user) });
        self.store_account(&mut writer, "activate a user", Account { user, password_hash, activation: None })
    }
}

pub(super) fn new_activation() -> Activation {
    let expires_at = now_ms().saturating_add_micros(ACTIVATION_SECONDS * 1_000_000);
    Activation { token: random::activation(), expires_at }
}

fn unknown_activation() -> RegistryError {
    let reason = "is unknown or has expired; ask an administrator for another activation link".to_owned();
    RegistryError::Invalid { what: "activation token", reason }
}
