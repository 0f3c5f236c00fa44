//! Collects the results of a run in a bundle.

use std::time::{Duration, Instant, SystemTime};

use load::engine::{Ended, Load, ReopenTrigger, Segment, SegmentOutcome};
use load::machine::processors;
use load::recorder::Second;
use load::result::{Arrival, Builder, Bundle, Gate, Generator, PhaseFacts};
use load::sampling::Collected;
use load::scenario::{Gates, PhaseKind};
use load::schedule::Arrivals;
use targets::driver::Verdict;

use super::gates::{self, Facts};
use super::meter::Metered;

/// The smallest difference of the clocks that counts as a step. A synchronised clock is adjusted by at most 500 ppm.
const CLOCK_STEP_MIN: Duration = Duration::from_millis(100);

/// The reason in the result of a run that was stopped.
pub(super) const INTERRUPTED: &str = "interrupted (Ctrl-C)";

/// The bundle of a run in progress.
pub(super) struct ResultCollector {
    builder: Builder,
    classes: Vec<String>,
    segments: usize,
    threads: u32,
    generator_cpu_s: Option<f64>,
}

pub(super) struct FinishedSegment<'a> {
    pub(super) segment: &'a Segment,
    pub(super) kind: PhaseKind,
    pub(super) threads: u32,
    pub(super) connections: u32,
    /// The number of processes that share the load.
    pub(super) parts: u32,
    /// The start of the load, after the start of the run.
    pub(super) starts: Duration,
    /// The end of the load, after the start of the run.
    pub(super) ends: Duration,
    pub(super) outcome: &'a SegmentOutcome,
    pub(super) metered: Option<&'a Metered>,
    pub(super) gates: &'a Gates,
    pub(super) loads: &'a [Load],
}

impl ResultCollector {
    pub(super) fn new(builder: Builder, classes: Vec<String>) -> Self {
        Self { builder, classes, segments: 0, threads: 0, generator_cpu_s: None }
    }

    /// Sets second 0 of the run.
    pub(super) fn began(&mut self, wall: SystemTime) {
        self.builder.started(wall);
    }

    /// Whether no segment has finished yet.
    pub(super) fn is_empty(&self) -> bool {
        self.segments == 0
    }

    pub(super) fn fault(&mut self, at: Duration, what: String) {
        self.builder.fault(at, what);
    }

    /// Adds one second of a segment that began `starts` after the run.
    pub(super) fn second(&mut self, phase: &str, starts: Duration, second: &Second, rss: Option<u64>) {
        let offset_s = starts.as_secs();
        self.builder.recorded_second(phase, &self.classes, second, offset_s);
        if let Some(bytes) = rss {
            self.builder.telemetry(offset_s + second.index, "target.rss_bytes", bytes as f64);
        }
    }

    /// Adds the samples of a phase that began `starts` after the run.
    pub(super) fn collected(&mut self, starts: Duration, collected: Collected) {
        for (name, series) in collected.series {
            for (second, value) in series {
                self.builder.telemetry(starts.as_secs() + second, &name, value);
            }
        }
        for note in collected.notes {
            self.builder.finding(format!("Not read each second: {note}"));
        }
    }

    pub(super) fn segment(&mut self, finished: &FinishedSegment<'_>) {
        self.segments += 1;
        let outcome = finished.outcome;
        let name = &finished.segment.name;
        self.builder.phase(&PhaseFacts {
            name: name.clone(),
            kind: match finished.kind {
                PhaseKind::Load => "load",
                PhaseKind::Warmup => "warmup",
                PhaseKind::Run => "run",
            }
            .to_owned(),
            measured: is_measured(finished.kind),
            starts: finished.starts,
            warmup: finished.segment.warmup,
            duration: outcome.measured,
            arrival: arrival(finished.loads, finished.connections, finished.parts),
            connections: finished.connections,
        });
        self.builder.recorder(name, &self.classes, &outcome.recorder);
        if let Some(metered) = finished.metered {
            self.builder.cost(name, metered.cost.clone());
            if is_measured(finished.kind) {
                self.generator_cpu_s = Some(self.generator_cpu_s.unwrap_or(0.0) + metered.generator_cpu_s);
            }
        }
        self.threads = self.threads.max(finished.threads);
        self.judge(finished);
        self.record_end(finished);
    }

