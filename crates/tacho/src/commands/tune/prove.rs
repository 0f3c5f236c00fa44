//! `tacho tune TARGET --prove`: measures a change.

use std::io::stdout;
use std::process::ExitCode;

use anyhow::ensure;
use bench::command::ChangeOptions;
use clap::Args;
use tune::prove::{self, Commands, Order};
use tune::{Target, advise};

use super::inspected_target::{COULD_NOT, InspectedTarget};
use crate::load_context::context;

// No documentation of the type: clap would give it as that of the command.
#[derive(Debug, Args)]
pub(super) struct ProveArgs {
    /// Measures the change of this rule under the load of --scenario, and restores the target
    #[arg(long, value_name = "RULE", requires = "scenario", conflicts_with = "json")]
    pub(super) prove: Option<String>,
    /// The load: name of a built-in scenario (`tacho bench list`), or a file
    #[arg(long, value_name = "NAME|FILE", requires = "prove")]
    scenario: Option<String>,
    /// The address of the load, if it is not TARGET [default: TARGET of databases and Elasticsearch, else that of the scenario]
    #[arg(long, value_name = "URL", requires = "prove")]
    load_target: Option<String>,
    /// Leaves a change that is better
    #[arg(long, requires = "prove")]
    keep: bool,
    /// Makes a change that tune cannot make itself; a shell runs it
    #[arg(long, value_name = "COMMAND", requires_all = ["prove", "undo_command"])]
    change_command: Option<String>,
    /// Undoes what --change-command has made
    #[arg(long, value_name = "COMMAND", requires_all = ["prove", "change_command"])]
    undo_command: Option<String>,
    /// Starts the target again, for a change that takes effect then; it runs before each run of the load
    #[arg(long, value_name = "COMMAND", requires = "prove")]
    restart_command: Option<String>,
    #[command(flatten)]
    options: ChangeOptions,
}

impl ProveArgs {
    /// Refuses options that do not apply.
    pub(super) fn check(&self) -> anyhow::Result<()> {
        let is_proof = self.prove.is_some();
        ensure!(is_proof || self.options.is_empty(), "the options of a load apply to --prove only");
        let both = self.load_target.is_some() && self.options.names_target();
        ensure!(!both, "--load-target and --set target.url= both name the address of the load: choose one");
        Ok(())
    }

    /// The address of the load.
    fn load_target(&self, target: &Target, written: &str) -> anyhow::Result<Option<String>> {
        match &self.load_target {
            Some(url) => Ok(Some(url.clone())),
            None if self.options.names_target() => Ok(None),
            None => Ok(target.load_url(written)?),
        }
    }
}

/// Measures the change.
pub(super) fn run(
    args: &ProveArgs,
    rule: &str,
    value: Option<&str>,
    looked: InspectedTarget,
) -> anyhow::Result<ExitCode> {
    let InspectedTarget {
        target, shown_target, written_target, product, observation, context: probe, ..
    } = looked;
    let rule = tune::change::rule_for(product, &observation, rule)?;
    let advice = advise(product, &observation);
    let commands = Commands {
        change: args.change_command.clone(),
        undo: args.undo_command.clone(),
        restart: args.restart_command.clone(),
    };
    let way = prove::way(product, &observation, &advice, rule, value, &commands)?;
    let load_target = args.load_target(&target, &written_target)?;
    let order = Order {
        target: &target,
        shown_target: &shown_target,
        probe: &probe,
        product,
        rule,
        way,
        keep: args.keep,
        scenario: args.scenario.as_deref().unwrap_or_default(),
        load_target: load_target.as_deref(),
    };
    let proof = prove::prove(order, &args.options, &context()?, &mut stdout())?;
    Ok(if proof.is_complete() { ExitCode::SUCCESS } else { ExitCode::from(COULD_NOT) })
}
