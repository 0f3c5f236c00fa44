//! `tacho config`: what the settings are, after all sources.

use clap::Args;

use crate::cli::PlaceArgs;
use crate::cli::output::say;

/// Prints the configuration that results from defaults, file, environment and flags
///
/// What is printed can be used as a configuration file. Values are checked as a server would check them.
#[derive(Debug, Args)]
pub(crate) struct ConfigArgs {
    /// Prints JSON
    #[arg(long)]
    json: bool,
    #[command(flatten)]
    place: PlaceArgs,
}

/// Runs the command.
pub(crate) fn run(args: &ConfigArgs) -> anyhow::Result<()> {
    let sources = args.place.sources();
    sources.load()?;
    let settings = sources.raw()?;
    if args.json {
        return say(serde_json::to_string_pretty(&settings).expect("BUG: settings are plain JSON"));
    }
    let text = toml::to_string(&settings).expect("BUG: settings are plain TOML");
    say(text.trim_end())
}
