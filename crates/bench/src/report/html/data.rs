//! What the page draws: few enough points for a browser, whatever the length of the run.

use std::collections::BTreeMap;

use serde::Serialize;

use super::{Answered, Labelled};
use crate::compare;
use crate::result::{ALL, Bundle, Clock, Distribution, Histograms, Phase, RunResult, SecondLine};
use crate::statistics::paired::Better;

/// Columns of the heat map and points of a line at most.
const POINTS_MAX: usize = 600;
/// Points of a percentile curve at most.
const CURVE_POINTS_MAX: usize = 400;
/// Rows of the heat map per decade of latency.
const ROWS_PER_DECADE: f64 = 12.0;

#[derive(Debug, Serialize)]
pub(super) struct Page<'a> {
    pub(super) title: String,
    pub(super) runs: Vec<Run<'a>>,
    /// What the series of runs came to: label and content of their files.
    answers: Vec<(&'a str, &'a serde_json::Value)>,
    /// Figures side by side; empty for one run.
    figures: Vec<FigureRow>,
    /// Settings that differ: path and one value per run.
    differences: Vec<(String, Vec<String>)>,
}

#[derive(Debug, Serialize)]
pub(super) struct Run<'a> {
    label: &'a str,
    word: &'static str,
    pub(super) quotable: bool,
    reasons: Vec<String>,
    result: &'a RunResult,
    main: Option<usize>,
    lines: Vec<Point>,
    curves: Vec<Curve>,
    heat: Option<Heat>,
    telemetry: Vec<Series>,
    configuration: Vec<(String, String)>,
}

/// One step of the lines over time; times in milliseconds.
#[derive(Debug, Default, Serialize)]
struct Point {
    t: f64,
    /// `None` while answers of a load that has ended still come in: that is no rate.
    rate: Option<f64>,
    errors: u64,
    p50: Option<f64>,
    p99: Option<f64>,
    max: Option<f64>,
    lag: Option<f64>,
}

/// A percentile curve: 1 / (1 - q) and milliseconds.
#[derive(Debug, Serialize)]
struct Curve {
    operation: String,
    clock: String,
    samples: u64,
    points: Vec<(f64, f64)>,
}

/// Counts by time and latency. A row's lower end is 10^(row / per_decade) microseconds.
#[derive(Debug, Serialize)]
struct Heat {
    start: u64,
    step: u64,
    per_decade: f64,
    /// For each column the rows that hold something, with their counts.
    columns: Vec<Vec<(u32, u64)>>,
}

#[derive(Debug, Serialize)]
struct Series {
    name: String,
    points: Vec<(u64, f64)>,
}

#[derive(Debug, Serialize)]
struct FigureRow {
    name: &'static str,
    /// The phase, or the class of operation in it.
    part: String,
    higher_is_better: bool,
    margin: f64,
    values: Vec<Option<f64>>,
    /// Whether enough samples stand behind all of them.
    quotable: bool,
}

pub(super) fn page<'a>(runs: &'a [Labelled], answers: &'a [Answered]) -> Page<'a> {
    let mut names: Vec<&str> = runs.iter().map(|run| run.bundle.result.scenario.name.as_str()).collect();
    names.dedup();
    let bundles: Vec<&Bundle> = runs.iter().map(|run| &run.bundle).collect();
    let several = runs.len() > 1;
    Page {
        title: names.join(", "),
        runs: runs.iter().map(run).collect(),
        answers: answers.iter().map(|answered| (answered.label.as_str(), &answered.answer)).collect(),
        figures: if several { figures(&bundles) } else { Vec::new() },
        differences: if several { compare::differing(&bundles) } else { Vec::new() },
    }
}

fn figures(bundles: &[&Bundle]) -> Vec<FigureRow> {
    let parts = compare::parts(bundles);
    compare::KINDS
        .iter()
        .flat_map(|kind| parts.iter().map(move |part| (kind, part)))
        .filter_map(|(kind, part)| {
            let values: Vec<Option<compare::Value>> =
                bundles.iter().map(|bundle| kind.of(part, bundle)).collect();
            values.iter().any(Option::is_some).then(|| FigureRow {
                name: kind.name,
                part: part.name(),
                higher_is_better: kind.better == Better::Higher,
                margin: kind.margin,
                quotable: values.iter().flatten().all(|value| value.is_quotable),
                values: values.into_iter().map(|value| Some(value?.value)).collect(),
            })
        })
        .collect()
}

