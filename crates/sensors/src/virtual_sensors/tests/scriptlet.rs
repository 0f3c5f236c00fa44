//! The class ScriptletProcessor: what a script computes and keeps, and how it is refused.

use proptest::prelude::*;

use super::classes::with_class;
use super::*;

/// A sensor with a script over the field x. `more` are further parameters.
pub(super) fn scripted(script: &str, more: &str, output: &[(&str, &str)]) -> String {
    with_params(&format!("<param name='scriptlet'><![CDATA[{script}]]></param>{more}"), output)
}

fn with_params(params: &str, output: &[(&str, &str)]) -> String {
    with_class("X", params, "", output).replace("gsn.vsensor.X", "ch.epfl.gsn.processor.ScriptletProcessor")
}

#[test]
fn a_script_computes_the_fields_of_the_output() {
    let script = "let fahrenheit = x * 1.8 + 32.0; level = if x > 30 { \"hot\" } else { \"fine\" };";
    let output = [("fahrenheit", "double"), ("level", "varchar(8)"), ("x", "double")];
    let mut run = Run::new(&scripted(script, "", &output));
    run.x(1, 10).x(2, 40).element(3, &[("x", Datum::Float(0.5))]);
    assert_eq!(run.sensor.counters().last_fault, None);
    assert_eq!(run.take(), ["1: 50.0 fine 10.0", "2: 104.0 hot 40.0", "3: 32.9 fine 0.5"]);
}

#[test]
fn the_class_has_the_names_of_gsn() {
    for class in
        ["ScriptletProcessor", "Scriptlet", "gsn.processor.ScriptletProcessor", "ScriptletVirtualSensor"]
    {
        let xml = scripted("n = x + 1;", "", &[("n", "integer")]);
        let mut run = Run::new(&xml.replace("ch.epfl.gsn.processor.ScriptletProcessor", class));
        run.x(1, 1);
        assert_eq!(run.take(), ["1: 2"], "{class}");
    }
}

#[test]
fn a_script_keeps_its_state_and_leaves_rows_out() {
    let script = "state.count = (state.count ?? 0) + 1; n = state.count; state.count % 2 == 0";
    let mut run = Run::new(&scripted(script, "", &[("n", "bigint")]));
    for at in 1..6 {
        run.x(at, at);
    }
    assert_eq!(run.take(), ["2: 2", "4: 4"]);
    assert_eq!(run.sensor.counters().faults, 0);
}

#[test]
fn a_variable_that_is_not_in_the_state_is_forgotten() {
    let mut run = Run::new(&scripted("if x == 1 { n = 5; }", "", &[("n", "bigint")]));
    run.x(1, 1).x(2, 2);
    assert_eq!(run.take(), ["1: 5", "2: "]);
}

#[test]
fn a_script_may_change_the_time_of_a_row() {
    let mut run = Run::new(&scripted("timed = timed - timed % 10;", "", &[("x", "bigint")]));
    run.x(17, 1).x(23, 2);
    assert_eq!(run.take(), ["10: 1", "20: 2"]);
}

#[test]
fn a_field_without_a_value_is_unit() {
    let mut run = Run::new(&scripted("n = if x == () { -1 } else { x + 1 };", "", &[("n", "bigint")]));
    run.x(1, 1).element(2, &[]);
    assert_eq!(run.take(), ["1: 2", "2: -1"]);
    let mut run = Run::new(&scripted("if x == () { return false; } n = x + 1;", "", &[("n", "bigint")]));
    run.element(1, &[]).x(2, 1);
    assert_eq!((run.take(), run.sensor.counters().faults), (vec!["2: 2".to_owned()], 0));
    let mut run = Run::new(&scripted("n = x + 1;", "", &[("n", "bigint")]));
    run.element(1, &[]).x(2, 1);
    assert_eq!(run.take(), ["2: 2"], "a sum with no value is a fault, and the next row continues");
    let fault = run.sensor.counters().last_fault.expect("a fault");
    assert!(
        fault.starts_with("script at line 1, column ") && fault.contains("Function not found"),
        "{fault}"
    );
}

