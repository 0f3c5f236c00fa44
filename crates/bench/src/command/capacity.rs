//! `tacho bench capacity`: carries out the steps of `crate::capacity`. `tacho tune chain` does it for each layer.

use std::io::Write;

use clap::{Args, Parser};
use load::limits::RATE_MAX;
use load::objective::{Objective, Outcome};
use load::result::{Bundle, Gate};
use load::scenario::parse_duration;
use load::scenario::{Arrival, Scenario};
use load::{Error, Result};
use serde::Serialize;
use targets::Context;

use super::output::write_line;
use super::series::{RunSeries, SeriesArgs};
use crate::capacity::{Answer, FILE, Plan, Step, next};

/// Which objective, and how to search
#[derive(Debug, Args)]
#[command(after_help = "\
Examples:
  tacho bench capacity gemini-str32 --target redis://127.0.0.1:6379 --slo 'p99<=2ms'
  tacho bench capacity gemini-str32 --slo 'p99.9<=5ms, errors<=0.1%' --start 5000 --step 20s
  tacho bench capacity slb-s4 --phase cps --slo 'p99<=20ms' --workers 2")]
pub struct CapacityArgs {
    #[command(flatten)]
    series: SeriesArgs,
    /// What must hold: a percentile of response time, and the share of failures if it is not 0.1 % [default: that of the scenario's
    /// `[slo]`]
    #[arg(long, value_name = "OBJECTIVE")]
    slo: Option<Objective>,
    /// First rate, operations per second [default: the phase's own rate, or 1000 if it has none]
    #[arg(long, value_name = "RATE", value_parser = rate)]
    start: Option<f64>,
    /// Largest rate to try
    #[arg(long, value_name = "RATE", default_value_t = 1e7, value_parser = rate)]
    rate_max: f64,
    /// Shortest step; steps are longer where the percentile needs more samples
    #[arg(long, value_name = "TIME", default_value = "30s", value_parser = parse_duration)]
    step: std::time::Duration,
    /// Most steps
    #[arg(long, value_name = "NUMBER", default_value_t = 60)]
    steps_max: usize,
}

/// The options alone, as words.
#[derive(Debug, Parser)]
#[command(no_binary_name = true)]
struct Words {
    #[command(flatten)]
    args: CapacityArgs,
}

/// Parses a rate, operations per second.
fn rate(text: &str) -> std::result::Result<f64, String> {
    let rate = text.parse::<f64>().map_err(|error| error.to_string())?;
    let is_one = rate > 0.0 && rate <= RATE_MAX;
    is_one.then_some(rate).ok_or_else(|| format!("it must be above zero and at most {RATE_MAX}"))
}

/// The gates that the search interprets: an overload, or a generator at its limit. Any other failed gate ends the
/// search.
const JUDGED_BY_SEARCH: [&str; 6] =
    ["sent_share", "lag_p99", "generator_core", "steal_share", "error_share", "completed"];

/// The content of `capacity.json`.
#[derive(Serialize)]
struct Search<'a> {
    scenario: &'a str,
    phase: &'a str,
    objective: String,
    /// The quantile of the objective (0.99 for p99) and its largest response time, microseconds.
    quantile: f64,
    limit_us: f64,
    /// `None` for a search that ended early.
    answer: Option<&'a Answer>,
    /// The reason of an early end, if there is no answer.
    #[serde(skip_serializing_if = "Option::is_none")]
    partial: Option<String>,
    /// The text of the answer, or of the knowledge without one.
    sentences: String,
    steps: &'a [Outcome],
}

/// The beginning of a search.
struct Begin {
    plan: Plan,
    /// Settings of all steps.
    sets: Vec<String>,
}

impl CapacityArgs {
    /// Parses the words of a command line after the name of the command.
    pub fn parse_words(words: &[String]) -> Result<Self> {
        let parsed = Words::try_parse_from(words).map_err(|error| Error::Options(error.to_string()))?;
        Ok(parsed.args)
    }

    /// Refuses an unknown scenario, wrong options and a phase that has no capacity. Does not connect to the target.
    pub fn check(&self) -> Result<()> {
        let (scenario, phase) = self.series.load()?;
        let begin = self.begin(&scenario, &phase)?;
        self.series.check_phase(&phase, &begin.sets)
    }

