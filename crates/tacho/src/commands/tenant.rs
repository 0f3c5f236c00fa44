//! `tacho tenant`: tenants of a running server or of a data directory.

use std::num::NonZeroU32;

use anyhow::Context;
use clap::{Args, Subcommand};
use hub::registry::{TenantLimit, TenantLimits};
use serde_json::{Value, json};

use crate::client::{ServerArgs, escaped};
use crate::data_args::DataArgs;
use crate::data_directory::{Access, LockedRegistry, registry_access};
use crate::new_password::NewPasswordArgs;
use crate::output::{columns, say};

/// The subcommands of `tacho tenant`.
#[derive(Debug, Subcommand)]
pub(crate) enum TenantCommand {
    List(ListArgs),
    Add(AddArgs),
    Limits(LimitsArgs),
    Delete(DeleteArgs),
}

/// The server or data directory whose tenants the command is about.
#[derive(Debug, Args)]
struct TenantsArgs {
    #[command(flatten)]
    server: ServerArgs,
    #[command(flatten)]
    data: DataArgs,
}

impl TenantsArgs {
    fn open(&self) -> anyhow::Result<Access<LockedRegistry>> {
        registry_access(&self.server, &self.data.load()?, false)
    }
}

/// Lists tenants with their ids
#[derive(Debug, Args)]
#[command(after_help = "\
Examples:
  tacho tenant list
  tacho tenant list --json")]
pub(crate) struct ListArgs {
    /// Prints a JSON array
    #[arg(long)]
    json: bool,
    #[command(flatten)]
    tenants: TenantsArgs,
}

/// Adds a tenant with its first administrator
///
/// A tenant has devices, profiles, users and tables of its own. Two tenants can have devices and tables of the same name;
/// neither sees the other's. The command asks for the password twice at the terminal, or reads the only line of a file or of standard input.
#[derive(Debug, Args)]
#[command(after_help = "\
Examples:
  tacho tenant add acme --admin root@acme.example
  tacho tenant add acme --admin root@acme.example --password-file /run/secrets/acme")]
pub(crate) struct AddArgs {
    /// Name of the tenant
    name: String,
    /// Login of its first administrator; unique in the installation
    #[arg(long, value_name = "LOGIN")]
    admin: String,
    #[command(flatten)]
    new_password: NewPasswordArgs,
    #[command(flatten)]
    tenants: TenantsArgs,
}

/// Shows or changes what a tenant may have and do
///
/// Messages above the limit wait (MQTT) or get status 429 (HTTP); nothing is dropped. What is new and above a limit is refused: a connection,
/// a table, a series, a column, a session, a subscription.
#[derive(Debug, Args)]
#[command(after_help = "\
Examples:
  tacho tenant limits acme
  tacho tenant limits acme --messages-per-second 500 --points-per-second 5000 --connections 1000
  tacho tenant limits acme --connections none --tables 200")]
pub(crate) struct LimitsArgs {
    /// Name of the tenant
    name: String,
    /// Messages of its devices in a second; none for no limit
    #[arg(long, value_name = "N|none", value_parser = limit)]
    messages_per_second: Option<Limit>,
    /// Field values in a second; none for no limit
    #[arg(long, value_name = "N|none", value_parser = limit)]
    points_per_second: Option<Limit>,
    /// MQTT connections of its devices; none for no limit
    #[arg(long, value_name = "N|none", value_parser = limit)]
    connections: Option<Limit>,
    /// Tables; none for a share of the installation's
    #[arg(long, value_name = "N|none", value_parser = limit)]
    tables: Option<Limit>,
    /// Series of its tables; none for a share of the installation's
    #[arg(long, value_name = "N|none", value_parser = limit)]
    series: Option<Limit>,
    /// Columns of its tables; none for a share of the installation's
    #[arg(long, value_name = "N|none", value_parser = limit)]
    columns: Option<Limit>,
    /// MQTT sessions that outlive their connections; none for a share of the installation's
    #[arg(long, value_name = "N|none", value_parser = limit)]
    sessions: Option<Limit>,
    /// Subscriptions of its devices; none for a share of the installation's
    #[arg(long, value_name = "N|none", value_parser = limit)]
    subscriptions: Option<Limit>,
    #[command(flatten)]
    tenants: TenantsArgs,
}

impl LimitsArgs {
    /// What the command line says about a limit.
    fn asked(&self, limit: TenantLimit) -> Option<Limit> {
        match limit {
            TenantLimit::Messages => self.messages_per_second,
            TenantLimit::Points => self.points_per_second,
            TenantLimit::Connections => self.connections,
            TenantLimit::Tables => self.tables,
            TenantLimit::Series => self.series,
            TenantLimit::Columns => self.columns,
            TenantLimit::Sessions => self.sessions,
            TenantLimit::Subscriptions => self.subscriptions,
        }
    }
}

/// A limit in the command line.
#[derive(Debug, Clone, Copy)]
struct Limit(Option<NonZeroU32>);

fn limit(text: &str) -> Result<Limit, String> {
    match text {
        "none" => Ok(Limit(None)),
        number => number
            .parse()
            .map(|number| Limit(Some(number)))
            .map_err(|_| "it must be a number from 1 on, or none".to_owned()),
    }
}

/// Deletes a tenant with its devices, users and tables, and ends its sessions
///
/// On a stopped server the rows stay on the disk until the server starts: then it drops the tables of deleted tenants.
#[derive(Debug, Args)]
#[command(after_help = "\
Example:
  tacho tenant delete acme --yes")]
pub(crate) struct DeleteArgs {
    /// Name of the tenant
    name: String,
    /// Confirms that all data of the tenant is lost
    #[arg(long, required = true)]
    yes: bool,
    #[command(flatten)]
    tenants: TenantsArgs,
}

