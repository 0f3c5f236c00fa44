//! Streams that run: several sources, bounds, faults, and event time.

use super::*;

fn two_sources(a: &str, b: &str, query: &str) -> String {
    let source = |alias: &str, words: &str| {
        format!(
            "<source alias='{alias}' {words}><address wrapper='tacho'><predicate key='device'>{alias}</predicate></address>\
             </source>"
        )
    };
    format!(
        "<virtual-sensor name='v'><processing-class><unique-timestamps>false</unique-timestamps><output-structure>\
         <field name='x' type='bigint'/><field name='y' type='bigint'/></output-structure></processing-class><streams>\
         <stream name='s'>{}{}<query><![CDATA[{query}]]></query></stream></streams></virtual-sensor>",
        source("a", a),
        source("b", b),
    )
}

const B: SourceId = SourceId { stream: 0, source: 1 };

#[test]
fn a_stream_is_executed_when_any_of_its_windows_moves() {
    let xml =
        two_sources("storage-size='2'", "storage-size='1'", "select a.x, b.y from a, b where a.x > b.y");
    let mut run = Run::new(&xml);
    run.x(1, 5);
    assert_eq!(run.take(), Vec::<String>::new());
    run.element_of(B, 2, 2, &[("y", Datum::Int(4))]);
    assert_eq!(run.take(), ["2: 5 4"]);
    run.x(3, 6);
    // The newest rows come first.
    assert_eq!(run.take(), ["3: 6 4", "3: 5 4"]);
    run.element_of(B, 4, 4, &[("y", Datum::Int(5))]);
    assert_eq!(run.take(), ["4: 6 5"]);
}

#[test]
fn other_windows_are_seen_as_they_last_moved() {
    let xml = two_sources(
        "storage-size='1'",
        "storage-size='2' slide='2'",
        "select a.x, sum(b.y) as y from a, b group by a.x",
    );
    let mut run = Run::new(&xml);
    let y = |y| [("y", Datum::Int(y))];
    run.element_of(B, 1, 1, &y(1)).element_of(B, 2, 2, &y(2)).element_of(B, 3, 3, &y(4));
    run.x(4, 7);
    assert_eq!(run.take(), ["4: 7 3"]);
    run.element_of(B, 5, 5, &y(8));
    assert_eq!(run.take(), ["5: 7 12"]);
}

#[test]
fn a_join_is_written_with_join_too() {
    let query = "select p.x, q.y from a as p inner join b q on p.x = q.y where p.x is not null";
    let mut run = Run::new(&two_sources("storage-size='9'", "storage-size='9'", query));
    run.x(1, 1).x(2, 2);
    run.element_of(B, 3, 3, &[("y", Datum::Int(2))]);
    assert_eq!(run.take(), ["3: 2 2"]);
}

#[test]
fn a_join_of_too_many_rows_is_a_fault() {
    let xml = two_sources(
        "storage-size='2000'",
        "storage-size='1000' slide='1000'",
        "select a.x, b.y from a, b where a.x = b.y",
    );
    let mut run = Run::new(&xml);
    for at in 0..1001 {
        run.x(at, 1);
    }
    for at in 0..1000 {
        run.element_of(B, 2000 + at, 2000 + at, &[("y", Datum::Int(2))]);
    }
    let fault = run.sensor.counters().last_fault.expect("a fault");
    assert!(fault.contains("1001000 combinations of rows"), "{fault}");
    assert_eq!(run.take(), Vec::<String>::new());
}

#[test]
fn a_stream_has_a_rate_and_a_count() {
    let xml = one_source("storage-size='1'", "select x from wrapper", "select x from a", &[("x", "bigint")]);
    let mut run = Run::new(&xml.replace("<stream name='s'>", "<stream name='s' rate='10'>"));
    run.x(0, 1).x(9, 2).x(10, 3);
    assert_eq!(run.take(), ["0: 1", "10: 3"]);
    let mut run = Run::new(&xml.replace("<stream name='s'>", "<stream name='s' count='2'>"));
    run.x(0, 1).x(9, 2).x(10, 3);
    assert_eq!(run.take(), ["0: 1", "9: 2"]);
    assert_eq!(run.sensor.counters().executions_refused, 1);
}

