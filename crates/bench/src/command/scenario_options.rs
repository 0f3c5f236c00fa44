//! Options that every scenario has.

use std::path::PathBuf;

use clap::Args;
use load::scenario::Scenario;
use load::{Error, Result};

use super::quick;

use super::generators::Generators;

// The common options. The type has no doc comment, because clap would show it as that of the command.
#[derive(Debug, Args)]
pub(super) struct ScenarioOptions {
    /// Address of the server under test, such as redis://:PASSWORD@host:6379/0
    #[arg(long, value_name = "URL")]
    pub(super) target: Option<String>,
    /// Changes one key of the scenario: phase.run.rate=5000, operation.get.weight=3, seed=2
    #[arg(long = "set", value_name = "KEY=VALUE")]
    pub(super) sets: Vec<String>,
    /// Size of data and of counted requests, as a share of the original
    #[arg(long, value_name = "SHARE")]
    pub(super) scale: Option<f64>,
    /// Only these phases
    #[arg(long = "phase", value_name = "NAME")]
    pub(super) phases: Vec<String>,
    /// Closed loop in every phase: a new operation when an answer came. For comparison with tools that know nothing else;
    /// it hides what waits
    #[arg(long)]
    pub(super) closed: bool,
    /// A first try: little data, few connections, short phases. What else is given on the command line goes before it. Its figures are
    /// for a first look
    #[arg(long)]
    pub(super) quick: bool,
    /// Process of the target on this machine, to sample its CPU time and memory (found out where the server says it)
    #[arg(long, value_name = "PID")]
    pub(super) server_pid: Option<u32>,
    #[command(flatten)]
    pub(super) generators: Generators,
    /// Directory of the result [default: bench-runs/<UTC>-<name>]
    #[arg(long, value_name = "DIR")]
    pub(super) out: Option<PathBuf>,
    /// No progress
    #[arg(long)]
    pub(super) quiet: bool,
}

impl ScenarioOptions {
    pub(super) fn sets(&self) -> Vec<String> {
        let mut sets = self.sets.clone();
        sets.extend(self.target.as_ref().map(|url| format!("target.url={url}")));
        sets.extend(self.scale.map(|scale| format!("scale={scale:?}")));
        sets.extend(self.server_pid.map(|pid| format!("target.pid={pid}")));
        sets
    }

    /// Loads the scenario with some keys changed, and as a closed loop if requested.
    pub(super) fn scenario(&self, name: &str, sets: &[String]) -> Result<Scenario> {
        let mut scenario = Scenario::load(name, sets)?;
        if self.quick {
            let mut all = quick::sets(&scenario).map_err(Error::Options)?;
            all.extend(sets.iter().cloned());
            scenario = Scenario::load(name, &all)?;
        }
        if self.closed {
            scenario.close();
        }
        Ok(scenario)
    }
}
