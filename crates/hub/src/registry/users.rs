//! Users, their passwords and their sessions.

use std::sync::Arc;

use model::Timestamp;
use model::limits::LOGIN_BYTES_MAX;
use model::name::NameError;
use rusqlite::Transaction;
use tokio::sync::watch;
use uuid::Uuid;

use super::defaults::ADMIN_LOGIN;
use super::entity::{Authority, User};
use super::error::RegistryError;
use super::file;
use super::first_start::forget_kept;
use super::handle::Registry;
use super::index::Account;
use super::settings::{SESSION_SECRET, keep_setting};
use crate::caller::{Caller, Role};
use crate::clock::system_now;
use crate::session_token::{Claims, SessionTokens, TokenError, TokenPair};

impl Registry {
    /// Checks a login and password. Returns `None` if either is wrong; both cases take the same time.
    ///
    /// A check is slow on purpose, and one runs at a time: call it on a thread that may block. Fails with
    /// [`RegistryError::LoginsBusy`] if too many checks wait.
    pub fn authenticate(&self, login: &str, password: &str) -> Result<Option<Arc<User>>, RegistryError> {
        let account = self.index.read().account(&login.to_lowercase()).cloned();
        let hash = account.as_ref().map(|account| account.password_hash.as_str());
        let right = self.passwords.verify(password, hash)?;
        Ok(account.filter(|_| right).map(|account| Arc::clone(&account.user)))
    }

    /// The stored spelling of a login, if a user has it.
    pub fn login_of(&self, login: &str) -> Option<String> {
        let index = self.index.read();
        index.account(&login.to_lowercase()).map(|account| account.user.login.clone())
    }

    /// The user with that login; the case does not matter.
    pub fn user_by_login(&self, login: &str) -> Option<Arc<User>> {
        let index = self.index.read();
        index.account(&login.to_lowercase()).map(|account| Arc::clone(&account.user))
    }

    /// The user with that id.
    pub fn user_by_id(&self, id: Uuid) -> Option<Arc<User>> {
        self.index.read().user(id).cloned()
    }

    /// The users of a tenant, sorted by login.
    pub fn users(&self, tenant: Uuid) -> Vec<Arc<User>> {
        self.index.read().users().filter(|user| user.tenant == tenant).cloned().collect()
    }

    /// Adds a user. Logins are compared in lower case. Slow like [`authenticate`](Self::authenticate).
    pub fn add_user(
        &self,
        tenant: Uuid,
        login: &str,
        password: &str,
        authority: Authority,
    ) -> Result<Arc<User>, RegistryError> {
        let login = checked_login(login)?;
        let password_hash = self.passwords.hash(password)?;
        let mut writer = self.writer.lock();
        self.check_tenant(tenant)?;
        if self.index.read().account(&login).is_some() {
            return Err(RegistryError::exists("user", login));
        }
        let (id, password_changed_at) = (file::new_id(), now_ms());
        let user = Arc::new(User { id, tenant, login, authority, password_changed_at, session_epoch: 0 });
        self.commit(&mut writer, "add a user", |transaction| {
            file::insert_user(transaction, &user, &password_hash)
        })?;
        self.index.write().put_account(Account { user: Arc::clone(&user), password_hash });
        Ok(user)
    }

    /// Gives a user another password and ends the user's sessions. Slow like [`authenticate`](Self::authenticate).
    pub fn set_password(&self, login: &str, password: &str) -> Result<(), RegistryError> {
        let login = login.to_lowercase();
        self.store_password(&login, password, true)?;
        self.forget_first_password(&login);
        Ok(())
    }

