//! `tacho device show`, `delete`, `rename` and `token`: one device by its name.

use clap::Args;
use serde_json::json;

use super::open::open_registrar;
use super::registrar::{Details, Refused, Registrar};
use crate::client::ServerArgs;
use crate::data_args::DataArgs;
use crate::output::say;
use crate::tenant_arg::TenantArg;
use model::calendar::seconds_of_millis;

/// The name of a device and the server or directory that has it.
#[derive(Debug, Args)]
struct OneDevice {
    /// Name of the device
    name: String,
    #[command(flatten)]
    tenant: TenantArg,
    #[command(flatten)]
    server: ServerArgs,
    #[command(flatten)]
    data: DataArgs,
}

impl OneDevice {
    /// The registrar of this device.
    fn registrar(&self) -> anyhow::Result<Box<dyn Registrar>> {
        open_registrar(&self.server, &self.data.load()?, &self.tenant, false)
    }
}

/// Shows a device: its table, the time of its last report, and its refused messages
///
/// MQTT 3.1.1 has no negative acknowledgement, so the server acknowledges a message that it refuses. This command shows the
/// number of refused messages, and the time and the reason of the last one. The table dead_letter has the messages.
#[derive(Debug, Args)]
#[command(after_help = "\
Examples:
  tacho device show \"truck 7\"
  tacho device show \"truck 7\" --json
  tacho sql \"SELECT ts, reason, payload FROM dead_letter WHERE device = 'truck 7' ORDER BY ts DESC LIMIT 5\"")]
pub(crate) struct ShowArgs {
    #[command(flatten)]
    device: OneDevice,
    /// Prints one JSON object
    #[arg(long)]
    json: bool,
}

/// Deletes a device and its access token, and keeps its rows
///
/// The device can no longer connect, and the REST API and the dashboard no longer list it. Its rows stay in their table until
/// their time to live ends, and SQL can read them. A device that is added later with the same name continues them, because
/// the name identifies the series.
#[derive(Debug, Args)]
#[command(after_help = "\
Example:
  tacho device delete \"truck 7\"")]
pub(crate) struct DeleteArgs {
    #[command(flatten)]
    device: OneDevice,
}

/// Renames a device and keeps its access token
///
/// The name identifies the series. So new reports of the device belong to the new name, and its earlier rows stay under the
/// old name, where SQL can read them.
#[derive(Debug, Args)]
#[command(after_help = "\
Examples:
  tacho device rename \"truck 7\" \"truck 7 (sold)\"
  tacho sql \"SELECT count(*) FROM telemetry WHERE device IN ('truck 7', 'truck 7 (sold)')\"")]
pub(crate) struct RenameArgs {
    #[command(flatten)]
    device: OneDevice,
    /// New name, unique on the server
    new_name: String,
}

/// Prints the access token of a device, or replaces it
///
/// The old token is invalid at once, and the server closes its connections within two seconds.
#[derive(Debug, Args)]
#[command(after_help = "\
Examples:
  tacho device token \"truck 7\"
  tacho device token \"truck 7\" --new
  tacho device token \"truck 7\" --set 8vHqzT5kd0")]
pub(crate) struct TokenArgs {
    #[command(flatten)]
    device: OneDevice,
    /// Replaces the token with a random one
    #[arg(long, conflicts_with = "set")]
    new: bool,
    /// Replaces the token with this one
    #[arg(long, value_name = "TOKEN")]
    set: Option<String>,
}

pub(super) fn show(args: &ShowArgs) -> anyhow::Result<()> {
    let details = args.device.registrar()?.details(&args.device.name)?;
    if args.json {
        return say(as_json(&details));
    }
    for (title, text) in lines(&details) {
        say(format_args!("{title:<8} {text}"))?;
    }
    Ok(())
}

pub(super) fn delete(args: &DeleteArgs) -> anyhow::Result<()> {
    let name = &args.device.name;
    let table = args.device.registrar()?.delete(name)?;
    say(format_args!("deleted  {name}"))?;
    say(format_args!(
        "data     what it reported stays in {} until its retention ends; a device added under this name continues it",
        of_table(table.as_deref())
    ))
}

pub(super) fn rename(args: &RenameArgs) -> anyhow::Result<()> {
    let (name, new_name) = (&args.device.name, &args.new_name);
    args.device.registrar()?.rename(name, new_name)?;
    say(format_args!("renamed  {name} to {new_name}"))?;
    say(format_args!("data     rows from now on belong to {new_name}; those from before stay under {name}"))
}

pub(super) fn token(args: &TokenArgs) -> anyhow::Result<()> {
    let (mut registrar, name) = (args.device.registrar()?, &args.device.name);
    let token = match (args.new, args.set.as_deref()) {
        (false, None) => registrar.token(name)?,
        (_, wanted) => registrar.set_token(name, wanted)?,
    };
    say(token)
}