#[test]
fn a_value_has_the_type_of_its_field_or_its_row_is_left_out() {
    let given = |kind: &str, value: &str| {
        let mut run = Run::new(&scripted(&format!("v = {value};"), "", &[("v", kind)]));
        run.x(1, 1);
        run.take().pop().ok_or_else(|| run.sensor.counters().last_fault.unwrap_or_default())
    };
    for kind in ["tinyint", "smallint", "integer", "bigint"] {
        assert_eq!(given(kind, "5").as_deref(), Ok("1: 5"), "{kind}");
        assert_eq!(given(kind, "-2.9").as_deref(), Ok("1: -2"), "{kind}");
        assert_eq!(given(kind, "x == 1").as_deref(), Ok("1: 1"), "{kind}");
    }
    for kind in ["double", "float"] {
        assert_eq!(given(kind, "x / 4.0").as_deref(), Ok("1: 0.25"), "{kind}");
        assert_eq!(given(kind, "5").as_deref(), Ok("1: 5.0"), "{kind}");
    }
    for kind in ["string", "varchar(4)", "char(4)"] {
        assert_eq!(given(kind, "\"a\" + \"bc\"").as_deref(), Ok("1: abc"), "{kind}");
        assert_eq!(given(kind, "'a'").as_deref(), Ok("1: a"), "{kind}");
        assert_eq!(given(kind, "`x = ${x}`.sub_string(0, 4)").as_deref(), Ok("1: x = "), "{kind}");
    }
    for kind in ["integer", "double", "string"] {
        assert_eq!(given(kind, "()").as_deref(), Ok("1: "), "{kind}");
    }
    let refused = |kind: &str, value: &str, part: &str| {
        let fault = given(kind, value).expect_err("a value that does not fit");
        assert!(fault.contains(part), "{kind} {value}: {fault}");
    };
    refused("tinyint", "128", "128 is out of the range of tinyint");
    refused("double", "\"2\"", "2 is not of the type double");
    refused("string", "2", "2 is not of the type string");
    refused("varchar(2)", "\"abc\"", "3 characters");
    refused("float", "1.0e300", "not a finite number");
    refused("double", "1.0 / 0.0", "not a finite number");
    refused("binary", "\"abc\"", "binary");
    refused("integer", "[1]", "field \"v\": a value of the type array");
    refused("integer", "#{a: 1}", "field \"v\": a value of the type map");
}

#[test]
fn a_second_script_runs_at_turns_of_a_clock() {
    let more = "<param name='scriplet-periodic'>total = state.total; state.total = 0; true</param><param name='period'>1000</param>\
                <param name='persistant'>false</param>";
    let script = "state.total = (state.total ?? 0) + x;";
    let mut run = Run::new(&scripted(script, more, &[("total", "bigint")]));
    run.x(100, 1).x(900, 2).x(1_500, 4).tick(3_500);
    assert_eq!(run.sensor.counters().last_fault, None);
    assert_eq!(run.take(), ["1000: 3", "2000: 4", "3000: 0"]);
}

#[test]
fn a_script_of_a_clock_has_no_row_without_true() {
    let more = "<param name='scriptlet-periodic'>state.n = 0;</param><param name='period'>1000</param>";
    let mut run = Run::new(&scripted("state.n = (state.n ?? 0) + 1; n = state.n;", more, &[("n", "bigint")]));
    run.x(100, 1).x(900, 2).x(1_500, 4).tick(3_500);
    assert_eq!(run.take(), ["100: 1", "900: 2", "1500: 1"], "as in GSN");
}

#[test]
fn parameters_are_checked() {
    let output = [("n", "bigint")];
    let reason = |params: &str| fault(&with_params(params, &output));
    assert!(reason("").contains("class ScriptletProcessor needs the parameter \"scriptlet\""));
    let script = "<param name='scriptlet'>n = 1;</param>";
    assert!(
        reason(&format!("{script}<param name='period'>5</param>"))
            .contains("scriptlet-periodic, which is missing")
    );
    let periodic = "<param name='scriptlet-periodic'>n = 1;</param>";
    assert!(reason(periodic).contains("needs the parameter \"period\""));
    assert!(
        reason(&format!("{script}<param name='language'>groovy</param>"))
            .contains("no parameter \"language\"")
    );
    let only_periodic = with_params(&format!("{periodic}<param name='period'>5</param>"), &output);
    assert_eq!(plan(&only_periodic).explain().matches("a script of 1 line every 5 ms").count(), 1);
}

#[test]
fn a_fault_in_a_script_has_its_place_in_the_file() {
    let xml = scripted("let a = 1;\n  let b = ;", "", &[("n", "bigint")]);
    assert!(fault(&xml).starts_with("line 2, column 11: this is not Rhai"), "{}", fault(&xml));
    let xml = scripted("n = x;\nlet b = speed + 1;", "", &[("n", "bigint")]);
    let unknown = fault(&xml);
    assert!(unknown.starts_with("line 2, column 9: there is no variable \"speed\""), "{unknown}");
    assert!(unknown.contains("the script has n, state, timed, x"), "{unknown}");
    let upper = fault(&scripted("n = X + 1;", "", &[("n", "bigint")]));
    assert!(upper.contains("names are in lower case: x"), "{upper}");
    // A function has only its parameters as variables. The interpreter finds others when it runs the function.
    let mut run = Run::new(&scripted("fn f(y) { x + y } n = f(1);", "", &[("n", "bigint")]));
    run.x(1, 1);
    let in_function = run.sensor.counters().last_fault.expect("a fault");
    assert!(in_function.contains("Variable not found: x"), "{in_function}");
}

