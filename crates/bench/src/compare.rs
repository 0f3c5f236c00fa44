//! Compares bundles of one scenario: what differs in how they were run, and by what factor their figures differ.
//!
//! Two single runs give a ratio without an interval between runs; how they would differ if nothing had changed is not
//! known, so the verdict on them is "cannot tell" unless several bundles of each side are given. `ab` measures what
//! this can only estimate.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt;

use serde_json::Value;

use crate::result::{Bundle, Phase, Summary};
use crate::statistics::Interval;
use crate::statistics::paired::{Better, P99_MARGIN, THROUGHPUT_MARGIN, Verdict, verdict, welch};

const CONFIDENCE: f64 = 0.95;
/// Change of a median or of CPU per operation that counts as none.
const MEDIAN_MARGIN: f64 = 0.03;

/// Bundles cannot be compared.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum CompareError {
    /// They are not of one scenario.
    #[error("`{0}` and `{1}` are different scenarios; their figures do not say anything about each other")]
    Scenarios(String, String),
    /// One side is empty.
    #[error("two bundles are needed, or several of each side")]
    Empty,
}

/// One figure of both sides.
#[derive(Debug, Clone, PartialEq)]
pub struct Figure {
    /// What it is, with its unit.
    pub name: String,
    /// Mean over the bundles of the first side.
    pub a: f64,
    /// Mean over the bundles of the second side.
    pub b: f64,
    /// Which direction is good.
    pub better: Better,
    /// Change that counts as none.
    pub margin: f64,
    /// B / A, geometric mean over bundles.
    pub ratio: f64,
    /// Its 95 % interval over runs; `None` with fewer than two runs of a side.
    pub interval: Option<Interval>,
    /// The verdict.
    pub verdict: Verdict,
}

/// The comparison.
#[derive(Debug, Clone, PartialEq)]
pub struct Comparison {
    /// The scenario.
    pub scenario: String,
    /// Runs of each side.
    pub runs: (usize, usize),
    /// What differs in how they were run: path, first side, second side.
    pub differences: Vec<(String, String, String)>,
    /// The figures.
    pub figures: Vec<Figure>,
    /// Why runs must not be quoted: number of the side, reason.
    pub warnings: Vec<String>,
}

/// Compares the bundles of two sides.
pub fn compare(a: &[Bundle], b: &[Bundle]) -> Result<Comparison, CompareError> {
    let (Some(first), Some(second)) = (a.first(), b.first()) else { return Err(CompareError::Empty) };
    let name = &first.result.scenario.name;
    if let Some(other) = a.iter().chain(b).find(|bundle| bundle.result.scenario.name != *name) {
        return Err(CompareError::Scenarios(name.clone(), other.result.scenario.name.clone()));
    }
    let mut warnings = Vec::new();
    for (side, bundles) in [("A", a), ("B", b)] {
        for bundle in bundles {
            let standing = bundle.result.standing();
            warnings
                .extend(standing.reasons().map(|reason| format!("{side} is {}: {reason}", standing.word())));
        }
    }
    if a.len() < 2 || b.len() < 2 {
        warnings.push(
            "one run a side: how much two runs of the same thing differ is not known, so no verdict can be given; name several \
             bundles of each side, or use `ab`"
                .to_owned(),
        );
    }
    Ok(Comparison {
        scenario: name.clone(),
        runs: (a.len(), b.len()),
        differences: differences(first, second),
        figures: figures(a, b),
        warnings,
    })
}

/// Takes a figure out of a phase.
pub(crate) type Picker = fn(&Phase) -> Option<f64>;

/// Figures of the main phase, in the order they are shown.
pub(crate) const FIGURES: [(&str, Better, f64, Picker); 7] = [
    ("completed/s", Better::Higher, THROUGHPUT_MARGIN, |phase| {
        Some(phase.total.completed_per_s).filter(|rate| *rate > 0.0)
    }),
    ("response p50 ms", Better::Lower, MEDIAN_MARGIN, |phase| {
        quantile_ms(phase.total.response.as_ref(), 0.5)
    }),
    ("response p99 ms", Better::Lower, P99_MARGIN, |phase| quantile_ms(phase.total.response.as_ref(), 0.99)),
    ("response p99.9 ms", Better::Lower, P99_MARGIN, |phase| {
        quantile_ms(phase.total.response.as_ref(), 0.999)
    }),
    ("service p50 ms", Better::Lower, MEDIAN_MARGIN, |phase| quantile_ms(phase.total.service.as_ref(), 0.5)),
    ("service p99 ms", Better::Lower, P99_MARGIN, |phase| quantile_ms(phase.total.service.as_ref(), 0.99)),
    ("target CPU us/op", Better::Lower, MEDIAN_MARGIN, |phase| phase.cost.target_cpu_us_per_operation),
];

