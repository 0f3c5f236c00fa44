//! Users, their passwords and their sessions.

use std::sync::Arc;

use model::Timestamp;
use model::limits::LOGIN_BYTES_MAX;
use model::name::NameError;
use parking_lot::MutexGuard;
use rusqlite::{Connection, Transaction};
use tokio::sync::watch;
use uuid::Uuid;

use super::checks::{check_short, check_version, checked_info, over_limit};
use super::defaults::ADMIN_LOGIN;
use super::error::RegistryError;
use super::first_start::forget_kept;
use super::handle::Registry;
use super::index::Account;
use super::limits::{ACTIVATION_SECONDS, USERS_PER_TENANT_MAX};
use super::page::{Page, PageRequest, page_of};
use super::settings::{SESSION_SECRET, keep_setting};
use super::user::{Activation, NewUser, User, UserFacts};
use super::{file, password, random, save};
use crate::caller::{Caller, Role};
use crate::clock::system_now;
use crate::entity::{EntityId, EntityKind};
use crate::session_token::{Claims, SessionTokens, TokenError, TokenPair};

impl Registry {
    /// Checks a login and password. Returns `None` if either is wrong or the user is disabled; all cases take the same time.
    ///
    /// A check is slow on purpose, and one runs at a time: call it on a thread that may block. Fails with
    /// [`RegistryError::LoginsBusy`] if too many checks wait.
    pub fn authenticate(&self, login: &str, password: &str) -> Result<Option<Arc<User>>, RegistryError> {
        let account = self.index.read().account(&login.to_lowercase()).cloned();
        let hash = account.as_ref().map(|account| account.password_hash.as_str());
        let right = self.passwords.verify(password, hash)?;
        Ok(account.filter(|account| right && account.user.enabled).map(|account| Arc::clone(&account.user)))
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

    /// A page of the users of a tenant, of those for which `wanted` holds. Their names are their logins.
    pub fn users_page(
        &self,
        tenant: Uuid,
        request: PageRequest<'_>,
        wanted: impl Fn(&User) -> bool,
    ) -> Result<Page<Arc<User>>, RegistryError> {
        request.check()?;
        let index = self.index.read();
        Ok(page_of(index.users().filter(|user| user.tenant == tenant && wanted(user)), &request))
    }

    /// Adds a user who sees the whole tenant. Logins are compared in lower case. Slow like [`authenticate`](Self::authenticate).
    pub fn add_user(
        &self,
        tenant: Uuid,
        login: &str,
        password: &str,
        role: Role,
    ) -> Result<Arc<User>, RegistryError> {
        let new = NewUser { login, password: Some(password), role, ..NewUser::default() };
        self.create_user(tenant, new)
    }

    /// Adds a user. One without a password gets an [`activation`](Self::activation). With a password it is slow like
    /// [`authenticate`](Self::authenticate). Waits for the disk.
    pub fn create_user(&self, tenant: Uuid, new: NewUser<'_>) -> Result<Arc<User>, RegistryError> {
        let login = checked_login(new.login)?;
        let additional_info = checked(new.facts)?;
        let password_hash = match new.password {
            Some(password) => self.passwords.hash(password)?,
            None => password::UNUSABLE.to_owned(),
        };
        let mut writer = self.writer.lock();
        self.check_tenant(tenant)?;
        self.check_role(tenant, new.role, new.customer)?;
        if self.index.read().account(&login).is_some() {
            return Err(RegistryError::exists("user", login));
        }
        let count = self.index.read().users().filter(|user| user.tenant == tenant).count() + 1;
        over_limit("number of users of the tenant", count, USERS_PER_TENANT_MAX)?;
        let text = |text: Option<&str>| text.map(Into::into);
        let user = Arc::new(User {
            id: file::new_id(),
            tenant,
            customer: new.customer,
            login,
            role: new.role,
            first_name: text(new.facts.first_name),
            last_name: text(new.facts.last_name),
            phone: text(new.facts.phone),
            additional_info,
            created_at: now_ms(),
            enabled: true,
            password_changed_at: now_ms(),
            session_epoch: 0,
            version: 1,
        });
        let activation = new.password.is_none().then(new_activation);
        self.store_account(&mut writer, "add a user", Account { user, password_hash, activation })
    }

    /// Changes a user. Another login, role or customer ends the user's sessions. Refuses to take the last administrator from a
    /// tenant. Waits for the disk.
    pub fn change_user(
        &self,
        tenant: Uuid,
        id: Uuid,
        new: NewUser<'_>,
        version: Option<i64>,
    ) -> Result<Arc<User>, RegistryError> {
        let login = checked_login(new.login)?;
        let additional_info = checked(new.facts)?;
        let mut writer = self.writer.lock();
        let account = self.account_with(tenant, id)?;
        let old = &account.user;
        check_version("user", &old.login, version, old.version)?;
        self.check_role(tenant, new.role, new.customer)?;
        if old.login != login && self.index.read().account(&login).is_some() {
            return Err(RegistryError::exists("user", login));
        }
        if new.role != Role::Administrator {
            self.check_not_last(old)?;
        }
        let ends = (&old.login, old.role, old.customer) != (&login, new.role, new.customer);
        let text = |text: Option<&str>| text.map(Into::into);
        let user = Arc::new(User {
            login,
            role: new.role,
            customer: new.customer,
            first_name: text(new.facts.first_name),
            last_name: text(new.facts.last_name),
            phone: text(new.facts.phone),
            additional_info,
            session_epoch: old.session_epoch + i64::from(ends),
            version: old.version + 1,
            ..User::clone(old)
        });
        let changed = Account { user, ..Account::clone(&account) };
        let user = self.store_account(&mut writer, "change a user", changed)?;
        self.signal_sessions();
        Ok(user)
    }

    /// Lets a user log in, or ends the user's sessions and refuses further ones. Waits for the disk.
    pub fn set_enabled(&self, tenant: Uuid, id: Uuid, enabled: bool) -> Result<Arc<User>, RegistryError> {
        let mut writer = self.writer.lock();
        let account = self.account_with(tenant, id)?;
        if account.user.enabled == enabled {
            return Ok(Arc::clone(&account.user));
        }
        if !enabled {
            self.check_not_last(&account.user)?;
        }
        let (session_epoch, version) = (account.user.session_epoch + 1, account.user.version + 1);
        let user = Arc::new(User { enabled, session_epoch, version, ..User::clone(&account.user) });
        let changed = Account { user, ..Account::clone(&account) };
        let user = self.store_account(&mut writer, "enable or disable a user", changed)?;
        self.signal_sessions();
        Ok(user)
    }

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

    /// Gives a user another password and ends the user's sessions. Slow like [`authenticate`](Self::authenticate).
    pub fn set_password(&self, login: &str, password: &str) -> Result<(), RegistryError> {
        let login = login.to_lowercase();
        self.store_password(&login, password, true)?;
        self.forget_first_password(&login);
        Ok(())
    }

    /// Gives a user another role and ends the user's sessions. Refuses it for the last administrator, and for a user of a customer.
    /// Waits for the disk.
    pub fn set_role(&self, login: &str, role: Role) -> Result<Arc<User>, RegistryError> {
        let mut writer = self.writer.lock();
        let account = self.account_of(login)?;
        if account.user.role == role {
            return Ok(Arc::clone(&account.user));
        }
        self.check_role(account.user.tenant, role, account.user.customer)?;
        if role != Role::Administrator {
            self.check_not_last(&account.user)?;
        }
        let (session_epoch, version) = (account.user.session_epoch + 1, account.user.version + 1);
        let user = Arc::new(User { role, session_epoch, version, ..User::clone(&account.user) });
        let changed = Account { user, ..Account::clone(&account) };
        let user = self.store_account(&mut writer, "change a role", changed)?;
        self.signal_sessions();
        Ok(user)
    }

    /// Deletes a user and ends the user's sessions. Refuses it for the last administrator. Waits for the disk.
    pub fn delete_user(&self, login: &str) -> Result<Arc<User>, RegistryError> {
        let mut writer = self.writer.lock();
        let user = Arc::clone(&self.account_of(login)?.user);
        self.check_not_last(&user)?;
        let entity = EntityId { kind: EntityKind::User, id: user.id };
        let ending_there = self.relations_ending_at(entity);
        self.commit(&mut writer, "delete a user", |transaction| {
            save::no_relations(transaction, entity, &ending_there)?;
            transaction.execute("DELETE FROM user WHERE id = ?1", [user.id])?;
            end_first_start(transaction, &user.login)
        })?;
        let mut index = self.index.write();
        index.relations.remove_entity(entity);
        index.remove_account(&user.login);
        drop(index);
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
        let version = account.user.version + 1;
        let user =
            Arc::new(User { password_changed_at, session_epoch, version, ..User::clone(&account.user) });
        let changed = Account { user, password_hash, activation: None };
        self.commit(&mut writer, "set a password", |transaction| {
            save::account(transaction, &changed)?;
            if lasting { end_first_start(transaction, login) } else { Ok(()) }
        })?;
        self.index.write().put_account(changed);
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
        match user.enabled && claims.session_epoch == user.session_epoch {
            true => Ok(Some(user)),
            false => Err(TokenError::Ended),
        }
    }

    fn account_of(&self, login: &str) -> Result<Arc<Account>, RegistryError> {
        let account = self.index.read().account(&login.to_lowercase()).cloned();
        account.ok_or_else(|| RegistryError::unknown("user", login))
    }

    fn account_with(&self, tenant: Uuid, id: Uuid) -> Result<Arc<Account>, RegistryError> {
        let index = self.index.read();
        let user = index.user(id).filter(|user| user.tenant == tenant);
        let account = user.and_then(|user| index.account(&user.login)).cloned();
        account.ok_or_else(|| RegistryError::unknown("user", id))
    }

    /// Refuses a role that does not fit the customer: a user of a customer has the role customer, and no other user has it.
    fn check_role(&self, tenant: Uuid, role: Role, customer: Option<Uuid>) -> Result<(), RegistryError> {
        self.check_customer(tenant, customer)?;
        let reason = match (role, customer) {
            (Role::Customer, None) => "is customer, and the user has no customer; use another role",
            (Role::Customer, Some(_)) => return Ok(()),
            (_, Some(_)) => "does not fit; a user of a customer has the role customer",
            (Role::Public, None) => "is public, which is that of readers without a login; use another role",
            (_, None) => return Ok(()),
        };
        Err(RegistryError::Invalid { what: "role", reason: reason.to_owned() })
    }

    fn store_account(
        &self,
        writer: &mut MutexGuard<'_, Connection>,
        what: &'static str,
        account: Account,
    ) -> Result<Arc<User>, RegistryError> {
        self.commit(writer, what, |transaction| save::account(transaction, &account))?;
        let user = Arc::clone(&account.user);
        self.index.write().put_account(account);
        Ok(user)
    }

    /// Refuses to remove the only administrator of a tenant. Call it under the writer's lock.
    fn check_not_last(&self, user: &User) -> Result<(), RegistryError> {
        let is_administrator = |user: &User| user.role == Role::Administrator && user.enabled;
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

/// Checks the facts, and returns the additional info as it is stored.
fn checked(facts: UserFacts<'_>) -> Result<Option<Box<str>>, RegistryError> {
    check_short("firstName", facts.first_name)?;
    check_short("lastName", facts.last_name)?;
    check_short("phone", facts.phone)?;
    checked_info(facts.additional_info)
}

fn new_activation() -> Activation {
    let expires_at = now_ms().saturating_add_micros(ACTIVATION_SECONDS * 1_000_000);
    Activation { token: random::activation(), expires_at }
}

fn unknown_activation() -> RegistryError {
    let reason = "is unknown or has expired; ask an administrator for another activation link".to_owned();
    RegistryError::Invalid { what: "activation token", reason }
}
