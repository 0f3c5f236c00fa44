//! Builds a bundle from the records of a runner. It computes sums over classes, quantiles, lines per second and
//! findings, so that every driver's bundle contains them.

use std::collections::BTreeMap;
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use super::log::{Clock, Histograms, Key};
use super::{
    ALL, Arrival, Bundle, Check, Clocks, Cost, Fault, Gate, Generator, OWN_TOOL, Operation, OperationCounts,
    Partial, Phase, RunResult, SCHEMA, ScenarioAsRun, SecondLine, Summary, Target, Telemetry, Tool,
};
use crate::machine::{Machine, utc_at};
use crate::recorder::Latency;
use crate::statistics::Distribution;

/// The facts about a phase.
#[derive(Debug, Clone, PartialEq)]
pub struct PhaseFacts {
    /// Name; unique in a run.
    pub name: String,
    /// `load`, `warmup`, `run`.
    pub kind: String,
    /// Whether its figures are the result.
    pub measured: bool,
    /// The start of its load, after the start of the run.
    pub starts: Duration,
    /// The part of the load before the measured part.
    pub warmup: Duration,
    /// The length of the measured part.
    pub duration: Duration,
    /// How operations arrive.
    pub arrival: Arrival,
    /// The number of connections.
    pub connections: u32,
}

/// The three histograms of one class; `None` for a clock that was not measured.
#[derive(Debug, Clone, Copy, Default)]
pub struct Times<'a> {
    /// From the intended start to the answer.
    pub response: Option<&'a Latency>,
    /// From the send to the answer.
    pub service: Option<&'a Latency>,
    /// From the intended start to the send.
    pub lag: Option<&'a Latency>,
}

impl<'a> Times<'a> {
    fn each(&self) -> impl Iterator<Item = (Clock, &'a Latency)> {
        [(Clock::Response, self.response), (Clock::Service, self.service), (Clock::Lag, self.lag)]
            .into_iter()
            .filter_map(|(clock, latency)| Some((clock, latency?)))
    }
}

/// A bundle under construction.
#[derive(Debug)]
pub struct Builder {
    result: RunResult,
    histograms: Histograms,
    telemetry: Telemetry,
    /// By second, phase and class.
    seconds: BTreeMap<(u64, String, String), SecondLine>,
}

impl Builder {
    /// Starts the bundle of a run that began at `started`.
    pub fn new(scenario: ScenarioAsRun, seed: u64, started: SystemTime) -> Self {
        let result = RunResult {
            schema: SCHEMA,
            valid: true,
            partial: None,
            tool: Tool {
                name: OWN_TOOL.to_owned(),
                version: env!("CARGO_PKG_VERSION").to_owned(),
                commit: None,
            },
            scenario,
            command_line: Vec::new(),
            seed,
            started: String::new(),
            started_unix_s: 0,
            took_s: 0.0,
            machine: Some(Machine::here()),
            clocks: Some(Clocks::here()),
            generators: Vec::new(),
            target: Target::default(),
            phases: Vec::new(),
            gates: Vec::new(),
            verification: Vec::new(),
            faults: Vec::new(),
            findings: Vec::new(),
            hides: Vec::new(),
        };
        let mut builder = Self {
            result,
            histograms: Histograms::default(),
            telemetry: Telemetry::default(),
            seconds: BTreeMap::new(),
        };
        builder.started(started);
        builder
    }

    /// Sets second 0, if it is known only later.
    pub fn started(&mut self, at: SystemTime) -> &mut Self {
        let unix_s = at.duration_since(UNIX_EPOCH).unwrap_or_default().as_secs();
        (self.result.started, self.result.started_unix_s) = (utc_at(unix_s), unix_s);
        self
    }

    /// Starts the bundle of another tool, which gives neither time nor machine.
    pub fn imported(tool: &str, version: &str, scenario: ScenarioAsRun) -> Self {
        let mut builder = Self::new(scenario, 0, UNIX_EPOCH);
        let result = &mut builder.result;
        result.tool = Tool { name: tool.to_owned(), version: version.to_owned(), commit: None };
        result.started = String::new();
        (result.machine, result.clocks) = (None, None);
        builder
    }

    /// Adds the counts of one class without times.
    pub fn counts(&mut self, phase: &str, name: &str, counts: &OperationCounts) -> &mut Self {
        self.operation(phase, name, counts, Times::default())
    }

    /// Adds the times of one class over a whole phase.
    pub fn distribution(
        &mut self,
        phase: &str,
        name: &str,
        clock: Clock,
        distribution: &Distribution,
    ) -> &mut Self {
        self.histograms.add_total(key(phase, name, clock), distribution);
        self
    }

