//! `tacho bench run ledger`: the scenario of that name, with its own options. Every option sets a key of the scenario,
//! which has the defaults.

use std::path::PathBuf;

use clap::Args;

use super::scenario_options::ScenarioOptions;
use super::sets::Sets;
use super::thingsboard::written_version;

/// The scenario.
pub(super) const NAME: &str = "ledger";

/// Kills the server at random moments and proves that every acknowledged point is readable exactly once and that no
/// point was invented.
///
/// SIGKILL keeps the operating system's page cache: this proves recovery, not what a power cut leaves.
#[derive(Debug, Args)]
pub(super) struct Options {
    #[command(flatten)]
    pub(super) common: ScenarioOptions,
    /// How often the server is killed [default: 20]
    #[arg(long, value_parser = clap::value_parser!(u32).range(1..))]
    kills: Option<u32>,
    /// Seed of the moments [default: 1]
    #[arg(long)]
    seed: Option<u32>,
    /// Devices that write, each over its own connection [default: 8]
    #[arg(long, value_parser = clap::value_parser!(u32).range(1..))]
    devices: Option<u32>,
    /// Messages in flight per connection [default: 32]
    #[arg(long, value_parser = clap::value_parser!(u32).range(1..))]
    window: Option<u32>,
    /// Most messages per second over all devices; bounds what must be read back [default: 20000]
    #[arg(long)]
    rate: Option<f64>,
    /// MQTT version, 3.1.1 or 5 [default: 3.1.1]
    #[arg(long, value_parser = written_version)]
    protocol: Option<String>,
    /// Data directory, empty or missing. It is kept [default: a temporary one in the working directory, kept only when the
    /// promise was broken or the server failed]
    #[arg(long, value_name = "DIR")]
    data: Option<PathBuf>,
}

impl Options {
    /// The settings of these options, followed by those of `--set`.
    pub(super) fn sets(&self) -> Vec<String> {
        let mut sets = Sets::default();
        sets.number("phase.run.kills", self.kills);
        sets.number("seed", self.seed);
        sets.number("phase.run.connections", self.devices);
        sets.number("phase.run.window", self.window);
        sets.number("phase.run.rate", self.rate);
        sets.text("phase.run.version", self.protocol.as_deref());
        sets.text("target.data", self.data.as_ref().map(|data| data.to_string_lossy()).as_deref());
        sets.0.extend(self.common.sets());
        sets.0
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use load::scenario::Scenario;

    fn scenario(line: &str) -> std::result::Result<Scenario, String> {
        super::super::understood(&format!("{NAME} {line}"))
    }

    #[test]
    fn defaults_and_the_published_command_line() {
        let plain = scenario("").unwrap();
        assert_eq!((plain.head.seed, plain.phases[0].connections()), (1, 8));
        assert_eq!(plain.phases[0].mixes[0].driver_keys["kills"].as_integer(), Some(20));
        let published = scenario("--kills 3 --seed 7 --devices 4 --window 2 --rate 50 --protocol 5").unwrap();
        let mix = &published.phases[0].mixes[0];
        assert_eq!((published.head.seed, mix.connections, mix.window, mix.rate), (7, 4, 2, Some(50.0)));
        assert_eq!(
            (mix.driver_keys["kills"].as_integer(), mix.driver_keys["version"].as_str()),
            (Some(3), Some("5"))
        );
    }

    #[test]
    fn contradictions_are_refused_with_what_to_do() {
        for (line, expected) in [
            ("--kills 0", "--kills"),
            ("--rate 0", "above zero"),
            ("--protocol 4.2", "use 3.1.1 or 5"),
            ("--devices 5000", "at most"),
            ("--target mqtt://h", "leave out the target"),
        ] {
            let error = scenario(line).unwrap_err();
            assert!(error.contains(expected), "{line}: {error}");
        }
    }
}
