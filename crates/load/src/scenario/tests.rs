//! Tests of the parsing of scenario files, and of error texts.

use super::*;

const EXAMPLE: &str = r#"
[scenario]
name = "example"
about = "gets"
driver = "redis"
[target]
url = "redis://127.0.0.1"
[dataset]
keys = [0, 99]
[[operation]]
name = "get"
command = "GET __key__"
weight = 3
[[operation]]
name = "set"
command = "SET __key__ __data__"
[[phase]]
name = "load"
kind = "load"
arrival = "closed"
operations = ["set"]
requests = 10
[[phase]]
name = "run"
arrival = "poisson"
rate = 1000
connections = 10
duration = "30s"
warmup = 5
"#;

fn parse(sets: &[&str]) -> std::result::Result<Scenario, String> {
    let sets: Vec<String> = sets.iter().map(|set| (*set).to_owned()).collect();
    Scenario::parse(EXAMPLE, &sets)
}

#[test]
fn an_objective_is_read_and_a_scale_is_of_rates_only_where_it_says_so() {
    let scenario = Scenario::load("thingsboard", &["scale=0.5".to_owned()]).unwrap();
    assert_eq!(scenario.slo.unwrap().limit_us, 20_000.0);
    assert_eq!(scenario.rate_scale(), 1.0);
    assert_eq!(Scenario::load("slb-s1", &["scale=0.5".to_owned()]).unwrap().rate_scale(), 0.5);
    let error = Scenario::load("thingsboard", &["slo.response=soon".to_owned()]).unwrap_err().to_string();
    assert!(error.contains("[slo] response") && error.contains("p99<=20ms"), "{error}");
}

#[test]
fn a_file_becomes_a_scenario() {
    let scenario = parse(&[]).unwrap();
    assert_eq!(scenario.operations[0].weight, 3);
    assert_eq!(scenario.operations[0].driver_keys["command"].as_str(), Some("GET __key__"));
    let [load, run] = &scenario.phases[..] else { panic!() };
    assert_eq!((load.kind, load.duration), (PhaseKind::Load, None));
    assert_eq!(load.mixes[0].driver_keys["requests"].as_integer(), Some(10));
    assert_eq!(run.warmup.as_secs(), 5);
    assert_eq!((run.mixes[0].rate, run.mixes[0].operations.len()), (Some(1_000.0), 2));
    assert_eq!(scenario.class_of("set"), 1);
}

#[test]
fn overrides_reach_every_place_by_name() {
    let sets = [
        "phase.run.rate=5.5",
        "scale=0.5",
        "target.url=redis://other:1",
        "operation.get.weight=1",
        "gates.lag_p99_us_max=1",
    ];
    let scenario = parse(&sets).unwrap();
    assert_eq!(scenario.phases[1].mixes[0].rate, Some(5.5));
    assert_eq!((scenario.head.scale, scenario.scaled(9)), (0.5, 5));
    assert_eq!(scenario.target.url, "redis://other:1");
    assert_eq!(scenario.operations[0].weight, 1);
    assert_eq!(scenario.gates.lag_p99_us_max, 1.0);
    assert_eq!(scenario.effective["phase"][1]["rate"].as_float(), Some(5.5));
}