    /// Adds a class for which only some quantiles are known. Those of the only class are also those of all.
    pub fn summary(&mut self, phase: &str, name: &str, clock: Clock, summary: Summary) -> &mut Self {
        if let Some(phase) = self.phase_named(phase) {
            let is_only = phase.operations.len() == 1;
            for operation in phase.operations.iter_mut().filter(|operation| operation.name == name) {
                *operation.clock_mut(clock) = Some(summary.clone());
            }
            *phase.total.clock_mut(clock) = is_only.then_some(summary);
        }
        self
    }

    /// Sets the command line and the source commit of the program.
    pub fn command(&mut self, command_line: &[String], commit: Option<&str>) -> &mut Self {
        self.result.command_line = command_line.to_vec();
        self.result.tool.commit = commit.map(str::to_owned);
        self
    }

    /// The system under test.
    pub fn target(&mut self, target: Target) -> &mut Self {
        self.result.target = target;
        self
    }

    /// Adds a process that makes load.
    pub fn generator(&mut self, generator: Generator) -> &mut Self {
        self.result.generators.push(generator);
        self
    }

    /// Starts a phase. Later operations refer to it by name.
    pub fn phase(&mut self, facts: &PhaseFacts) -> &mut Self {
        self.result.phases.push(Phase {
            name: facts.name.clone(),
            kind: facts.kind.clone(),
            measured: facts.measured,
            starts_s: facts.starts.as_secs_f64(),
            warmup_s: facts.warmup.as_secs_f64(),
            duration_s: facts.duration.as_secs_f64(),
            arrival: facts.arrival.clone(),
            connections: facts.connections,
            total: Operation { name: ALL.to_owned(), ..Operation::default() },
            operations: Vec::new(),
            cost: Cost::default(),
            steady: None,
            uncertainty: None,
        });
        self
    }

    /// Sets the cost of a phase.
    pub fn cost(&mut self, phase: &str, cost: Cost) -> &mut Self {
        if let Some(phase) = self.phase_named(phase) {
            phase.cost = cost;
        }
        self
    }

    /// Adds counts and times of one class over a whole phase. Several calls for one class add up. The total is the sum
    /// of the classes, unless the counts of `all` are given as well.
    pub fn operation(
        &mut self,
        phase: &str,
        name: &str,
        counts: &OperationCounts,
        times: Times<'_>,
    ) -> &mut Self {
        for (clock, latency) in times.each() {
            self.histograms.add_total(key(phase, name, clock), &Distribution::of(latency));
        }
        if let Some(phase) = self.phase_named(phase) {
            let known =
                phase.operations.iter_mut().chain([&mut phase.total]).find(|known| known.name == name);
            match known {
                Some(operation) => operation.counts.merge(counts),
                None => phase.operations.push(Operation {
                    name: name.to_owned(),
                    counts: counts.clone(),
                    ..Operation::default()
                }),
            }
        }
        self
    }

    /// Adds one second of one class. `line` has the phase, the class and the counts; this function adds the quantiles.
    pub fn second(&mut self, line: &SecondLine, times: Times<'_>) -> &mut Self {
        for (clock, latency) in times.each() {
            let key = key(&line.phase, &line.operation, clock);
            self.histograms.add_second(key, line.second, &Distribution::of(latency));
        }
        self.add_line(line)
    }

    /// Adds a line of another tool with known quantiles and without a histogram.
    pub fn add_line(&mut self, line: &SecondLine) -> &mut Self {
        let place = (line.second, line.phase.clone(), line.operation.clone());
        match self.seconds.get_mut(&place) {
            Some(known) => known.add_counts(line),
            None => {
                let length_s = if line.length_s > 0.0 { line.length_s } else { 1.0 };
                self.seconds.insert(place, SecondLine { length_s, ..line.clone() });
            }
        }
        self
    }

    /// Adds one sample of target or machine. The name ends with the unit.
    pub fn telemetry(&mut self, second: u64, name: &str, value: f64) -> &mut Self {
        self.telemetry.add(second, name, value);
        self
    }

    /// Adds a gate with its result.
    pub fn gate(&mut self, gate: Gate) -> &mut Self {
        self.result.gates.push(gate);
        self
    }

    /// Adds a check with its result.
    pub fn check(
        &mut self,
        what: &str,
        expected: impl ToString,
        found: impl ToString,
        passed: bool,
    ) -> &mut Self {
        let (expected, found) = (expected.to_string(), found.to_string());
        self.result.verification.push(Check { what: what.to_owned(), expected, found, passed });
        self
    }

