//! The data of the page: few enough points for a browser, whatever the length of the run.

use std::collections::BTreeMap;

use load::result::{ALL, Bundle, Clock, Histograms, Key, Phase, RunResult, SecondLine, Timeline};
use load::statistics::Distribution;
use load::statistics::paired::{Better, Verdict};
use serde::Serialize;

use super::{LabelledBundle, SeriesAnswer};
use crate::compare;

/// The largest number of columns of the heat map, and of points of a line.
const POINTS_MAX: usize = 600;
/// The largest number of points of a percentile curve.
const CURVE_POINTS_MAX: usize = 400;
/// The kind of a phase that creates the data set.
const LOAD: &str = "load";
/// The smallest part of a line that must lie within the load of its phase for a rate.
const LOADED_SHARE_MIN: f64 = 0.5;
/// The rows of the heat map per decade of latency.
const ROWS_PER_DECADE: f64 = 12.0;

#[derive(Debug, Serialize)]
pub(super) struct Page<'a> {
    pub(super) title: String,
    pub(super) runs: Vec<Run<'a>>,
    /// The answers of series of runs: label and content of their files.
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

/// A point of the lines over time; times in milliseconds.
#[derive(Debug, Default, Serialize)]
struct Point {
    /// The middle of the point, seconds after the start of the run.
    t: f64,
    /// The index of its phase in the result. Lines end with their phase.
    phase: usize,
    /// `None` if most of the point lies outside of the load, such as while the last answers arrive: that would be no
    /// rate.
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

/// Counts by time and latency. The lower end of a row is 10^(row / per_decade) microseconds.
#[derive(Debug, Serialize)]
struct Heat {
    start: u64,
    step: u64,
    per_decade: f64,
    /// For each column, the non-empty rows with their counts.
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
    /// The verdict of `compare` on each run's side against the first one. Only it gives a ratio a colour.
    verdicts: Vec<Verdict>,
    /// Whether all of them have enough samples.
    quotable: bool,
}

pub(super) fn page<'a>(runs: &'a [LabelledBundle], answers: &'a [SeriesAnswer]) -> Page<'a> {
    let mut names: Vec<&str> = runs.iter().map(|run| run.bundle.result.scenario.name.as_str()).collect();
    names.dedup();
    let bundles: Vec<&Bundle> = runs.iter().map(|run| &run.bundle).collect();
    let several = runs.len() > 1;
    Page {
        title: names.join(", "),
        runs: runs.iter().map(run).collect(),
        answers: answers.iter().map(|answered| (answered.label.as_str(), &answered.answer)).collect(),
        figures: if several { figures(runs, &bundles) } else { Vec::new() },
        differences: if several { compare::differing(&bundles) } else { Vec::new() },
    }
}

fn figures(runs: &[LabelledBundle], bundles: &[&Bundle]) -> Vec<FigureRow> {
    let parts = compare::parts(bundles);
    let side = |number: usize| -> Vec<&Bundle> {
        runs.iter().filter(|run| run.side == number).map(|run| &run.bundle).collect()
    };
    let first = runs.first().map(|run| run.side).unwrap_or_default();
    let verdict = |kind: &compare::FigureKind, part: &compare::Part, run: &LabelledBundle| {
        // The runs of one side have the same setting, so there is no verdict between them.
        let figure =
            (run.side != first).then(|| compare::figure_of(kind, part, &side(first), &side(run.side)));
        figure.flatten().map_or(Verdict::CannotTell, |figure| figure.verdict)
    };
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
                verdicts: runs.iter().map(|run| verdict(kind, part, run)).collect(),
                quotable: values.iter().flatten().all(|value| value.is_quotable),
                values: values.into_iter().map(|value| Some(value?.value)).collect(),
            })
        })
        .collect()
}

