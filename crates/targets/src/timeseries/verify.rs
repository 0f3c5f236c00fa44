//! Compares what a server has stored with what was written: the number of timelines, the number of points, and the
//! points of a random sample of timelines one by one.

use std::collections::BTreeSet;
use std::ops::Range;

use load::Result;
use load::dataset::Random;
use load::result::Check;

use super::reader::{Point, ReadBack};
use super::request_log::{Expected, RequestLog, RequestOutcome};
use super::timelines::{PointPosition, Timelines};
use crate::driver::Verdict;
use crate::limits::{TIMESERIES_COMPARED_MAX, TIMESERIES_METRICS_COUNTED};

/// The domains of the random numbers that choose timelines, metrics and cycles.
const TIMELINES: u64 = 1;
const METRICS: u64 = 2;
const CYCLES: u64 = 3;

/// A cell, and the server that has it.
pub(crate) struct Cell<'a> {
    pub(crate) phase: &'a str,
    pub(crate) timelines: &'a Timelines,
    pub(crate) written: &'a RequestLog,
    /// The timelines of the server before the cell.
    pub(crate) before: Option<u64>,
    /// The number of timelines to read back.
    pub(crate) sample: u64,
}

/// The differences of one timeline.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
struct Differences {
    compared: u64,
    missing: u64,
    wrong: u64,
    invented: u64,
}

