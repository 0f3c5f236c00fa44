//! `tacho config`: what the settings are, after all sources.

use clap::Args;
use serde::Serialize;

use crate::config::RawConfig;
use crate::data_args::DataArgs;
use crate::output::say;

/// Prints the configuration that results from defaults, file, environment and flags
///
/// What is printed can be used as a configuration file. Values are checked as a server would check them. The first line says
/// how much memory there is and which limits follow from it because nobody has set them; a file that holds these values sets
/// them.
#[derive(Debug, Args)]
pub(crate) struct ConfigArgs {
    /// Prints JSON
    #[arg(long)]
    json: bool,
    #[command(flatten)]
    data: DataArgs,
}

/// The settings for programs.
#[derive(Serialize)]
struct Described<'a> {
    #[serde(flatten)]
    settings: &'a RawConfig,
    /// How much memory there is, and what follows from it.
    memory: String,
}

/// Runs the command.
pub(crate) fn run(args: &ConfigArgs) -> anyhow::Result<()> {
    let sources = args.data.sources();
    sources.load()?;
    let (settings, allowed) = sources.settings()?;
    let memory = allowed.describe();
    if args.json {
        let described = Described { settings: &settings, memory };
        return say(serde_json::to_string_pretty(&described).expect("BUG: settings are plain JSON"));
    }
    let text = toml::to_string(&settings).expect("BUG: settings are plain TOML");
    say(format_args!("# {memory}\n{}", text.trim_end()))
}
