//! Why a change cannot be planned, recorded or carried out.

use std::io;
use std::path::PathBuf;

use crate::probe::{ProbeError, StatementError};
use crate::rules::Manual;
use crate::unit::Unit;

/// A rule cannot be applied.
#[derive(Debug, Clone, PartialEq, thiserror::Error)]
pub enum PlanError {
    /// No rule of the product has this name.
    #[error("there is no rule `{rule}` for {product}{}", similar_names(.similar))]
    UnknownRule {
        rule: String,
        /// The product for people.
        product: String,
        /// Rules with a similar name.
        similar: Vec<String>,
    },
    /// The rule is not for this version or role.
    #[error("{rule} is not a rule for {target}")]
    OtherVersion {
        rule: String,
        /// Variant, version and role of the target.
        target: String,
    },
    /// A person must make the change.
    #[error("{rule} cannot be applied by this command. {} By hand: {change}", .reason.sentence())]
    Manual {
        rule: String,
        reason: Manual,
        /// The change in words.
        change: String,
    },
    /// The rule has no finding, so it suggests no value.
    #[error("{rule} has no finding on this target, so it suggests no value of {parameter}. Name one with --value{}", undecided_why(.undecided))]
    NoFinding {
        rule: String,
        parameter: String,
        /// The values without which the rule could not be decided.
        undecided: Vec<String>,
    },
    /// The rule advises in words only.
    #[error("{rule} leaves the value of {parameter} to you: {advice} Name one with --value")]
    NoValue { rule: String, parameter: String, advice: String },
    /// The value is not of the parameter's kind.
    #[error("--value {text}: {parameter} takes {}, in the unit {unit}", .unit.kind())]
    WrongValue {
        /// The value as it was written.
        text: String,
        parameter: String,
        /// The unit of the parameter.
        unit: Unit,
    },
    /// Without the present value there is no undo.
    #[error("{rule}: the present value of {parameter} is not known, so there would be no undo{}", why(.reason))]
    UnknownCurrent {
        rule: String,
        parameter: String,
        /// Why the target does not show it.
        reason: Option<String>,
    },
    /// The parameter has the value already.
    #[error("{rule}: {parameter} is {value} already")]
    NoChange { rule: String, parameter: String, value: String },
}

fn similar_names(names: &[String]) -> String {
    if names.is_empty() { String::new() } else { format!("; do you mean {}?", names.join(" or ")) }
}

fn undecided_why(missing: &[String]) -> String {
    match missing {
        [] => String::new(),
        missing => format!("; it could not be decided without {}", missing.join(", ")),
    }
}

fn why(reason: &Option<String>) -> String {
    reason.as_ref().map(|reason| format!(": {reason}")).unwrap_or_default()
}

/// An undo file cannot be written or used.
#[derive(Debug, thiserror::Error)]
pub enum UndoFileError {
    /// The file is there already.
    #[error("{} exists already: name another file with --undo-file. Nothing was changed", .0.display())]
    Exists(PathBuf),
    /// The file cannot be written.
    #[error("the undo file {} cannot be written: {source}. Nothing was changed", .path.display())]
    Write { path: PathBuf, source: io::Error },
    /// The file cannot be read.
    #[error("the undo file {} cannot be read: {source}", .path.display())]
    Read { path: PathBuf, source: io::Error },
    /// The text is not that of an undo file.
    #[error("{} is not an undo file of tacho tune: {reason}", .path.display())]
    Format { path: PathBuf, reason: String },
    /// The target is another product.
    #[error("the undo file is of {expected}, and the target is {found}. Nothing was changed")]
    OtherProduct {
        /// The product of the file.
        expected: String,
        /// The product of the target.
        found: String,
    },
}

/// A change was not carried out, or only in part.
#[derive(Debug, thiserror::Error)]
pub enum ChangeError {
    /// A statement was not carried out.
    #[error("{name}: `{statement}`: {error}{}", grant_of(.error, .grant))]
    Statement {
        /// The parameter.
        name: String,
        statement: String,
        error: Box<StatementError>,
        /// The grant that allows it.
        grant: Option<String>,
    },
    /// The target could not be looked at after the change.
    #[error("{name} was set, but the target could not be looked at again: {error}")]
    Look {
        /// The parameter.
        name: String,
        error: ProbeError,
    },
    /// The target has taken the statements, and the parameter does not have the value.
    #[error("the target has taken the statements, but {name} is still {found}")]
    NotInEffect {
        /// The parameter.
        name: String,
        /// The value that it has.
        found: String,
    },
}

fn grant_of(error: &StatementError, grant: &Option<String>) -> String {
    match (error, grant) {
        (StatementError::Permission(_), Some(grant)) => format!(". {grant}"),
        _ => String::new(),
    }
}