    fn judge(&mut self, finished: &FinishedSegment<'_>) {
        let total = finished.outcome.recorder.total();
        let facts = Facts {
            total: &total,
            sends: finished.outcome.recorder.sends(),
            loads: finished.loads,
            metered: finished.metered,
            threads: finished.threads.min(processors()),
        };
        // A failed load phase leaves no data set for the next phases. Its lag does not matter.
        let counts_in = |gate: &Gate| is_measured(finished.kind) || gate.name == "error_share";
        for mut gate in gates::judge(&facts, finished.gates).into_iter().filter(counts_in) {
            gate.name = format!("{} {}", finished.segment.name, gate.name);
            self.builder.gate(gate);
        }
    }

    fn record_end(&mut self, finished: &FinishedSegment<'_>) {
        let outcome = finished.outcome;
        let lost_at = outcome.first_loss_s.map(|s| finished.starts + Duration::from_secs_f64(s));
        let end = finished.ends;
        match outcome.ended {
            Ended::AllLost => {
                self.builder.fault(
                    lost_at.unwrap_or(end),
                    format!("the server closed all connections{}", loss_text(outcome)),
                );
            }
            Ended::Silent => {
                self.builder.fault(end, "the server answered nothing any more; the load was given up");
            }
            Ended::Stopped => self.interrupted(end),
            Ended::Planned | Ended::Finished => {
                if let Some(at) = lost_at {
                    self.builder.fault(at, format!("connections were lost{}", loss_text(outcome)));
                }
            }
        }
    }

    pub(super) fn interrupted(&mut self, at: Duration) {
        self.builder.partial(at, INTERRUPTED);
    }

    pub(super) fn verified(&mut self, verdict: Verdict) {
        for check in verdict.checks {
            self.builder.check(&check.what, check.expected, check.found, check.passed);
        }
        for finding in verdict.findings {
            self.builder.finding(finding);
        }
    }

    pub(super) fn finish(self, began: Instant, began_wall: SystemTime) -> Bundle {
        let (builder, took) = self.complete(began, began_wall);
        builder.finish(took)
    }

    /// Finishes the bundle of generator `number` of several, from 1.
    pub(super) fn finish_part(self, began: Instant, began_wall: SystemTime, number: u32) -> Bundle {
        let (builder, took) = self.complete(began, began_wall);
        builder.finish_part(took, number)
    }

    fn complete(mut self, began: Instant, began_wall: SystemTime) -> (Builder, Duration) {
        let took = began.elapsed();
        self.builder.generator(Generator { threads: self.threads, cpu_s: self.generator_cpu_s });
        if let Some(sentence) = clock_step(began_wall, SystemTime::now(), took) {
            self.builder.finding(sentence);
        }
        (self.builder, took)
    }
}

/// Whether the figures of such a phase are the result of the run.
fn is_measured(kind: PhaseKind) -> bool {
    kind == PhaseKind::Run
}

/// The most frequent reason for lost connections, as text.
fn loss_text(outcome: &SegmentOutcome) -> String {
    let errors = &outcome.recorder.unclassed().errors;
    let lost = errors.iter().filter(|(what, _)| what.starts_with("connection lost"));
    lost.max_by_key(|(_, count)| **count)
        .map(|(what, count)| format!(" ({count} x {what})"))
        .unwrap_or_default()
}