fn run(run: &Labelled) -> Run<'_> {
    let bundle = &run.bundle;
    let result = &bundle.result;
    let standing = result.standing();
    let main = bundle.main_phase().and_then(|main| result.phases.iter().position(|phase| phase == main));
    let mut configuration = BTreeMap::new();
    compare::flatten("", &result.scenario.configuration, &mut configuration);
    Run {
        label: &run.label,
        word: standing.word(),
        quotable: standing.is_quotable(),
        reasons: standing.reasons().map(str::to_owned).collect(),
        result,
        main,
        lines: lines(&bundle.seconds, &result.phases),
        curves: main.map(|main| curves(&bundle.histograms, &result.phases[main].name)).unwrap_or_default(),
        heat: heat(&bundle.histograms),
        telemetry: telemetry(bundle),
        configuration: configuration
            .into_iter()
            .map(|(path, value)| (path.trim_start_matches('.').to_owned(), value))
            .collect(),
    }
}

/// The sum over all classes, several seconds to a point where there are too many: rates are averaged, of latencies the
/// worst stays.
fn lines(seconds: &[SecondLine], phases: &[Phase]) -> Vec<Point> {
    let ended = |line: &SecondLine| {
        let phase = phases.iter().find(|phase| phase.name == line.phase);
        phase.is_some_and(|phase| line.second as f64 + 0.5 > phase.ends_s())
    };
    let all: Vec<&SecondLine> = seconds.iter().filter(|line| line.operation == ALL).collect();
    let group = all.len().div_ceil(POINTS_MAX).max(1);
    all.chunks(group)
        .map(|lines| {
            let worst = |pick: fn(&SecondLine) -> Option<f64>| {
                lines.iter().filter_map(|line| pick(line)).max_by(f64::total_cmp).map(|us| us / 1e3)
            };
            let length: f64 = lines.iter().map(|line| line.length_s).sum();
            Point {
                t: lines[0].second as f64,
                rate: (!lines.iter().any(|line| ended(line)))
                    .then(|| lines.iter().map(|line| line.completed as f64).sum::<f64>() / length.max(1e-9)),
                errors: lines.iter().map(|line| line.errors).sum(),
                p50: worst(|line| line.response_p50_us.or(line.service_p50_us)),
                p99: worst(|line| line.response_p99_us.or(line.service_p99_us)),
                max: worst(|line| line.response_max_us),
                lag: worst(|line| line.lag_p99_us),
            }
        })
        .collect()
}

/// Curves of the total on every clock and of each class on the first clock it has.
fn curves(histograms: &Histograms, phase: &str) -> Vec<Curve> {
    histograms
        .iter()
        .filter(|(key, _)| key.phase == phase && (key.operation == ALL || key.clock == Clock::Response))
        .filter(|(_, timeline)| !timeline.total.is_empty())
        .map(|(key, timeline)| Curve {
            operation: key.operation.clone(),
            clock: key.clock.to_string(),
            samples: timeline.total.samples(),
            points: curve(&timeline.total),
        })
        .collect()
}

fn curve(distribution: &Distribution) -> Vec<(f64, f64)> {
    let samples = distribution.samples() as f64;
    let decades = samples.max(10.0).log10();
    let mut points: Vec<(f64, f64)> = (0..=CURVE_POINTS_MAX)
        .map(|step| {
            let inverse = 10_f64.powf(decades * step as f64 / CURVE_POINTS_MAX as f64);
            (inverse, distribution.quantile_us(1.0 - 1.0 / inverse) as f64 / 1e3)
        })
        .collect();
    // Along a level only its two ends are needed.
    let values: Vec<f64> = points.iter().map(|(_, value)| *value).collect();
    let mut index = 0;
    points.retain(|_| {
        let inner = index > 0
            && index + 1 < values.len()
            && values[index - 1] == values[index]
            && values[index] == values[index + 1];
        index += 1;
        !inner
    });
    points
}