    /// Adds a fault at a moment of the run.
    pub fn fault(&mut self, at: Duration, what: impl Into<String>) -> &mut Self {
        self.result.faults.push(Fault { at_s: at.as_secs_f64(), what: what.into() });
        self
    }

    /// Marks the run as ended before its plan.
    pub fn partial(&mut self, at: Duration, reason: impl Into<String>) -> &mut Self {
        self.result.partial = Some(Partial { reason: reason.into(), at_s: at.as_secs_f64() });
        self
    }

    /// Adds a sentence about what the figures show.
    pub fn finding(&mut self, sentence: impl Into<String>) -> &mut Self {
        self.result.findings.push(sentence.into());
        self
    }

    /// Adds a sentence about what the figures do not show.
    pub fn hides(&mut self, sentence: impl Into<String>) -> &mut Self {
        self.result.hides.push(sentence.into());
        self
    }

    fn phase_named(&mut self, name: &str) -> Option<&mut Phase> {
        self.result.phases.iter_mut().rev().find(|phase| phase.name == name)
    }

    /// Computes sums, summaries and findings.
    pub fn finish(self, took: Duration) -> Bundle {
        let mut bundle = self.summed(took);
        bundle.analyse();
        bundle
    }

    /// The same for generator `number` of several, from 1. Findings that need all parts follow at the merge.
    pub fn finish_part(self, took: Duration, number: u32) -> Bundle {
        let mut bundle = self.summed(took);
        let limits = bundle.generator_limits();
        bundle.result.hides.extend(limits.into_iter().map(|limit| format!("generator {number}, {limit}")));
        bundle
    }

    fn summed(self, took: Duration) -> Bundle {
        let mut bundle = Bundle {
            result: self.result,
            histograms: self.histograms,
            seconds: self.seconds.into_values().collect(),
            telemetry: self.telemetry,
        };
        bundle.result.took_s = took.as_secs_f64();
        for phase in &mut bundle.result.phases {
            if phase.total.counts == OperationCounts::default() {
                phase.operations.iter().for_each(|operation| phase.total.counts.merge(&operation.counts));
            }
        }
        bundle.summarise();
        bundle.result.settle();
        bundle
    }
}

impl Clocks {
    /// The clock of all latencies of this program.
    fn here() -> Self {
        let path = "/sys/devices/system/clocksource/clocksource0/current_clocksource";
        let kernel_source = std::fs::read_to_string(path).unwrap_or_else(|_| "unknown".to_owned());
        Self { source: "CLOCK_MONOTONIC".to_owned(), kernel_source: kernel_source.trim().to_owned() }
    }
}

fn key(phase: &str, operation: &str, clock: Clock) -> Key {
    Key { phase: phase.to_owned(), operation: operation.to_owned(), clock }
}

#[cfg(test)]
mod tests {
    use super::super::example::{example, latency};
    use super::*;

    #[test]
    fn totals_are_the_sum_of_the_classes() {
        let bundle = example();
        let phase = bundle.main_phase().unwrap();
        assert_eq!(phase.total.counts.completed, 400);
        assert_eq!(phase.total.counts.errors_total(), 2);
        assert_eq!(phase.total.completed_per_s, 200.0);
        let all = phase.total.response.as_ref().unwrap();
        assert_eq!(all.samples, 400);
        let seconds: Vec<_> = bundle.seconds.iter().filter(|line| line.operation == ALL).collect();
        assert_eq!(seconds.iter().map(|line| line.completed).sum::<u64>(), 400);
        assert!(seconds.iter().all(|line| line.response_p99_us.is_some()));
    }

    #[test]
    fn a_class_reported_twice_adds_up() {
        let mut builder = Builder::new(ScenarioAsRun::default(), 1, UNIX_EPOCH);
        builder.phase(&PhaseFacts {
            name: "run".to_owned(),
            kind: "run".to_owned(),
            measured: true,
            starts: Duration::ZERO,
            warmup: Duration::ZERO,
            duration: Duration::from_secs(1),
            arrival: Arrival::Closed { concurrency: 1, pause_us: 0 },
            connections: 1,
        });
        let counts = OperationCounts { completed: 3, ..OperationCounts::default() };
        let times = latency(&[10, 20, 30]);
        for _ in 0..2 {
            builder.operation("run", "get", &counts, Times { response: Some(&times), ..Times::default() });
        }
        let bundle = builder.finish(Duration::from_secs(1));
        let get = &bundle.result.phases[0].operations[0];
        assert_eq!((get.counts.completed, get.response.as_ref().unwrap().samples), (6, 6));
        assert!(get.lag.is_none(), "a clock nobody read has no summary");
    }
}
