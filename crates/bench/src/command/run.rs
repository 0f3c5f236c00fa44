//! `tacho bench run` of a scenario.

use std::io::{Write, stderr};
use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::AtomicBool;

use clap::{Args, Parser};
use signal_hook::consts::{SIGINT, SIGTERM};

use super::advice::advice;
use super::generators::Generators;
use super::{invalid, say};
use crate::error::{Error, Result};
use crate::options::Context;
use crate::report::{default_directory, refuse_used};
use crate::result::Bundle;
use crate::runner;
use crate::scenario::{Scenario, quick};

/// Runs a scenario and writes its result as a bundle
#[derive(Debug, Parser)]
#[command(no_binary_name = true)]
pub(super) struct Line {
    /// Name of a built-in scenario or an alias (`tacho bench list`), or a file
    name: String,
    #[command(flatten)]
    common: Common,
}

// What every scenario can be asked for. No documentation of the type: clap would give it as that of the command.
#[derive(Debug, Args)]
pub(super) struct Common {
    /// Address of the server under test, such as redis://:PASSWORD@host:6379/0
    #[arg(long, value_name = "URL")]
    pub(super) target: Option<String>,
    /// Changes one key of the scenario: phase.run.rate=5000, operation.get.weight=3, seed=2
    #[arg(long = "set", value_name = "KEY=VALUE")]
    sets: Vec<String>,
    /// Size of data and of counted requests, as a share of the original
    #[arg(long, value_name = "SHARE")]
    scale: Option<f64>,
    /// Only these phases
    #[arg(long = "phase", value_name = "NAME")]
    phases: Vec<String>,
    /// Closed loop in every phase: a new operation when an answer came. For comparison with tools that know nothing else;
    /// it hides what waits
    #[arg(long)]
    pub(super) closed: bool,
    /// A first try: little data, few connections, short phases. What else is given on the command line goes before it. Its figures are
    /// for a first look
    #[arg(long)]
    quick: bool,
    /// Process of the target on this machine, to sample its CPU time and memory (found out where the server says it)
    #[arg(long, value_name = "PID")]
    server_pid: Option<u32>,
    #[command(flatten)]
    generators: Generators,
    /// Directory of the result [default: bench-runs/<UTC>-<name>]
    #[arg(long, value_name = "DIR")]
    out: Option<PathBuf>,
    /// No progress
    #[arg(long)]
    quiet: bool,
}

impl Common {
    pub(super) fn sets(&self) -> Vec<String> {
        let mut sets = self.sets.clone();
        sets.extend(self.target.as_ref().map(|url| format!("target.url={url}")));
        sets.extend(self.scale.map(|scale| format!("scale={scale:?}")));
        sets.extend(self.server_pid.map(|pid| format!("target.pid={pid}")));
        sets
    }

    /// A scenario with some keys changed, in closed loop where that is asked for.
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

/// Runs what a line says.
pub(super) fn line(line: &Line, context: &Context, out: &mut dyn Write) -> Result<()> {
    scenario(&line.common.scenario(&line.name, &line.common.sets())?, &line.common, context, out)
}

/// Runs a scenario.
pub(super) fn scenario(
    scenario: &Scenario,
    line: &Common,
    context: &Context,
    out: &mut dyn Write,
) -> Result<()> {
    line.out.as_deref().map_or(Ok(()), refuse_used)?;
    let stop = stop_on_signals()?;
    let options = runner::Options {
        phases: line.phases.clone(),
        quiet: line.quiet,
        stop: Arc::clone(&stop),
        ..runner::Options::default()
    };
    if line.quick {
        say(out, &format!("{} (about {:.0} s)", quick::SAID, quick::planned_s(scenario)))?;
    }
    let mut bundle = line.generators.run(scenario, &options, context)?;
    let objective = scenario.slo.map(|slo| slo.sentences(&bundle));
    bundle.result.findings.extend(objective.into_iter().flatten());
    if line.quick {
        bundle.result.hides.insert(0, quick::SAID.to_owned());
    }
    finish(&bundle, line, scenario, context, out)
}

fn finish(
    bundle: &Bundle,
    line: &Common,
    scenario: &Scenario,
    context: &Context,
    out: &mut dyn Write,
) -> Result<()> {
    let directory = line.out.clone().unwrap_or_else(|| default_directory(&scenario.head.name));
    let written = bundle.write_or_rescue(&directory, &mut stderr());
    say(out, &bundle.to_string())?;
    for line in advice(bundle, scenario, context.called()) {
        say(out, &format!("to pass  {line}"))?;
    }
    written.map_err(|error| Error::Verdict(error.to_string()))?;
    say(out, &format!("result: {}", directory.display()))?;
    if bundle.result.standing().is_quotable() { Ok(()) } else { Err(invalid()) }
}

/// The first Ctrl-C ends the run in order, the second at once.
pub(super) fn stop_on_signals() -> Result<Arc<AtomicBool>> {
    // The other flag may be set by who started this process, before its own first signal.
    let (stop, signalled) = (Arc::new(AtomicBool::new(false)), Arc::new(AtomicBool::new(false)));
    for signal in [SIGINT, SIGTERM] {
        let failed = || Error::io("taking over Ctrl-C");
        signal_hook::flag::register_conditional_shutdown(signal, 130, Arc::clone(&signalled))
            .map_err(failed())?;
        for flag in [&signalled, &stop] {
            signal_hook::flag::register(signal, Arc::clone(flag)).map_err(failed())?;
        }
    }
    Ok(stop)
}