    fn begin(&self, scenario: &Scenario, name: &str) -> Result<Begin> {
        let phase = scenario.phases.iter().find(|phase| phase.name == name);
        let mix = match phase.map(|phase| phase.mixes.as_slice()) {
            Some([mix]) => mix,
            _ => {
                let what = "a capacity is one rate, and this phase has several loads at once; choose another with --phase";
                return Err(Error::Options(what.to_owned()));
            }
        };
        let missing = || {
            Error::Options(
                "say what must hold, such as --slo 'p99<=20ms': this scenario has no [slo]".to_owned(),
            )
        };
        let slo = self.slo.or(scenario.slo).ok_or_else(missing)?;
        let start = self.start.or(mix.rate.map(|rate| rate * scenario.rate_scale())).unwrap_or(1_000.0);
        let mut plan = Plan::new(slo, start, scenario.head.seed);
        plan.rate_per_s_max = self.rate_max;
        plan.step_s_min = self.step.as_secs_f64();
        plan.steps_max = self.steps_max;
        let is_open = matches!(mix.arrival, Arrival::Poisson | Arrival::Fixed);
        // A closed loop may have no rate, and an open loop needs one. Each step sets its own later.
        let open = || {
            let rate = start / scenario.rate_scale();
            vec![format!("phase.{name}.arrival=poisson"), format!("phase.{name}.rate={rate:?}")]
        };
        let sets = if is_open { Vec::new() } else { open() };
        Ok(Begin { plan, sets })
    }
}

/// Searches, prints each step, and keeps the runs and [`capacity::FILE`](crate::capacity::FILE).
pub fn search_capacity(args: &CapacityArgs, context: &Context, out: &mut dyn Write) -> Result<Answer> {
    let series = RunSeries::begin(&args.series, "capacity", context)?;
    let scenario = series.scenario(&[])?;
    let Begin { plan, sets } = args.begin(&scenario, &series.phase)?;
    let slo = plan.objective;
    write_line(out, &format!("{}: how much with {}", scenario.head.name, slo))?;
    series.load_data(&sets)?.iter().try_for_each(|sentence| write_line(out, sentence))?;
    let mut history: Vec<Outcome> = Vec::new();
    let searched = run_steps(&series, plan, &scenario, &sets, &mut history, out);
    let sentences = match &searched {
        Ok(answer) => answer.to_string(),
        // Nothing was run: the user can correct the error and use the directory again.
        Err(_) if history.is_empty() && !series.has_run() => return searched,
        Err(error) => format!("{error}; {}", known(&history, &slo)),
    };
    // The answer is printed before it is written, so that a full disk does not lose it.
    write_line(out, &sentences)?;
    let search = Search {
        scenario: &scenario.head.name,
        phase: &series.phase,
        objective: slo.to_string(),
        quantile: slo.quantile,
        limit_us: slo.limit_us,
        answer: searched.as_ref().ok(),
        partial: searched.as_ref().err().map(ToString::to_string),
        sentences,
        steps: &history,
    };
    let written = series.write(FILE, &search);
    match (searched, written) {
        (Ok(answer), written) => {
            write_line(out, &format!("result: {}", written?.display()))?;
            Ok(answer)
        }
        (Err(error), Ok(_)) => Err(series.unfinished(error)),
        (Err(error), Err(lost)) => Err(Error::Verdict(format!("{error}; {lost}"))),
    }
}

/// Runs steps until there is an answer. `history` contains the finished ones in any case.
fn run_steps(
    series: &RunSeries<'_>,
    mut plan: Plan,
    scenario: &Scenario,
    sets: &[String],
    history: &mut Vec<Outcome>,
    out: &mut dyn Write,
) -> Result<Answer> {
    let slo = plan.objective;
    loop {
        let (rate_per_s, seconds, why) = match next(&plan, history) {
            Step::Done(answer) => return Ok(answer),
            Step::Run { rate_per_s, seconds, why } => (rate_per_s, seconds, why),
        };
        let mut sets = sets.to_vec();
        sets.push(format!("phase.{}.rate={:?}", series.phase, rate_per_s / scenario.rate_scale()));
        sets.push(format!("phase.{}.duration={seconds:.0}s", series.phase));
        // Each step has another schedule, so that one unlucky burst does not affect every rate.
        sets.push(format!("seed={}", series.seed.wrapping_add(history.len() as u64 + 1) & (i64::MAX as u64)));
        let number = history.len() + 1;
        let label = format!("step {number}, {rate_per_s:.0}/s for {seconds:.0} s");
        let bundle = series.run(&sets, &format!("step-{number:02}"), label)?;
        let stalls_s = bundle.main_phase().and_then(|phase| bundle.stall_period_s(phase));
        // Later steps are long enough for the stalls that this one found.
        plan.stall_period_s = plan.stall_period_s.into_iter().chain(stalls_s).reduce(f64::max);
        let outcome = outcome(&bundle, rate_per_s, &slo)?;
        write_line(out, &line(number, &outcome, &slo, &why))?;
        history.push(outcome);
    }
}