fn quantile_ms(summary: Option<&Summary>, quantile: f64) -> Option<f64> {
    let found = summary?.quantiles.iter().find(|q| (q.quantile - quantile).abs() < 1e-9)?;
    found.quotable.then_some(found.value_us / 1e3)
}

fn figures(a: &[Bundle], b: &[Bundle]) -> Vec<Figure> {
    FIGURES
        .iter()
        .filter_map(|(name, better, margin, pick)| {
            let of = |side: &[Bundle]| -> Option<Vec<f64>> {
                side.iter().map(|bundle| bundle.main_phase().and_then(pick)).collect()
            };
            figure(name, *better, *margin, &of(a)?, &of(b)?)
        })
        .collect()
}

fn figure(name: &str, better: Better, margin: f64, a: &[f64], b: &[f64]) -> Option<Figure> {
    if a.iter().chain(b).any(|value| *value <= 0.0) {
        return None;
    }
    let log_mean = |values: &[f64]| values.iter().map(|v| v.ln()).sum::<f64>() / values.len() as f64;
    let interval = welch(a, b, CONFIDENCE).map(|interval| interval.map(f64::exp));
    Some(Figure {
        name: name.to_owned(),
        a: log_mean(a).exp(),
        b: log_mean(b).exp(),
        better,
        margin,
        ratio: (log_mean(b) - log_mean(a)).exp(),
        interval,
        verdict: verdict(interval, margin, better),
    })
}

/// What differs in configuration, program, machine, target and load.
fn differences(a: &Bundle, b: &Bundle) -> Vec<(String, String, String)> {
    differing(&[a, b])
        .into_iter()
        .map(|(path, mut values)| {
            let second = values.pop().unwrap_or_default();
            (path, values.pop().unwrap_or_default(), second)
        })
        .collect()
}

/// Settings that are not the same in all bundles: path and one value per bundle.
pub(crate) fn differing(bundles: &[&Bundle]) -> Vec<(String, Vec<String>)> {
    let all: Vec<BTreeMap<String, String>> = bundles.iter().map(|bundle| settings(bundle)).collect();
    let paths: BTreeSet<&String> = all.iter().flat_map(BTreeMap::keys).collect();
    paths
        .into_iter()
        .filter(|path| all.iter().any(|settings| settings.get(*path) != all[0].get(*path)))
        .map(|path| {
            let value = |settings: &BTreeMap<String, String>| {
                settings.get(path).cloned().unwrap_or_else(|| "(absent)".to_owned())
            };
            (path.clone(), all.iter().map(value).collect())
        })
        .collect()
}

/// Everything that says how a bundle came about, by dotted path.
fn settings(bundle: &Bundle) -> BTreeMap<String, String> {
    let result = &bundle.result;
    let mut flat = BTreeMap::new();
    flatten("scenario", &result.scenario.configuration, &mut flat);
    for (path, part) in [
        ("tool", serde_json::to_value(&result.tool)),
        ("machine", serde_json::to_value(&result.machine)),
        ("clocks", serde_json::to_value(&result.clocks)),
        ("target", serde_json::to_value(&result.target)),
    ] {
        flatten(path, &part.unwrap_or_default(), &mut flat);
    }
    flat.insert("seed".to_owned(), result.seed.to_string());
    for phase in &result.phases {
        let arrival = serde_json::to_value(&phase.arrival).unwrap_or_default();
        flatten(&format!("phase.{}", phase.name), &arrival, &mut flat);
        flat.insert(format!("phase.{}.connections", phase.name), phase.connections.to_string());
        flat.insert(format!("phase.{}.duration_s", phase.name), format!("{:.0}", phase.duration_s));
    }
    flat
}

