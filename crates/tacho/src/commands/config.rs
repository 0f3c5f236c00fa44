//! `tacho config`: prints the settings that result from all sources.

use clap::Args;
use serde::Serialize;

use crate::config::RawConfig;
use crate::data_args::DataArgs;
use crate::output::say;

/// Prints the configuration that results from defaults, file, environment and flags
///
/// The output is a valid configuration file. The command checks values as a server does. The first line shows the available
/// memory, and the limits that are derived from it because they are not set. In a file with this output they are set.
#[derive(Debug, Args)]
pub(crate) struct ConfigArgs {
    /// Prints JSON
    #[arg(long)]
    json: bool,
    #[command(flatten)]
    data: DataArgs,
}

/// The settings as JSON.
#[derive(Serialize)]
struct Described<'a> {
    #[serde(flatten)]
    settings: &'a RawConfig,
    /// The available memory and the limits that are derived from it.
    memory: String,
}

pub(crate) fn run(args: &ConfigArgs) -> anyhow::Result<()> {
    let sources = args.data.sources();
    sources.load()?;
    let (settings, limits) = sources.settings()?;
    let memory = limits.describe();
    if args.json {
        let described = Described { settings: &settings, memory };
        return say(serde_json::to_string_pretty(&described).expect("BUG: settings are plain JSON"));
    }
    let text = toml::to_string(&settings).expect("BUG: settings are plain TOML");
    say(format_args!("# {memory}\n{}", text.trim_end()))
}