/// The knowledge without an answer, as text.
fn known(history: &[Outcome], slo: &Objective) -> String {
    let valid = || history.iter().filter(|outcome| outcome.generator_fault.is_none());
    let rates = |passes: bool| {
        valid().filter(move |outcome| slo.failures(outcome).is_empty() == passes).map(|it| it.rate_per_s)
    };
    let passed =
        rates(true).reduce(f64::max).map(|rate| format!("the highest rate that passed is {rate:.0}/s"));
    let failed = rates(false).reduce(f64::min).map(|rate| format!("the lowest that failed {rate:.0}/s"));
    let parts: Vec<String> = passed.into_iter().chain(failed).collect();
    match parts.is_empty() {
        true => "no step told anything until then".to_owned(),
        false => format!("until then, in {} steps, {}", history.len(), parts.join(", ")),
    }
}

/// The outcome of a step. A dead server ends the search.
fn outcome(bundle: &Bundle, rate_per_s: f64, slo: &Objective) -> Result<Outcome> {
    let phase = bundle.main_phase().ok_or_else(|| Error::Verdict("a step has no result".to_owned()))?;
    if let Some(fault) = bundle.result.faults.first() {
        return Err(Error::Verdict(format!(
            "at {rate_per_s:.0}/s, second {:.0}: {}",
            fault.at_s, fault.what
        )));
    }
    let mut outcome = Outcome::measured(bundle, phase, rate_per_s, slo);
    // Names of gates start with their phase.
    let is = |gate: &Gate, name: &str| gate.name == name || gate.name.ends_with(&format!(" {name}"));
    let bad: Vec<&Gate> = bundle.result.gates.iter().filter(|gate| !gate.passed).collect();
    let other = bad.iter().find(|gate| !JUDGED_BY_SEARCH.iter().any(|name| is(gate, name)));
    let wrong = bundle.result.verification.iter().find(|check| !check.passed);
    if let Some(what) = other.map(|gate| &gate.name).or(wrong.map(|check| &check.what)) {
        return Err(Error::Verdict(format!(
            "at {rate_per_s:.0}/s the step is not valid ({what}), so its latency says nothing; `tacho bench report` of its \
             directory says why"
        )));
    }
    let failed = |name: &str| bad.iter().copied().find(|gate| is(gate, name));
    // Lag also grows while operations wait for a busy target. It is the generator's fault only if everything else is
    // fine.
    let fault = failed("generator_core")
        .or(failed("steal_share"))
        .or_else(|| failed("lag_p99").filter(|_| slo.failures(&outcome).is_empty()));
    outcome.generator_fault = fault.map(|gate| {
        format!("{} is {:.3} {}, at most {:.3} is allowed", gate.name, gate.value, gate.unit, gate.limit)
    });
    Ok(outcome)
}

fn line(number: usize, outcome: &Outcome, slo: &Objective, why: &str) -> String {
    let failures = slo.failures(outcome);
    let verdict = match &outcome.generator_fault {
        Some(fault) => format!("says nothing: {fault}"),
        None if failures.is_empty() => "passes".to_owned(),
        None => format!("fails: {}", failures.join(", ")),
    };
    format!(
        "step {number:>2}  {:>9.0}/s  {:>9.3} ms  {verdict}  ({why})",
        outcome.rate_per_s,
        outcome.quantile_us / 1e3
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    fn args(line: &str) -> CapacityArgs {
        let words: Vec<String> = line.split_whitespace().map(str::to_owned).collect();
        CapacityArgs::parse_words(&words).unwrap()
    }

    #[test]
    fn a_closed_loop_gets_the_first_rate() {
        for (options, rate) in [("", 1_000.0), ("--start 250", 250.0), ("--set phase.run.rate=40", 40.0)] {
            let args = args(&format!("sysbench-oltp-insert --slo p99<=50ms {options}"));
            let (scenario, name) = args.series.load().unwrap();
            assert_eq!(scenario.phases[1].mixes[0].arrival, Arrival::Closed);
            let begin = args.begin(&scenario, &name).unwrap();
            assert_eq!(begin.plan.start_per_s, rate, "{options}");
            args.check().unwrap();
            let stepped = Scenario::load("sysbench-oltp-insert", &begin.sets).unwrap();
            let mix = &stepped.phases[1].mixes[0];
            assert_eq!((mix.arrival, mix.rate), (Arrival::Poisson, Some(rate)), "{options}");
        }
    }

    #[test]
    fn an_open_loop_keeps_its_arrivals() {
        let args = args(
            "http-qps --phase keep-alive --slo p99<=50ms --set phase.keep-alive.arrival=fixed --set phase.keep-alive.rate=70",
        );
        let (scenario, name) = args.series.load().unwrap();
        let begin = args.begin(&scenario, &name).unwrap();
        assert!(begin.sets.is_empty(), "{:?}", begin.sets);
        assert_eq!(begin.plan.start_per_s, 70.0);
        args.check().unwrap();
    }
}
