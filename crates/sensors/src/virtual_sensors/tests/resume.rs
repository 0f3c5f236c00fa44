//! A sensor that ends and continues gives what one gives that does not end.

use proptest::prelude::*;

use super::super::{Checkpoint, NeededElements};
use super::*;

type Element = (i64, i64);

/// Elements with gaps, several of one time, and more than any window of the tests holds.
fn elements() -> Vec<Element> {
    let steps = [400, 1_000, 0, 2_500, 700, 9_000, 100, 100, 4_000, 30_000, 1, 999];
    let mut timed = 1_700_000_000_000;
    let times = (0..60).map(|at: usize| {
        timed += steps[at % steps.len()];
        (timed, at as i64)
    });
    times.collect()
}

fn feed(sensor: &mut Sensor, elements: &[Element], out: &mut Vec<OutputRow>) {
    for (timed, x) in elements {
        sensor.element(FIRST, *timed, *timed, &mut |_| Datum::Int(*x), out);
    }
}

fn whole(xml: &str, lateness: Option<i64>, elements: &[Element]) -> Vec<OutputRow> {
    let (mut sensor, mut out) = (Sensor::new(Arc::new(plan(xml)), lateness), Vec::new());
    feed(&mut sensor, elements, &mut out);
    sensor.finish(&mut out);
    out
}

/// Ends after some elements, and continues from what was stored and from the elements.
fn in_two(xml: &str, lateness: Option<i64>, elements: &[Element], at: usize) -> Vec<OutputRow> {
    let plan = Arc::new(plan(xml));
    let (mut first, mut out) = (Sensor::new(Arc::clone(&plan), lateness), Vec::new());
    feed(&mut first, &elements[..at], &mut out);
    let stored = serde_json::to_string(&first.checkpoint()).unwrap();
    let checkpoint: Checkpoint = serde_json::from_str(&stored).unwrap();
    // Elements that wait for late ones are not done.
    let is_done = |timed: i64| first.passed().is_none_or(|passed| timed <= passed);
    let done: Vec<Element> = elements[..at].iter().filter(|(timed, _)| is_done(*timed)).copied().collect();
    let mut second = Sensor::resume(plan, lateness, Some(&checkpoint));
    for (timed, x) in reached(&done, second.reach(FIRST)) {
        second.fill(FIRST, timed, &mut |_| Datum::Int(x));
    }
    second.settle();
    feed(&mut second, &elements[done.len()..], &mut out);
    second.finish(&mut out);
    out
}

fn reached(done: &[Element], reach: NeededElements) -> Vec<Element> {
    match reach {
        NeededElements::Newest(count) => done[done.len().saturating_sub(count)..].to_vec(),
        NeededElements::Since(time) => done.iter().filter(|(timed, _)| *timed >= time).copied().collect(),
        NeededElements::LastMillis(_) => panic!("a checkpoint says since when"),
    }
}

fn check(xml: &str, lateness: Option<i64>) {
    let elements = elements();
    let expected = whole(xml, lateness, &elements);
    assert!(!expected.is_empty(), "{xml}");
    for at in 0..=elements.len() {
        assert_eq!(in_two(xml, lateness, &elements, at), expected, "after {at} elements, {xml}");
    }
}

const WINDOWS: &[&str] = &[
    "storage-size='1'",
    "storage-size='3'",
    "storage-size='3' slide='2'",
    "storage-size='1' slide='3'",
    "storage-size='10s'",
    "storage-size='10s' slide='3'",
    "storage-size='10s' slide='4s'",
    "storage-size='3' slide='5s'",
];

#[test]
fn every_kind_of_window_continues() {
    let output = [("n", "bigint"), ("total", "double"), ("newest", "bigint")];
    let query = "select count(*) as n, sum(x) as total, last(x) as newest from a";
    for window in WINDOWS {
        for lateness in [None, Some(0), Some(3_000)] {
            check(&one_source(window, "select x from wrapper where x <> 7", query, &output), lateness);
        }
    }
}