pub(crate) fn run(command: &TenantCommand) -> anyhow::Result<()> {
    match command {
        TenantCommand::List(args) => list(args),
        TenantCommand::Add(args) => add(args),
        TenantCommand::Limits(args) => limits(args),
        TenantCommand::Delete(args) => delete(args),
    }
}

/// A tenant in a list: name and id.
type Listed = (String, String);

fn list(args: &ListArgs) -> anyhow::Result<()> {
    let tenants = listed(&args.tenants.open()?)?;
    if args.json {
        let all = tenants.into_iter().map(|(name, id)| json!({ "name": name, "id": id }));
        return say(Value::Array(all.collect()));
    }
    let head = ["TENANT", "ID"].map(str::to_owned);
    let rows = tenants.into_iter().map(|(name, id)| [name, id]);
    let rows: Vec<[String; 2]> = std::iter::once(head).chain(rows).collect();
    columns(&rows, 0..0).iter().try_for_each(say)
}

fn listed(tenants: &Access<LockedRegistry>) -> anyhow::Result<Vec<Listed>> {
    match tenants {
        Access::Directory(locked) => {
            let tenants = locked.registry.tenants().into_iter();
            Ok(tenants.map(|tenant| (tenant.name.clone(), tenant.id.to_string())).collect())
        }
        Access::Server(api) => {
            let path = "/api/tacho/tenants";
            let answer = api.get(path)?;
            let unexpected = || api.unexpected("GET", path, "no list of tenants in the answer");
            let text = |tenant: &Value, key: &str| tenant[key].as_str().map(str::to_owned);
            let tenants = answer["tenants"].as_array().ok_or_else(unexpected)?.iter();
            let tenants = tenants.map(|tenant| Some((text(tenant, "name")?, text(tenant, "id")?)));
            Ok(tenants.collect::<Option<Vec<_>>>().ok_or_else(unexpected)?)
        }
    }
}

fn add(args: &AddArgs) -> anyhow::Result<()> {
    let tenants = args.tenants.open()?;
    let password = args.new_password.ask(&args.admin)?;
    let done = match &tenants {
        Access::Directory(locked) => {
            let added = locked.registry.add_tenant(&args.name, &args.admin, &password);
            added.map(drop).map_err(anyhow::Error::from)
        }
        Access::Server(api) => {
            let body = json!({ "name": args.name, "login": args.admin, "password": password });
            api.post("/api/tacho/tenants", &body).map(drop).map_err(anyhow::Error::from)
        }
    };
    done.with_context(|| format!("cannot add the tenant {}", args.name))?;
    say(format_args!("added    {}, administrator {}", args.name, args.admin))
}

fn limits(args: &LimitsArgs) -> anyhow::Result<()> {
    let tenants = args.tenants.open()?;
    let old = limits_of(&tenants, &args.name)?;
    let asked = TenantLimit::ALL.into_iter().filter_map(|limit| Some((limit, args.asked(limit)?)));
    let new = asked.fold(old, |limits, (limit, Limit(value))| limits.with(limit, value));
    if new != old {
        let done = match &tenants {
            Access::Directory(locked) => {
                locked.registry.set_tenant_limits(&args.name, new).map(drop).map_err(anyhow::Error::from)
            }
            Access::Server(api) => {
                let path = format!("/api/tacho/tenants/{}/limits", escaped(&args.name));
                let body = TenantLimit::ALL.map(|limit| (limit.name().to_owned(), json!(new.value(limit))));
                api.post(&path, &Value::Object(body.into_iter().collect()))
                    .map(drop)
                    .map_err(anyhow::Error::from)
            }
        };
        done.with_context(|| format!("cannot change the limits of the tenant {}", args.name))?;
    }
    let head = ["LIMIT", "VALUE"].map(str::to_owned);
    let shown =
        |value: Option<NonZeroU32>| value.map_or_else(|| "none".to_owned(), |value| value.to_string());
    let rows = TenantLimit::ALL.map(|limit| [limit.name().to_owned(), shown(new.value(limit))]);
    let rows: Vec<_> = std::iter::once(head).chain(rows).collect();
    columns(&rows, 1..2).iter().try_for_each(say)
}

fn limits_of(tenants: &Access<LockedRegistry>, name: &str) -> anyhow::Result<TenantLimits> {
    match tenants {
        Access::Directory(locked) => Ok(locked.registry.tenant_by_name(name)?.limits),
        Access::Server(api) => {
            let path = "/api/tacho/tenants";
            let answer = api.get(path)?;
            let all = answer["tenants"].as_array();
            let found = all.and_then(|all| all.iter().find(|tenant| tenant["name"] == name));
            let limits = &found
                .with_context(|| format!("there is no tenant {name}; tacho tenant list lists them"))?["limits"];
            TenantLimits::try_from_fn(|limit| {
                let value = limits[limit.name()].as_u64().and_then(|value| u32::try_from(value).ok());
                Ok(value.and_then(NonZeroU32::new))
            })
        }
    }
}

fn delete(args: &DeleteArgs) -> anyhow::Result<()> {
    let done = match &args.tenants.open()? {
        Access::Directory(locked) => {
            locked.registry.delete_tenant(&args.name).map(drop).map_err(anyhow::Error::from)
        }
        Access::Server(api) => {
            let path = format!("/api/tacho/tenants/{}", escaped(&args.name));
            api.delete(&path).map(drop).map_err(anyhow::Error::from)
        }
    };
    done.with_context(|| format!("cannot delete the tenant {}", args.name))?;
    say(format_args!("deleted  {} with its devices, users and tables", args.name))
}
