//! Users, their passwords and their sessions.

use std::sync::Arc;

use model::Timestamp;
use model::limits::LOGIN_BYTES_MAX;
use model::name::NameError;
use parking_lot::MutexGuard;
use rusqlite::{Connection, Transaction};
use uuid::Uuid;

use super::activations::new_activation;
use super::checks::{check_short, check_version, checked_info, over_limit};
use super::defaults::ADMIN_LOGIN;
use super::error::RegistryError;
use super::first_start::forget_kept;
use super::handle::Registry;
use super::index::Account;
use super::limits::USERS_PER_TENANT_MAX;
use super::page::{Page, PageRequest, page_of};
use super::system_time::now_ms;
use super::user::{NewUser, User, UserFacts};
use super::{file, password, save};
use crate::entity_id::{EntityId, EntityKind};
use crate::identity::Caller;
use crate::permission::Role;
use crate::session_token::TokenPair;

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

    /// Gives the caller's user another password, if `current` is the present one, and ends the user's other sessions. Returns the
    /// tokens of a new session. Slow like [`authenticate`](Self::authenticate).
    pub fn change_own_password(
        &self,
        caller: &Caller,
        current: &str,
        new: &str,
        now: Timestamp,
    ) -> Result<TokenPair, RegistryError> {
        let user = caller.user_id().filter(|_| caller.api_key_id().is_none());
        let Some(user) = user.and_then(|id| self.user_by_id(id)) else {
            let reason = "is not one of a login; only a user changes the own password".to_owned();
            return Err(RegistryError::Invalid { what: "session", reason });
        };
        if self.authenticate(&user.login, current)?.is_none() {
            let reason = "is not the present one; try again".to_owned();
            return Err(RegistryError::Invalid { what: "current password", reason });
        }
        self.set_password(&user.login, new)?;
        let user = self.user_by_id(user.id).ok_or_else(|| RegistryError::unknown("user", &user.login))?;
        Ok(self.open_session(&user, now))
    }

    pub(super) fn account_of(&self, login: &str) -> Result<Arc<Account>, RegistryError> {
        let account = self.index.read().account(&login.to_lowercase()).cloned();
        account.ok_or_else(|| RegistryError::unknown("user", login))
    }

    pub(super) fn account_with(&self, tenant: Uuid, id: Uuid) -> Result<Arc<Account>, RegistryError> {
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

    pub(super) fn store_account(
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
