//! `tacho key`: API keys of a running server or of a data directory.

use anyhow::Context;
use clap::{Args, Subcommand};
use hub::caller::Role;
use hub::clock::system_now;
use hub::registry::NewApiKey;
use model::Timestamp;
use serde_json::{Value, json};
use uuid::Uuid;

use crate::client::ServerArgs;
use crate::data_args::DataArgs;
use crate::data_directory::{Access, LockedRegistry, registry_access};
use crate::output::{columns, say};
use model::calendar::seconds_of_millis;

/// The names of the roles.
const ROLES: [&str; 4] =
    [Role::Administrator.name(), Role::Viewer.name(), Role::Operator.name(), Role::Customer.name()];

/// Milliseconds of a day.
const DAY_MS: i64 = 86_400_000;

/// The subcommands of `tacho key`.
#[derive(Debug, Subcommand)]
pub(crate) enum KeyCommand {
    List(ListArgs),
    Add(AddArgs),
    Delete(DeleteArgs),
}

/// The server or data directory whose keys the command is about.
#[derive(Debug, Args)]
struct KeysArgs {
    #[command(flatten)]
    server: ServerArgs,
    #[command(flatten)]
    data: DataArgs,
}

impl KeysArgs {
    fn open(&self) -> anyhow::Result<Access<LockedRegistry>> {
        registry_access(&self.server, &self.data.load()?, false)
    }
}

/// Lists API keys with their users, roles and expiry. The keys themselves cannot be read
#[derive(Debug, Args)]
#[command(after_help = "\
Examples:
  tacho key list
  tacho key list --json")]
pub(crate) struct ListArgs {
    /// Prints a JSON array
    #[arg(long)]
    json: bool,
    #[command(flatten)]
    keys: KeysArgs,
}

/// Adds an API key of a user and prints it once
///
/// A program sends the key in the header `X-Authorization: ApiKey KEY`, or as the password of the user over PostgreSQL's
/// protocol. It then has the role of the key, or that of the user if that is lower.
#[derive(Debug, Args)]
#[command(after_help = "\
Examples:
  tacho key add bi@example.org grafana
  tacho key add bi@example.org nightly-report --expires-days 90
  tacho key add admin@tachograph.local provisioning --role administrator")]
pub(crate) struct AddArgs {
    /// Login of the user
    login: String,
    /// Name of the key, such as that of the program
    name: String,
    /// Role of the key
    #[arg(long, value_name = "ROLE", value_parser = ROLES, default_value = ROLES[1])]
    role: String,
    /// Days after which the key expires [default: never]
    #[arg(long, value_name = "DAYS", value_parser = clap::value_parser!(i64).range(1..=36_500))]
    expires_days: Option<i64>,
    #[command(flatten)]
    keys: KeysArgs,
}

/// Deletes an API key and ends its sessions
#[derive(Debug, Args)]
#[command(after_help = "\
Example:
  tacho key delete 3f2b8c1e-5d0a-4f6b-9a57-0c1d2e3f4a5b")]
pub(crate) struct DeleteArgs {
    /// Id of the key, see `tacho key list`
    id: Uuid,
    #[command(flatten)]
    keys: KeysArgs,
}

/// Runs a subcommand.
pub(crate) fn run(command: &KeyCommand) -> anyhow::Result<()> {
    match command {
        KeyCommand::List(args) => list(args),
        KeyCommand::Add(args) => add(args),
        KeyCommand::Delete(args) => delete(args),
    }
}

/// A key in a list.
struct Listed {
    id: String,
    login: String,
    name: String,
    role: String,
    expires_ms: Option<i64>,
}