#[test]
fn every_class_continues() {
    let classes = [
        ("Counter", "", "counter"),
        ("SMACleaner", "<param name='size'>3</param><param name='error-threshold'>0.2</param>", "raw_value"),
        ("ScheduledBridge", "<param name='rate'>5000</param>", "x"),
        ("ClockedBridge", "<param name='rate'>5000</param><param name='table_name'>t</param>", "x"),
    ];
    for (class, params, field) in classes {
        let xml =
            one_source("storage-size='1'", "select x from wrapper", "select x from a", &[(field, "double")]);
        let with_class =
            format!("<processing-class><class-name>{class}</class-name><init-params>{params}</init-params>");
        check(&xml.replace("<processing-class>", &with_class), None);
    }
}

fn cleaned(model: &str, size: usize) -> String {
    let output = [("stream", "double"), ("processed", "double"), ("dirtiness", "double")];
    let xml =
        one_source("storage-size='1'", "select x, timed from wrapper", "select x, timed from a", &output);
    let class = format!(
        "<processing-class><class-name>DataClean</class-name><init-params><param name='model'>{model}</param>\
         <param name='window_size'>{size}</param><param name='error_bound'>2.5</param></init-params>"
    );
    xml.replace("<processing-class>", &class)
}

#[test]
fn models_continue() {
    for model in ["linear", "quadratic", "chebyschev_deg2"] {
        check(&cleaned(model, 7), None);
    }
}

/// A stateful script: a count, a mean of binary digits without end, and what it has seen. It grows without end for some values, so that
/// runs after it are left out.
const SCRIPT: &str = "if x % 8 > 4 { let t = \"xxxxxxxx\"; loop { t += t; } } state.n = (state.n ?? 0) + 1; state.mean = (state.mean ?? 0.1) * 0.9 + x / 3.0; \
                      state.seen = (state.seen ?? []) + [x % 7]; if state.seen.len() > 5 { state.seen.remove(0); } \
                      state.sign = if x < 0 { '-' } else { '+' }; \
                      n = state.n; mean = state.mean; sum = 0; for seen in state.seen { sum += seen; }";

fn scripted(more: &str) -> String {
    let output = [("n", "bigint"), ("mean", "double"), ("sum", "bigint")];
    let xml =
        one_source("storage-size='1'", "select x, timed from wrapper", "select x, timed from a", &output);
    let class = format!(
        "<processing-class><class-name>ScriptletProcessor</class-name><init-params><param name='scriptlet'><![CDATA[{SCRIPT}]]>\
         </param>{more}</init-params>"
    );
    xml.replace("<processing-class>", &class)
}

#[test]
fn scripts_continue() {
    check(&scripted(""), None);
    check(&scripted(""), Some(3_000));
    let periodic = "<param name='scriptlet-periodic'>n = state.n ?? 0; sum = -1; true</param><param name='period'>5000</param>";
    check(&scripted(periodic), None);
}

#[test]
fn a_chart_continues() {
    let xml = one_source("storage-size='1'", "select x from wrapper", "select x from a", &[("x", "double")]);
    let xml = xml.replace("<processing-class>", "<processing-class><class-name>Chart</class-name>");
    check(&xml, None);
    let plan = Arc::new(plan(&xml));
    let mut first = Sensor::new(Arc::clone(&plan), None);
    feed(&mut first, &elements(), &mut Vec::new());
    let resumed = Sensor::resume(plan, None, Some(&first.checkpoint()));
    assert_eq!(resumed.chart(), first.chart());
    assert_eq!(first.chart().unwrap().lines[0].1.len(), 10);
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(64))]
    #[test]
    fn whenever_a_script_or_a_model_ends_it_continues(
        steps in prop::collection::vec((0_i64..20_000, -50_i64..50), 1..60),
        at in any::<prop::sample::Index>(),
        size in 3_usize..9,
    ) {
        let mut timed = 1_700_000_000_000;
        let elements: Vec<Element> = steps.into_iter().map(|(step, x)| { timed += step; (timed, x) }).collect();
        let at = at.index(elements.len() + 1);
        for xml in [scripted(""), cleaned("quadratic", size)] {
            prop_assert_eq!(in_two(&xml, None, &elements, at), whole(&xml, None, &elements));
        }
    }
}