fn of_table(table: Option<&str>) -> String {
    table.map_or_else(|| "its table".to_owned(), |table| format!("the table {table}"))
}

/// The lines that `show` prints: titles and texts.
fn lines(details: &Details) -> Vec<(&'static str, String)> {
    let mut lines = vec![
        ("name", details.name.clone()),
        ("id", details.id.clone()),
        ("profile", details.profile.clone()),
        ("table", format!("{}, acknowledged when {}", details.table, durable(&details.durability))),
        ("created", seconds_of_millis(details.created_ms)),
    ];
    if details.gateway {
        lines.push(("gateway", "yes, it speaks for the devices behind it".to_owned()));
    }
    let Some(activity) = &details.activity else {
        let text = "unknown: the server does not run on this directory";
        lines.extend([("reported", text.to_owned()), ("refused", text.to_owned())]);
        return lines;
    };
    lines.push(match activity.last_ms {
        Some(last) => {
            ("reported", format!("{} keys, newest value {}", activity.keys, seconds_of_millis(last)))
        }
        None => ("reported", "nothing yet".to_owned()),
    });
    match &activity.refused {
        None => lines.push(("refused", "nothing".to_owned())),
        Some(refused) => {
            lines.push(("refused", messages(refused)));
            lines.push((
                "last",
                format!("{} by {}: {}", seconds_of_millis(refused.last_ms), refused.door, refused.reason),
            ));
        }
    }
    lines
}

fn messages(refused: &Refused) -> String {
    let since = seconds_of_millis(refused.since_ms);
    match refused.messages {
        0 => format!("nothing since {since}; before that:"),
        1 => format!("1 message since {since}"),
        count => format!("{count} messages since {since}"),
    }
}

/// The promise of an acknowledgement, in words.
fn durable(class: &str) -> String {
    match class {
        "fsync" => "on the disk".to_owned(),
        "os" => "written to the operating system".to_owned(),
        "memory" => "in memory".to_owned(),
        other => other.to_owned(),
    }
}

fn as_json(details: &Details) -> serde_json::Value {
    let Details { id, name, profile, gateway, table, durability, created_ms, activity } = details;
    json!({
        "id": id,
        "name": name,
        "profile": profile,
        "gateway": gateway,
        "table": table,
        "durability": durability,
        "created": seconds_of_millis(*created_ms),
        "reported": activity.as_ref().map(|activity| json!({
            "keys": activity.keys,
            "last": activity.last_ms.map(seconds_of_millis),
        })),
        "refused": activity.as_ref().and_then(|activity| activity.refused.as_ref()).map(|refused| json!({
            "messages": refused.messages,
            "since": seconds_of_millis(refused.since_ms),
            "last": seconds_of_millis(refused.last_ms),
            "door": refused.door,
            "reason": refused.reason,
        })),
    })
}

#[cfg(test)]
mod tests {
    use super::super::registrar::Activity;
    use super::*;

    fn details(activity: Option<Activity>) -> Details {
        Details {
            id: "7d1a".into(),
            name: "truck 7".into(),
            profile: "default".into(),
            gateway: false,
            table: "telemetry".into(),
            durability: "fsync".into(),
            created_ms: 1_700_000_000_000,
            activity,
        }
    }

    #[test]
    fn refusals_are_shown_with_number_time_and_reason() {
        let refused = Refused {
            messages: 3,
            since_ms: 1_700_000_000_000,
            last_ms: 1_700_000_060_000,
            door: "mqtt".into(),
            reason: "the key is empty".into(),
        };
        let shown = details(Some(Activity { keys: 2, last_ms: None, refused: Some(refused) }));
        let text: Vec<String> =
            lines(&shown).into_iter().map(|(title, text)| format!("{title} {text}")).collect();
        assert_eq!(text[3], "table telemetry, acknowledged when on the disk");
        assert_eq!(
            text[5..],
            [
                "reported nothing yet",
                "refused 3 messages since 2023-11-14T22:13:20Z",
                "last 2023-11-14T22:14:20Z by mqtt: the key is empty",
            ]
        );
        let json = as_json(&shown);
        assert_eq!(
            (&json["refused"]["messages"], &json["refused"]["reason"]),
            (&3.into(), &"the key is empty".into())
        );
        assert_eq!(json["reported"]["last"], serde_json::Value::Null);
    }

    #[test]
    fn details_of_a_stopped_server_are_shown_as_unknown() {
        let text = lines(&details(None));
        assert!(text[5..].iter().all(|(_, text)| text.starts_with("unknown")));
        assert_eq!(as_json(&details(None))["refused"], serde_json::Value::Null);
    }
}