#[test]
fn what_is_wrong_is_said_with_its_place_and_a_suggestion() {
    for (set, expected) in [
        ("phase.rum.rate=1", "did you mean `run`?"),
        ("scenario.abuot=x", "did you mean `about`?"),
        ("gates.lag_p99_max=1", "did you mean `lag_p99_us_max`?"),
        ("phase.run.rate=-1", "phase `run`: an open loop needs a `rate` above zero"),
        ("phase.run.duration=30x", "not a unit of time"),
        ("phase.run.arrival=posson", "unknown variant `posson`"),
        ("phase.run.operations=[\"gte\"]", "did you mean `get`?"),
        ("phase.load.name=run", "two phases are called `run`"),
        ("phase.run.rate=nan", "phase `run`: an open loop needs a `rate` above zero"),
        ("phase.run.arrival=steps", "`rate_to`"),
        ("phase.run.rate_to=0", "phase `run`: rate_to = 0; it must be a number above zero"),
        ("phase.run.open_rate=-1", "phase `run`: open_rate = -1; it must be a number above zero"),
        ("phase.run.steps=1001", "use at most 1000"),
        ("phase.run.timer_us=1000001", "use at most 1000000"),
        ("phase.load.timer_us=1000", "timer_us is for open loops; `load` is not an open loop"),
        ("scale=0", "above zero"),
        ("scale=nan", "above zero"),
        ("phase.run.rate=1e300", "at most 1000000000"),
        ("phase.run.duration=1e30", "longer than a year"),
        ("phase.run.duration=nan", "not a unit of time"),
        ("gates.steal_share_max=nan", "[gates] steal_share_max = NaN"),
        ("phase.rate=1", "`phase` is a list; say which one: phase.NAME.rate"),
        ("scale", "path.to.key=value"),
        ("phaze.run.rate=1", "did you mean `phase`?"),
        ("run.rate=1", "`run` is the name of a member of phase: phase.run.rate"),
        ("get.weight=1", "`get` is the name of a member of operation: operation.get.weight"),
        ("rate=1", "`rate` is a key of a phase: phase.NAME.rate (phases: load, run)"),
        ("sede=1", "did you mean `seed`?"),
    ] {
        let error = parse(&[set]).unwrap_err();
        assert!(error.contains(expected), "{set}: {error}");
    }
}

#[test]
fn polling_is_of_schedules_and_not_together_with_late_passes() {
    let mut scenario = parse(&["phase.run.busy_poll_us=50"]).unwrap();
    assert_eq!(scenario.phases[1].busy_poll_us, 50);
    scenario.close();
    assert_eq!(
        (scenario.phases[1].busy_poll_us, scenario.effective["phase"][1].get("busy_poll_us")),
        (0, None)
    );
    for (sets, expected) in [
        (&["phase.load.busy_poll_us=50"][..], "busy_poll_us is for operations on a schedule"),
        (&["phase.run.busy_poll_us=10001"], "use at most 10000"),
        (&["phase.run.busy_poll_us=50", "phase.run.tick_us=200"], "leave one of both out"),
    ] {
        let error = parse(sets).unwrap_err();
        assert!(error.contains(expected), "{sets:?}: {error}");
    }
}

#[test]
fn a_timer_is_of_open_loops_and_not_together_with_late_passes() {
    let mut scenario = parse(&["phase.run.timer_us=1000"]).unwrap();
    assert_eq!(scenario.phases[1].mixes[0].timer_us, 1_000);
    scenario.close();
    assert_eq!(
        (scenario.phases[1].mixes[0].timer_us, scenario.phases[1].mixes[0].arrival),
        (0, Arrival::Closed)
    );
    assert_eq!(scenario.effective["phase"][1].get("timer_us"), None);
    let error = parse(&["phase.run.timer_us=1000", "phase.run.tick_us=200"]).unwrap_err();
    assert!(error.contains("leave one of both out"), "{error}");
    let mixes = r#"phase.run.mix=[{ name = "a", timer_us = 500 }, { name = "b" }, { name = "c", arrival = "idle", timer_us = 0 }]"#;
    let scenario = parse(&["phase.run.timer_us=1000", mixes]).unwrap();
    assert_eq!(scenario.phases[1].mixes.iter().map(|mix| mix.timer_us).collect::<Vec<_>>(), [500, 1_000, 0]);
}

#[test]
fn a_rate_at_which_connections_come_back_is_above_zero_or_left_out() {
    assert_eq!(parse(&["phase.load.arrival=reopen"]).unwrap().phases[0].mixes[0].rate, None);
    let error = parse(&["phase.load.arrival=reopen", "phase.load.rate=0"]).unwrap_err();
    assert!(error.contains("phase `load`: rate = 0; it must be a number above zero"), "{error}");
}

