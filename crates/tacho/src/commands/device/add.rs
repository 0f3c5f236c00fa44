//! `tacho device add`: one device, or many at once.

use std::io::Write;
use std::os::unix::fs::OpenOptionsExt;
use std::path::{Path, PathBuf};

use anyhow::{Context, bail};
use clap::Args;
use hub::csv::{CsvLines, Dialect};

use super::open::open_registrar;
use super::registrar::{Added, BulkAdd, NewDevice, Registrar};
use crate::client::{RuntimeFile, ServerArgs};
use crate::config::Config;
use crate::data_args::DataArgs;
use crate::output::say;
use crate::program;
use crate::tenant_arg::TenantArg;

/// Adds one device, or many at once
///
/// A device has a unique name and logs in with its access token: over MQTT as the user name, over HTTP in the path. The
/// command works with a running server, or on a data directory without one.
#[derive(Debug, Args)]
#[command(after_help = "\
Examples:
  tacho device add \"truck 7\"
  tacho device add \"truck 7\" --token 8vHqzT5kd0
  tacho device add \"depot 1\" --gateway
  tacho device add --count 20000 --prefix dev- --token-prefix tok
  tacho device add --count 500 --prefix van- --tokens tokens.csv")]
pub(crate) struct AddArgs {
    /// Name of the device, unique on the server
    #[arg(required_unless_present = "count", conflicts_with = "count")]
    name: Option<String>,
    /// Access token [default: a random one]
    #[arg(long, conflicts_with = "count")]
    token: Option<String>,
    /// Profile (type) of the device: it determines the table and the durability of acknowledged data
    #[arg(long, value_name = "NAME")]
    profile: Option<String>,
    /// Makes the device a gateway: it speaks for the devices behind it (v1/gateway/... over MQTT)
    #[arg(long, conflicts_with = "count")]
    gateway: bool,
    /// Adds this many devices with the names PREFIX0, PREFIX1, ...: all of them or none
    #[arg(long, value_name = "N", requires = "prefix")]
    count: Option<u32>,
    /// Text before the number in the names
    #[arg(long, value_name = "TEXT", requires = "count")]
    prefix: Option<String>,
    /// Makes access tokens TEXT0, TEXT1, ... instead of random ones. They can be guessed, so use this for load tests only
    #[arg(long, value_name = "TEXT", requires = "count")]
    token_prefix: Option<String>,
    /// Writes a line `name,token` per device into FILE (mode 0600)
    #[arg(long, value_name = "FILE", requires = "count")]
    tokens: Option<PathBuf>,
    /// Keeps existing devices that have the requested token and profile. Without this they are an error
    #[arg(long, requires = "count")]
    existing_ok: bool,
    #[command(flatten)]
    tenant: TenantArg,
    #[command(flatten)]
    server: ServerArgs,
    #[command(flatten)]
    data: DataArgs,
}

pub(super) fn run(args: &AddArgs) -> anyhow::Result<()> {
    let config = args.data.load()?;
    let mut registrar = open_registrar(&args.server, &config, &args.tenant, true)?;
    match (&args.name, args.count) {
        (Some(name), _) => add_one(args, name, &config, registrar.as_mut()),
        (None, Some(count)) => add_many(args, count, registrar.as_mut()),
        (None, None) => bail!("BUG: the command line needs a name or a count"),
    }
}

fn add_one(args: &AddArgs, name: &str, config: &Config, registrar: &mut dyn Registrar) -> anyhow::Result<()> {
    let (profile, token) = (args.profile.as_deref(), args.token.as_deref());
    let new = NewDevice { name, profile, token, gateway: args.gateway };
    let Added { token, continues } = registrar.add(&new)?;
    say(format_args!("added    {name}"))?;
    if continues {
        say("data     rows of an earlier device of this name are there; this one continues them")?;
    }
    say(format_args!("token    {token}"))?;
    let mqtt = RuntimeFile::read(&config.data)?.and_then(|runtime| runtime.addresses.get("mqtt").copied());
    let mqtt = mqtt.unwrap_or(config.mqtt.listen);
    let host = if mqtt.ip().is_unspecified() { "127.0.0.1".into() } else { mqtt.ip().to_string() };
    say(format_args!(
        "try      mosquitto_pub -h {host} -p {} -u {} -q 1 -t v1/devices/me/telemetry -m '{{\"speed\":42.5}}'",
        mqtt.port(),
        program::word(&token)
    ))
}

fn add_many(args: &AddArgs, count: u32, registrar: &mut dyn Registrar) -> anyhow::Result<()> {
    // The file comes first: without it the tokens of the new devices would be lost.
    let file = args.tokens.as_deref().map(private_file).transpose()?;
    let many = BulkAdd {
        count,
        prefix: args.prefix.as_deref().unwrap_or_default(),
        token_prefix: args.token_prefix.as_deref(),
        profile: args.profile.as_deref(),
        existing_ok: args.existing_ok,
        list: file.is_some(),
    };
    let added = registrar.add_many(&many)?;
    let last = count.saturating_sub(1);
    let kept =
        if added.existing > 0 { format!(", {} were there already", added.existing) } else { String::new() };
    say(format_args!(
        "added    {} devices, {prefix}0 to {prefix}{last}{kept}",
        added.created,
        prefix = many.prefix
    ))?;
    if let (Some(mut file), Some(path)) = (file, &args.tokens) {
        let written = file.write_all(&token_lines(&added.tokens)).and_then(|()| file.sync_all());
        written
            .with_context(|| format!("the devices were added, but {} cannot be written", path.display()))?;
        return say(format_args!("tokens   {}", path.display()));
    }
    match args.token_prefix.as_deref() {
        Some(prefix) => say(format_args!("tokens   {prefix}0 to {prefix}{last}")),
        None => say(program::runnable("tokens   random; `tacho device list --show-tokens` shows them")),
    }
}

fn private_file(path: &Path) -> anyhow::Result<std::fs::File> {
    let mut options = std::fs::OpenOptions::new();
    let opened = options.write(true).create_new(true).mode(0o600).open(path);
    opened.with_context(|| {
        format!("cannot create {} for the tokens; name a file that is not there yet", path.display())
    })
}

/// A CSV line `name,token` for each device. The token is empty for other credentials.
fn token_lines(tokens: &[(String, Option<String>)]) -> Vec<u8> {
    let mut lines = CsvLines::new(Dialect::EXPORT);
    for (name, token) in tokens {
        lines.text_cell(name.as_bytes());
        lines.text_cell(token.as_deref().unwrap_or_default().as_bytes());
        lines.end_line();
    }
    lines.take()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_name_with_a_comma_or_quotes_is_quoted() {
        let device = |name: &str, token: &str| (name.to_owned(), Some(token.to_owned()));
        let lines = token_lines(&[device("dev-0", "tok0"), device("a,\"b\"", "tok1")]);
        assert_eq!(String::from_utf8(lines).unwrap(), "dev-0,tok0\n\"a,\"\"b\"\"\",tok1\n");
    }
}