impl Cell<'_> {
    /// Reads back and compares.
    pub(crate) fn verify(&self, server: &dyn ReadBack) -> Result<Verdict> {
        server.settle()?;
        let mut verdict = Verdict::default();
        self.count_timelines(server, &mut verdict)?;
        self.count_points(server, &mut verdict)?;
        self.compare_sample(server, &mut verdict)?;
        Ok(verdict)
    }

    fn count_timelines(&self, server: &dyn ReadBack, verdict: &mut Verdict) -> Result<()> {
        let phase = self.phase;
        let found = server.timelines(self.timelines)?;
        let (Some(found), Some(before)) = (found, self.before) else {
            let sentence =
                "the server offers no number of its timelines; they are counted in the sample alone";
            verdict.findings.push(format!("{phase}: {sentence}."));
            return Ok(());
        };
        let expected = self.written.timelines(self.timelines.count);
        verdict.checks.push(check(
            format!("new timelines ({phase})"),
            expected,
            found.saturating_sub(before),
        ));
        Ok(())
    }

    /// Counts all points, or those of some metrics if there are too many of them.
    fn count_points(&self, server: &dyn ReadBack, verdict: &mut Verdict) -> Result<()> {
        let (phase, timelines) = (self.phase, self.timelines);
        let until_ms = timelines.time_ms(self.cycles().end.saturating_sub(1));
        let of = |metric: u64| server.count(timelines, metric, until_ms);
        if timelines.metrics <= TIMESERIES_METRICS_COUNTED {
            let found = (0..timelines.metrics).map(of).sum::<Result<u64>>()?;
            verdict.checks.push(check(format!("points ({phase})"), self.written.total(), found));
            return Ok(());
        }
        let metrics = self.chosen(METRICS, TIMESERIES_METRICS_COUNTED, timelines.metrics);
        let found = metrics.iter().map(|metric| of(*metric)).sum::<Result<u64>>()?;
        let mut expected = Expected::default();
        for timeline in metrics.iter().flat_map(|metric| self.of_metric(*metric)) {
            let one = self.written.of_timeline(timeline, timelines.count, self.cycles());
            expected.stored += one.stored;
            expected.unknown += one.unknown;
        }
        let what = format!("points of {} of {} metrics ({phase})", metrics.len(), timelines.metrics);
        verdict.checks.push(check(what, expected, found));
        Ok(())
    }

    fn compare_sample(&self, server: &dyn ReadBack, verdict: &mut Verdict) -> Result<()> {
        let (phase, timelines) = (self.phase, self.timelines);
        let sample = self.chosen(TIMELINES, self.sample, timelines.count);
        let mut sum = Differences::default();
        for timeline in &sample {
            let cycles = self.compared_cycles(*timeline);
            if cycles.is_empty() {
                continue;
            }
            let (from_ms, until_ms) = (timelines.time_ms(cycles.start), timelines.time_ms(cycles.end - 1));
            let points = server.points(timelines, *timeline, from_ms, until_ms)?;
            sum.add(self.differences(*timeline, cycles, &points));
        }
        for (what, found) in [
            ("acknowledged points that are not stored", sum.missing),
            ("points with another value", sum.wrong),
            ("points that were never sent", sum.invented),
        ] {
            verdict.checks.push(Check::equal(format!("{what}, in the sample ({phase})"), 0, found));
        }
        verdict.findings.push(format!(
            "{phase}: {} points of {} timelines were read back and compared one by one.",
            sum.compared,
            sample.len()
        ));
        Ok(())
    }

    /// Compares the points of a timeline in some cycles.
    fn differences(&self, timeline: u64, cycles: Range<u64>, points: &[Point]) -> Differences {
        let mut found = Differences { compared: points.len() as u64, ..Differences::default() };
        let mut seen = BTreeSet::new();
        for (time_ms, value) in points {
            let cycle = self.timelines.cycle_at(*time_ms).filter(|cycle| cycles.contains(cycle));
            let sent = cycle.map(|cycle| PointPosition { timeline, cycle }).filter(|place| {
                self.written.fate(self.timelines.point(*place)) != RequestOutcome::NotSent
                    && seen.insert(place.cycle)
            });
            match sent {
                None => found.invented += 1,
                Some(place) if self.timelines.value(place).to_bits() == value.to_bits() => {}
                Some(_) => found.wrong += 1,
            }
        }
        let stored = |cycle: &u64| {
            self.written.fate(self.timelines.point(PointPosition { timeline, cycle: *cycle }))
                == RequestOutcome::Stored
        };
        found.missing = cycles.filter(stored).filter(|cycle| !seen.contains(cycle)).count() as u64;
        found
    }

    /// The cycles that the clients have begun.
    fn cycles(&self) -> Range<u64> {
        0..self.written.points_end().div_ceil(self.timelines.count)
    }

    /// The cycles of a timeline to compare: all of them, or as many as are compared at most, at a random place.
    fn compared_cycles(&self, timeline: u64) -> Range<u64> {
        let all = self.cycles();
        let more = all.end.saturating_sub(TIMESERIES_COMPARED_MAX);
        let first = Random::keyed(self.timelines.seed, CYCLES, timeline).below(more + 1);
        first..all.end.min(first + TIMESERIES_COMPARED_MAX)
    }

    fn of_metric(&self, metric: u64) -> impl Iterator<Item = u64> {
        (metric..self.timelines.count).step_by(self.timelines.metrics as usize)
    }

    /// `most` random numbers below `count`, or all of them.
    fn chosen(&self, domain: u64, most: u64, count: u64) -> BTreeSet<u64> {
        if most >= count {
            return (0..count).collect();
        }
        let mut random = Random::keyed(self.timelines.seed, domain, count);
        let mut chosen = BTreeSet::new();
        while (chosen.len() as u64) < most {
            chosen.insert(random.below(count));
        }
        chosen
    }
}

impl Differences {
    fn add(&mut self, other: Self) {
        self.compared += other.compared;
        self.missing += other.missing;
        self.wrong += other.wrong;
        self.invented += other.invented;
    }
}

