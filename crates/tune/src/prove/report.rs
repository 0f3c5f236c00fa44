//! The proof as text for people and as JSON for programs.

use bench::ab::{Answer, MetricComparison, Run};
use bench::command::ChangeCompared;
use load::statistics::paired::Verdict;
use serde::Serialize;

use super::method::ChangeSteps;
use super::order::Order;
use super::state::End;
use crate::change::{ParameterChange, lines_of};
use crate::report::wrapped;
use crate::rules::{Effect, Risk, Rule};
use crate::unit::Unit;
use crate::value::Value;

/// The format of `prove.json`.
const FORMAT: u32 = 1;
/// The metric of the processor time for each operation.
const CPU: &str = "cpu";

/// The median of the largest memory of the target in each run, bytes.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
pub struct Memory {
    /// Without the change.
    pub a_bytes: u64,
    /// With the change.
    pub b_bytes: u64,
}

impl Memory {
    /// The medians, if both arms have values.
    pub(super) fn of(values: &[Vec<u64>; 2]) -> Option<Self> {
        let [a, b] = values.each_ref().map(|values| median(values));
        Some(Self { a_bytes: a?, b_bytes: b? })
    }
}

/// The middle value; of two in the middle the larger one.
fn median(values: &[u64]) -> Option<u64> {
    let mut sorted = values.to_vec();
    sorted.sort_unstable();
    sorted.get(sorted.len() / 2).copied()
}

/// What was measured and how it ended.
pub(super) struct Facts {
    pub(super) compared: ChangeCompared,
    pub(super) end: End,
    pub(super) memory: Option<Memory>,
    pub(super) restarted: bool,
}

/// The content of `prove.json`.
#[derive(Debug, Serialize)]
pub struct Proof {
    format: u32,
    written: String,
    target: String,
    product: String,
    pub rule: String,
    /// The parameter of the rule.
    pub parameter: String,
    /// The changes by statements. Empty if commands of the user make the change.
    pub changes: Vec<ParameterChange>,
    /// A and B in words.
    pub arms: [String; 2],
    /// What the rule expects.
    pub expected_effect: Effect,
    /// The risks that the rule names.
    pub risks: Vec<Risk>,
    scenario: String,
    phase: String,
    /// The verdict of the primary figure; `None` without an answer.
    pub verdict: Option<Verdict>,
    /// The answer of the comparison.
    pub answer: Option<Answer>,
    /// The memory of the target, if it runs on this machine.
    pub memory: Option<Memory>,
    /// The reason why there is no answer.
    pub stopped: Option<String>,
    /// Whether the target has started again by itself.
    pub target_restarted: bool,
    /// The outcome of the change.
    pub end: End,
    runs: Vec<Run>,
    #[serde(skip)]
    lines: Vec<String>,
}

impl Proof {
    pub(super) fn new(order: &Order<'_>, facts: Facts) -> Self {
        let rule = order.rule;
        let Facts { compared, end, memory, restarted } = facts;
        let stopped = compared.answer.as_ref().err().map(ToString::to_string);
        let answer = compared.answer.ok();
        let changes = match &order.way.makes {
            ChangeSteps::Statements(changes) => changes.clone(),
            ChangeSteps::Commands { .. } => Vec::new(),
        };
        let mut proof = Self {
            format: FORMAT,
            written: load::utc_now(),
            target: order.shown_target.to_owned(),
            product: order.product.id.clone(),
            rule: rule.id.clone(),
            parameter: rule.parameter.clone(),
            arms: order.way.labels(),
            expected_effect: rule.effect.clone(),
            risks: rule.risks.clone(),
            scenario: order.scenario.to_owned(),
            phase: compared.phase,
            verdict: answer.as_ref().and_then(|answer| answer.metrics.first()).map(|metric| metric.verdict),
            answer,
            memory,
            stopped,
            target_restarted: restarted,
            end,
            runs: compared.runs,
            changes,
            lines: Vec::new(),
        };
        proof.lines = proof.lines_for(rule);
        proof
    }

    /// The proof for people.
    pub fn text(&self) -> String {
        self.lines.join("\n")
    }

    /// Whether there is an answer and the target is as the user wants it.
    pub fn is_complete(&self) -> bool {
        self.answer.is_some() && !matches!(self.end, End::NotRolledBack(_))
    }

    fn lines_for(&self, rule: &Rule) -> Vec<String> {
        let mut lines = vec![String::new()];
        match self.changes.as_slice() {
            [] => lines.push(format!("{}: {} -> {}", rule.id, self.arms[0], self.arms[1])),
            changes => changes
                .iter()
                .for_each(|change| lines.extend(lines_of(Some(rule), change, self.end == End::Kept))),
        }
        let mut add = |label: &str, text: &str| lines.extend(wrapped(label, text));
        match (&self.answer, &self.stopped) {
            (Some(answer), _) => self.add_answer(answer, &mut add),
            (None, reason) => add("stopped", reason.as_deref().unwrap_or("no answer")),
        }
        if self.changes.is_empty() {
            rule.risks.iter().for_each(|risk| add("price", &format!("{}: {}", risk.kind.words(), risk.text)));
        }
        add("end", &self.end_text());
        lines
    }

    fn add_answer(&self, answer: &Answer, add: &mut dyn FnMut(&str, &str)) {
        let (costs, gains): (Vec<_>, Vec<_>) =
            answer.metrics.iter().partition(|metric| metric.metric.name == CPU);
        for (index, metric) in gains.into_iter().enumerate() {
            add(if index == 0 { "gain" } else { "" }, &metric_text(metric));
        }
        costs.into_iter().for_each(|metric| add("price", &metric_text(metric)));
        if let Some(Memory { a_bytes, b_bytes }) = self.memory {
            let text = |bytes: u64| Unit::Bytes.format(&Value::Number(bytes as f64));
            add("price", &format!("memory of the target: {} -> {}", text(a_bytes), text(b_bytes)));
        }
        add("expected", &format!("{}: {}", self.expected_effect.level.words(), self.expected_effect.text));
    }

    fn end_text(&self) -> String {
        match &self.end {
            End::RolledBack => format!("rolled back: {}", self.arms[0]),
            End::Kept => format!("kept, because it is better: {}", self.arms[1]),
            End::NotRolledBack(reason) => format!("NOT ROLLED BACK: {reason}"),
        }
    }
}

/// The verdict of one figure in words, with its interval.
fn metric_text(compared: &MetricComparison) -> String {
    let MetricComparison { metric, ratio, verdict, .. } = compared;
    let name = match metric.name.as_str() {
        CPU => "processor time of the target for each operation",
        name => name,
    };
    if ratio.blocks == 0 {
        return format!("{name}: cannot tell, no block is valid");
    }
    let percent = |ratio: f64| format!("{:+.2} %", (ratio - 1.0) * 100.0);
    let interval =
        ratio.interval.map(|it| format!(" (95 % interval {} to {})", percent(it.low), percent(it.high)));
    let margin = format!("; less than {} % counts as nothing", metric.margin * 100.0);
    format!("{name}: {verdict}, {}{}{margin}", percent(ratio.ratio), interval.unwrap_or_default())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_memory_is_that_of_the_middle_run_of_each_arm() {
        let memory = Memory::of(&[vec![3, 900, 1], vec![5, 7]]);
        assert_eq!(memory, Some(Memory { a_bytes: 3, b_bytes: 7 }));
        assert_eq!(Memory::of(&[vec![1], Vec::new()]), None);
    }
}
