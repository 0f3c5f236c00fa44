//! The six kinds of windows.

use super::*;
use crate::virtual_sensors::limits::HISTORY_ROWS_MAX;
use crate::virtual_sensors::plan::Extent;

const SECOND: i64 = 1000;

/// Counts and sums the window, so that each execution shows what it holds.
fn summed(window: &str) -> Run {
    let output = [("n", "bigint"), ("total", "bigint")];
    Run::new(&one_source(
        window,
        "select * from wrapper",
        "select count(x) as n, sum(x) as total from a",
        &output,
    ))
}

#[test]
fn a_count_that_moves_on_each_element_holds_the_newest() {
    let mut run = summed("storage-size='3'");
    run.x(1, 1).x(2, 10).x(3, 100).x(4, 1000);
    assert_eq!(run.take(), ["1: 1 1", "2: 2 11", "3: 3 111", "4: 3 1110"]);
}

#[test]
fn a_slide_of_one_is_not_a_slide() {
    let mut run = summed("storage-size='2' slide=' 1 '");
    run.x(1, 1).x(2, 10).x(3, 100);
    assert_eq!(run.take(), ["1: 1 1", "2: 2 11", "3: 2 110"]);
}

#[test]
fn a_count_that_moves_by_a_count_waits_until_it_is_full() {
    let mut run = summed("storage-size='3' slide='2'");
    for at in 1..=7 {
        run.x(at, 1 << at);
    }
    assert_eq!(run.take(), ["3: 3 14", "5: 3 56", "7: 3 224"]);
}

#[test]
fn a_slide_may_pass_elements() {
    let mut run = summed("storage-size='1' slide='3'");
    for at in 1..=7 {
        run.x(at, at);
    }
    assert_eq!(run.take(), ["1: 1 1", "4: 1 4", "7: 1 7"]);
}

#[test]
fn a_time_that_moves_on_each_element_holds_both_its_ends() {
    let mut run = summed("storage-size='2s'");
    run.x(0, 1).x(1000, 10).x(2000, 100).x(2001, 1000);
    assert_eq!(run.take(), ["0: 1 1", "1000: 2 11", "2000: 3 111", "2001: 3 1110"]);
}

#[test]
fn a_late_element_joins_a_time_and_does_not_move_it_back() {
    let mut run = summed("storage-size='2s'");
    run.x(5000, 1);
    run.element_of(FIRST, 4000, 5001, &[("x", Datum::Int(10))]);
    run.element_of(FIRST, 2999, 5002, &[("x", Datum::Int(100))]);
    run.x(6500, 1000);
    assert_eq!(run.take(), ["5000: 1 1", "5001: 2 11", "5002: 2 11", "6500: 2 1001"]);
}

#[test]
fn a_time_that_moves_by_a_count_is_of_the_newest_element() {
    let mut run = summed("storage-size='1s' slide='2'");
    run.x(0, 1).x(100, 10).x(1050, 100).x(1200, 1000);
    assert_eq!(run.take(), ["100: 2 11", "1200: 2 1100"]);
}

#[test]
fn a_time_that_moves_by_a_time_begins_after_its_length() {
    let mut run = summed("storage-size='10s' slide='4s'");
    run.x(0, 1).x(5 * SECOND, 10).tick(9_999);
    assert_eq!(run.take(), Vec::<String>::new());
    assert_eq!(run.sensor.next_deadline(), Some(10_000));
    run.tick(10_000);
    assert_eq!(run.take(), ["10000: 2 11"]);
    run.x(13 * SECOND, 100).tick(14 * SECOND);
    assert_eq!(run.take(), ["14000: 2 110"]);
}

#[test]
fn an_element_of_the_time_of_a_slide_is_in_it() {
    let mut run = summed("storage-size='1s' slide='1s'");
    run.x(0, 1).x(1000, 10).x(1001, 100).x(2000, 1000).tick(2000);
    assert_eq!(run.take(), ["1000: 2 11", "2000: 3 1110"]);
}

#[test]
fn an_empty_window_has_no_row_of_a_stream() {
    let mut run = summed("storage-size='1s' slide='1s'");
    run.x(0, 1).tick(5000);
    assert_eq!(run.take(), ["1000: 1 1"]);
}

#[test]
fn a_count_that_moves_by_a_time_holds_the_newest_of_then() {
    let mut run = summed("storage-size='2' slide='1s'");
    run.x(0, 1).x(100, 10).x(200, 100).tick(1000);
    assert_eq!(run.take(), ["1000: 2 110"]);
    run.tick(2000);
    assert_eq!(run.take(), ["2000: 2 110"]);
    // An element from the future is not there yet.
    run.element_of(FIRST, 9000, 2500, &[("x", Datum::Int(7))]).tick(3000);
    assert_eq!(run.take(), ["3000: 2 110"]);
}

