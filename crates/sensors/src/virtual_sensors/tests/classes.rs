//! Processing classes, and the end of a sensor.

use super::*;

pub(super) fn with_class(class: &str, params: &str, rest: &str, output: &[(&str, &str)]) -> String {
    let xml = one_source("storage-size='1'", "select * from wrapper", "select x, timed from a", output);
    xml.replace(
        "<unique-timestamps>false</unique-timestamps>",
        &format!("<class-name>gsn.vsensor.{class}</class-name>{rest}<init-params>{params}</init-params>"),
    )
}

#[test]
fn a_bridge_gives_what_comes() {
    let mut run = Run::new(&with_class("BridgeVirtualSensor", "", "", &[("x", "integer")]));
    run.x(1, 5).element(2, &[]).x(3, 7);
    assert_eq!(run.take(), ["1: 5", "2: ", "3: 7"]);
}

#[test]
fn a_bridge_without_nulls_drops_rows_that_lack_a_value() {
    let params = "<param name='allow-nulls'>false</param>";
    let mut run = Run::new(&with_class("BridgeVirtualSensor", params, "", &[("x", "integer")]));
    run.x(1, 5).element(2, &[]).x(3, 7);
    assert_eq!(run.take(), ["1: 5", "3: 7"]);
    assert_eq!(run.sensor.counters().rows_with_nulls, 1);
}

#[test]
fn a_counter_counts_rows() {
    let mut run = Run::new(&with_class("CounterVS", "", "", &[("counter", "bigint")]));
    run.x(1, 5).x(2, 6);
    assert_eq!(run.take(), ["1: 1", "2: 2"]);
}

#[test]
fn a_scheduled_bridge_repeats_the_newest_row_at_its_turns() {
    let params = "<param name='rate'>1000</param>";
    let mut run = Run::new(&with_class("ScheduledBridgeVirtualSensor", params, "", &[("x", "integer")]));
    run.tick(500).x(1500, 5).x(1600, 6).tick(1999);
    assert_eq!(run.take(), Vec::<String>::new());
    run.tick(2000).tick(3500).x(3600, 8).tick(4000);
    assert_eq!(run.take(), ["2000: 6", "3000: 6", "4000: 8"]);
}

#[test]
fn a_scheduled_bridge_can_begin_later() {
    let params =
        "<param name='rate'>1000</param><param name='start-time'>1970-01-1T01:00:05.250+01:00</param>";
    let mut run = Run::new(&with_class("ScheduledBridgeVirtualSensor", params, "", &[("x", "integer")]));
    run.x(1500, 5).tick(6300);
    assert_eq!(run.take(), ["5250: 5", "6250: 5"]);
}

#[test]
fn a_moving_average_marks_what_is_far_from_it() {
    let params = "<param name='size'>2</param><param name='error-threshold'>0.2</param>";
    let output = [("raw_value", "double"), ("acceptable", "integer")];
    let mut run = Run::new(&with_class("SMACleaner", params, "", &output));
    run.x(1, 10).x(2, 10).x(3, 11).x(4, 100).x(5, -100);
    assert_eq!(run.take(), ["3: 11.0 1", "4: 100.0 0", "5: -100.0 0"]);
}

#[test]
fn a_parameter_that_a_class_does_not_have_is_refused() {
    let xml = with_class("BridgeVirtualSensor", "<param name='speed'>1</param>", "", &[("x", "integer")]);
    assert!(fault(&xml).contains("class Bridge has no parameter \"speed\"; it has allow-nulls"));
    let xml = with_class("ScheduledBridgeVirtualSensor", "", "", &[("x", "integer")]);
    assert!(fault(&xml).contains("class ScheduledBridge needs the parameter \"rate\""));
}

#[test]
fn the_output_has_a_rate() {
    let rate = "<output-specification rate='100'/>";
    let mut run = Run::new(&with_class("BridgeVirtualSensor", "", rate, &[("x", "integer")]));
    run.x(1, 1).x(100, 2).x(101, 3).x(150, 4).x(201, 5);
    assert_eq!(run.take(), ["1: 1", "101: 3", "201: 5"]);
    assert_eq!(run.sensor.counters().rows_over_rate, 2);
}

#[test]
fn a_time_is_given_once() {
    let mut run = Run::new(&with_class("BridgeVirtualSensor", "", "", &[("x", "integer")]));
    run.x(1, 1).x(1, 2).x(2, 3).x(1, 4);
    assert_eq!(run.take(), ["1: 1", "2: 3"]);
    assert_eq!(run.sensor.counters().rows_of_known_time, 2);
}

#[test]
fn values_fit_the_types_of_the_output_or_their_row_is_left_out() {
    let first = |kind: &str, value: Datum| {
        let mut run = Run::new(&with_class("BridgeVirtualSensor", "", "", &[("x", kind)]));
        run.element(1, &[("x", value)]);
        run.take().pop().ok_or_else(|| run.sensor.counters().last_fault.unwrap_or_default())
    };
    assert_eq!(first("integer", Datum::Float(2.9)).as_deref(), Ok("1: 2"));
    assert_eq!(first("double", Datum::Int(2)).as_deref(), Ok("1: 2.0"));
    assert_eq!(first("varchar(2)", Datum::Text("ab".into())).as_deref(), Ok("1: ab"));
    let refused = |kind, value, part: &str| {
        let fault = first(kind, value).expect_err("a value that does not fit");
        assert!(fault.contains(part), "{fault}");
    };
    refused("tinyint", Datum::Int(128), "128 is out of the range of tinyint");
    refused("double", Datum::Text("2".into()), "2 is not of the type double");
    refused("string", Datum::Int(2), "2 is not of the type string");
    refused("varchar(2)", Datum::Text("abc".into()), "3 characters");
    refused("float", Datum::Float(1e300), "not a finite number");
    refused("binary", Datum::Text("abc".into()), "binary");
}
