//! `tacho bench run` of a scenario.

use std::io::{Write, stderr};
use std::sync::Arc;

use clap::Parser;
use load::result::Bundle;
use load::scenario::Scenario;
use load::{Error, Result};
use targets::Context;

use super::quick;

use super::advice::advice;
use super::output::write_line;
use super::scenario_options::ScenarioOptions;
use super::signals::stop_on_signals;
use crate::report::{default_directory, refuse_used};
use crate::runner;

/// Runs a scenario and writes its result as a bundle
#[derive(Debug, Parser)]
#[command(no_binary_name = true)]
pub(super) struct Line {
    /// Name of a built-in scenario or an alias (`tacho bench list`), or a file
    name: String,
    #[command(flatten)]
    common: ScenarioOptions,
}

/// Runs a parsed command line.
pub(super) fn line(line: &Line, context: &Context, out: &mut dyn Write) -> Result<()> {
    scenario(&line.common.scenario(&line.name, &line.common.sets())?, &line.common, context, out)
}

pub(super) fn scenario(
    scenario: &Scenario,
    line: &ScenarioOptions,
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
        write_line(out, &format!("{} (about {:.0} s)", quick::NOTE, quick::planned_s(scenario)))?;
    }
    let mut bundle = line.generators.run(scenario, &options, context)?;
    let objective = scenario.slo.map(|slo| slo.sentences(&bundle));
    bundle.result.findings.extend(objective.into_iter().flatten());
    if line.quick {
        bundle.result.hides.insert(0, quick::NOTE.to_owned());
    }
    finish(&bundle, line, scenario, context, out)
}

fn finish(
    bundle: &Bundle,
    line: &ScenarioOptions,
    scenario: &Scenario,
    context: &Context,
    out: &mut dyn Write,
) -> Result<()> {
    let directory = line.out.clone().unwrap_or_else(|| default_directory(&scenario.head.name));
    let written = bundle.write_or_rescue(&directory, &mut stderr());
    write_line(out, &bundle.to_string())?;
    for line in advice(bundle, scenario, context.called()) {
        write_line(out, &format!("to pass  {line}"))?;
    }
    written.map_err(|error| Error::Verdict(error.to_string()))?;
    write_line(out, &format!("result: {}", directory.display()))?;
    if bundle.result.validity().is_quotable() { Ok(()) } else { Err(invalid()) }
}

fn invalid() -> Error {
    Error::Verdict("the run is not valid; its figures must not be quoted".to_owned())
}
