//! Findings from the seconds and histograms of a run: the steady part, the uncertainty of the figures, stalls, two
//! modes of latency, Little's law. They go into the result as sentences.

use super::{ALL, Arrival, Bundle, Clock, Phase, SecondLine, Steady, Summary, Telemetry, Uncertainty};
use crate::statistics::Distribution;
use crate::statistics::bootstrap::{block_length, moving_block};
use crate::statistics::steady::Steadiness;
use crate::statistics::{bimodal, little, quantile, stalls, steady};

const CONFIDENCE: f64 = 0.95;
/// The number of resamples for intervals within a run. They take at most a second at the end of every run.
const RESAMPLES: usize = 1_000;
/// The share of the threads' capacity from which a generator counts as being at its limit.
const GENERATOR_FULL_SHARE: f64 = 0.9;
/// The smallest agreement of a target's series that is named beside a stall, and the largest number of such series.
const AGREEMENT_MIN: f64 = 0.6;
const SERIES_NAMED_MAX: usize = 3;
/// Shorter runs see few of the target's periodic tasks.
const SHORT_S: f64 = 60.0;

impl Bundle {
    /// Adds the findings that follow from the seconds. Existing findings stay.
    pub(crate) fn analyse(&mut self) {
        let mut findings = Vec::new();
        let mut hides = Vec::new();
        let is_one = self.result.phases.iter().filter(|phase| phase.measured).count() == 1;
        for index in 0..self.result.phases.len() {
            let phase = &self.result.phases[index];
            // Held connections do nothing that could be steady.
            if !phase.measured || phase.total.counts.planned + phase.total.counts.completed == 0 {
                continue;
            }
            let seconds = whole_seconds(phase, &self.seconds);
            let steady = find_steady(&seconds, phase.warmup_s);
            let uncertainty = self.uncertainty(phase, &seconds);
            if let Some(steady) = steady.as_ref().filter(|steady| !steady.found) {
                findings.push(format!("phase {}: {}", phase.name, steady.sentence));
            }
            // With several phases, each sentence names its phase.
            let named = |text: String| if is_one { text } else { format!("phase {}: {text}", phase.name) };
            findings.extend(find_stalls(&seconds, &self.telemetry).map(named));
            findings.extend(self.find_kinds(phase).into_iter().map(named));
            findings.extend(check_little(phase).map(named));
            hides.extend(hidden(phase));
            hides.extend(weak_quantiles(phase).map(named));
            hides.extend(self.at_its_limit(phase));
            let phase = &mut self.result.phases[index];
            (phase.steady, phase.uncertainty) = (steady, uncertainty);
        }
        if self.result.target.address.contains("127.0.0.") || self.result.target.address.contains("localhost")
        {
            hides.push(
                "generator and target shared one machine: they took CPU from each other, and there was no network"
                    .to_owned(),
            );
        }
        hides.push(
            "one run says nothing of how much another run of the same thing would differ: `ab` does"
                .to_owned(),
        );
        let result = &mut self.result;
        for (known, new) in [(&mut result.findings, findings), (&mut result.hides, hides)] {
            for sentence in new {
                if !known.contains(&sentence) {
                    known.push(sentence);
                }
            }
        }
    }

    /// The findings of one of several processes about itself.
    pub(super) fn generator_limits(&self) -> Vec<String> {
        let measured = self.result.phases.iter().filter(|phase| phase.measured);
        measured.filter_map(|phase| self.at_its_limit(phase)).collect()
    }

    /// A closed loop runs as fast as it can, so its rate may be the generator's limit. With several processes, each
    /// reports for itself.
    fn at_its_limit(&self, phase: &Phase) -> Option<String> {
        let cores = self.result.machine.as_ref()?.cores as u32;
        let [generator] = &self.result.generators[..] else { return None };
        let can_percent = 100.0 * f64::from(generator.threads.min(cores));
        let is_full = phase.cost.generator_cpu_percent? >= GENERATOR_FULL_SHARE * can_percent;
        (phase.arrival.is_closed() && is_full).then(|| {
            format!(
                "phase {}: the generator used about all of the processors that its threads can: the rate may be its limit and not \
                 the target's",
                phase.name
            )
        })
    }

