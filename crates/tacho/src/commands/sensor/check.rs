//! `tacho sensor check` and `tacho sensor explain`.

use std::path::{Path, PathBuf};

use anyhow::bail;
use clap::Args;
use sensors::virtual_sensors::{Container, Descriptor, Faults, Note, Plan};
use serde_json::json;

use super::file::{descriptor, text};
use crate::output::say;

/// Checks descriptors of virtual sensors, and gsn.xml files
///
/// Each fault has its place in the file and what is expected there. A file that can be read is checked to its end, so all its
/// faults are shown at once; what has no effect in this server is noted. A fault makes the command fail after all files have
/// been looked at. docs/sensors.md describes the files.
#[derive(Debug, Args)]
#[command(after_help = "\
Examples:
  tacho sensor check street.xml
  tacho sensor check virtual-sensors/one.xml virtual-sensors/two.toml --json")]
pub(crate) struct CheckArgs {
    /// XML of GSN, or TOML
    #[arg(value_name = "FILE", required = true)]
    files: Vec<PathBuf>,
    /// Prints one JSON line for each file
    #[arg(long)]
    json: bool,
}

/// Shows how a virtual sensor is computed
///
/// For each source its window, its fields and how its query is computed: once for each element, with rows that join and leave
/// groups as the window moves, or over all rows at each execution.
#[derive(Debug, Args)]
#[command(after_help = "\
Examples:
  tacho sensor explain street.xml")]
pub(crate) struct ExplainArgs {
    /// XML of GSN, or TOML
    #[arg(value_name = "FILE")]
    file: PathBuf,
}

pub(super) fn check(args: &CheckArgs) -> anyhow::Result<()> {
    let mut faults = 0;
    for file in &args.files {
        let checked = notes(&text(file)?);
        faults += usize::from(checked.is_err());
        if args.json { say(as_json(file, &checked))? } else { say(as_lines(file, &checked))? }
    }
    match faults {
        0 => Ok(()),
        1 if args.files.len() == 1 => bail!("the file has a fault"),
        faults => bail!("{faults} of {} files have a fault", args.files.len()),
    }
}

/// The notes of a file. The root element distinguishes a server's configuration from a sensor.
fn notes(content: &str) -> Result<Vec<Note>, Faults> {
    match Container::from_xml(content) {
        Ok(container) => Ok(container.notes),
        Err(fault) if content.contains("<sensor-server") => Err(fault.into()),
        Err(_) => Ok(Plan::new(&Descriptor::parse(content)?)?.notes),
    }
}

fn as_json(file: &Path, checked: &Result<Vec<Note>, Faults>) -> String {
    let file = file.display().to_string();
    let value = match checked {
        Ok(notes) => json!({"file": file, "ok": true, "notes": notes}),
        Err(faults) => json!({"file": file, "ok": false, "faults": faults.all()}),
    };
    value.to_string()
}

fn as_lines(file: &Path, checked: &Result<Vec<Note>, Faults>) -> String {
    let file = file.display();
    match checked {
        Ok(notes) => {
            let line = |note: &Note| format!("\n  {}: note: {}", note.place, note.text);
            format!("{file}: ok{}", notes.iter().map(line).collect::<String>())
        }
        Err(faults) => {
            faults.all().iter().map(|fault| format!("{file}: {fault}")).collect::<Vec<_>>().join("\n")
        }
    }
}

pub(super) fn explain(args: &ExplainArgs) -> anyhow::Result<()> {
    let plan = Plan::new(&descriptor(&args.file)?)?;
    say(plan.explain().trim_end())
}
