//! The limits of scripts: a run that goes over one makes no row, keeps nothing, and does not take the time of other sensors.

use super::scriptlet::scripted;
use super::*;
use crate::virtual_sensors::limits::{
    SCRIPT_BYTES_MAX, SCRIPT_DEPTH_MAX, SCRIPT_PAUSE_RUNS_MAX, SCRIPT_TEXT_BYTES_MAX, SCRIPT_VARIABLES_MAX,
};

const OUTPUT: [(&str, &str); 1] = [("n", "bigint")];

#[test]
fn a_script_that_does_not_end_is_stopped_and_the_next_row_continues() {
    let script = "state.runs = (state.runs ?? 0) + 1;\nif x == 2 { loop {} }\nn = state.runs;";
    let mut run = Run::new(&scripted(script, "", &OUTPUT));
    run.x(1, 1).x(2, 2).x(3, 3);
    assert_eq!(run.take(), ["1: 1", "3: 2"], "the state of a run that was stopped is not kept");
    let counters = run.sensor.counters();
    assert_eq!((counters.faults, counters.scripts_stopped, counters.script_runs_left_out), (1, 1, 0));
    let fault = counters.last_fault.expect("a fault");
    assert!(
        fault.contains("SCRIPT_OPERATIONS_MAX") && fault.starts_with("script at line 2, column"),
        "{fault}"
    );
}

#[test]
fn a_script_that_is_stopped_again_and_again_is_run_less_often() {
    let mut run = Run::new(&scripted("if x < 2000 { loop {} } n = x;", "", &OUTPUT));
    for at in 0..2_000 {
        run.x(at, at);
    }
    let counters = run.sensor.counters();
    // After the stop number k the next 2^(k - 1) - 1 runs are left out.
    assert_eq!((counters.scripts_stopped, counters.script_runs_left_out), (11, 1_989));
    let fault = counters.last_fault.expect("a fault");
    assert!(fault.contains(&format!("{SCRIPT_PAUSE_RUNS_MAX} runs are left out")), "{fault}");
    for at in 2_000..4_000 {
        run.x(at, at);
    }
    let rows = run.take();
    assert_eq!(rows.last().map(String::as_str), Some("3999: 3999"));
    assert_eq!(rows.len() as u64 + run.sensor.counters().script_runs_left_out, 2_000 + 1_989);
}

#[test]
fn memory_depth_and_state_are_bounded() {
    let stopped = |script: &str, part: &str, runaway: u64| {
        let mut run = Run::new(&scripted(script, "", &OUTPUT));
        run.x(1, 1);
        let counters = run.sensor.counters();
        let fault = counters.last_fault.unwrap_or_default();
        assert!(fault.contains(part), "{script}: {fault}");
        assert_eq!(
            (counters.faults, counters.scripts_stopped, counters.rows),
            (1, runaway, 0),
            "{script}: {fault}"
        );
    };
    stopped("let k = 0; for i in 0..1000000000 { k += i; }", "SCRIPT_OPERATIONS_MAX", 1);
    stopped("[1, 2].map(|i| { loop {} });", "SCRIPT_OPERATIONS_MAX", 1);
    stopped("let t = \"xxxxxxxx\"; loop { t += t; }", "too large", 1);
    stopped("let t = \"\"; t.pad(1000000000, 'x');", "too large", 1);
    stopped("let a = []; a.pad(1000000000, 0);", "too large", 1);
    stopped("let a = []; loop { a.push(a); }", "too large", 1);
    stopped("let m = #{}; for i in 0..100000 { m[`k${i}`] = i; }", "SCRIPT_OPERATIONS_MAX", 1);
    stopped("fn f(n) { f(n + 1) } f(0);", "Stack overflow", 1);
    stopped("fn f(n) { loop {} } f(0);", "SCRIPT_OPERATIONS_MAX", 1);
    let large = "state.t = []; for i in 0..1000 { state.t.push(i); } let s = \"\"; s.pad(600, 'x'); state.s = s; n = 1;";
    stopped(large, "SCRIPT_STATE_BYTES_MAX", 0);
    stopped("let m = #{}; for i in 0..20 { m = #{a: m}; } state.m = m; n = 1;", "SCRIPT_STATE_DEPTH_MAX", 0);
    stopped("state = 5;", "state is of the type i64; it is a map", 0);
    stopped("state.f = |y| y + 1; n = 1;", "state: a value of the type", 0);
    stopped("state.n = 0.0 / 0.0; n = 1;", "state: the number is not a finite number", 0);
    stopped("timed = \"soon\";", "timed is not a whole number of milliseconds", 0);
    stopped("timed = 9000000000000000000;", "TIMED_MAX", 0);
    stopped("n = 1 / 0;", "Division by zero", 0);
    stopped("throw \"no wind\";", "no wind", 0);
}