#[test]
fn rates_and_counts_continue() {
    let xml = one_source("storage-size='2'", "select x from wrapper", "select x from a", &[("x", "bigint")]);
    check(&xml.replace("<stream name='s'>", "<stream name='s' rate='3000' count='9'>"), None);
    check(&xml.replace("<output-structure>", "<output-specification rate='2000'/><output-structure>"), None);
}

#[test]
fn times_of_rows_are_known_again() {
    let xml = one_source(
        "storage-size='3'",
        "select x, timed from wrapper",
        "select x, timed from a",
        &[("x", "bigint")],
    );
    let xml = xml.replace("<unique-timestamps>false</unique-timestamps>", "");
    let plan = Arc::new(plan(&xml));
    let mut sensor = Sensor::resume(plan, None, None);
    sensor.had_row(2_000);
    sensor.fill(FIRST, 2_000, &mut |_| Datum::Int(1));
    sensor.settle();
    let mut out = Vec::new();
    feed(&mut sensor, &[(3_000, 2)], &mut out);
    assert_eq!(out.iter().map(|row| row.timed).collect::<Vec<_>>(), [3_000]);
}

#[test]
fn a_sensor_without_a_checkpoint_begins_with_full_windows() {
    let query = "select count(*) as n from a";
    let begin = |window: &str| {
        let xml = one_source(window, "select x from wrapper", query, &[("n", "bigint")]);
        let mut sensor = Sensor::resume(Arc::new(plan(&xml)), None, None);
        let reach = sensor.reach(FIRST);
        for timed in [1_000, 2_000, 3_000] {
            sensor.fill(FIRST, timed, &mut |_| Datum::Int(1));
        }
        sensor.settle();
        let mut out = Vec::new();
        feed(&mut sensor, &[(4_000, 1), (5_000, 1), (8_000, 1)], &mut out);
        (reach, out.iter().map(|row| (row.timed, row.values[0].to_string())).collect::<Vec<_>>())
    };
    let rows =
        |rows: &[(i64, &str)]| rows.iter().map(|(timed, n)| (*timed, (*n).to_owned())).collect::<Vec<_>>();
    assert_eq!(begin("storage-size='3'").0, NeededElements::Newest(3));
    assert_eq!(begin("storage-size='5'").1, rows(&[(4_000, "4"), (5_000, "5"), (8_000, "5")]));
    assert_eq!(begin("storage-size='5' slide='2'").1, rows(&[(5_000, "5")]));
    assert_eq!(begin("storage-size='10s'").0, NeededElements::LastMillis(10_000));
    assert_eq!(begin("storage-size='2s' slide='4s'").1, rows(&[(7_000, "1")]));
}

#[test]
fn a_checkpoint_of_another_plan_is_not_used() {
    let xml = |window| one_source(window, "select x from wrapper", "select x from a", &[("x", "bigint")]);
    let counter = xml("storage-size='1'")
        .replace("<processing-class>", "<processing-class><class-name>Counter</class-name>");
    let counter = counter.replace("name='x'", "name='counter'");
    let point = Sensor::new(Arc::new(plan(&counter)), None).checkpoint();
    let resumed = Sensor::resume(Arc::new(plan(&xml("storage-size='5s'"))), None, Some(&point));
    assert_eq!(resumed.reach(FIRST), NeededElements::LastMillis(5_000));
}

#[test]
fn the_clock_moves_windows_without_an_element() {
    let xml = one_source(
        "storage-size='2s' slide='2s'",
        "select x from wrapper",
        "select count(*) as n from a",
        &[("n", "bigint")],
    );
    for lateness in [None, Some(1_000)] {
        let (mut sensor, mut out) = (Sensor::new(Arc::new(plan(&xml)), lateness), Vec::new());
        feed(&mut sensor, &[(10_000, 1), (11_000, 1)], &mut out);
        sensor.advance(12_000, &mut out);
        assert_eq!(out, [], "an element of the time of the slide may come");
        sensor.advance(12_001, &mut out);
        assert_eq!(out.iter().map(|row| row.timed).collect::<Vec<_>>(), [12_000]);
        feed(&mut sensor, &[(11_500, 1)], &mut out);
        assert_eq!(sensor.counters().late, u64::from(lateness.is_some()));
    }
}
