//! The statement that GSN's answers show for a request. It is for people: this server runs no such statement.

use std::fmt::Write as _;

use super::super::condition::Condition;
use super::super::read::Selection;

/// The statement, with the number of rows if `with_limit`.
pub(super) fn query_text(selection: &Selection, with_limit: bool) -> String {
    let mut text = String::from("select ");
    let names = selection.fields.iter().map(|field| field.name.as_str()).chain(["pk", "timed"]);
    let function = selection.aggregation.map(|aggregation| aggregation.function.name());
    for (at, name) in names.enumerate() {
        let separator = if at > 0 { ", " } else { "" };
        // Writing to a text does not fail.
        let _ = match function {
            None => write!(text, "{separator}{name}"),
            Some(_) if name == "timed" => write!(text, "{separator}max(timed) as timed"),
            Some(function) => write!(text, "{separator}{function}({name}) as {name}"),
        };
    }
    if let Some(aggregation) = selection.aggregation {
        let _ = write!(text, ", floor(timed/{}) as aggregation_interval", aggregation.interval_ms);
    }
    let _ = write!(text, " from {} ", selection.sensor.name());
    push_conditions(&mut text, &selection.conditions);
    text.push_str(match function {
        None => "order by timed desc ",
        Some(_) => "group by aggregation_interval desc ",
    });
    if let Some(newest) = selection.newest.filter(|_| with_limit) {
        let _ = write!(text, "(size: {newest} offset: 0)");
    }
    text
}

fn push_conditions(text: &mut String, conditions: &[Condition]) {
    let mut before = "where";
    for condition in conditions {
        let Condition { operand, operator, number, next } = condition;
        let _ = write!(text, "{before}  {} {} {number} ", operand.text(), operator.text());
        before = next.text();
    }
}