    /// The period of regular stalls of a phase, seconds.
    pub fn stall_period_s(&self, phase: &Phase) -> Option<f64> {
        stall_pattern(&whole_seconds(phase, &self.seconds)).map(|stall_pattern| stall_pattern.period_s)
    }

    fn uncertainty(&self, phase: &Phase, seconds: &[&SecondLine]) -> Option<Uncertainty> {
        let rates = rates(seconds);
        let mean = |drawn: &[usize]| drawn.iter().map(|i| rates[*i]).sum::<f64>() / drawn.len() as f64;
        let seed = self.result.seed;
        let completed_per_s =
            moving_block(rates.len(), block_length(&rates), mean, CONFIDENCE, RESAMPLES, seed)?;
        let timeline = self.histograms.get(&phase.name, ALL, Clock::Response);
        let distributions: Vec<&Distribution> = timeline
            .map(|timeline| seconds.iter().filter_map(|line| timeline.seconds.get(&line.second)).collect())
            .unwrap_or_default();
        let p99: Vec<f64> = distributions.iter().map(|d| d.quantile_us(0.99) as f64).collect();
        let block = if p99.is_empty() { 1 } else { block_length(&p99) };
        let response_p99_us =
            quantile::from_seconds(&distributions, 0.99, block, CONFIDENCE, RESAMPLES, seed);
        Some(Uncertainty { completed_per_s, response_p99_us })
    }

    fn find_kinds(&self, phase: &Phase) -> Vec<String> {
        phase
            .operations
            .iter()
            .filter_map(|operation| {
                let timeline = self.histograms.get(&phase.name, &operation.name, Clock::Service)?;
                Some(bimodal::find(&timeline.total)?.sentence(&format!("service time of {}", operation.name)))
            })
            .collect()
    }
}

/// The lines of the sum over all classes that lie wholly within the measured part of the phase.
fn whole_seconds<'a>(phase: &Phase, lines: &'a [SecondLine]) -> Vec<&'a SecondLine> {
    // Line numbers count from the whole second in which the load began.
    let (from, end) = (phase.starts_s.floor() + phase.warmup_s, phase.ends_s());
    lines
        .iter()
        .filter(|line| line.phase == phase.name && line.operation == ALL)
        .filter(|line| line.second as f64 >= from && line.second as f64 + line.length_s <= end + 0.05)
        .collect()
}

fn rates(seconds: &[&SecondLine]) -> Vec<f64> {
    seconds.iter().map(|line| line.completed as f64 / line.length_s).collect()
}

/// `warmup_s` is the time between the start of the phase and the first of the seconds.
fn find_steady(seconds: &[&SecondLine], warmup_s: f64) -> Option<Steady> {
    let p50: Vec<f64> = seconds.iter().filter_map(|line| line.response_p50_us).collect();
    let p50 = if p50.len() == seconds.len() { p50 } else { Vec::new() };
    match steady::find(&rates(seconds), &p50) {
        Steadiness::From { step, drift } => {
            let from_s = warmup_s + seconds[..step].iter().map(|line| line.length_s).sum::<f64>();
            let sentence = format!(
                "steady from second {from_s:.0} on (MSER-5); throughput moves by {:+.1} % from there to the end",
                drift * 100.0
            );
            Some(Steady { found: true, from_s, drift, sentence })
        }
        Steadiness::None { trend, drift } => {
            Some(Steady { found: false, from_s: 0.0, drift, sentence: format!("no steady state: {trend}") })
        }
        Steadiness::TooShort => None,
    }
}

fn stall_pattern(seconds: &[&SecondLine]) -> Option<stalls::StallPattern> {
    let p99: Vec<f64> =
        seconds.iter().filter_map(|line| line.response_p99_us.or(line.service_p99_us)).collect();
    if p99.len() == seconds.len() { stalls::find(&p99) } else { None }
}