/// The arrival of this process: with several processes, each has its part of the rates.
fn arrival(loads: &[Load], connections: u32, parts: u32) -> Arrival {
    let mut rate_per_s = 0.0;
    let mut process = None;
    let mut complete = None;
    let mut differ = false;
    let mut is_idle = false;
    let mut timer_us = 0;
    for load in loads {
        match load {
            Load::Open { rate, arrivals, timer_us: own_us, .. } => {
                rate_per_s += rate;
                timer_us = timer_us.max(*own_us);
                process = Some(if *arrivals == Arrivals::Fixed { "fixed" } else { "poisson" });
            }
            Load::Reopen { when: ReopenTrigger::Scheduled { rate, arrivals, .. }, .. } => {
                rate_per_s += rate;
                process = Some(if *arrivals == Arrivals::Fixed { "fixed" } else { "poisson" });
            }
            Load::Reopen { when: ReopenTrigger::Once, .. } => process = Some("all at once"),
            Load::Reopen { when: ReopenTrigger::Again, .. } => complete = Some((1, 0)),
            Load::Sample { every, over } => {
                let all = f64::from(connections) * f64::from(parts);
                rate_per_s += all / f64::from(*every) / over.as_secs_f64().max(1e-9);
                process = Some("one of each sampled connection");
            }
            Load::Closed { window, pause } => {
                let pause_us = u32::try_from(pause.as_micros()).unwrap_or(u32::MAX);
                let one = (*window as u64, pause_us);
                differ |= complete.is_some_and(|known| known != one);
                complete = Some(one);
            }
            Load::Idle => is_idle = true,
        }
    }
    match (process, complete) {
        (Some(process), _) => {
            Arrival::Open { process: process.to_owned(), timer_us, rate_per_s: rate_per_s / f64::from(parts) }
        }
        // Idle connections have no operation in flight.
        (None, Some(_)) if differ || is_idle => Arrival::Loops,
        (None, Some((window, pause_us))) => {
            Arrival::Closed { concurrency: window * u64::from(connections), pause_us }
        }
        (None, None) => Arrival::Open { process: "idle".to_owned(), timer_us: 0, rate_per_s: 0.0 },
    }
}

/// A finding if the wall clock and the monotonic clock disagree about the length of the run.
fn clock_step(began: SystemTime, now: SystemTime, took: Duration) -> Option<String> {
    let (by, direction) = match now.duration_since(began) {
        Ok(wall) if wall > took => (wall - took, "forward"),
        Ok(wall) => (took - wall, "back"),
        Err(error) => (took + error.duration(), "back"),
    };
    (by >= CLOCK_STEP_MIN).then(|| {
        format!(
            "The wall clock was set {direction} by {:.1} s during the run. Latencies use the monotonic clock and are right; \
             times of day in this bundle are those at its begin.",
            by.as_secs_f64()
        )
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn loops_of_one_kind_have_a_concurrency_and_others_are_loops_all_the_same() {
        let slow = Load::Closed { window: 2, pause: Duration::from_millis(500) };
        let quick = Load::Closed { window: 2, pause: Duration::ZERO };
        assert_eq!(arrival(&[slow, slow], 10, 1), Arrival::Closed { concurrency: 20, pause_us: 500_000 });
        assert_eq!(arrival(&[slow, quick], 10, 1), Arrival::Loops);
        assert_eq!(
            arrival(&[slow, Load::Idle], 10, 1),
            Arrival::Loops,
            "some connections have nothing in flight"
        );
        assert!(Arrival::Loops.is_closed());
    }

    #[test]
    fn steps_of_the_wall_clock_are_seen_in_both_directions() {
        let began = SystemTime::UNIX_EPOCH + Duration::from_secs(1_000_000);
        let took = Duration::from_secs(60);
        let at = |s: i64| {
            let now = began + took;
            if s < 0 {
                now - Duration::from_secs(s.unsigned_abs())
            } else {
                now + Duration::from_secs(s.unsigned_abs())
            }
        };
        assert_eq!(clock_step(began, at(0), took), None);
        assert!(clock_step(began, at(3_600), took).unwrap().contains("forward by 3600.0 s"));
        assert!(clock_step(began, at(-3), took).unwrap().contains("back by 3.0 s"));
        assert!(
            clock_step(began, at(-3_600), took).unwrap().contains("back by 3600.0 s"),
            "before the begin"
        );
    }
}
