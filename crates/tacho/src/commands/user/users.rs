//! The users of a running server, or of a data directory without one.

use anyhow::Context;
use hub::caller::Role;
use hub::registry::RegistryError;
use serde_json::{Value, json};

use crate::client::{Api, escaped};
use crate::data_directory::{Access, LockedRegistry};

/// A user in a list.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Listed {
    pub login: String,
    pub role: String,
    /// Time of the last change of the password, in milliseconds since 1970.
    pub password_changed_ms: i64,
}

/// The users of a registry.
pub(super) struct Users(pub(super) Access<LockedRegistry>);

impl Users {
    /// All users, sorted by login.
    pub(super) fn list(&self) -> anyhow::Result<Vec<Listed>> {
        match &self.0 {
            Access::Server(api) => users_of_server(api),
            Access::Directory(locked) => {
                let users = locked.registry.users(locked.registry.default_tenant());
                let listed = users.iter().map(|user| Listed {
                    login: user.login.clone(),
                    role: user.role.name().into(),
                    password_changed_ms: user.password_changed_at.millis(),
                });
                Ok(listed.collect())
            }
        }
    }

    pub(super) fn add(&self, login: &str, password: &str, role: &str) -> anyhow::Result<()> {
        let done = match &self.0 {
            Access::Server(api) => {
                let body = json!({ "login": login, "password": password, "role": role });
                api.post("/api/tacho/users", &body).map(drop).map_err(anyhow::Error::from)
            }
            Access::Directory(locked) => in_directory(|| {
                let (registry, role) = (&locked.registry, parsed(role)?);
                registry.add_user(registry.default_tenant(), login, password, role).map(drop)
            }),
        };
        done.with_context(|| format!("cannot add the user {login}"))
    }

    /// Gives a user another password.
    pub(super) fn set_password(&self, login: &str, password: &str) -> anyhow::Result<()> {
        let done = match &self.0 {
            Access::Server(api) => posted(api, login, "password", &json!({ "password": password })),
            Access::Directory(locked) => in_directory(|| locked.registry.set_password(login, password)),
        };
        done.with_context(|| format!("cannot change the password of {login}"))
    }

    /// Gives a user another role.
    pub(super) fn set_role(&self, login: &str, role: &str) -> anyhow::Result<()> {
        let done = match &self.0 {
            Access::Server(api) => posted(api, login, "role", &json!({ "role": role })),
            Access::Directory(locked) => {
                in_directory(|| locked.registry.set_role(login, parsed(role)?).map(drop))
            }
        };
        done.with_context(|| format!("cannot change the role of {login}"))
    }

    pub(super) fn delete(&self, login: &str) -> anyhow::Result<()> {
        let done = match &self.0 {
            Access::Server(api) => {
                let path = format!("/api/tacho/users/{}", escaped(login));
                api.delete(&path).map(drop).map_err(anyhow::Error::from)
            }
            Access::Directory(locked) => in_directory(|| locked.registry.delete_user(login).map(drop)),
        };
        done.with_context(|| format!("cannot delete the user {login}"))
    }

    /// Replaces the key of session tokens.
    pub(super) fn rotate_session_key(&self) -> anyhow::Result<()> {
        let done = match &self.0 {
            Access::Server(api) => {
                api.post("/api/tacho/session-key", &Value::Null).map(drop).map_err(anyhow::Error::from)
            }
            Access::Directory(locked) => in_directory(|| locked.registry.rotate_session_key()),
        };
        done.context("cannot replace the key of session tokens")
    }
}

fn users_of_server(api: &Api) -> anyhow::Result<Vec<Listed>> {
    let path = "/api/tacho/users";
    let answer = api.get(path)?;
    let users = answer["users"].as_array();
    let users = users.ok_or_else(|| api.unexpected("GET", path, "no users in the answer"))?;
    let listed = users.iter().map(|user| Listed {
        login: user["login"].as_str().unwrap_or_default().into(),
        role: user["role"].as_str().unwrap_or_default().into(),
        password_changed_ms: user["passwordChangedTime"].as_i64().unwrap_or_default(),
    });
    Ok(listed.collect())
}

fn posted(api: &Api, login: &str, what: &str, body: &Value) -> anyhow::Result<()> {
    api.post(&format!("/api/tacho/users/{}/{what}", escaped(login)), body)?;
    Ok(())
}

fn parsed(role: &str) -> Result<Role, RegistryError> {
    role.parse().map_err(|reason| RegistryError::Invalid { what: "role", reason })
}

fn in_directory(change: impl FnOnce() -> Result<(), RegistryError>) -> anyhow::Result<()> {
    Ok(change()?)
}