fn run(run: &LabelledBundle) -> Run<'_> {
    let bundle = &run.bundle;
    let result = &bundle.result;
    let validity = result.validity();
    let main = bundle.main_phase().and_then(|main| result.phases.iter().position(|phase| phase == main));
    let mut configuration = BTreeMap::new();
    compare::flatten("", &result.scenario.configuration, &mut configuration);
    Run {
        label: &run.label,
        word: validity.word(),
        quotable: validity.is_quotable(),
        reasons: validity.reasons().map(str::to_owned).collect(),
        result,
        main,
        lines: lines(&bundle.seconds, &result.phases),
        curves: main.map(|main| curves(&bundle.histograms, &result.phases[main].name)).unwrap_or_default(),
        heat: heat(&bundle.histograms, &result.phases),
        telemetry: telemetry(bundle),
        configuration: configuration
            .into_iter()
            .map(|(path, value)| (path.trim_start_matches('.').to_owned(), value))
            .collect(),
    }
}

/// The lines of the sum over all classes. With too many seconds, several of one phase form a point: rates are averaged
/// over the part with load, and the worst latencies stay.
fn lines(seconds: &[SecondLine], phases: &[Phase]) -> Vec<Point> {
    let all: Vec<&SecondLine> = seconds.iter().filter(|line| line.operation == ALL).collect();
    let group = all.len().div_ceil(POINTS_MAX).max(1);
    let mut by_phase: BTreeMap<usize, Vec<&SecondLine>> = BTreeMap::new();
    for line in all {
        let place = phases.iter().position(|phase| phase.name == line.phase).unwrap_or(phases.len());
        by_phase.entry(place).or_default().push(line);
    }
    let points = by_phase.iter().flat_map(|(place, lines)| {
        lines.chunks(group).map(move |lines| point(lines, *place, phases.get(*place)))
    });
    points.collect()
}

fn point(lines: &[&SecondLine], place: usize, phase: Option<&Phase>) -> Point {
    let worst = |pick: fn(&SecondLine) -> Option<f64>| {
        lines.iter().filter_map(|line| pick(line)).max_by(f64::total_cmp).map(|us| us / 1e3)
    };
    let loaded: Vec<(f64, f64)> = lines
        .iter()
        .map(|line| (loaded_s(line, phase), line))
        // The rate over a short rest of a second would be unreliable.
        .filter(|(loaded_s, line)| *loaded_s >= LOADED_SHARE_MIN * line.length_s)
        .map(|(loaded_s, line)| (loaded_s, line.completed as f64))
        .collect();
    let (loaded_s, completed) = loaded.iter().fold((0.0, 0.0), |sum, next| (sum.0 + next.0, sum.1 + next.1));
    let (first, last) = (lines[0], lines[lines.len() - 1]);
    Point {
        t: f64::midpoint(first.second as f64, last.second as f64 + last.length_s),
        phase: place,
        rate: (loaded_s > 0.0).then(|| completed / loaded_s),
        errors: lines.iter().map(|line| line.errors).sum(),
        p50: worst(|line| line.response_p50_us.or(line.service_p50_us)),
        p99: worst(|line| line.response_p99_us.or(line.service_p99_us)),
        max: worst(|line| line.response_max_us),
        lag: worst(|line| line.lag_p99_us),
    }
}

/// The part of a line within the load of its phase, seconds. Line numbers count from the whole second in which the load
/// began.
fn loaded_s(line: &SecondLine, phase: Option<&Phase>) -> f64 {
    let Some(phase) = phase else { return line.length_s };
    let end = phase.starts_s.floor() + phase.warmup_s + phase.duration_s;
    (end - line.second as f64).clamp(0.0, line.length_s)
}

/// The curves of the total on every clock, and of each class on its first clock.
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
    // A level needs only its two ends.
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