    /// Gives a user another role and ends the user's sessions. Refuses it for the last administrator. Waits for the disk.
    pub fn set_authority(&self, login: &str, authority: Authority) -> Result<Arc<User>, RegistryError> {
        let mut writer = self.writer.lock();
        let account = self.account_of(login)?;
        if account.user.authority == authority {
            return Ok(Arc::clone(&account.user));
        }
        if authority.role() != Role::Administrator {
            self.check_not_last(&account.user)?;
        }
        let session_epoch = account.user.session_epoch + 1;
        let user = Arc::new(User { authority, session_epoch, ..User::clone(&account.user) });
        self.commit(&mut writer, "change a role", |transaction| {
            let sql = "UPDATE user SET authority = ?2, session_epoch = ?3 WHERE id = ?1";
            transaction.execute(sql, (user.id, authority.name(), session_epoch))?;
            Ok(())
        })?;
        let password_hash = account.password_hash.clone();
        self.index.write().put_account(Account { user: Arc::clone(&user), password_hash });
        self.signal_sessions();
        Ok(user)
    }

    /// Deletes a user and ends the user's sessions. Refuses it for the last administrator. Waits for the disk.
    pub fn delete_user(&self, login: &str) -> Result<Arc<User>, RegistryError> {
        let mut writer = self.writer.lock();
        let user = Arc::clone(&self.account_of(login)?.user);
        self.check_not_last(&user)?;
        self.commit(&mut writer, "delete a user", |transaction| {
            transaction.execute("DELETE FROM user WHERE id = ?1", [user.id])?;
            end_first_start(transaction, &user.login)
        })?;
        self.index.write().remove_account(&user.login);
        self.signal_sessions();
        self.forget_first_password(&user.login);
        Ok(user)
    }

    /// Replaces the key of session tokens, so all issued tokens become invalid. Waits for the disk.
    pub fn rotate_session_key(&self) -> Result<(), RegistryError> {
        let secret = file::new_session_secret();
        let mut writer = self.writer.lock();
        self.commit(&mut writer, "replace the key of the sessions", |transaction| {
            keep_setting(transaction, SESSION_SECRET, secret)
        })?;
        *self.sessions.write() = SessionTokens::new(&secret);
        self.signal_sessions();
        Ok(())
    }

    /// Signals that sessions may have ended. A door with an open session then checks it again.
    pub fn session_changes(&self) -> watch::Receiver<u64> {
        self.session_changes.subscribe()
    }

    /// Stores the hash of a password. `lasting` is false for a first password that was not printed yet.
    pub(super) fn store_password(
        &self,
        login: &str,
        password: &str,
        lasting: bool,
    ) -> Result<(), RegistryError> {
        let password_hash = self.passwords.hash(password)?;
        let mut writer = self.writer.lock();
        let account = self.account_of(login)?;
        let (password_changed_at, session_epoch) = (now_ms(), account.user.session_epoch + 1);
        let user = Arc::new(User { password_changed_at, session_epoch, ..User::clone(&account.user) });
        self.commit(&mut writer, "set a password", |transaction| {
            let sql = "UPDATE user SET password_hash = ?2, password_changed_at = ?3, session_epoch = ?4 \
                       WHERE id = ?1";
            let changed_at = password_changed_at.millis();
            transaction.execute(sql, (user.id, &password_hash, changed_at, session_epoch))?;
            if lasting { end_first_start(transaction, login) } else { Ok(()) }
        })?;
        self.index.write().put_account(Account { user, password_hash });
        self.signal_sessions();
        Ok(())
    }

    /// Opens a session for an authenticated user.
    pub fn open_session(&self, user: &User, now: Timestamp) -> TokenPair {
        self.sessions.read().issue(user, now)
    }

    /// Opens a session without a login that may only read the devices of a tenant. Its tokens stay valid after a restart, so
    /// a server without public reading refuses sessions of [`Role::Public`].
    pub fn open_public_session(&self, tenant: Uuid, now: Timestamp) -> TokenPair {
        self.sessions.read().issue_public(tenant, now)
    }