fn find_stalls(seconds: &[&SecondLine], telemetry: &Telemetry) -> Option<String> {
    let stall_pattern = stall_pattern(seconds)?;
    let mut agreeing: Vec<(f64, &str)> = telemetry
        .names()
        .filter_map(|name| {
            let values = aligned(telemetry, name, seconds)?;
            let agreement = stalls::agreement(&stall_pattern, &values);
            (agreement >= AGREEMENT_MIN).then_some((agreement, name))
        })
        .collect();
    agreeing.sort_by(|a, b| b.0.total_cmp(&a.0));
    let names: Vec<&str> = agreeing.iter().take(SERIES_NAMED_MAX).map(|(_, name)| *name).collect();
    Some(stall_pattern.sentence("p99", &names))
}

/// A series of the target at the given seconds; a growing counter as its differences. `None` with gaps.
fn aligned(telemetry: &Telemetry, name: &str, seconds: &[&SecondLine]) -> Option<Vec<f64>> {
    let known: std::collections::BTreeMap<u64, f64> = telemetry.series(name).collect();
    let values: Vec<f64> = seconds.iter().filter_map(|line| known.get(&line.second).copied()).collect();
    if values.len() != seconds.len() {
        return None;
    }
    if values.is_sorted() {
        let differences = values.windows(2).map(|pair| pair[1] - pair[0]);
        return Some(std::iter::once(0.0).chain(differences).collect());
    }
    Some(values)
}

fn check_little(phase: &Phase) -> Option<String> {
    let mean = |summary: &Option<Summary>| summary.as_ref().and_then(|s| s.mean_us);
    let rate = phase.total.completed_per_s;
    match phase.arrival {
        Arrival::Closed { concurrency, pause_us } => {
            little::closed(rate, mean(&phase.total.service)?, pause_us.into(), concurrency)
        }
        Arrival::Open { .. } => little::open(rate, mean(&phase.total.response)?, mean(&phase.total.service)?),
        Arrival::Loops | Arrival::Unknown => None,
    }
}

fn hidden(phase: &Phase) -> Vec<String> {
    let mut hides = Vec::new();
    if phase.arrival.is_closed() {
        hides.push(
            "closed loop: while the target stalls nothing new is sent, so a stall counts once per connection and not for \
             everybody who would have come meanwhile; compare it only with closed loops of the same concurrency"
                .to_owned(),
        );
    }
    if let Arrival::Open { timer_us: timer_us @ 1.., .. } = phase.arrival {
        hides.push(format!(
            "operations came due on ticks of {timer_us} us, as those of devices with timers: those of one tick wait for each other, \
             and the target rests until the next; compare it only with loads of the same timer"
        ));
    }
    if phase.cost.generator_polling_percent.is_some() {
        hides.push(
            "the generator polled instead of sleeping before operations: that time is not in its CPU time per operation, which is so not \
             what a generator that sleeps would take"
                .to_owned(),
        );
    }
    if phase.duration_s < SHORT_S {
        hides.push(format!(
            "{:.0} s are too short for what the target does once a minute or less often: checkpoints, compactions, evictions",
            phase.duration_s
        ));
    }
    hides
}

/// A sentence about quantiles with too few samples.
fn weak_quantiles(phase: &Phase) -> Option<String> {
    let summary = phase.total.response.as_ref()?;
    let weak = summary.quantiles.iter().filter(|q| !q.quotable).map(|q| super::percentile(q.quantile));
    let weak: Vec<String> = weak.collect();
    (!weak.is_empty()).then(|| {
        format!(
            "{} rest on too few samples ({}) and are hardly more than the maximum",
            weak.join(", "),
            summary.samples
        )
    })
}

#[cfg(test)]
mod tests {
    use std::time::{Duration, UNIX_EPOCH};