#[test]
fn variables_are_bounded() {
    let lets: String = (0..SCRIPT_VARIABLES_MAX).map(|at| format!("let v{at} = 0;")).collect();
    let mut run = Run::new(&scripted(&lets, "", &OUTPUT));
    run.x(1, 1);
    assert_eq!(run.sensor.counters().scripts_stopped, 1);
    let names: Vec<_> = (0..=SCRIPT_VARIABLES_MAX / 2).map(|at| format!("f{at}")).collect();
    let output: Vec<_> = names.iter().map(|name| (name.as_str(), "bigint")).collect();
    assert!(fault(&scripted("let y = 1;", "", &output)).contains("SCRIPT_VARIABLES_MAX"));
}

#[test]
fn a_text_that_is_too_long_is_not_given_to_a_script() {
    let mut run = Run::new(&scripted("n = x.len();", "", &OUTPUT));
    run.element(1, &[("x", Datum::Text("x".repeat(SCRIPT_TEXT_BYTES_MAX).into()))]);
    run.element(2, &[("x", Datum::Text("x".repeat(SCRIPT_TEXT_BYTES_MAX + 1).into()))]);
    assert_eq!(run.take(), [format!("1: {SCRIPT_TEXT_BYTES_MAX}")]);
    assert!(run.sensor.counters().last_fault.expect("a fault").contains("SCRIPT_TEXT_BYTES_MAX"));
}

#[test]
fn a_script_that_is_too_long_or_too_deep_is_refused() {
    let long = format!("n = 1; // {}", "x".repeat(SCRIPT_BYTES_MAX));
    assert!(fault(&scripted(&long, "", &OUTPUT)).contains("SCRIPT_BYTES_MAX"));
    let chain = format!("n = {}1;", "1 + ".repeat(SCRIPT_DEPTH_MAX));
    assert!(fault(&scripted(&chain, "", &OUTPUT)).contains("maximum complexity"));
    let nested = format!("n = {}1{};", "(".repeat(10_000), ")".repeat(10_000));
    assert!(fault(&scripted(&nested, "", &OUTPUT)).contains("maximum complexity"));
}

#[test]
fn a_script_has_no_way_out() {
    let scripts = [
        "import \"x\" as y;",
        "eval(\"1\");",
        "n = timestamp();",
        "print(1);",
        "debug(1);",
        "sleep(1);",
        "n = Fn(\"sleep\").call(1);",
        "let f = |y| y; loop { f = f.curry(f); }",
        "open_file(\"x\");",
        "n = rand();",
        "n = parse_json(\"1\");",
        "exit(1);",
    ];
    for script in scripts {
        let xml = scripted(script, "", &OUTPUT);
        let planned =
            Descriptor::parse(&xml).map_err(Faults::from).and_then(|descriptor| Plan::new(&descriptor));
        if let Ok(plan) = planned {
            let mut run = Run { sensor: Sensor::new(Arc::new(plan), None), rows: Vec::new() };
            run.x(1, 1);
            let counters = run.sensor.counters();
            assert_eq!((counters.faults, counters.scripts_stopped, counters.rows), (1, 0, 0), "{script}");
            let fault = counters.last_fault.unwrap_or_default();
            assert!(fault.contains("Function not found"), "{script}: {fault}");
        }
    }
}