/// The heat map of all phases that do not load data: load phases are much faster, and at another time.
fn heat(histograms: &Histograms, phases: &[Phase]) -> Option<Heat> {
    let mut seconds: BTreeMap<u64, Distribution> = BTreeMap::new();
    let has_response = histograms.iter().any(|(key, _)| key.operation == ALL && key.clock == Clock::Response);
    let clock = if has_response { Clock::Response } else { Clock::Service };
    let loads = |name: &str| phases.iter().any(|phase| phase.name == name && phase.kind == LOAD);
    let drawn =
        |(key, _): &(&Key, &Timeline)| key.operation == ALL && key.clock == clock && !loads(&key.phase);
    for (_, timeline) in histograms.iter().filter(drawn) {
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
    use load::result::example::example;

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
        assert_eq!(last_of(|point| point.rate), 35.5, "36.2 s is the end of the load");
        assert_eq!(last_of(|point| point.p99), 37.5, "what was outstanding is answered after it");
    }

    #[test]
    fn curves_end_at_the_maximum_and_the_heat_map_holds_every_sample() {
        let bundle = example();
        let curves = curves(&bundle.histograms, "run");
        let all = curves.iter().find(|curve| curve.operation == ALL && curve.clock == "response").unwrap();
        let max = bundle.result.phases[0].total.response.as_ref().unwrap().max_us.unwrap();
        assert_eq!(all.points.last().unwrap().1, max / 1e3);
        assert!(all.points.is_sorted_by(|a, b| a.0 < b.0 && a.1 <= b.1), "{:?}", all.points);
        let heat = heat(&bundle.histograms, &bundle.result.phases).unwrap();
        let total: u64 = heat.columns.iter().flatten().map(|(_, count)| count).sum();
        assert_eq!((heat.columns.len(), total), (2, 400));
    }

    #[test]
    fn a_part_of_a_second_at_the_end_is_not_a_drop_and_phases_have_points_of_their_own() {
        let mut phases = vec![example().result.phases[0].clone(), example().result.phases[0].clone()];
        for (phase, name, starts_s) in [(0, "load", 0.0), (1, "run", 4.0)] {
            let phase = &mut phases[phase];
            (phase.name, phase.starts_s, phase.warmup_s, phase.duration_s) =
                (name.to_owned(), starts_s, 0.0, 3.6);
        }
        let line = |phase: &str, second, completed| SecondLine {
            phase: phase.to_owned(),
            operation: ALL.to_owned(),
            second,
            length_s: 1.0,
            completed,
            ..SecondLine::default()
        };
        let seconds: Vec<SecondLine> = ["load", "run"]
            .into_iter()
            .zip([0, 4])
            .flat_map(|(phase, from)| {
                (0..4).map(move |second| line(phase, from + second, if second == 3 { 60 } else { 100 }))
            })
            .collect();
        let points = lines(&seconds, &phases);
        assert!(points.iter().all(|point| (point.rate.unwrap() - 100.0).abs() < 1e-6), "{points:?}");
        assert_eq!(points.iter().map(|point| point.phase).collect::<Vec<_>>(), [0, 0, 0, 0, 1, 1, 1, 1]);
        phases[1].duration_s = 3.2;
        assert_eq!(lines(&seconds, &phases).last().unwrap().rate, None, "a fifth of a second is not a rate");
    }

    #[test]
    fn a_ratio_has_the_verdict_of_compare() {
        use load::result::example::example_with;
        let labelled = |side: usize, bundle| LabelledBundle { label: side.to_string(), side, bundle };
        let single = [labelled(0, example()), labelled(1, example_with(9, &[900]))];
        let rows = page(&single, &[]).figures;
        assert!(rows.iter().flat_map(|row| &row.verdicts).all(|verdict| *verdict == Verdict::CannotTell));
        let several = [
            labelled(0, example_with(7, &[180])),
            labelled(0, example_with(8, &[181])),
            labelled(0, example_with(9, &[182])),
            labelled(1, example_with(7, &[900])),
            labelled(1, example_with(8, &[901])),
            labelled(1, example_with(9, &[902])),
        ];
        let sides = [0, 3]
            .map(|from| several[from..from + 3].iter().map(|run| run.bundle.clone()).collect::<Vec<_>>());
        let told = compare::compare(&sides[0], &sides[1]).unwrap();
        for row in page(&several, &[]).figures {
            let figure =
                told.figures.iter().find(|figure| figure.name == row.name && figure.part == row.part);
            let expected = figure.map_or(Verdict::CannotTell, |figure| figure.verdict);
            assert_eq!(row.verdicts, [[Verdict::CannotTell; 3], [expected; 3]].concat(), "{}", row.name);
        }
        assert!(told.figures.iter().any(|figure| figure.verdict == Verdict::Worse), "{told}");
    }
}