    use super::super::{Builder, Generator, OperationCounts, PhaseFacts, ScenarioAsRun, Times};
    use super::*;
    use crate::recorder::Latency;

    /// A run of 60 s in which every tenth second is slow while the target flushes.
    fn stalling() -> Bundle {
        let mut builder = Builder::new(ScenarioAsRun::default(), 1, UNIX_EPOCH);
        builder.phase(&PhaseFacts {
            name: "run".to_owned(),
            kind: "run".to_owned(),
            measured: true,
            starts: Duration::ZERO,
            warmup: Duration::ZERO,
            duration: Duration::from_secs(60),
            arrival: Arrival::Open { process: "poisson".to_owned(), timer_us: 0, rate_per_s: 100.0 },
            connections: 10,
        });
        let mut whole = Latency::new();
        for second in 0..60 {
            let mut latency = Latency::new();
            let slow = second % 10 == 4;
            (0..100).for_each(|i| latency.record_ns((500 + i * 10) * if slow { 40_000 } else { 1_000 }));
            whole.merge(&latency);
            let line = SecondLine {
                phase: "run".to_owned(),
                operation: "put".to_owned(),
                second,
                sent: 100,
                completed: 100,
                ..SecondLine::default()
            };
            builder.second(&line, Times { response: Some(&latency), service: Some(&latency), lag: None });
            builder.telemetry(second, "target.rss_bytes", 1e8 + (second * 7 % 13) as f64);
            builder.telemetry(second, "target.flushes", if slow { 5.0 } else { 0.0 });
        }
        let counts = OperationCounts { planned: 6_000, sent: 6_000, completed: 6_000, ..Default::default() };
        builder.operation(
            "run",
            "put",
            &counts,
            Times { response: Some(&whole), service: Some(&whole), lag: None },
        );
        builder.finish(Duration::from_secs(60))
    }

    #[test]
    fn a_rhythm_two_kinds_and_steadiness_are_found_and_said() {
        let bundle = stalling();
        let text = bundle.result.findings.join("\n");
        assert!(
            text.contains("every 10 s p99 rises") && text.contains("target.flushes moves with it"),
            "{text}"
        );
        assert!(text.contains("service time of put is of two kinds"), "{text}");
        let phase = &bundle.result.phases[0];
        assert!(phase.steady.as_ref().unwrap().found, "{:?}", phase.steady);
        let uncertainty = phase.uncertainty.unwrap();
        assert!(uncertainty.completed_per_s.contains(100.0));
        let p99 = phase.total.response.as_ref().unwrap().quantile_us(0.99).unwrap();
        assert!(uncertainty.response_p99_us.unwrap().contains(p99), "{uncertainty:?} {p99}");
        assert!(bundle.result.hides.iter().any(|s| s.contains("p99.9")), "{:?}", bundle.result.hides);
    }

    #[test]
    fn a_closed_loop_whose_generator_is_busy_all_the_time_says_so() {
        let mut bundle = stalling();
        let says = |bundle: &Bundle| bundle.at_its_limit(&bundle.result.phases[0]).is_some();
        bundle.result.machine = Some(crate::Machine { cores: 2, ..crate::Machine::here() });
        bundle.result.generators = vec![Generator { threads: 32, cpu_s: None }];
        bundle.result.phases[0].cost.generator_cpu_percent = Some(185.0);
        assert!(!says(&bundle), "an open loop has a gate for it");
        bundle.result.phases[0].arrival = Arrival::Closed { concurrency: 32, pause_us: 0 };
        assert!(says(&bundle));
        bundle.result.phases[0].cost.generator_cpu_percent = Some(150.0);
        assert!(!says(&bundle), "32 threads on two processors");
        bundle.result.generators[0].threads = 1;
        assert!(says(&bundle));
    }

    #[test]
    fn looking_again_says_nothing_twice() {
        let mut bundle = stalling();
        let before = bundle.clone();
        bundle.analyse();
        assert_eq!(bundle, before);
    }
}