#[test]
fn a_script_in_groovy_is_refused_with_what_to_write() {
    let refused = |script: &str, part: &str| {
        let reason = fault(&scripted(script, "", &[("n", "bigint")]));
        assert!(reason.starts_with("line 1, column "), "{reason}");
        assert!(reason.contains("this is not Rhai") && reason.contains(part), "{script}: {reason}");
        assert!(reason.contains("docs/sensor-classes.md"), "{reason}");
    };
    refused("def k = X + 273.15", "`let x = 1;`");
    refused("n = x == null ? 0 : x", "`null` is `()`");
    refused("n = isdef('count') ? count + 1 : 0", "state.n");
    refused("n = x > 5 ? 1 : 0", "if a { b } else { c }");
    refused("println x", "prints nothing");
    refused("n = 'text'", "double quotes");
    refused("import java.util.Date", "reads no other files");
    let mut run = Run::new(&scripted("sendEmail(\"a\", \"b\"); n = 1;", "", &[("n", "bigint")]));
    run.x(1, 1);
    let fault = run.sensor.counters().last_fault.expect("a fault");
    assert!(fault.contains("sendEmail") && fault.contains("use the class Email"), "{fault}");
}

#[test]
fn names_that_cannot_be_variables_are_refused() {
    for name in ["air-temp", "state", "loop", "2x"] {
        let reason = fault(&scripted("let y = 1;", "", &[(name, "bigint")]));
        assert!(reason.contains("cannot be a variable of a script"), "{name}: {reason}");
    }
    let xml = scripted("n = 1;", "", &[("n", "bigint")])
        .replace("select x, timed from a", "select x as state from a");
    assert!(fault(&xml).contains("rename the field in the query"), "{}", fault(&xml));
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(128))]
    #[test]
    fn a_script_computes_what_sql_computes(
        values in prop::collection::vec(prop_oneof![
            (-1_000_i64..1_000).prop_map(Datum::Int),
            (-4_000_i64..4_000).prop_map(|quarters| Datum::Float(quarters as f64 / 4.0)),
            Just(Datum::Null),
        ], 1..20),
    ) {
        let output = [("f", "double"), ("size", "double"), ("level", "string"), ("twice", "double")];
        let script = "if x != () { f = x * 1.8 + 32.0; size = x.abs(); twice = x + x; level = if x > 5 { \"hot\" } else { \"fine\" }; }";
        let mut in_script = Run::new(&scripted(script, "", &output));
        let sql = "select x * 1.8 + 32.0 as f, abs(x) as size, case when x > 5 then 'hot' when x <= 5 then 'fine' end as level, \
                   x + x as twice, timed from a";
        let xml = with_class("BridgeVirtualSensor", "", "", &output);
        let mut in_sql = Run::new(&xml.replace("select x, timed from a", sql));
        for (at, value) in values.iter().enumerate() {
            let fields = [("x", value.clone())];
            in_script.element(at as i64, &fields);
            in_sql.element(at as i64, &fields);
        }
        prop_assert_eq!(in_script.sensor.counters().last_fault, None);
        prop_assert_eq!(in_sql.sensor.counters().last_fault, None);
        let rows = in_script.take();
        prop_assert_eq!(rows.len(), values.len());
        prop_assert_eq!(rows, in_sql.take());
    }

    #[test]
    fn any_text_as_a_script_is_refused_with_a_place_or_runs(text in "[a-z0-9 =+*/(){};.,?'\"`|#\\[\\]!<>&:\n]{0,60}") {
        let xml = scripted(&text, "", &[("n", "bigint")]);
        match Descriptor::parse(&xml).map_err(Faults::from).and_then(|descriptor| Plan::new(&descriptor)) {
            Ok(plan) => {
                let mut run = Run { sensor: Sensor::new(Arc::new(plan), None), rows: Vec::new() };
                run.x(1, 1).element(2, &[]).element(3, &[("x", Datum::Text("a".into()))]);
                let counters = run.sensor.counters();
                prop_assert!(counters.rows <= 3);
            }
            Err(faults) => {
                for fault in faults.all() {
                    prop_assert!(fault.place.line >= 1 && fault.place.column >= 1);
                }
            }
        }
    }
}
