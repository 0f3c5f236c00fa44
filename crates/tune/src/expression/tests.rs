//! Tests of the language.

use std::collections::BTreeSet;

use super::{Declarations, Expression, Increase, Scope};
use crate::value::{Value, ValueKind};

struct Names;

impl Declarations for Names {
    fn kind(&self, name: &str) -> Option<ValueKind> {
        Some(match name {
            "cores" | "memory" | "absent" | "net.core.somaxconn" | "tcp-backlog" => ValueKind::Number,
            "format" | "unread" => ValueKind::Text,
            "enabled" | "unset" => ValueKind::Boolean,
            _ => return None,
        })
    }

    fn is_counter(&self, name: &str) -> bool {
        ["reads", "resets", "uncounted"].contains(&name)
    }
}

struct Values;

impl Scope for Values {
    fn value(&self, name: &str) -> Option<Value> {
        Some(match name {
            "cores" => Value::from(4.0),
            "memory" => Value::from(8_589_934_592.0),
            "net.core.somaxconn" => Value::from(128.0),
            "tcp-backlog" => Value::from(511.0),
            "format" => Value::from("row"),
            "enabled" => Value::from(true),
            _ => return None,
        })
    }

    fn counter(&self, name: &str) -> Option<Increase> {
        match name {
            "reads" => Some(Increase { before: 100.0, after: 700.0, window_s: 60.0 }),
            "resets" => Some(Increase { before: 100.0, after: 30.0, window_s: 0.0 }),
            _ => None,
        }
    }
}

fn value(text: &str) -> Result<Value, BTreeSet<String>> {
    Expression::new(text, &Names).unwrap_or_else(|error| panic!("{text}: {error}")).evaluate(&Values)
}

#[track_caller]
fn is(text: &str, expected: impl Into<Value>) {
    assert_eq!(value(text), Ok(expected.into()), "{text}");
}

#[track_caller]
fn lacks(text: &str, names: &[&str]) {
    assert_eq!(value(text), Err(names.iter().map(|name| (*name).to_owned()).collect()), "{text}");
}

#[track_caller]
fn fails(text: &str, column: usize, message: &str) {
    let error = Expression::new(text, &Names).expect_err(text);
    assert!(error.column == column && error.message.contains(message), "{text}: {error}");
}

#[test]
fn arithmetic_has_the_usual_precedence() {
    is("1 + 2 * 3", 7.0);
    is("(1 + 2) * 3", 9.0);
    is("10 - 4 - 3", 3.0);
    is("-2 * -3", 6.0);
    is("7 / 2", 3.5);
    is("1_000 + 0.5", 1_000.5);
    is("2GiB - 1KiB", 2_147_482_624.0);
    is("memory * 0.5", 4_294_967_296.0);
}

#[test]
fn conditions_join_comparisons() {
    is("cores >= 4 and memory > 4GiB", true);
    is("cores < 4 or not enabled", false);
    is("not (cores == 4)", false);
    is("net.core.somaxconn < 4096 and `tcp-backlog` != 512", true);
    is("format == 'ROW'", true);
    is("enabled == false", false);
    is("true or false and false", true);
}

#[test]
fn functions_choose_and_round() {
    is("min(3, cores, 9)", 3.0);
    is("max(3, cores)", 4.0);
    is("floor(7 / 2) + ceil(7 / 2)", 7.0);
    is("if(cores > 2, 'many', 'few')", "many");
    is("if(enabled, 1, absent)", 1.0);
    is("known(cores) and not known(absent)", true);
}

#[test]
fn counters_have_increase_rate_and_total() {
    is("delta(reads)", 600.0);
    is("rate(reads)", 10.0);
    is("total(reads)", 700.0);
    is("delta(resets)", 30.0);
    lacks("rate(resets)", &[]);
}

#[test]
fn missing_values_make_the_outcome_unknown_unless_the_rest_decides() {
    lacks("absent + delta(uncounted) > 1", &["absent", "uncounted"]);
    lacks("unset and enabled", &["unset"]);
    lacks("not unset", &["unset"]);
    lacks("unread == 'x'", &["unread"]);
    is("unset and false", false);
    is("false and unset", false);
    is("unset or true", true);
    lacks("1 / (cores - 4)", &[]);
}

#[test]
fn errors_name_their_column() {
    fails("cores > nothing", 9, "`nothing` is not declared");
    fails("cores > ", 9, "a value is missing");
    fails("cores cores", 7, "should end here");
    fails("cores and enabled", 1, "this is a number, not true or false");
    fails("format > 3", 1, "this is a text, not a number");
    fails("format == 3", 11, "this is a number, not a text");
    fails("(cores > 3", 11, "`)` is missing");
    fails("1 < cores < 3", 11, "two comparisons in a row");
    fails("'ä' == 'open", 8, "no closing quote");
    fails("`open", 1, "no closing backtick");
    fails("cores = 4", 7, "`=` has no meaning");
    fails("4GB", 1, "`GB` cannot follow a number");
    fails("1.2.3", 1, "is not a number");
    fails("reads > 1", 1, "is a counter: use rate()");
    fails("rate(cores) > 1", 6, "not the name of a counter");
    fails("known(reads)", 7, "not the name of a setting");
    fails("sqrt(4)", 1, "no function `sqrt`");
    fails("min()", 5, "a value is missing");
    fails("floor(1, 2)", 1, "2 arguments instead of 1");
    fails("if(cores > 1, 1, 'x')", 18, "this is a text, not a number");
    fails("if(1, 1, 2)", 4, "this is a number");
    fails("and", 1, "a value is missing");
    fails("", 1, "a value is missing");
}

#[test]
fn deep_nesting_is_an_error() {
    let deep = |levels: usize| format!("{}1{}", "(".repeat(levels), ")".repeat(levels));
    is(&deep(64), 1.0);
    fails(&deep(65), 66, "more than 64 levels");
    fails(&"-".repeat(1_000), 66, "more than 64 levels");
}

#[test]
fn the_names_of_an_expression_are_those_whose_values_it_needs() {
    let expression = Expression::new("cores > 1 and known(absent) and rate(reads) > 2", &Names).unwrap();
    assert_eq!(expression.names(), BTreeSet::from(["cores", "reads"]));
    assert_eq!(expression.kind(), ValueKind::Boolean);
    assert_eq!(expression.to_string(), "cores > 1 and known(absent) and rate(reads) > 2");
}

#[test]
fn damaged_texts_are_errors_or_expressions_and_never_a_panic() {
    let whole = "if(not enabled or cores >= 4 and `tcp-backlog` != 5.5KiB, 'ä', format) == 'x' and -rate(reads) / 2 < max(1, 2)";
    let marks: Vec<usize> = whole.char_indices().map(|(at, _)| at).collect();
    let insertions = ["", "'", "`", "(", ")", ",", "-", "1", "not ", "é", ".", "known("];
    for (index, at) in marks.iter().enumerate() {
        let next = marks.get(index + 1).copied().unwrap_or(whole.len());
        for insertion in insertions {
            for text in [
                format!("{}{insertion}", &whole[..*at]),
                format!("{}{insertion}{}", &whole[..*at], &whole[next..]),
            ] {
                match Expression::new(&text, &Names) {
                    Ok(expression) => drop(expression.evaluate(&Values)),
                    Err(error) => assert!(error.column <= text.chars().count() + 1, "{text}: {error}"),
                }
            }
        }
    }
    assert!(Expression::new(whole, &Names).is_ok());
}
