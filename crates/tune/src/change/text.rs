//! Changes as text for people.

use super::verify::is_same;
use super::{Outcome, ParameterChange, UndoFile};
use crate::report::wrapped;
use crate::rules::{Product, Rule};
use crate::statement::Statement;
use crate::value::Value;

/// The changes that are about to be made, with the undo and the risk of each.
pub fn plan_text(product: &Product, changes: &[ParameterChange]) -> String {
    let each = changes.iter().map(|change| lines_of(product.rule(&change.rule), change, true).join("\n"));
    each.collect::<Vec<_>>().join("\n\n")
}

/// The lines of one change. `is_kept`: with the statements that keep it over a restart.
pub(crate) fn lines_of(rule: Option<&Rule>, change: &ParameterChange, is_kept: bool) -> Vec<String> {
    let value = |value: &Value| change.unit.format(value);
    let mut lines = vec![format!("{}: {} -> {}", change.name(), value(&change.old), value(&change.new))];
    let mut add = |label: &str, text: &str| lines.extend(wrapped(label, text));
    let keep = change.keep.iter().filter(|_| is_kept);
    let statements: Vec<Statement> = change.change.iter().chain(keep).cloned().collect();
    add("change", &format!("{} (takes effect {})", joined(&statements), change.restart.words()));
    add("undo", &joined(&change.undo));
    change.also.iter().for_each(|also| add("also", also));
    match rule.map(|rule| rule.risks.as_slice()) {
        None | Some([]) => add("risk", "none known"),
        Some(risks) => {
            risks.iter().for_each(|risk| add("risk", &format!("{}: {}", risk.kind.words(), risk.text)))
        }
    }
    add("rule", &change.rule);
    lines
}

/// The values that an undo restores. `found` has the present values in the order of the file.
pub fn undo_text(file: &UndoFile, found: &[Option<Value>]) -> String {
    let mut lines = vec![format!("{}, of {}:", file.target, file.written)];
    for (change, found) in file.changes.iter().zip(found) {
        let value = |value: &Value| change.unit.format(value);
        let (now, note) = match found {
            None => ("hidden".to_owned(), String::new()),
            Some(found) if is_same(found, &change.new) => (value(found), String::new()),
            Some(found) if is_same(found, &change.old) => {
                (value(found), " (it has its former value)".to_owned())
            }
            Some(found) => {
                let new = value(&change.new);
                (value(found), format!(" (the command had set {new}: somebody has changed it since)"))
            }
        };
        lines.push(format!("{}: {now} -> {}{note}", change.name(), value(&change.old)));
        lines.extend(wrapped("undo", &joined(&change.undo)));
    }
    lines.join("\n")
}

impl Outcome {
    /// The outcome of a change to `wanted` as the end of a sentence about the parameter.
    pub fn text(&self, change: &ParameterChange, wanted: &Value) -> String {
        let value = |value: &Value| change.unit.format(value);
        match self {
            Self::AsWanted => format!("is {}", value(wanted)),
            Self::Other(found) => {
                format!("is {}: the target has not taken {} as it is", value(found), value(wanted))
            }
            Self::AfterRestart => format!("will be {} after a restart", value(wanted)),
            Self::Unchanged => "has not changed".to_owned(),
            Self::Hidden => "is not shown any more".to_owned(),
        }
    }
}

fn joined(statements: &[Statement]) -> String {
    statements.iter().map(ToString::to_string).collect::<Vec<_>>().join(", then ")
}