fn heat(histograms: &Histograms) -> Option<Heat> {
    let mut seconds: BTreeMap<u64, Distribution> = BTreeMap::new();
    let has_response = histograms.iter().any(|(key, _)| key.operation == ALL && key.clock == Clock::Response);
    let clock = if has_response { Clock::Response } else { Clock::Service };
    for (_, timeline) in histograms.iter().filter(|(key, _)| key.operation == ALL && key.clock == clock) {
        for (second, distribution) in &timeline.seconds {
            seconds.entry(*second).or_default().merge(distribution);
        }
    }
    let (first, last) = (*seconds.keys().next()?, *seconds.keys().next_back()?);
    let step = (last + 1 - first).div_ceil(POINTS_MAX as u64).max(1);
    let mut columns = vec![BTreeMap::new(); ((last - first) / step + 1) as usize];
    for (second, distribution) in &seconds {
        let column = &mut columns[((second - first) / step) as usize];
        for (value, count) in distribution.buckets() {
            let row = ((*value as f64).log10() * ROWS_PER_DECADE) as u32;
            *column.entry(row).or_insert(0) += count;
        }
    }
    let columns = columns.into_iter().map(|column| column.into_iter().collect()).collect();
    Some(Heat { start: first, step, per_decade: ROWS_PER_DECADE, columns })
}

fn telemetry(bundle: &Bundle) -> Vec<Series> {
    bundle
        .telemetry
        .names()
        .map(|name| {
            let points: Vec<(u64, f64)> = bundle.telemetry.series(name).collect();
            let stride = points.len().div_ceil(POINTS_MAX).max(1);
            Series { name: name.to_owned(), points: points.into_iter().step_by(stride).collect() }
        })
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::result::tests::example;

    #[test]
    fn a_long_run_has_few_points_and_loses_no_count() {
        let seconds: Vec<SecondLine> = (0..7_200)
            .map(|second| SecondLine {
                operation: ALL.to_owned(),
                second,
                length_s: 1.0,
                completed: 10,
                errors: 1,
                response_p99_us: Some(if second == 5_000 { 9e6 } else { 1e3 }),
                ..SecondLine::default()
            })
            .collect();
        let lines = lines(&seconds, &[]);
        assert!(lines.len() <= POINTS_MAX);
        assert_eq!(lines.iter().map(|point| point.errors).sum::<u64>(), 7_200);
        assert!(lines.iter().all(|point| (point.rate.unwrap() - 10.0).abs() < 1e-9));
        assert_eq!(
            lines.iter().filter(|point| point.p99 == Some(9_000.0)).count(),
            1,
            "a stall stays visible"
        );
    }

    #[test]
    fn rate_and_latency_are_drawn_up_to_the_end_of_the_load_whatever_was_warm_up() {
        let mut phase = example().result.phases[0].clone();
        (phase.starts_s, phase.warmup_s, phase.duration_s) = (1.2, 5.0, 30.0);
        let second = |second| SecondLine {
            phase: phase.name.clone(),
            operation: ALL.to_owned(),
            second,
            length_s: 1.0,
            completed: 10,
            response_p99_us: Some(1e3),
            ..SecondLine::default()
        };
        let seconds: Vec<SecondLine> = (1..38).map(second).collect();
        let lines = lines(&seconds, &[phase]);
        let last_of =
            |pick: fn(&Point) -> Option<f64>| lines.iter().rev().find(|p| pick(p).is_some()).unwrap().t;
        assert_eq!(last_of(|point| point.rate), 35.0, "36.2 s is the end of the load");
        assert_eq!(last_of(|point| point.p99), 37.0, "what was outstanding is answered after it");
    }

    #[test]
    fn curves_end_at_the_maximum_and_the_heat_map_holds_every_sample() {
        let bundle = example();
        let curves = curves(&bundle.histograms, "run");
        let all = curves.iter().find(|curve| curve.operation == ALL && curve.clock == "response").unwrap();
        let max = bundle.result.phases[0].total.response.as_ref().unwrap().max_us.unwrap();
        assert_eq!(all.points.last().unwrap().1, max / 1e3);
        assert!(all.points.is_sorted_by(|a, b| a.0 < b.0 && a.1 <= b.1), "{:?}", all.points);
        let heat = heat(&bundle.histograms).unwrap();
        let total: u64 = heat.columns.iter().flatten().map(|(_, count)| count).sum();
        assert_eq!((heat.columns.len(), total), (2, 400));
    }
}