/// Leaves of a JSON value by dotted path.
pub(crate) fn flatten(path: &str, value: &Value, flat: &mut BTreeMap<String, String>) {
    match value {
        Value::Object(map) => {
            map.iter().for_each(|(key, value)| flatten(&format!("{path}.{key}"), value, flat))
        }
        Value::Array(list) if list.iter().any(|item| item.is_object() || item.is_array()) => {
            list.iter().enumerate().for_each(|(i, value)| flatten(&format!("{path}[{i}]"), value, flat));
        }
        Value::Null => {}
        Value::String(text) => {
            flat.insert(path.to_owned(), text.clone());
        }
        other => {
            flat.insert(path.to_owned(), other.to_string());
        }
    }
}

impl fmt::Display for Comparison {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        writeln!(f, "{}: {} run(s) of A, {} of B", self.scenario, self.runs.0, self.runs.1)?;
        for warning in &self.warnings {
            writeln!(f, "  ! {warning}")?;
        }
        if self.differences.is_empty() {
            writeln!(f, "nothing differs in how they were run")?;
        }
        for (path, a, b) in &self.differences {
            writeln!(f, "differs     {path}: {a} -> {b}")?;
        }
        writeln!(
            f,
            "\n  {:<20} {:>12} {:>12} {:>9}  {:<22} verdict on B",
            "", "A", "B", "B/A", "95 % interval"
        )?;
        for figure in &self.figures {
            let interval = figure
                .interval
                .map_or_else(|| "not known".to_owned(), |i| format!("{:.4} to {:.4}", i.low, i.high));
            writeln!(
                f,
                "  {:<20} {:>12.3} {:>12.3} {:>9.4}  {interval:<22} {} (margin {} %)",
                figure.name,
                figure.a,
                figure.b,
                figure.ratio,
                figure.verdict,
                figure.margin * 100.0
            )?;
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::result::tests::{example, example_with};

    fn scaled(factor: f64) -> Bundle {
        let mut bundle = example();
        bundle.result.phases[0].total.completed_per_s *= factor;
        bundle
    }

    fn throughput(comparison: &Comparison) -> &Figure {
        comparison.figures.iter().find(|figure| figure.name == "completed/s").unwrap()
    }

    #[test]
    fn several_runs_give_an_interval_and_a_verdict() {
        let a = [scaled(1.0), scaled(1.004), scaled(0.997)];
        let b = [scaled(0.9), scaled(0.904), scaled(0.898)];
        let comparison = compare(&a, &b).unwrap();
        let figure = throughput(&comparison);
        assert!((figure.ratio - 0.9).abs() < 0.005, "{figure:?}");
        assert_eq!(figure.verdict, Verdict::Worse);
        assert_eq!(throughput(&compare(&b, &a).unwrap()).verdict, Verdict::Better);
        assert_eq!(throughput(&compare(&a, &a).unwrap()).verdict, Verdict::Equivalent);
    }

    #[test]
    fn single_runs_have_a_ratio_but_no_verdict() {
        let comparison = compare(&[scaled(1.0)], &[scaled(0.5)]).unwrap();
        let figure = throughput(&comparison);
        assert_eq!((figure.interval, figure.verdict), (None, Verdict::CannotTell));
        assert!(comparison.to_string().contains("one run a side"), "{comparison}");
    }

    #[test]
    fn other_scenarios_are_refused_and_other_settings_named() {
        let mut other = example_with(8, &[100]);
        other.result.scenario.configuration =
            serde_json::json!({"target": {"url": "redis://127.0.0.1:6400"}, "scale": 1});
        let comparison = compare(&[example()], &[other.clone()]).unwrap();
        let differing: Vec<&str> = comparison.differences.iter().map(|(path, ..)| path.as_str()).collect();
        assert_eq!(differing, ["scenario.target.url", "seed"]);
        other.result.scenario.name = "another".to_owned();
        assert!(matches!(compare(&[example()], &[other]), Err(CompareError::Scenarios(..))));
    }

    #[test]
    fn an_invalid_run_is_said_before_any_figure() {
        let mut bad = example();
        bad.result.gates[0].passed = false;
        let text = compare(&[example()], &[bad]).unwrap().to_string();
        let warning = text.find("B is INVALID: sent_share").unwrap();
        assert!(warning < text.find("completed/s").unwrap(), "{text}");
    }
}
