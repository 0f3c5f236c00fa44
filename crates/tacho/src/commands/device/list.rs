//! `tacho device list`.

use clap::Args;

use super::open::open_registrar;
use super::registrar::Listed;
use crate::client::ServerArgs;
use crate::data_args::DataArgs;
use crate::output::{columns, say};
use crate::tenant_arg::TenantArg;

/// Lists devices with their profiles and times of creation
#[derive(Debug, Args)]
#[command(after_help = "\
Examples:
  tacho device list
  tacho device list --filter truck --show-tokens
  tacho device list --json")]
pub(crate) struct ListArgs {
    /// Only devices whose name contains this text, ignoring case
    #[arg(long, value_name = "TEXT")]
    filter: Option<String>,
    /// Shows the access tokens, which are secrets
    #[arg(long)]
    show_tokens: bool,
    /// Prints a JSON array
    #[arg(long)]
    json: bool,
    #[command(flatten)]
    tenant: TenantArg,
    #[command(flatten)]
    server: ServerArgs,
    #[command(flatten)]
    data: DataArgs,
}

pub(super) fn run(args: &ListArgs) -> anyhow::Result<()> {
    let config = args.data.load()?;
    let mut registrar = open_registrar(&args.server, &config, &args.tenant, false)?;
    let devices = registrar.list(args.filter.as_deref(), args.show_tokens)?;
    if args.json {
        let all = devices.iter().map(|Listed { name, profile, created, token }| {
            let mut one = serde_json::json!({ "name": name, "profile": profile, "created": created });
            if let Some(token) = token {
                one["token"] = token.as_str().into();
            }
            one
        });
        return say(serde_json::Value::Array(all.collect()));
    }
    let token_title = if args.show_tokens { "TOKEN" } else { "" };
    let head = ["NAME", "PROFILE", "CREATED", token_title].map(str::to_owned);
    let rows = devices
        .into_iter()
        .map(|Listed { name, profile, created, token }| [name, profile, created, token.unwrap_or_default()]);
    let rows: Vec<[String; 4]> = std::iter::once(head).chain(rows).collect();
    columns(&rows, 0..0).iter().try_for_each(say)
}
