//! Merges the bundles of several generator processes without loss: counts and histograms add up, and quantiles are
//! computed from the sum, never averaged. If a part is invalid or partial, so is the whole.

use std::collections::BTreeMap;

use super::{Bundle, Gate, Operation, Phase, Rule, SecondLine};

/// Merges the bundles of processes that ran the same scenario at the same time, as made by
/// [`super::Builder::finish_part`]. It adds findings about all samples and keeps those of the parts. The error states how
/// the parts differ.
pub fn merge(parts: Vec<Bundle>) -> Result<Bundle, String> {
    let gates = merged_gates(&parts);
    let mut parts = parts.into_iter();
    let mut whole = parts.next().ok_or("there is no bundle to merge")?;
    for (index, part) in parts.enumerate() {
        same(&whole, &part)
            .map_err(|what| format!("generator {} differs from the first: {what}", index + 2))?;
        absorb(&mut whole, part);
    }
    whole.result.gates = gates;
    whole.summarise();
    whole.analyse();
    whole.result.settle();
    Ok(whole)
}

fn same(whole: &Bundle, part: &Bundle) -> Result<(), String> {
    let (left, right) = (&whole.result.scenario.name, &part.result.scenario.name);
    if left != right {
        return Err(format!("scenario {right} and not {left}"));
    }
    let names =
        |bundle: &Bundle| bundle.result.phases.iter().map(|phase| phase.name.clone()).collect::<Vec<_>>();
    let (left, right) = (names(whole), names(part));
    // An interrupted part has fewer phases; its phases must be the same.
    if left.iter().zip(&right).any(|(a, b)| a != b) {
        return Err(format!("phases {right:?} and not {left:?}"));
    }
    Ok(())
}

/// The worst result of each gate over all parts, with the number of parts that failed it. Gates cannot be computed
/// again here.
fn merged_gates(parts: &[Bundle]) -> Vec<Gate> {
    let mut gates: Vec<(Gate, usize)> = Vec::new();
    for gate in parts.iter().flat_map(|part| &part.result.gates) {
        let failed = usize::from(!gate.passed);
        match gates.iter_mut().find(|(known, _)| known.name == gate.name) {
            Some((known, failures)) => {
                *failures += failed;
                if is_worse(gate, known) {
                    *known = gate.clone();
                }
            }
            None => gates.push((gate.clone(), failed)),
        }
    }
    let said = |(mut gate, failures): (Gate, usize)| {
        if failures > 0 && parts.len() > 1 {
            gate.explanation += &format!(" (the worst of {} generators, {failures} failed)", parts.len());
        }
        gate
    };
    gates.into_iter().map(said).collect()
}

/// Whether a gate is worse. NaN fails and is worse than a number.
fn is_worse(gate: &Gate, than: &Gate) -> bool {
    match gate.rule {
        _ if gate.passed != than.passed => than.passed,
        Rule::AtLeast => gate.value < than.value,
        Rule::AtMost => gate.value > than.value,
    }
}

fn absorb(whole: &mut Bundle, part: Bundle) {
    whole.histograms.merge(&part.histograms);
    whole.telemetry.merge(&part.telemetry);
    merge_lines(&mut whole.seconds, part.seconds);
    let (into, from) = (&mut whole.result, part.result);
    into.took_s = into.took_s.max(from.took_s);
    into.generators.extend(from.generators);
    into.partial = into.partial.take().or(from.partial);
    let missing = into.phases.len().min(from.phases.len());
    for (phase, other) in into.phases.iter_mut().zip(&from.phases) {
        merge_phase(phase, other);
    }
    into.phases.extend(from.phases.into_iter().skip(missing));
    into.verification.extend(from.verification);
    into.faults.extend(from.faults);
    into.faults.sort_by(|a, b| a.at_s.total_cmp(&b.at_s));
    for (known, others) in [(&mut into.findings, from.findings), (&mut into.hides, from.hides)] {
        let new: Vec<String> = others.into_iter().filter(|sentence| !known.contains(sentence)).collect();
        known.extend(new);
    }
}

fn merge_phase(phase: &mut Phase, other: &Phase) {
    phase.starts_s = phase.starts_s.min(other.starts_s);
    phase.duration_s = phase.duration_s.max(other.duration_s);
    phase.connections += other.connections;
    phase.arrival.add(&other.arrival);
    let before = phase.total.counts.completed as f64;
    phase.total.counts.merge(&other.total.counts);
    for operation in &other.operations {
        match phase.operations.iter_mut().find(|known| known.name == operation.name) {
            Some(known) => known.counts.merge(&operation.counts),
            None => phase.operations.push(Operation { ..operation.clone() }),
        }
    }
    // CPU time per operation is weighted by operations; CPU time per core adds up.
    let completed = phase.total.counts.completed as f64;
    let share = other.total.counts.completed as f64 / completed.max(1.0);
    let (own, others) = (&mut phase.cost, &other.cost);
    own.generator_cpu_us_per_operation = own
        .generator_cpu_us_per_operation
        .zip(others.generator_cpu_us_per_operation)
        .map(|(a, b)| a * (1.0 - share) + b * share);
    // The target's value covers the whole process, and the first generator saw only its own operations.
    own.target_cpu_us_per_operation =
        own.target_cpu_us_per_operation.map(|us| us * before / completed.max(1.0));
    own.generator_cpu_percent =
        own.generator_cpu_percent.zip(others.generator_cpu_percent).map(|(a, b)| a + b);
    // A process without a connection has no value.
    own.generator_polling_percent = [own.generator_polling_percent, others.generator_polling_percent]
        .into_iter()
        .flatten()
        .reduce(|a, b| a + b);
    phase.steady = None;
}