    /// The caller of the session of `token`. Refuses a token that this server did not issue, that has expired, or that ended
    /// with a new password or role. Reads only memory.
    pub fn check_session(&self, token: &str, now: Timestamp) -> Result<Caller, TokenError> {
        let claims = self.sessions.read().verify(token, now)?;
        let user = self.user_of(&claims)?;
        Ok(user.map_or_else(|| Caller::public(claims.tenant_id), |user| Caller::user(&user)))
    }

    /// Refuses a caller whose session has ended. Reads only memory.
    pub fn check_caller(&self, caller: &Caller) -> Result<(), TokenError> {
        let Some(id) = caller.user_id() else { return Ok(()) };
        let index = self.index.read();
        let has_key = caller.api_key_id().is_none_or(|id| index.api_keys().any(|key| key.id == id));
        match has_key && index.user(id).is_some_and(|user| caller.is_of(user)) {
            true => Ok(()),
            false => Err(TokenError::Ended),
        }
    }

    /// Renews a session with its refresh token.
    pub fn renew_session(&self, refresh_token: &str, now: Timestamp) -> Result<TokenPair, TokenError> {
        let sessions = self.sessions.read();
        let claims = sessions.verify_refresh(refresh_token, now)?;
        Ok(match self.user_of(&claims)? {
            Some(user) => sessions.issue(&user, now),
            None => sessions.issue_public(claims.tenant_id, now),
        })
    }

    /// The user of a session; `None` for a public session.
    fn user_of(&self, claims: &Claims) -> Result<Option<Arc<User>>, TokenError> {
        if claims.is_public {
            return Ok(None);
        }
        let user = self.user_by_id(claims.user_id).ok_or(TokenError::Ended)?;
        match claims.session_epoch == user.session_epoch {
            true => Ok(Some(user)),
            false => Err(TokenError::Ended),
        }
    }

    fn account_of(&self, login: &str) -> Result<Arc<Account>, RegistryError> {
        let account = self.index.read().account(&login.to_lowercase()).cloned();
        account.ok_or_else(|| RegistryError::unknown("user", login))
    }

    /// Refuses to remove the only administrator of a tenant. Call it under the writer's lock.
    fn check_not_last(&self, user: &User) -> Result<(), RegistryError> {
        let is_administrator = |user: &User| user.authority.role() == Role::Administrator;
        let is_other = |other: &&Arc<User>| other.id != user.id && other.tenant == user.tenant;
        let has_other = self.index.read().users().filter(is_other).any(|other| is_administrator(other));
        if is_administrator(user) && !has_other {
            return Err(RegistryError::LastAdministrator { login: user.login.clone() });
        }
        Ok(())
    }

    /// Signals that sessions may have ended. Call it after the index shows the change.
    pub(super) fn signal_sessions(&self) {
        self.session_changes.send_modify(|count| *count += 1);
    }

    fn forget_first_password(&self, login: &str) {
        if login == ADMIN_LOGIN {
            forget_kept(&self.path);
        }
    }
}

/// Ends the first start: the user has a lasting password.
fn end_first_start(transaction: &Transaction<'_>, login: &str) -> rusqlite::Result<()> {
    transaction.execute("DELETE FROM setting WHERE key = 'admin_pending' AND value = ?1", [login])?;
    Ok(())
}

/// The time to store: whole milliseconds, as the file keeps it.
pub(super) fn now_ms() -> Timestamp {
    Timestamp::from_millis(system_now().millis()).unwrap_or_default()
}

pub(super) fn checked_login(login: &str) -> Result<String, RegistryError> {
    let (what, limit) = ("login", LOGIN_BYTES_MAX);
    let login = login.to_lowercase();
    if login.is_empty() {
        return Err(NameError::Empty { what }.into());
    }
    if login.len() > limit {
        return Err(NameError::TooLong { what, bytes: login.len(), limit }.into());
    }
    if login.chars().any(|c| c.is_control() || c.is_whitespace()) {
        let reason = "holds blanks or control characters; use something like name@example.org".into();
        return Err(RegistryError::Invalid { what, reason });
    }
    Ok(login)
}
