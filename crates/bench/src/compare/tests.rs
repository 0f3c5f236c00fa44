use std::slice::from_ref;
use std::time::{Duration, UNIX_EPOCH};

use load::result::example::{example, example_with, latency};
use load::result::{Arrival, Builder, OperationCounts, PhaseFacts, ScenarioAsRun, Times};

use super::*;

fn scaled(factor: f64) -> Bundle {
    let mut bundle = example();
    bundle.result.phases[0].total.completed_per_s *= factor;
    bundle
}

fn throughput(comparison: &Comparison) -> &Figure {
    of(comparison, "all", "completed/s")
}

fn of<'c>(comparison: &'c Comparison, part: &str, name: &str) -> &'c Figure {
    let found = comparison.figures.iter().find(|figure| figure.part == part && figure.name == name);
    found.unwrap_or_else(|| panic!("{part} {name}: {comparison}"))
}

/// Phases by name with their classes: name, number of answers, and microseconds of each.
type Phases<'p> = &'p [(&'p str, &'p [(&'p str, usize, u64)])];

fn questions(phases: Phases<'_>) -> Bundle {
    let scenario = ScenarioAsRun { name: "reads".to_owned(), ..ScenarioAsRun::default() };
    let mut builder = Builder::new(scenario, 1, UNIX_EPOCH);
    for (phase, classes) in phases {
        builder.phase(&PhaseFacts {
            name: (*phase).to_owned(),
            kind: "run".to_owned(),
            measured: !phase.starts_with("fill"),
            starts: Duration::ZERO,
            warmup: Duration::ZERO,
            duration: Duration::from_secs(5),
            arrival: Arrival::Closed { concurrency: 1, pause_us: 0 },
            connections: 1,
        });
        for (class, answers, us) in *classes {
            let counts = OperationCounts { completed: *answers as u64, ..OperationCounts::default() };
            let times = latency(&vec![*us; *answers]);
            let times = Times { response: Some(&times), service: Some(&times), lag: None };
            builder.operation(phase, class, &counts, times);
        }
    }
    builder.finish(Duration::from_secs(5))
}

const ANSWERS: usize = 10_000;

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

#[test]
fn every_question_is_compared_by_itself() {
    let run = |one_us, two_us| {
        questions(&[
            ("fill", &[("write", ANSWERS, 7)]),
            ("rest-one", &[("one", ANSWERS, one_us)]),
            ("rest-two", &[("two", ANSWERS, two_us)]),
        ])
    };
    let a = [run(1_000, 500), run(1_002, 500), run(1_001, 501)];
    let b = [run(1_202, 500), run(1_200, 501), run(1_201, 500)];
    let comparison = compare(&a, &b).unwrap();
    for name in ["response p50 ms", "response p99 ms"] {
        assert_eq!(of(&comparison, "rest-one", name).verdict, Verdict::Worse, "{comparison}");
        assert_eq!(of(&comparison, "rest-two", name).verdict, Verdict::Equivalent, "{comparison}");
    }
    assert!(comparison.figures.iter().all(|figure| figure.part != "fill"), "it was not measured");
    let text = comparison.to_string();
    let table = text.split("response p99 ms").nth(1).unwrap();
    let rows: Vec<&str> = table.lines().skip(1).take(2).map(str::trim_start).collect();
    assert!(rows[0].starts_with("rest-one ") && rows[0].contains("worse"), "{text}");
    assert!(rows[1].starts_with("rest-two ") && rows[1].contains("equivalent"), "{text}");
    assert!(text.contains("by chance"), "many verdicts at once: {text}");
}

#[test]
fn classes_of_a_phase_are_compared_where_there_are_several() {
    let run = |ask_us, write_us| {
        questions(&[("writing-one", &[("one", ANSWERS, ask_us), ("write", ANSWERS, write_us)])])
    };
    let a = [run(1_000, 500), run(1_001, 500)];
    let b = [run(1_000, 400), run(1_001, 400)];
    let comparison = compare(&a, &b).unwrap();
    let verdict = |part| of(&comparison, part, "response p50 ms").verdict;
    assert_eq!((verdict("one"), verdict("write")), (Verdict::Equivalent, Verdict::Better), "{comparison}");
    assert_eq!(of(&comparison, "all", "completed/s").ratio, 1.0);
    let reads =
        questions(&[("rest-one", &[("one", ANSWERS, 1_000)]), ("rest-two", &[("two", ANSWERS, 1_000)])]);
    let names: Vec<String> = parts(&[&a[0], &reads]).iter().map(Part::name).collect();
    assert_eq!(names, ["writing-one", "writing-one: one", "writing-one: write", "rest-one", "rest-two"]);
}

#[test]
fn a_quantile_with_too_few_samples_is_marked_and_gets_no_verdict() {
    let run = |us| questions(&[("rest-one", &[("one", 9_999, us)])]);
    let comparison = compare(&[run(1_000), run(1_001)], &[run(2_000), run(2_002)]).unwrap();
    let p99 = of(&comparison, "all", "response p99 ms");
    assert_eq!((p99.is_quotable, p99.verdict), (false, Verdict::CannotTell));
    assert!(p99.interval.is_some_and(|interval| interval.low > 1.5), "{p99:?}");
    assert_eq!(of(&comparison, "all", "response p50 ms").verdict, Verdict::Worse);
    assert!(comparison.to_string().contains("2.001?"), "{comparison}");
    assert!(comparison.figures.iter().all(|figure| figure.name != "response p99.9 ms"));
}

#[test]
fn phases_that_are_not_in_every_result_are_named() {
    let whole =
        questions(&[("rest-one", &[("one", 9, 10)]), ("rest-two", &[("two", 9, 20), ("write", 9, 1)])]);
    let half = questions(&[("rest-one", &[("one", 9, 10)])]);
    let other = questions(&[("rest-two", &[("two", 9, 20)])]);
    let comparison = compare(from_ref(&whole), from_ref(&half)).unwrap();
    assert!(comparison.warnings[0].ends_with("not compared: rest-two"), "{comparison}");
    assert_eq!(of(&comparison, "rest-one", "response p50 ms").ratio, 1.0);
    let comparison = compare(&[whole], from_ref(&other)).unwrap();
    let warning = &comparison.warnings[0];
    assert!(warning.ends_with("not compared: rest-one, rest-two: write"), "{comparison}");
    let error = compare(from_ref(&half), &[other]).unwrap_err();
    assert_eq!(error, CompareError::Phases("rest-one, rest-two".to_owned()));
    let mut imported = questions(&[("run", &[("one", 9, 10)])]);
    imported.result.tool.name = "wrk".to_owned();
    let comparison = compare(&[half], &[imported]).unwrap();
    assert_eq!(
        of(&comparison, "all", "response p50 ms").ratio,
        1.0,
        "the phase of another tool has its own name"
    );
}