#[test]
fn a_row_has_the_time_of_its_column_or_of_the_execution() {
    let with_time =
        one_source("storage-size='2'", "select * from wrapper", "select * from a", &[("x", "bigint")]);
    let mut run = Run::new(&with_time);
    run.element_of(FIRST, 5, 100, &[("x", Datum::Int(1))]);
    run.element_of(FIRST, 6, 110, &[("x", Datum::Int(2))]);
    assert_eq!(run.take(), ["5: 1", "6: 2", "5: 1"]);
    let without =
        one_source("storage-size='2'", "select x from wrapper", "select x from a", &[("x", "bigint")]);
    let mut run = Run::new(&without);
    run.element_of(FIRST, 5, 100, &[("x", Datum::Int(1))]);
    assert_eq!(run.take(), ["100: 1"]);
}

#[test]
fn a_fault_in_a_window_ends_with_its_element() {
    let query = "select sum(x + 0) as x from a";
    let mut run =
        Run::new(&one_source("storage-size='2'", "select x from wrapper", query, &[("x", "bigint")]));
    run.x(1, 1).element(2, &[("x", Datum::Text("cold".into()))]).x(3, 4).x(4, 8);
    assert_eq!(run.take(), ["1: 1", "4: 12"]);
    let counters = run.sensor.counters();
    assert_eq!(counters.faults, 2);
    assert_eq!(counters.last_fault.as_deref(), Some("stream s: \"cold\" is not a number"));
}

#[test]
fn in_event_time_late_elements_go_to_their_place() {
    let xml = one_source(
        "storage-size='2'",
        "select * from wrapper",
        "select sum(x) as x from a",
        &[("x", "bigint")],
    );
    let mut run = Run::with_lateness(&xml, 10);
    run.x(100, 1).x(105, 2).x(102, 4);
    assert_eq!(run.take(), Vec::<String>::new());
    assert_eq!(run.sensor.elements_held(), 3);
    run.x(113, 8);
    assert_eq!(run.take(), ["100: 1", "102: 5"]);
    run.x(101, 16);
    assert_eq!(run.sensor.counters().late, 1);
    run.tick(1_000_000);
    assert_eq!(run.take(), Vec::<String>::new());
    run.sensor.finish(&mut run.rows);
    assert_eq!(run.take(), ["105: 6", "113: 10"]);
}

#[test]
fn in_event_time_slides_are_those_of_the_elements() {
    let xml = one_source(
        "storage-size='1s' slide='1s'",
        "select * from wrapper",
        "select sum(x) as x from a",
        &[("x", "bigint")],
    );
    let mut run = Run::with_lateness(&xml, 0);
    run.element_of(FIRST, 0, 77_000, &[("x", Datum::Int(1))]);
    run.element_of(FIRST, 1000, 77_000, &[("x", Datum::Int(2))]);
    run.element_of(FIRST, 2500, 77_000, &[("x", Datum::Int(4))]);
    assert_eq!(run.take(), ["1000: 3", "2000: 2"]);
}

#[test]
fn the_reorder_buffer_is_bounded() {
    let xml = one_source("storage-size='1'", "select x from wrapper", "select x from a", &[("x", "bigint")]);
    let mut run = Run::with_lateness(&xml, i64::MAX);
    for at in 0..70_000 {
        run.x(at, at);
    }
    let counters = run.sensor.counters();
    assert_eq!(counters.released_early, 70_000 - 65_536);
    assert_eq!(run.take().len(), 70_000 - 65_536);
    assert_eq!(run.sensor.elements_held(), 65_536 + 1);
}

#[test]
fn a_time_out_of_range_is_a_fault() {
    let xml = one_source(
        "storage-size='1s' slide='1s'",
        "select x from wrapper",
        "select x from a",
        &[("x", "bigint")],
    );
    for lateness in [None, Some(1)] {
        let mut run = Run { sensor: Sensor::new(Arc::new(plan(&xml)), lateness), rows: Vec::new() };
        run.x(i64::MAX, 1).x(i64::MIN, 1).tick(i64::MAX).tick(i64::MIN);
        let counters = run.sensor.counters();
        assert_eq!((counters.faults, counters.rows), (2, 0));
        assert!(counters.last_fault.is_some_and(|fault| fault.contains("TIMED_MAX")));
    }
}
