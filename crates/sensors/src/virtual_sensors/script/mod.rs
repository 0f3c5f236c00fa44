//! Scripts of the class ScriptletProcessor, in the language Rhai.
//!
//! A script is a function of its variables: it has no clock, no files, no network and no random numbers. Its work, its memory and its
//! state are bounded (`limits`).

mod engine;
mod groovy;
mod progress;
mod state;
mod values;

pub(super) use state::{State, StatePoint};

use std::collections::BTreeSet;

use rhai::{AST, Dynamic, EvalAltResult, ParseError, ParseErrorType, Position, Scope};

use super::descriptor::Located;
use super::fault::{Fault, TextPosition};
use super::limits::{
    SCRIPT_BYTES_MAX, SCRIPT_OPERATION_STEPS, SCRIPT_OPERATIONS_MAX, SCRIPT_TEXT_BYTES_MAX,
    SCRIPT_VARIABLES_MAX, TIMED_MAX,
};
use super::sql::Datum;
use super::sql::meter::Meter;
use engine::{STRICT, TOLERANT};

/// The variable with the time of a row.
pub(super) const TIMED: &str = "timed";
/// The variable whose map a script finds again at its next run.
pub(super) const STATE: &str = "state";

/// A script that has been read.
#[derive(Clone)]
pub(crate) struct Script {
    text: String,
    place: TextPosition,
    ast: AST,
}

/// Why a run gave nothing.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Stop {
    /// The place in the file, and the reason.
    pub(super) reason: String,
    /// Whether the script did more than a limit allows.
    pub(super) is_runaway: bool,
}

/// The variables after a run.
#[derive(Debug)]
pub(super) struct Outcome {
    pub(super) timed: i64,
    pub(super) fields: Vec<(String, Datum)>,
    pub(super) state: State,
    /// The value of the script, if that is true or false.
    pub(super) answer: Option<bool>,
}

/// Whether a script can have a variable for a field of this name.
pub(super) fn is_variable(name: &str) -> bool {
    name != STATE && engine::is_variable(name)
}

impl Script {
    /// Reads a script.
    ///
    /// # Errors
    /// Names the place in the file and what is expected there.
    pub(super) fn compile(said: &Located<String>) -> Result<Self, Fault> {
        let (text, place) = (said.value.clone(), said.place);
        if text.len() > SCRIPT_BYTES_MAX {
            let reason =
                format!("the script has {} bytes; at most {SCRIPT_BYTES_MAX} (SCRIPT_BYTES_MAX)", text.len());
            return Err(Fault::limit(place, reason));
        }
        match TOLERANT.compile(&text) {
            Ok(ast) => Ok(Self { text, place, ast }),
            Err(error) => Err(not_rhai(&text, place, &error)),
        }
    }

    /// Lines of the script.
    pub(super) fn lines(&self) -> usize {
        self.text.lines().count()
    }

