//! Users, their passwords and their sessions.

use std::sync::Arc;

use model::Timestamp;
use model::limits::LOGIN_BYTES_MAX;
use model::name::NameError;
use uuid::Uuid;

use super::index::Account;
use super::{Authority, Registry, RegistryError, User, file};
use crate::clock::system_now;
use crate::session_token::{Claims, TokenError, TokenPair};

impl Registry {
    /// The user whose login and password these are; `None` if either is wrong, after the same time.
    ///
    /// Slow on purpose, and one check runs at a time: call it on a blocking thread. Fails with
    /// [`RegistryError::LoginsBusy`] when too many wait.
    pub fn authenticate(&self, login: &str, password: &str) -> Result<Option<Arc<User>>, RegistryError> {
        let account = self.index.read().account(&login.to_lowercase()).cloned();
        let hash = account.as_ref().map(|account| account.password_hash.as_str());
        let right = self.passwords.verify(password, hash)?;
        Ok(account.filter(|_| right).map(|account| Arc::clone(&account.user)))
    }

    /// The login as it is kept, if a user has it.
    pub fn login_of(&self, login: &str) -> Option<String> {
        let index = self.index.read();
        index.account(&login.to_lowercase()).map(|account| account.user.login.clone())
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
        let user = Arc::new(User { id, tenant, login, authority, password_changed_at });
        self.commit(&mut writer, "add a user", |transaction| {
            let sql = "INSERT INTO user (id, tenant, login, authority, password_hash, password_changed_at) \
                       VALUES (?1, ?2, ?3, ?4, ?5, ?6)";
            let changed_at = password_changed_at.millis();
            transaction
                .execute(sql, (id, tenant, &user.login, authority.name(), &password_hash, changed_at))?;
            Ok(())
        })?;
        self.index.write().put_account(Account { user: Arc::clone(&user), password_hash });
        Ok(user)
    }

    /// Gives a user another password and ends the user's sessions, but for those that began in the same second: session
    /// tokens count in seconds. Slow like [`authenticate`](Self::authenticate).
    pub fn set_password(&self, login: &str, password: &str) -> Result<(), RegistryError> {
        self.store_password(&login.to_lowercase(), password, true)
    }

    /// `lasting` is false for a first password that nobody has seen yet.
    pub(super) fn store_password(
        &self,
        login: &str,
        password: &str,
        lasting: bool,
    ) -> Result<(), RegistryError> {
        let password_hash = self.passwords.hash(password)?;
        let mut writer = self.writer.lock();
        let account = self.index.read().account(login).cloned();
        let account = account.ok_or_else(|| RegistryError::unknown("user", login))?;
        let user = Arc::new(User { password_changed_at: now_ms(), ..User::clone(&account.user) });
        self.commit(&mut writer, "set a password", |transaction| {
            let sql = "UPDATE user SET password_hash = ?2, password_changed_at = ?3 WHERE id = ?1";
            transaction.execute(sql, (user.id, &password_hash, user.password_changed_at.millis()))?;
            if lasting {
                let sql = "DELETE FROM setting WHERE key = 'admin_pending' AND value = ?1";
                transaction.execute(sql, [login])?;
            }
            Ok(())
        })?;
        self.index.write().put_account(Account { user, password_hash });
        Ok(())
    }

    /// Opens a session for a user who has authenticated.
    pub fn open_session(&self, user: &User, now: Timestamp) -> TokenPair {
        self.sessions.issue(user, now)
    }

    /// Opens a session that may read a tenant's devices and nothing else, for anybody: demonstrations. Its tokens hold
    /// after a restart too, so a server that is no demonstration refuses sessions with [`Claims::is_public`].
    pub fn open_public_session(&self, tenant: Uuid, now: Timestamp) -> TokenPair {
        self.sessions.issue_public(tenant, now)
    }

    /// Whose session `token` is. Refuses what was not issued here, has expired, or ended with a new password. From
    /// memory.
    pub fn check_session(&self, token: &str, now: Timestamp) -> Result<Claims, TokenError> {
        let claims = self.sessions.verify(token, now)?;
        self.user_of(&claims)?;
        Ok(claims)
    }

    /// Goes on with a session by its refresh token.
    pub fn renew_session(&self, refresh_token: &str, now: Timestamp) -> Result<TokenPair, TokenError> {
        let claims = self.sessions.verify_refresh(refresh_token, now)?;
        Ok(match self.user_of(&claims)? {
            Some(user) => self.sessions.issue(&user, now),
            None => self.sessions.issue_public(claims.tenant_id, now),
        })
    }

    /// The user of a session; none if it is a public one.
    fn user_of(&self, claims: &Claims) -> Result<Option<Arc<User>>, TokenError> {
        if claims.is_public {
            return Ok(None);
        }
        let user = self.user_by_id(claims.user_id).ok_or(TokenError::Ended)?;
        match claims.is_from_before(user.password_changed_at) {
            true => Err(TokenError::Ended),
            false => Ok(Some(user)),
        }
    }
}

/// The time to store: whole milliseconds, as the file keeps it.
fn now_ms() -> Timestamp {
    Timestamp::from_millis(system_now().millis()).unwrap_or_default()
}

fn checked_login(login: &str) -> Result<String, RegistryError> {
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
