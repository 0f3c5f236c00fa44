//! Advice for a failed gate: the command of the run with another value for the key behind the gate.

use load::result::{Bundle, Gate};
use load::scenario::{Phase, Scenario};
use targets::command_line::shell_word;

use targets::NAME;

/// The share of the rate to try after the generator was too slow, and of the achieved rate.
const HALF: f64 = 0.5;
const ACHIEVED: f64 = 0.8;
/// The factor between the measured value and a new limit.
const ROOM: f64 = 1.2;

/// A line for each failed gate, without repetitions. `called` is the program's name in a shell.
pub(super) fn advice(bundle: &Bundle, scenario: &Scenario, called: &str) -> Vec<String> {
    let mut lines: Vec<String> = Vec::new();
    for gate in bundle.result.gates.iter().filter(|gate| !gate.passed) {
        let Some((why, sets)) = remedy(gate, bundle, scenario) else { continue };
        let line = format!("{}: {why}: {}", gate.name, command(bundle, &sets, called));
        if !lines.contains(&line) {
            lines.push(line);
        }
    }
    lines
}

/// The advice, and the settings that implement it.
fn remedy(gate: &Gate, bundle: &Bundle, scenario: &Scenario) -> Option<(String, Vec<String>)> {
    let (place, name) = gate.name.rsplit_once(' ').unwrap_or(("", &gate.name));
    let phase = scenario
        .phases
        .iter()
        .find(|phase| place == phase.name || place.starts_with(&format!("{}-", phase.name)));
    let only = || {
        scenario.phases.iter().find(|phase| bundle.main_phase().is_some_and(|main| main.name == phase.name))
    };
    let phase = phase.or_else(only);
    let limit = |key: &str| vec![format!("gates.{key}={}", above(gate.value))];
    Some(match name {
        "lag_p99" | "generator_core" => (
            "the generator is too slow for this rate; half of it should pass (or --workers 2, if the driver takes it)".to_owned(),
            rates(phase?, |rate| rate * HALF),
        ),
        "sent_share" | "arrival" => {
            let achieved =
                bundle.result.phases.iter().find(|known| known.name == phase.map_or("", |phase| &phase.name));
            let achieved_per_s = achieved.map_or(0.0, |known| known.total.completed_per_s);
            let phase = phase?;
            let command_line: f64 = phase.mixes.iter().filter_map(|mix| mix.rate).sum();
            let share = (achieved_per_s / (command_line * scenario.rate_scale()).max(1e-9)).clamp(0.01, 1.0);
            (
                "the load was not the planned one; a lower rate should pass".to_owned(),
                rates(phase, |rate| rate * share * ACHIEVED),
            )
        }
        "error_share" => {
            let phases = bundle.result.phases.iter().filter(|known| place.is_empty() || known.name == place);
            let texts = phases.flat_map(|known| &known.total.counts.errors);
            let most =
                texts.max_by_key(|(_, count)| **count).map(|(text, _)| format!(" (most often: {text})"));
            let why = format!("put right what failed{}, or allow that many failures", most.unwrap_or_default());
            // One limit applies to all phases.
            let gates =
                bundle.result.gates.iter().filter(|other| !other.passed && other.name.ends_with(name));
            let worst = gates.map(|other| other.value).fold(gate.value, f64::max);
            (why, vec![format!("gates.error_share_max={}", above(worst))])
        }
        "hit_share" => (
            "load the data set first, or allow that many misses".to_owned(),
            vec![format!("gates.hit_share_min={}", below(gate.value))],
        ),
        "steal_share" => (
            "others use this machine; use a quiet one, or allow it and compare with `ab` alone".to_owned(),
            limit("steal_share_max"),
        ),
        "completed" => (
            "nothing was answered in the measured part; measure for longer".to_owned(),
            vec![format!("phase.{}.duration=60s", phase?.name)],
        ),
        _ => return None,
    })
}