    /// Checks that the script reads only variables that it has: the fields with these names, the time and the state.
    ///
    /// # Errors
    /// Names the place of an unknown variable, or the limit of variables.
    pub(super) fn check_names<'a>(&self, fields: impl Iterator<Item = &'a str>) -> Result<(), Fault> {
        let names: BTreeSet<&str> = fields.filter(|name| is_variable(name)).chain([TIMED, STATE]).collect();
        if names.len() > SCRIPT_VARIABLES_MAX / 2 {
            let (count, most) = (names.len(), SCRIPT_VARIABLES_MAX / 2);
            let reason = format!(
                "the fields make {count} variables of the script; at most {most} (half of SCRIPT_VARIABLES_MAX)"
            );
            return Err(Fault::limit(self.place, reason));
        }
        let mut scope = Scope::new();
        for name in &names {
            scope.push_dynamic(*name, Dynamic::UNIT);
        }
        match STRICT.compile_with_scope(&scope, &self.text) {
            Ok(_) => Ok(()),
            Err(error) => Err(self.unknown(&names, &error)),
        }
    }

    fn unknown(&self, names: &BTreeSet<&str>, error: &ParseError) -> Fault {
        let ParseErrorType::VariableUndefined(name) = &*error.0 else {
            return not_rhai(&self.text, self.place, error);
        };
        let known: Vec<_> = names.iter().copied().collect();
        let lower = name.to_lowercase();
        let hint = if names.contains(lower.as_str()) {
            format!("; names are in lower case: {lower}")
        } else {
            groovy::instead(name).map(|instead| format!("; {instead}")).unwrap_or_default()
        };
        let reason = format!(
            "there is no variable {name:?}{hint}; the script has {}, and those that it makes with `let`; a field that it reads \
             is in the query of the stream",
            known.join(", ")
        );
        Fault::invalid(shift(self.place, error.position()), reason)
    }

    /// Runs the script. `fields` are variables with their values, `outputs` the fields that it gives.
    ///
    /// # Errors
    /// Returns why there is no outcome. The state is then as before.
    pub(super) fn run<'a>(
        &self,
        timed: i64,
        fields: impl Iterator<Item = (&'a str, &'a Datum)>,
        outputs: &[String],
        state: &State,
        meter: &Meter,
    ) -> Result<Outcome, Stop> {
        let mut scope = Scope::new();
        for name in outputs {
            scope.set_value(name.as_str(), Dynamic::UNIT);
        }
        for (name, datum) in fields {
            self.check_size(name, datum)?;
            scope.set_value(name, values::dynamic(datum));
        }
        scope.set_value(TIMED, timed);
        scope.set_value(STATE, state.dynamic());
        let (value, operations) =
            progress::counted(meter.end(), || TOLERANT.eval_ast_with_scope::<Dynamic>(&mut scope, &self.ast));
        // An execution that has done too much ends before its next row. A run that ends is complete.
        drop(meter.spend(operations.saturating_mul(SCRIPT_OPERATION_STEPS)));
        let value = value.map_err(|error| self.stop(innermost(*error)))?;
        let field = |name: &String| {
            let value = scope.get(name).map_or(Ok(Datum::Null), values::datum);
            value
                .map(|datum| (name.clone(), datum))
                .map_err(|reason| self.refusal(&format!("field {name:?}: {reason}")))
        };
        let fields = outputs.iter().map(field).collect::<Result<_, _>>()?;
        let timed = self.time(scope.get(TIMED))?;
        let state = scope.get(STATE).map_or(Ok(State::default()), State::of);
        let state = state.map_err(|reason| self.refusal(&reason))?;
        Ok(Outcome { timed, fields, state, answer: value.as_bool().ok() })
    }

    fn check_size(&self, name: &str, datum: &Datum) -> Result<(), Stop> {
        match datum {
            Datum::Text(text) if text.len() > SCRIPT_TEXT_BYTES_MAX => Err(self.refusal(&format!(
                "the text of the field {name:?} has {} bytes; a script takes at most {SCRIPT_TEXT_BYTES_MAX} \
                 (SCRIPT_TEXT_BYTES_MAX)",
                text.len()
            ))),
            _ => Ok(()),
        }
    }

    fn time(&self, value: Option<&Dynamic>) -> Result<i64, Stop> {
        let timed = value.and_then(|value| value.as_int().ok());
        timed.filter(|timed| (-TIMED_MAX..=TIMED_MAX).contains(timed)).ok_or_else(|| {
            self.refusal(&format!(
                "timed is not a whole number of milliseconds of at most {TIMED_MAX} (TIMED_MAX) after the run"
            ))
        })
    }

    fn refusal(&self, reason: &str) -> Stop {
        Stop { reason: format!("script at {}: {reason}", self.place), is_runaway: false }
    }

    fn stop(&self, mut error: EvalAltResult) -> Stop {
        let is_runaway = matches!(
            error,
            EvalAltResult::ErrorTooManyOperations(_)
                | EvalAltResult::ErrorTooManyVariables(_)
                | EvalAltResult::ErrorStackOverflow(_)
                | EvalAltResult::ErrorDataTooLarge(..)
        );
        let place = shift(self.place, error.take_position());
        let reason = match &error {
            EvalAltResult::ErrorTooManyOperations(_) => format!(
                "the script did more than {SCRIPT_OPERATIONS_MAX} operations (SCRIPT_OPERATIONS_MAX) and was stopped"
            ),
            EvalAltResult::ErrorFunctionNotFound(signature, _) => {
                let name = signature.split(' ').next().unwrap_or_default();
                let hint = groovy::instead(name).map(|instead| format!("; {instead}")).unwrap_or_default();
                format!("{error}{hint}")
            }
            _ => error.to_string(),
        };
        Stop { reason: format!("script at {place}: {reason}"), is_runaway }
    }
}

fn not_rhai(text: &str, place: TextPosition, error: &ParseError) -> Fault {
    let position = error.position();
    let line = position.line().and_then(|line| text.lines().nth(line.saturating_sub(1))).unwrap_or_default();
    let fault = error.0.to_string();
    let hint = groovy::hint(&fault, line);
    let reason = format!("this is not Rhai, the language of scripts here: {fault}; {hint}");
    Fault::syntax(shift(place, position), reason)
}

/// The error itself, without the functions that were called on the way to it.
fn innermost(error: EvalAltResult) -> EvalAltResult {
    match error {
        EvalAltResult::ErrorInFunctionCall(_, _, inner, _) => innermost(*inner),
        other => other,
    }
}

/// A place in a script as a place in the file.
fn shift(base: TextPosition, position: Position) -> TextPosition {
    let number = |number: usize| u32::try_from(number).unwrap_or(u32::MAX);
    let column = number(position.position().unwrap_or(1)).max(1);
    match position.line() {
        None => base,
        Some(1) => TextPosition { line: base.line, column: base.column.saturating_add(column - 1) },
        Some(line) => TextPosition { line: base.line.saturating_add(number(line).saturating_sub(1)), column },
    }
}

impl PartialEq for Script {
    fn eq(&self, other: &Self) -> bool {
        (&self.text, self.place) == (&other.text, other.place)
    }
}

impl std::fmt::Debug for Script {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Script").field("text", &self.text).field("place", &self.place).finish_non_exhaustive()
    }
}
