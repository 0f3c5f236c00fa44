//! Sessions of users and of readers without a login.

use std::sync::Arc;

use model::Timestamp;
use uuid::Uuid;

use super::error::RegistryError;
use super::file;
use super::handle::Registry;
use super::index::Account;
use super::limits::ENDED_SESSIONS_MAX;
use super::settings::{SESSION_SECRET, keep_setting};
use super::system_time::{now_ms, system_now};
use super::user::User;
use crate::identity::Caller;
use crate::session_token::{Claims, REFRESH_TOKEN_SECONDS, SessionTokens, TokenError, TokenPair};

impl Registry {
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

    /// Calls `listener` after every change that may have ended sessions. The registry holds its lock of writers meanwhile, so the
    /// listener must neither block nor call the registry.
    pub fn on_session_change(&self, listener: impl Fn() + Send + Sync + 'static) {
        self.session_listeners.write().push(Box::new(listener));
    }

    /// Opens a session for an authenticated user.
    pub fn open_session(&self, user: &User, now: Timestamp) -> TokenPair {
        self.sessions.read().issue(user, file::new_id(), now)
    }

    /// Opens a session without a login that may only read the devices of a tenant. Its tokens stay valid after a restart, so
    /// a server without public reading refuses sessions of [`Role::Public`](crate::caller::Role::Public).
    pub fn open_public_session(&self, tenant: Uuid, now: Timestamp) -> TokenPair {
        self.sessions.read().issue_public(tenant, now)
    }

    /// The caller of the session of `token`. Refuses a token that this server did not issue, that has expired, or that ended
    /// with a new password or role. Reads only memory.
    pub fn check_session(&self, token: &str, now: Timestamp) -> Result<Caller, TokenError> {
        let claims = self.sessions.read().verify(token, now)?;
        let user = self.user_of(&claims)?;
        Ok(user.map_or_else(
            || Caller::public(claims.tenant_id),
            |user| Caller::user(&user).in_session(claims.session_id),
        ))
    }

    /// Refuses a caller whose session has ended. Reads only memory.
    pub fn check_caller(&self, caller: &Caller) -> Result<(), TokenError> {
        let Some(id) = caller.user_id() else { return Ok(()) };
        let index = self.index.read();
        let has_key = caller.api_key_id().is_none_or(|id| {
            let key = index.api_keys().find(|key| key.id == id);
            key.is_some_and(|key| key.expires_at.is_none_or(|end| system_now() < end))
        });
        let is_ended = caller.session_id().is_some_and(|id| index.ended_sessions.contains_key(&id));
        match has_key && !is_ended && index.user(id).is_some_and(|user| caller.is_of(user)) {
            true => Ok(()),
            false => Err(TokenError::Ended),
        }
    }

    /// When the API key of a caller expires; `None` for another login, and for a key without an end.
    pub fn key_expiry(&self, caller: &Caller) -> Option<Timestamp> {
        let id = caller.api_key_id()?;
        self.index.read().api_keys().find(|key| key.id == id)?.expires_at
    }

    /// Ends the session of a caller: its tokens are no longer valid, and neither are those that they were renewed to. If too many
    /// sessions have ended lately, all sessions of the user end. Waits for the disk.
    pub fn end_session(&self, caller: &Caller) -> Result<(), RegistryError> {
        let user = caller.user_id().filter(|_| caller.api_key_id().is_none());
        let Some(user) = user.and_then(|id| self.user_by_id(id)) else {
            let reason = "is not one of a login; an API key is deleted to end its sessions".to_owned();
            return Err(RegistryError::Invalid { what: "session", reason });
        };
        let mut writer = self.writer.lock();
        let now = now_ms();
        let ended = self.index.read().ended_sessions.len();
        match caller.session_id().filter(|_| ended < ENDED_SESSIONS_MAX) {
            Some(id) => {
                let expires_at = now.saturating_add_micros(REFRESH_TOKEN_SECONDS * 1_000_000);
                self.commit(&mut writer, "end a session", |transaction| {
                    transaction.execute("DELETE FROM ended_session WHERE expires_at < ?1", [now.millis()])?;
                    let sql = "INSERT OR REPLACE INTO ended_session (id, expires_at) VALUES (?1, ?2)";
                    transaction.execute(sql, (id, expires_at.millis())).map(drop)
                })?;
                let mut index = self.index.write();
                index.ended_sessions.retain(|_, expires_at| *expires_at >= now);
                index.ended_sessions.insert(id, expires_at);
            }
            None => {
                let account = self.account_of(&user.login)?;
                let session_epoch = account.user.session_epoch + 1;
                let user = Arc::new(User { session_epoch, ..User::clone(&account.user) });
                let changed = Account { user, ..Account::clone(&account) };
                self.store_account(&mut writer, "end the sessions of a user", changed)?;
            }
        }
        self.signal_sessions();
        Ok(())
    }

    /// Renews a session with its refresh token.
    pub fn renew_session(&self, refresh_token: &str, now: Timestamp) -> Result<TokenPair, TokenError> {
        let sessions = self.sessions.read();
        let claims = sessions.verify_refresh(refresh_token, now)?;
        Ok(match self.user_of(&claims)? {
            Some(user) => sessions.issue(&user, claims.session_id.unwrap_or_else(file::new_id), now),
            None => sessions.issue_public(claims.tenant_id, now),
        })
    }

    /// The user of a session; `None` for a public session.
    fn user_of(&self, claims: &Claims) -> Result<Option<Arc<User>>, TokenError> {
        if claims.is_public {
            return Ok(None);
        }
        let is_ended = |id: Uuid| self.index.read().ended_sessions.contains_key(&id);
        if claims.session_id.is_some_and(is_ended) {
            return Err(TokenError::Ended);
        }
        let user = self.user_by_id(claims.user_id).ok_or(TokenError::Ended)?;
        match user.enabled && claims.session_epoch == user.session_epoch {
            true => Ok(Some(user)),
            false => Err(TokenError::Ended),
        }
    }

    /// Signals that sessions may have ended. Call it after the index shows the change.
    pub(super) fn signal_sessions(&self) {
        self.session_listeners.read().iter().for_each(|listener| listener());
    }
}