/// The settings that change every rate of a phase.
fn rates(phase: &Phase, change: impl Fn(f64) -> f64) -> Vec<String> {
    let one = |name: &str, rate: f64| format!("{name}.rate={}", rounded(change(rate)));
    match &phase.mixes[..] {
        [mix] if mix.name == phase.name => {
            mix.rate.map(|rate| one(&format!("phase.{}", phase.name), rate)).into_iter().collect()
        }
        mixes => {
            let place = |name: &str| format!("phase.{}.mix.{name}", phase.name);
            mixes.iter().filter_map(|mix| Some(one(&place(&mix.name), mix.rate?))).collect()
        }
    }
}

/// Rounds down to two digits.
fn rounded(rate: f64) -> f64 {
    let step = 10_f64.powf(rate.max(1e-6).log10().floor() - 1.0);
    let rate = (rate / step).floor() * step;
    if rate >= 1.0 { rate.round() } else { rate }
}

/// A limit above a value, as text.
fn above(value: f64) -> String {
    format!("{:.4}", (value * ROOM).max(0.0001))
}

fn below(value: f64) -> String {
    format!("{:.4}", (value / ROOM - 0.0001).max(0.0))
}

/// The command of the run with more settings, without the directory of the result, which is in use.
fn command(bundle: &Bundle, sets: &[String], called: &str) -> String {
    let mut words: Vec<String> = Vec::new();
    let mut given = bundle.result.command_line.iter().skip_while(|word| *word == NAME);
    while let Some(word) = given.next() {
        match word.as_str() {
            "--out" => _ = given.next(),
            word if word.starts_with("--out=") => {}
            word => words.push(shell_word(word)),
        }
    }
    let sets = sets.iter().map(|set| format!("--set {}", shell_word(set)));
    let given = if words.is_empty() { Vec::new() } else { [vec![called.to_owned()], words].concat() };
    given.into_iter().chain(sets).collect::<Vec<_>>().join(" ")
}

#[cfg(test)]
mod tests {
    use super::*;
    use load::result::Rule;
    use load::result::example::example;

    fn advised(name: &str, rule: Rule, value: f64, limit: f64, scenario: &str) -> Vec<String> {
        let mut bundle = example();
        let line = "tacho bench run gemini-str32 --out first --set seed=2 --closed";
        bundle.result.command_line = line.split(' ').map(str::to_owned).collect();
        bundle.result.gates = vec![Gate::new(name, value, rule, limit, "", "")];
        advice(&bundle, &Scenario::load(scenario, &[]).unwrap(), "./tacho")
    }

    #[test]
    fn a_gate_that_failed_names_the_command_that_would_pass() {
        let lag = advised("run lag_p99", Rule::AtMost, 9_000.0, 5_000.0, "gemini-str32");
        let [line] = &lag[..] else { panic!("{lag:?}") };
        assert!(
            line.ends_with(
                ": ./tacho bench run gemini-str32 --set seed=2 --closed --set phase.run.rate=10000"
            ),
            "{line}"
        );
        let errors = advised("error_share", Rule::AtMost, 0.01, 0.0, "gemini-str32");
        assert!(errors[0].contains("--set gates.error_share_max=0.0120"), "{errors:?}");
        let hits = advised("hit_share", Rule::AtLeast, 0.5, 0.99, "gemini-str32");
        assert!(hits[0].contains("--set gates.hit_share_min=0.4166"), "{hits:?}");
        let mixed = advised("run lag_p99", Rule::AtMost, 9_000.0, 5_000.0, "gemini-mix");
        assert!(mixed[0].contains("--set phase.run.mix."), "{mixed:?}");
        assert!(advised("error_share", Rule::AtMost, 0.0, 0.0, "gemini-str32").is_empty(), "it passed");
    }

    #[test]
    fn every_setting_that_is_named_is_one_of_the_scenario() {
        for (name, scenario) in [
            ("run lag_p99", "gemini-mix"),
            ("run sent_share", "thingsboard"),
            ("run completed", "mqtt-10k"),
            ("run steal_share", "http-qps"),
        ] {
            for line in advised(name, Rule::AtMost, 2.0, 1.0, scenario) {
                let sets: Vec<String> = line
                    .split("--set ")
                    .skip(1)
                    .map(|set| set.split_whitespace().next().unwrap_or_default().to_owned())
                    .collect();
                Scenario::load(scenario, &sets).unwrap();
            }
        }
    }
}
