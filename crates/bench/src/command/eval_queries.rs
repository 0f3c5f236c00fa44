//! `tacho bench run eval-queries`: the scenario of that name, with the parameters of GSN's tool as options.

use clap::Args;

use super::login_options::LoginOptions;
use super::scenario_options::ScenarioOptions;
use super::sets::Sets;

/// The scenario.
pub(super) const NAME: &str = "eval-queries";

/// GSN's eval-queries: reads the list of virtual sensors of --target, then asks for the newest rows of one sensor after the other as
/// CSV, over a connection for each question. Every answer is checked: its head, its rows, the order of their times
#[derive(Debug, Args)]
pub(super) struct Options {
    #[command(flatten)]
    pub(super) common: ScenarioOptions,
    /// Questions (nbQueries); sensors are asked again if they are fewer [default: 10]
    #[arg(long)]
    queries: Option<u64>,
    /// Questions at once (nbThreads) [default: 10]
    #[arg(long)]
    threads: Option<u32>,
    /// Rows that a question asks for (maxQuerySize) [default: 50000]
    #[arg(long)]
    max_query_size: Option<u64>,
    /// Each question asks for a random number of rows up to --max-query-size
    #[arg(long)]
    random_sizes: bool,
    /// Only these sensors [default: all that the server lists]
    #[arg(long, value_delimiter = ',', value_name = "NAME")]
    sensors: Vec<String>,
    /// Sensors get rows during the run
    #[arg(long)]
    growing: bool,
    /// Prints the block of GSN's tool too, to the letter
    #[arg(long)]
    gsn_compat: bool,
    #[command(flatten)]
    login: LoginOptions,
}

impl Options {
    /// The settings of these options, followed by those of `--set`.
    pub(super) fn sets(&self) -> Vec<String> {
        let mut sets = Sets::default();
        sets.number("phase.queries.queries", self.queries);
        sets.number("phase.queries.connections", self.threads);
        sets.number("phase.queries.size", self.max_query_size);
        sets.text("phase.queries.sizes", self.random_sizes.then_some("random"));
        let names = self.sensors.iter().map(|name| toml::Value::String(name.clone())).collect();
        sets.number("dataset.sensors", (!self.sensors.is_empty()).then_some(toml::Value::Array(names)));
        sets.number("dataset.growing", self.growing.then_some(true));
        sets.number("dataset.gsn_compat", self.gsn_compat.then_some(true));
        self.login.add_to(&mut sets);
        sets.0.extend(self.common.sets());
        sets.0
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use load::scenario::{Builtin, Scenario};

    fn scenario(line: &str) -> std::result::Result<Scenario, String> {
        super::super::understood(&format!("{NAME} {line}"))
    }

    #[test]
    fn the_options_have_the_defaults_of_the_file() {
        let (file, options) = (Builtin::named(NAME).unwrap().scenario().unwrap(), scenario("").unwrap());
        assert_eq!((options.phases, options.dataset), (file.phases, file.dataset));
    }

    #[test]
    fn the_parameters_of_the_tool_are_options() {
        let line = "--target http://h:22001 --queries 20 --threads 4 --max-query-size 5000 --random-sizes --gsn-compat --sensors a,b";
        let scenario = scenario(line).unwrap();
        let mix = &scenario.phases[0].mixes[0];
        assert_eq!((mix.connections, mix.driver_keys["queries"].as_integer()), (4, Some(20)));
        assert_eq!(
            (mix.driver_keys["size"].as_integer(), mix.driver_keys["sizes"].as_str()),
            (Some(5_000), Some("random"))
        );
        assert_eq!(scenario.dataset["sensors"].as_array().map(Vec::len), Some(2));
        assert_eq!(scenario.dataset["gsn_compat"].as_bool(), Some(true));
        assert_eq!(scenario.target.url, "http://h:22001");
    }

    #[test]
    fn contradictions_are_refused() {
        for (line, expected) in [
            ("--token x", "--target"),
            ("--target http://h:1 --token x --user me --password y", "cannot be used with"),
            ("--queries 0", "queries = 0"),
            ("--threads 0", "above zero"),
        ] {
            let error = scenario(line).unwrap_err();
            assert!(error.contains(expected), "{line}: {error}");
        }
    }
}