fn list(args: &ListArgs) -> anyhow::Result<()> {
    let keys = listed(&args.keys.open()?)?;
    let expires = |key: &Listed| key.expires_ms.map(seconds_of_millis);
    if args.json {
        let all = keys.iter().map(|key| {
            let Listed { id, login, name, role, .. } = key;
            json!({ "id": id, "login": login, "name": name, "role": role, "expires": expires(key) })
        });
        return say(Value::Array(all.collect()));
    }
    let head = ["USER", "KEY", "ROLE", "EXPIRES", "ID"].map(str::to_owned);
    let rows = keys.into_iter().map(|key| {
        let expires = expires(&key).unwrap_or_else(|| "never".to_owned());
        [key.login, key.name, key.role, expires, key.id]
    });
    let rows: Vec<[String; 5]> = std::iter::once(head).chain(rows).collect();
    columns(&rows, 0..0).iter().try_for_each(say)
}

fn listed(keys: &Access<LockedRegistry>) -> anyhow::Result<Vec<Listed>> {
    match keys {
        Access::Directory(locked) => {
            let registry = &locked.registry;
            let users = registry.users(registry.default_tenant());
            let keys = users.iter().flat_map(|user| {
                let keys = registry.api_keys(user.id).into_iter();
                keys.map(|key| Listed {
                    id: key.id.to_string(),
                    login: user.login.clone(),
                    name: key.name.clone(),
                    role: key.role.name().to_owned(),
                    expires_ms: key.expires_at.map(Timestamp::millis),
                })
            });
            Ok(keys.collect())
        }
        Access::Server(api) => {
            let path = "/api/tacho/api-keys";
            let answer = api.get(path)?;
            let unexpected = || api.unexpected("GET", path, "no list of keys in the answer");
            let keys = answer["apiKeys"].as_array().ok_or_else(unexpected)?.iter();
            Ok(keys.map(listed_of_json).collect::<Option<Vec<_>>>().ok_or_else(unexpected)?)
        }
    }
}

fn listed_of_json(key: &Value) -> Option<Listed> {
    let text = |name: &str| key[name].as_str().map(str::to_owned);
    let expires_ms = key["expiresTime"].as_i64();
    Some(Listed {
        id: text("id")?,
        login: text("login")?,
        name: text("name")?,
        role: text("role")?,
        expires_ms,
    })
}

fn add(args: &AddArgs) -> anyhow::Result<()> {
    let AddArgs { login, name, role, .. } = args;
    let expires_ms = args.expires_days.map(|days| system_now().millis() + days * DAY_MS);
    let added = match args.keys.open()? {
        Access::Directory(locked) => {
            let role = role.parse().map_err(anyhow::Error::msg)?;
            let expires_at = expires_ms.and_then(Timestamp::from_millis);
            let new = NewApiKey { login, name, role, expires_at };
            locked.registry.add_api_key(new).map(|(_, secret)| secret).map_err(anyhow::Error::from)
        }
        Access::Server(api) => {
            let path = "/api/tacho/api-keys";
            let body = json!({ "login": login, "name": name, "role": role, "expiresTime": expires_ms });
            let answer = api.post(path, &body).map_err(anyhow::Error::from);
            answer.and_then(|answer| {
                let secret = answer["key"].as_str().map(str::to_owned);
                Ok(secret.ok_or_else(|| api.unexpected("POST", path, "no key in the answer"))?)
            })
        }
    };
    let secret = added.with_context(|| format!("cannot add the API key {name} of {login}"))?;
    say(format_args!("added    {name} of {login}, {role}"))?;
    say(format_args!("key      {secret}"))?;
    say("note     keep it now: it cannot be read later")
}

fn delete(args: &DeleteArgs) -> anyhow::Result<()> {
    let done = match args.keys.open()? {
        Access::Directory(locked) => {
            locked.registry.delete_api_key(args.id).map(drop).map_err(anyhow::Error::from)
        }
        Access::Server(api) => {
            api.delete(&format!("/api/tacho/api-keys/{}", args.id)).map(drop).map_err(anyhow::Error::from)
        }
    };
    done.with_context(|| format!("cannot delete the API key {}", args.id))?;
    say(format_args!("deleted  {}; its sessions have ended", args.id))
}
