//! Why a proof cannot begin. The target is as it was.

use std::io;
use std::path::PathBuf;

use crate::change::PlanError;
use crate::probe::ProbeError;

/// A proof that has not begun.
#[derive(Debug, thiserror::Error)]
pub enum ProveError {
    /// The rule has no change for this target.
    #[error(transparent)]
    Plan(#[from] PlanError),
    /// A person makes the change, so the proof needs the person's commands.
    #[error("{rule} cannot be proved without {missing}. {why}")]
    Commands {
        rule: String,
        /// The options that are missing.
        missing: String,
        /// Why they are needed.
        why: String,
    },
    /// An option that does not apply to the rule.
    #[error("{option} does not apply to {rule}: {why}")]
    Option { option: &'static str, rule: String, why: &'static str },
    /// The target cannot be looked at.
    #[error(transparent)]
    Probe(#[from] ProbeError),
    /// The scenario or its data is wrong.
    #[error(transparent)]
    Bench(load::Error),
    /// The proof was made, but its file cannot be written.
    #[error("{} cannot be written: {source}. What it was to hold is what was said above", .path.display())]
    Write { path: PathBuf, source: io::Error },
    /// The output cannot be written.
    #[error("the output cannot be written: {0}")]
    Output(io::Error),
}
