//! What can be wrong with a configuration, and what to do about it.

use std::path::{Path, PathBuf};

/// An error of the configuration. Always the operator's turn; the exit code is 2.
#[derive(Debug, thiserror::Error)]
pub(crate) enum ConfigError {
    /// The file cannot be read.
    #[error("cannot read the configuration {}: {source}", .path.display())]
    Read {
        /// Which file.
        path: PathBuf,
        /// What the system said.
        #[source]
        source: std::io::Error,
    },
    /// The file is not TOML, or a value has the wrong type.
    #[error("{}:{line}: {reason}", .path.display())]
    Syntax {
        /// Which file.
        path: PathBuf,
        /// Where, counted from 1.
        line: usize,
        /// What is wrong there.
        reason: String,
    },
    /// The file holds a key that nothing reads.
    #[error("{}:{line}: unknown key \"{key}\"; {hint}", .path.display())]
    UnknownKey {
        /// Which file.
        path: PathBuf,
        /// Where, counted from 1.
        line: usize,
        /// The key with its section.
        key: String,
        /// What was meant, perhaps.
        hint: String,
    },
    /// The environment holds a setting that nothing reads.
    #[error("environment variable {name}: unknown setting; {hint}")]
    UnknownVariable {
        /// Its name.
        name: String,
        /// What was meant, perhaps.
        hint: String,
    },
    /// A variable's text is not a value of the setting's type.
    #[error("environment variable {name} is \"{value}\"; {expected} is expected")]
    Variable {
        /// Its name.
        name: String,
        /// Its text.
        value: String,
        /// What it should be.
        expected: &'static str,
    },
    /// A value is of the right type and still cannot be used.
    #[error("setting {key} is {value}: {reason}")]
    Value {
        /// The key with its section.
        key: &'static str,
        /// What it is set to.
        value: String,
        /// Why not, and what would do.
        reason: String,
    },
}

impl ConfigError {
    /// An error of the TOML reader at the line it names.
    pub(super) fn syntax(path: &Path, text: &str, error: &toml::de::Error) -> Self {
        let line = line_of(text, error.span().map_or(0, |span| span.start));
        Self::Syntax { path: path.into(), line, reason: error.message().to_owned() }
    }

    pub(super) fn value(key: &'static str, value: impl ToString, reason: impl Into<String>) -> Self {
        Self::Value { key, value: value.to_string(), reason: reason.into() }
    }
}

/// The line of a byte offset, counted from 1.
pub(super) fn line_of(text: &str, offset: usize) -> usize {
    1 + text.as_bytes().iter().take(offset).filter(|byte| **byte == b'\n').count()
}

/// "did you mean ..." for the nearest of `known`, or the list of them when none is near.
pub(super) fn hint<'a>(wrong: &str, known: impl Iterator<Item = &'a str> + Clone) -> String {
    let near = known
        .clone()
        .map(|name| (strsim::damerau_levenshtein(wrong, name), name))
        .min()
        .filter(|(distance, name)| *distance * 3 <= name.len().max(wrong.len()));
    match near {
        Some((_, name)) => format!("did you mean \"{name}\"?"),
        None => format!("known are {}", known.collect::<Vec<_>>().join(", ")),
    }
}