fn check(what: String, expected: Expected, found: u64) -> Check {
    Check { what, expected: expected.text(), found: found.to_string(), passed: expected.allows(found) }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use super::super::request_log::{ClientRequests, Order, PhaseRequests};
    use super::super::timelines::example;
    use super::*;

    /// A server in memory.
    struct Memory {
        points: BTreeMap<(u64, i64), f64>,
        counts: bool,
    }

    impl Memory {
        fn with(timelines: &Timelines, points: u64) -> Self {
            let at = |point| {
                let place = timelines.place(point);
                ((place.timeline, timelines.time_ms(place.cycle)), timelines.value(place))
            };
            Self { points: (0..points).map(at).collect(), counts: true }
        }
    }

    impl ReadBack for Memory {
        fn timelines(&self, _: &Timelines) -> Result<Option<u64>> {
            let all: BTreeSet<u64> = self.points.keys().map(|(timeline, _)| *timeline).collect();
            Ok(self.counts.then_some(all.len() as u64))
        }

        fn count(&self, timelines: &Timelines, metric: u64, until_ms: i64) -> Result<u64> {
            let of =
                |(timeline, time): &&(u64, i64)| timelines.metric(*timeline) == metric && *time <= until_ms;
            Ok(self.points.keys().filter(of).count() as u64)
        }

        fn points(&self, _: &Timelines, timeline: u64, from_ms: i64, until_ms: i64) -> Result<Vec<Point>> {
            let range = self.points.range((timeline, from_ms)..=(timeline, until_ms));
            Ok(range.map(|((_, time), value)| (*time, *value)).collect())
        }
    }

    /// The names of failed checks after 8 requests of 5 points.
    fn failed(change: impl FnOnce(&Timelines, &mut Memory, &mut RequestLog)) -> Vec<String> {
        let timelines = example();
        let mut written = RequestLog::new(5);
        let order = Order { first: 0, clients: 1, requests: None };
        let clients = vec![ClientRequests { sent: 8, unknown: BTreeSet::new() }];
        written.add(PhaseRequests { order, clients });
        let mut memory = Memory::with(&timelines, 40);
        change(&timelines, &mut memory, &mut written);
        let cell = Cell { phase: "p", timelines: &timelines, written: &written, before: Some(0), sample: 10 };
        let verdict = cell.verify(&memory).unwrap();
        assert!(verdict.checks.len() >= 4, "{verdict:?}");
        let names = verdict.checks.into_iter().filter(|check| !check.passed).map(|check| check.what);
        names.collect()
    }

    #[test]
    fn a_server_with_all_points_passes() {
        assert_eq!(failed(|_, _, _| {}), Vec::<String>::new());
        assert_eq!(failed(|_, memory, _| memory.counts = false), Vec::<String>::new());
    }

    #[test]
    fn a_server_that_loses_one_point_is_caught() {
        let failed = failed(|timelines, memory, _| {
            assert!(memory.points.remove(&(7, timelines.time_ms(2))).is_some());
        });
        assert_eq!(failed, ["points (p)", "acknowledged points that are not stored, in the sample (p)"]);
    }

    #[test]
    fn another_value_a_point_too_many_and_a_timeline_too_few_are_caught() {
        let other = failed(|timelines, memory, _| {
            *memory.points.get_mut(&(7, timelines.time_ms(2))).unwrap() += 1e-9;
        });
        assert_eq!(other, ["points with another value, in the sample (p)"]);
        let more = failed(|timelines, memory, _| {
            memory.points.insert((7, timelines.time_ms(2) + 1), 1.0);
        });
        assert_eq!(more, ["points (p)", "points that were never sent, in the sample (p)"]);
        let fewer = failed(|_, memory, _| memory.points.retain(|(timeline, _), _| *timeline != 3));
        assert_eq!(fewer[..2], ["new timelines (p)", "points (p)"]);
    }

    #[test]
    fn points_without_an_acknowledgement_may_be_there_or_not() {
        for points in [35, 37, 40] {
            let failed = failed(|timelines, memory, written| {
                *memory = Memory::with(timelines, points);
                let order = Order { first: 0, clients: 1, requests: None };
                let clients = vec![ClientRequests { sent: 8, unknown: [7].into() }];
                written.add(PhaseRequests { order, clients });
            });
            assert_eq!(failed, Vec::<String>::new(), "{points}");
        }
    }
}
