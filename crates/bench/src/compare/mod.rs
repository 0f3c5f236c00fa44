//! Compares bundles of one scenario: the differences in their settings, and the ratios of their figures.
//!
//! Two single runs give a ratio without an interval between runs, because the difference of two equal runs is unknown.
//! The verdict is then "cannot tell", unless each side has several bundles. `ab` measures what this comparison only
//! estimates.

mod figures;
mod settings;
mod text;

use serde::Serialize;

use load::result::Bundle;
use load::statistics::Interval;
use load::statistics::paired::{Better, Verdict, verdict, welch};

pub(crate) use figures::{FigureKind, KINDS, Part, Value, parts};
pub(crate) use settings::{differing, flatten};

/// The figure of one part for both sides, with its verdict. The terminal, the JSON and the report all use it. `None` if
/// a result lacks the value.
pub(crate) fn figure_of(kind: &FigureKind, part: &Part, a: &[&Bundle], b: &[&Bundle]) -> Option<Figure> {
    let of = |side: &[&Bundle]| -> Option<Vec<Value>> {
        side.iter().map(|bundle| kind.of(part, bundle)).collect()
    };
    figure(kind, part, &of(a)?, &of(b)?)
}

const CONFIDENCE: f64 = 0.95;

/// The reason why bundles cannot be compared.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum CompareError {
    /// They have different scenarios.
    #[error("`{0}` and `{1}` are different scenarios; their figures do not say anything about each other")]
    Scenarios(String, String),
    /// They have different phases.
    #[error("no phase is in all of these results, which have {0}; name results of one phase")]
    Phases(String),
    /// One side is empty.
    #[error("two bundles are needed, or several of each side")]
    Empty,
}

/// One figure of both sides.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Figure {
    /// The part: a phase, or a class of operation in it.
    pub part: String,
    /// The name with its unit.
    pub name: String,
    /// Mean over the bundles of the first side.
    pub a: f64,
    /// Mean over the bundles of the second side.
    pub b: f64,
    /// The direction that is better.
    pub better: Better,
    /// The change that counts as none.
    pub margin: f64,
    /// Whether every run has enough samples. Without them there is no verdict.
    pub is_quotable: bool,
    /// B / A, geometric mean over bundles.
    pub ratio: f64,
    /// The 95 % interval over runs; `None` with fewer than two runs of a side.
    pub interval: Option<Interval>,
    pub verdict: Verdict,
}

#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Comparison {
    pub scenario: String,
    /// The number of runs of each side.
    pub runs: (usize, usize),
    /// The differences in settings: path, first side, second side.
    pub differences: Vec<(String, String, String)>,
    /// The figures, by kind, then by phase and class.
    pub figures: Vec<Figure>,
    /// Reasons why runs must not be quoted, and parts that were not compared.
    pub warnings: Vec<String>,
}

/// Compares the bundles of two sides.
pub fn compare(a: &[Bundle], b: &[Bundle]) -> Result<Comparison, CompareError> {
    let (Some(first), Some(second)) = (a.first(), b.first()) else { return Err(CompareError::Empty) };
    let name = &first.result.scenario.name;
    let all: Vec<&Bundle> = a.iter().chain(b).collect();
    if let Some(other) = all.iter().find(|bundle| bundle.result.scenario.name != *name) {
        return Err(CompareError::Scenarios(name.clone(), other.result.scenario.name.clone()));
    }
    let (common, missing): (Vec<Part>, Vec<Part>) =
        parts(&all).into_iter().partition(|part| all.iter().all(|bundle| part.is_in(bundle)));
    if common.is_empty() {
        return Err(CompareError::Phases(named(&missing)));
    }
    let mut warnings = validity_warnings([("A", a), ("B", b)]);
    // If a phase is missing, its classes need not be named.
    let missing: Vec<Part> =
        missing.into_iter().filter(|part| part.whole() == *part || common.contains(&part.whole())).collect();
    if !missing.is_empty() {
        warnings.push(format!("not in every result and not compared: {}", named(&missing)));
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
        figures: figures(&common, a, b),
        warnings,
    })
}

fn named(parts: &[Part]) -> String {
    parts.iter().map(Part::name).collect::<Vec<_>>().join(", ")
}

/// The reasons why runs of either side must not be quoted.
fn validity_warnings(sides: [(&str, &[Bundle]); 2]) -> Vec<String> {
    let mut warnings = Vec::new();
    for (side, bundles) in sides {
        for validity in bundles.iter().map(|bundle| bundle.result.validity()) {
            warnings
                .extend(validity.reasons().map(|reason| format!("{side} is {}: {reason}", validity.word())));
        }
    }
    warnings
}

fn figures(parts: &[Part], a: &[Bundle], b: &[Bundle]) -> Vec<Figure> {
    let (a, b): (Vec<&Bundle>, Vec<&Bundle>) = (a.iter().collect(), b.iter().collect());
    KINDS
        .iter()
        .flat_map(|kind| parts.iter().map(move |part| (kind, part)))
        .filter_map(|(kind, part)| figure_of(kind, part, &a, &b))
        .collect()
}

fn figure(kind: &FigureKind, part: &Part, a: &[Value], b: &[Value]) -> Option<Figure> {
    if a.iter().chain(b).any(|value| value.value <= 0.0) {
        return None;
    }
    let values = |side: &[Value]| -> Vec<f64> { side.iter().map(|value| value.value).collect() };
    let log_mean = |values: &[f64]| values.iter().map(|v| v.ln()).sum::<f64>() / values.len() as f64;
    let is_quotable = a.iter().chain(b).all(|value| value.is_quotable);
    let (a, b) = (values(a), values(b));
    let interval = welch(&a, &b, CONFIDENCE).map(|interval| interval.map(f64::exp));
    Some(Figure {
        part: part.name(),
        name: kind.name.to_owned(),
        a: log_mean(&a).exp(),
        b: log_mean(&b).exp(),
        better: kind.better,
        margin: kind.margin,
        is_quotable,
        ratio: (log_mean(&b) - log_mean(&a)).exp(),
        interval,
        verdict: verdict(interval.filter(|_| is_quotable), kind.margin, kind.better),
    })
}

fn differences(a: &Bundle, b: &Bundle) -> Vec<(String, String, String)> {
    differing(&[a, b])
        .into_iter()
        .map(|(path, mut values)| {
            let second = values.pop().unwrap_or_default();
            (path, values.pop().unwrap_or_default(), second)
        })
        .collect()
}

#[cfg(test)]
mod tests;
