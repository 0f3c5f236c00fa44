//! The processes that generate a load, on this machine and on others.

use clap::Args;
use load::Result;
use load::result::Bundle;
use load::scenario::Scenario;
use targets::Context;

use super::worker;
use crate::runner;

// The processes that make the load. No documentation of the type: clap would give it as that of the command.
#[derive(Debug, Clone, Args)]
pub(super) struct Generators {
    /// Generator processes; each has the phase's threads and a part of its connections
    #[arg(long, default_value_t = 1, value_parser = clap::value_parser!(u32).range(1..=64))]
    workers: u32,
    /// One more generator process, which this program with its arguments starts, such as `ssh HOST tacho bench worker`; may be given
    /// several times
    #[arg(long = "worker-command", value_name = "COMMAND")]
    worker_commands: Vec<String>,
}

impl Generators {
    /// Whether several processes share the load.
    pub(super) fn are_several(&self) -> bool {
        self.workers > 1 || !self.worker_commands.is_empty()
    }

    /// Runs a scenario in this process, or in several.
    pub(super) fn run(
        &self,
        scenario: &Scenario,
        options: &runner::Options,
        context: &Context,
    ) -> Result<Bundle> {
        match self.are_several() {
            true => self.share(scenario, options, context),
            false => runner::run(scenario, options, context, &mut runner::alone),
        }
    }

    /// Runs a scenario in several processes. If the run starts a server, this process starts it once.
    fn share(&self, scenario: &Scenario, options: &runner::Options, context: &Context) -> Result<Bundle> {
        let self_hosted = if self.worker_commands.is_empty() {
            runner::SelfHosted::start(scenario, context, options.quiet || options.label.is_some())?
        } else {
            runner::SelfHosted::refuse(scenario)?;
            None
        };
        let scenario = self_hosted.as_ref().map_or(scenario, runner::SelfHosted::scenario);
        let processes = worker::Processes { here: self.workers, commands: &self.worker_commands };
        let mut bundle = worker::run(scenario, options, processes, context)?;
        if let Some(self_hosted) = self_hosted {
            self_hosted.stop(&mut bundle);
        }
        Ok(bundle)
    }
}