#[test]
fn what_a_closed_loop_is_made_of_says_the_same_to_other_processes() {
    let mixes = r#"phase.run.mix=[{ name = "a", arrival = "fixed", timer_us = 500 }, { name = "b" }]"#;
    for (arrival, expected) in
        [("poisson", [Arrival::Closed, Arrival::Closed]), ("idle", [Arrival::Closed, Arrival::Idle])]
    {
        let mut scenario = parse(&[mixes, &format!("phase.run.arrival={arrival}")]).unwrap();
        scenario.close();
        let again = Scenario::parse(&toml::to_string(&scenario.effective).unwrap(), &[]).unwrap();
        for phases in [&scenario.phases, &again.phases] {
            let found: Vec<Arrival> = phases[1].mixes.iter().map(|mix| mix.arrival).collect();
            assert_eq!(found, expected, "{arrival}");
        }
    }
}

/// A suggestion is a key of the table that contains the wrong key.
/// Unusual numbers are used or refused, at every place where a scenario has a number.
#[test]
fn a_key_of_the_whole_phase_is_refused_in_a_mix() {
    let scenario = Scenario::load("gemini-mix", &["phase.run.mix.hash.warmup=5s".to_owned()]);
    let error = scenario.unwrap_err().to_string();
    assert!(error.contains("mix `hash`: `warmup` is the same for all mixes"), "{error}");
}

#[test]
fn a_scenario_knows_what_it_was_loaded_from() {
    let home = tempfile::tempdir().unwrap();
    let file = home.path().join("mine.toml");
    std::fs::write(&file, EXAMPLE).unwrap();
    let sets = ["seed=3".to_owned(), "scale=0.5".to_owned()];
    let name = file.to_str().unwrap();
    let scenario = Scenario::load(name, &sets).unwrap();
    assert_eq!(scenario.origin, Origin { name: name.to_owned(), sets: sets.to_vec() });
    assert_ne!(scenario.head.name, name);
    assert_eq!(Scenario::load("slb-s1", &[]).unwrap().origin.name, "slb-s1");
}

#[test]
fn an_operation_cannot_have_the_name_of_the_sum_of_all() {
    let text = Builtin::named("http-qps").unwrap().text.replace("\"get\"", "\"all\"");
    let error = Scenario::parse(&text, &[]).unwrap_err();
    assert!(error.contains("an operation is called `all`"), "{error}");
}
#[test]
fn every_builtin_scenario_is_one_and_has_its_name() {
    for builtin in BUILTIN {
        let scenario = builtin.scenario().unwrap_or_else(|error| panic!("{}: {error}", builtin.name));
        assert_eq!(scenario.head.name, builtin.name);
        assert!(!scenario.head.about.is_empty());
    }
    let error = Scenario::load("gemini-hsah", &[]).unwrap_err().to_string();
    assert!(error.contains("did you mean `gemini-hash`?"), "{error}");
}

#[test]
fn every_alias_is_of_a_scenario_and_its_name_of_nothing_else() {
    let mut names: Vec<&str> = BUILTIN.iter().map(|builtin| builtin.name).collect();
    names.extend(ALIASES.iter().map(|alias| alias.name));
    let different: std::collections::BTreeSet<&str> = names.iter().copied().collect();
    assert_eq!(different.len(), names.len(), "{names:?}");
    for alias in ALIASES {
        let scenario = Scenario::load(alias.name, &["seed=9".to_owned()]).unwrap();
        assert_eq!((scenario.head.name.as_str(), scenario.head.seed), (alias.scenario, 9));
        assert_eq!(scenario.origin.name, alias.name);
    }
    for (wrong, meant) in
        [("redis-gte", "redis-get"), ("mqtt-qos-1", "mqtt-qos1"), ("postgre", "postgres"), ("htpp", "http")]
    {
        let error = Scenario::load(wrong, &[]).unwrap_err().to_string();
        assert!(error.contains(&format!("did you mean `{meant}`?")), "{error}");
    }
}