#[test]
fn nothing_and_no_share_give_no_rows() {
    for window in ["storage-size='0'", "storage-size='0s'", "storage-size='3' sampling-rate='0'"] {
        let mut run = summed(window);
        run.x(1, 1).x(2, 1).tick(100_000);
        assert_eq!(run.take(), Vec::<String>::new(), "{window}");
        assert_eq!(run.sensor.elements_held(), 0);
    }
}

#[test]
fn sampling_goes_by_the_last_digits_of_the_time() {
    let mut run = summed("storage-size='10' sampling-rate='0.25'");
    run.x(100, 1).x(124, 10).x(125, 100).x(299, 1000);
    // What is left out counts as an element of the window, and its execution shows what was there.
    assert_eq!(run.take(), ["100: 1 1", "124: 2 11", "125: 2 11", "299: 2 11"]);
}

#[test]
fn elements_that_no_slide_can_show_are_not_held() {
    for (window, most) in [
        ("storage-size='2' slide='1000'", 4),
        ("storage-size='1s' slide='1h'", 1002),
        ("storage-size='1s' slide='500'", 1504),
        ("storage-size='3' slide='1h'", 6),
    ] {
        let mut run = summed(window);
        for at in 0..20_000 {
            run.x(at, 1);
            assert!(run.sensor.elements_held() <= most, "{window}: {}", run.sensor.elements_held());
        }
    }
}

#[test]
fn bytes_are_those_of_what_is_held() {
    let mut run = Run::new(&one_source(
        "storage-size='3'",
        "select * from wrapper",
        "select x from a",
        &[("x", "string")],
    ));
    let text = |length: usize| Datum::Text("y".repeat(length).into());
    assert_eq!(run.sensor.bytes_held(), 0);
    run.element(1, &[("x", text(1000))]);
    let one = run.sensor.bytes_held();
    assert!(one > 1000);
    run.element(2, &[("x", text(1000))]).element(3, &[("x", text(1000))]);
    assert_eq!(run.sensor.bytes_held(), 3 * one);
    run.element(4, &[("x", text(1000))]);
    assert_eq!(run.sensor.bytes_held(), 3 * one);
}

#[test]
fn a_full_window_lets_its_oldest_elements_go() {
    let mut run = Run::new(&one_source(
        "storage-size='1h'",
        "select * from wrapper",
        "select count(*) as n from a",
        &[("n", "bigint")],
    ));
    let mebibyte = Datum::Text("y".repeat(1 << 20).into());
    // The field is not read by a query, so it is not held.
    run.element(1, &[("x", mebibyte.clone())]);
    assert!(run.sensor.bytes_held() < 1000);
    let query = "select x from wrapper";
    let mut run =
        Run::new(&one_source("storage-size='1h'", query, "select count(x) as n from a", &[("n", "bigint")]));
    for at in 0..70 {
        run.element(at, &[("x", mebibyte.clone())]);
    }
    assert_eq!(run.sensor.counters().overflowed, 7);
    assert_eq!(run.take().pop().as_deref(), Some("69: 63"));
}

#[test]
fn a_jump_of_the_clock_leaves_slides_out() {
    let mut run = summed("storage-size='1h' slide='1s'");
    run.x(0, 1).tick(3_600_000);
    assert_eq!(run.take(), ["3600000: 1 1"]);
    run.tick(30_000_000);
    assert_eq!(run.sensor.counters().slides_skipped, 26_400 - 10_000 - 1);
    assert_eq!(run.sensor.next_deadline(), Some(30_001_000));
}

#[test]
fn a_history_counts_a_bounded_number_of_rows_or_is_a_time() {
    let with = |history: &str| {
        let storage = format!("<storage history-size='{history}'/><streams>");
        one_source("storage-size='1'", "select * from wrapper", "select x from a", &[("x", "bigint")])
            .replace("<streams>", &storage)
    };
    assert_eq!(plan(&with("1000000")).history, Some(Extent::Count(HISTORY_ROWS_MAX)));
    assert_eq!(plan(&with("100000h")).history, Some(Extent::Millis(100_000 * 3600 * SECOND)));
    let refused = fault(&with("1000001"));
    assert!(refused.contains("at most 1000000 (HISTORY_ROWS_MAX), or a time"), "{refused}");
}