fn merge_lines(lines: &mut Vec<SecondLine>, others: Vec<SecondLine>) {
    let place = |line: &SecondLine| (line.second, line.phase.clone(), line.operation.clone());
    let mut known: BTreeMap<_, SecondLine> = lines.drain(..).map(|line| (place(&line), line)).collect();
    for other in others {
        match known.get_mut(&place(&other)) {
            Some(line) => line.add_counts(&other),
            None => {
                known.insert(place(&other), other);
            }
        }
    }
    lines.extend(known.into_values());
}

impl super::Arrival {
    /// Adds the rates and concurrencies of processes that run together.
    fn add(&mut self, other: &Self) {
        match (self, other) {
            (Self::Open { rate_per_s, .. }, Self::Open { rate_per_s: more, .. }) => *rate_per_s += more,
            (Self::Closed { concurrency, .. }, Self::Closed { concurrency: more, .. }) => {
                *concurrency += more
            }
            _ => {}
        }
    }
}

#[cfg(test)]
mod tests {
    use super::super::example::{example, example_with};
    use super::super::{Clock, Fault};
    use super::*;

    #[test]
    fn merged_quantiles_are_those_of_all_samples() {
        let (left, right) = (example_with(1, &[100, 200, 300]), example_with(2, &[5_000, 6_000]));
        let whole = merge(vec![left.clone(), right.clone()]).unwrap();
        let total =
            |bundle: &Bundle| bundle.histograms.get("run", "get", Clock::Response).unwrap().total.clone();
        let mut expected = total(&left);
        expected.merge(&total(&right));
        assert_eq!(total(&whole), expected);
        let get = &whole.result.phases[0].operations[0];
        assert_eq!(get.response.as_ref().unwrap().samples, expected.samples());
        assert_eq!(get.counts.completed, 400);
        assert_eq!(whole.result.phases[0].total.counts.completed, 800);
        assert!(whole.result.valid);
    }

    #[test]
    fn what_the_target_spent_is_shared_by_the_operations_of_all() {
        let mut parts = [example_with(1, &[100]), example_with(2, &[100]), example_with(3, &[100])];
        parts[0].result.phases[0].cost.target_cpu_us_per_operation = Some(30.0);
        let completed = |bundle: &Bundle| bundle.result.phases[0].total.counts.completed as f64;
        let share = completed(&parts[0]) / parts.iter().map(completed).sum::<f64>();
        let whole = merge(parts.to_vec()).unwrap();
        let each = whole.result.phases[0].cost.target_cpu_us_per_operation.unwrap();
        assert!((each - 30.0 * share).abs() < 1e-9, "{each}");
    }

    #[test]
    fn merging_does_not_depend_on_the_order() {
        let parts = [example_with(1, &[10]), example_with(2, &[2_000]), example_with(3, &[700])];
        let forth = merge(parts.to_vec()).unwrap();
        let back = merge(parts.into_iter().rev().collect()).unwrap();
        assert_eq!(forth.histograms, back.histograms);
        assert_eq!(forth.seconds, back.seconds);
        assert_eq!(forth.result.phases[0].total, back.result.phases[0].total);
    }

    #[test]
    fn a_bad_part_makes_a_bad_whole() {
        let mut bad = example();
        bad.result.faults.push(Fault { at_s: 1.0, what: "the server closed all connections".to_owned() });
        let whole = merge(vec![example(), bad]).unwrap();
        assert!(!whole.result.valid && !whole.result.validity().is_quotable());
    }

    #[test]
    fn of_each_gate_the_worst_stays_and_how_many_failed() {
        let part = |lag_us: f64, share: f64| {
            let mut bundle = example();
            bundle.result.gates = vec![
                Gate::new("run lag_p99", lag_us, Rule::AtMost, 100.0, "us", "late"),
                Gate::new("run sent_share", share, Rule::AtLeast, 0.99, "", "sent"),
                Gate::new("run steal_share", 0.0, Rule::AtMost, 0.05, "", "steal"),
            ];
            bundle.result.hides =
                vec![format!("generator {lag_us} saw no counters"), "one machine".to_owned()];
            bundle
        };
        let whole = merge(vec![part(90.0, 1.0), part(700.0, 0.995), part(300.0, f64::NAN)]).unwrap();
        let gates: Vec<(&str, bool, &str)> = whole
            .result
            .gates
            .iter()
            .map(|gate| (gate.name.as_str(), gate.passed, gate.explanation.as_str()))
            .collect();
        let expected = [
            ("run lag_p99", false, "late (the worst of 3 generators, 2 failed)"),
            ("run sent_share", false, "sent (the worst of 3 generators, 1 failed)"),
            ("run steal_share", true, "steal"),
        ];
        assert_eq!(gates, expected);
        assert_eq!(whole.result.gates[0].value, 700.0);
        assert!(whole.result.gates[1].value.is_nan());
        assert!(!whole.result.valid);
        let said = |what: &str| whole.result.hides.iter().filter(|sentence| sentence.contains(what)).count();
        assert_eq!((said("saw no counters"), said("one machine")), (3, 1), "{whole}");
    }

    #[test]
    fn different_scenarios_do_not_merge() {
        let mut other = example();
        other.result.scenario.name = "another".to_owned();
        let error = merge(vec![example(), other]).unwrap_err();
        assert!(error.contains("generator 2") && error.contains("another"), "{error}");
    }
}
