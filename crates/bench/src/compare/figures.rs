//! The figures to compare: those of each measured phase, and of each class of operation in it.

use load::result::{ALL, Bundle, OWN_TOOL, Operation, Phase, Summary};
use load::statistics::paired::{Better, P99_MARGIN, THROUGHPUT_MARGIN};

/// The change of a median or of CPU per operation that counts as none.
const MEDIAN_MARGIN: f64 = 0.03;

/// A phase, or one class of operation in it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Part {
    /// `None` for the only phase with figures, whatever its name in each result.
    phase: Option<String>,
    /// `None` for the sum of all classes.
    operation: Option<String>,
}

impl Part {
    /// The name for readers: `rest-one-1h`, `writing-one-1h: write`. The parts of an only phase are `all` and its
    /// classes.
    pub(crate) fn name(&self) -> String {
        let operation = self.operation.as_deref();
        match &self.phase {
            None => operation.unwrap_or(ALL).to_owned(),
            Some(phase) => {
                operation.map_or_else(|| phase.clone(), |operation| format!("{phase}: {operation}"))
            }
        }
    }

    /// Whether a result has this part.
    pub(super) fn is_in(&self, bundle: &Bundle) -> bool {
        self.of(bundle).is_some()
    }

    /// The sum of all classes of the same phase.
    pub(super) fn whole(&self) -> Self {
        Self { phase: self.phase.clone(), operation: None }
    }

    fn of<'b>(&self, bundle: &'b Bundle) -> Option<(&'b Phase, &'b Operation)> {
        let phase = match &self.phase {
            None => bundle.main_phase(),
            Some(name) => bundle.measured().find(|phase| phase.name == *name),
        }?;
        let operation = match &self.operation {
            None => &phase.total,
            Some(name) => phase.operations.iter().find(|operation| operation.name == *name)?,
        };
        Some((phase, operation))
    }
}

/// The parts of all bundles, in the order of their first occurrence. Classes are parts if there are several.
pub(crate) fn parts(bundles: &[&Bundle]) -> Vec<Part> {
    let mut parts = Vec::new();
    for phase in phases(bundles) {
        let whole = Part { phase, operation: None };
        let mut classes: Vec<&str> = Vec::new();
        let of_all =
            bundles.iter().filter_map(|bundle| whole.of(bundle)).flat_map(|(phase, _)| &phase.operations);
        for class in of_all.map(|operation| operation.name.as_str()) {
            if !classes.contains(&class) {
                classes.push(class);
            }
        }
        let several = classes.len() > 1;
        let classes: Vec<Part> = classes
            .into_iter()
            .filter(|_| several)
            .map(|class| Part { operation: Some(class.to_owned()), ..whole.clone() })
            .collect();
        parts.push(whole);
        parts.extend(classes);
    }
    parts
}

/// Phases correspond by name. A result of another tool has one phase, with a name of the tool's own.
fn phases(bundles: &[&Bundle]) -> Vec<Option<String>> {
    let mut names: Vec<&str> = Vec::new();
    for name in bundles.iter().flat_map(|bundle| bundle.measured()).map(|phase| phase.name.as_str()) {
        if !names.contains(&name) {
            names.push(name);
        }
    }
    let foreign = bundles.iter().any(|bundle| bundle.result.tool.name != OWN_TOOL);
    if bundles.iter().all(|bundle| bundle.measured().count() <= 1) && (foreign || names.len() <= 1) {
        return vec![None];
    }
    names.into_iter().map(|name| Some(name.to_owned())).collect()
}

/// One figure of one result.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) struct Value {
    pub(crate) value: f64,
    /// Whether it has enough samples.
    pub(crate) is_quotable: bool,
}

type Picker = fn(&Phase, &Operation) -> Option<Value>;

/// A kind of figure.
pub(crate) struct FigureKind {
    /// The name with its unit.
    pub(crate) name: &'static str,
    /// The direction that is better.
    pub(crate) better: Better,
    /// The change that counts as none.
    pub(crate) margin: f64,
    pick: Picker,
}

impl FigureKind {
    /// The value for a part of a result.
    pub(crate) fn of(&self, part: &Part, bundle: &Bundle) -> Option<Value> {
        let (phase, operation) = part.of(bundle)?;
        (self.pick)(phase, operation)
    }
}

const fn kind(name: &'static str, better: Better, margin: f64, pick: Picker) -> FigureKind {
    FigureKind { name, better, margin, pick }
}

/// All kinds, in the order of display.
pub(crate) const KINDS: [FigureKind; 7] = [
    kind("completed/s", Better::Higher, THROUGHPUT_MARGIN, |_, operation| {
        known(Some(operation.completed_per_s).filter(|rate| *rate > 0.0))
    }),
    kind("response p50 ms", Better::Lower, MEDIAN_MARGIN, |_, operation| response(operation, 0.5)),
    kind("response p99 ms", Better::Lower, P99_MARGIN, |_, operation| response(operation, 0.99)),
    kind("response p99.9 ms", Better::Lower, P99_MARGIN, |_, operation| {
        // With too few samples it is the maximum and adds nothing to p99.
        response(operation, 0.999).filter(|value| value.is_quotable)
    }),
    kind("service p50 ms", Better::Lower, MEDIAN_MARGIN, |phase, operation| service(phase, operation, 0.5)),
    kind("service p99 ms", Better::Lower, P99_MARGIN, |phase, operation| service(phase, operation, 0.99)),
    kind("target CPU us/op", Better::Lower, MEDIAN_MARGIN, |phase, operation| {
        // It is known for the sum of all classes.
        let is_total = operation.name == phase.total.name;
        known(phase.cost.target_cpu_us_per_operation.filter(|_| is_total))
    }),
];

fn known(value: Option<f64>) -> Option<Value> {
    value.map(|value| Value { value, is_quotable: true })
}

fn response(operation: &Operation, quantile: f64) -> Option<Value> {
    quantile_ms(operation.response.as_ref()?, quantile)
}

/// In a closed loop the intended time is the send time, so both times are equal.
fn service(phase: &Phase, operation: &Operation, quantile: f64) -> Option<Value> {
    let is_both = phase.arrival.is_closed() && operation.response.is_some();
    quantile_ms(operation.service.as_ref().filter(|_| !is_both)?, quantile)
}

fn quantile_ms(summary: &Summary, quantile: f64) -> Option<Value> {
    let found = summary.quantiles.iter().find(|q| (q.quantile - quantile).abs() < 1e-9)?;
    Some(Value { value: found.value_us / 1e3, is_quotable: found.quotable })
}
