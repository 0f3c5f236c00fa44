//! Errors of the configuration. Each names the remedy.

use std::path::{Path, PathBuf};

/// An error of the configuration, which the operator must correct. The exit code is 2.
#[derive(Debug, thiserror::Error)]
pub(crate) enum ConfigError {
    /// The file cannot be read.
    #[error("cannot read the configuration {}: {source}", .path.display())]
    Read {
        path: PathBuf,
        #[source]
        source: std::io::Error,
    },
    /// The file is not TOML, or a value has the wrong type.
    #[error("{}:{line}: {reason}", .path.display())]
    Syntax {
        path: PathBuf,
        /// The line, counted from 1.
        line: usize,
        reason: String,
    },
    /// The file has an unknown key.
    #[error("{}:{line}: unknown key \"{key}\"; {hint}", .path.display())]
    UnknownKey {
        path: PathBuf,
        /// The line, counted from 1.
        line: usize,
        /// The key with its section.
        key: String,
        hint: String,
    },
    /// The environment has an unknown setting.
    #[error("environment variable {name}: unknown setting; {hint}")]
    UnknownVariable { name: String, hint: String },
    /// The text of a variable does not fit the type of the setting.
    #[error("environment variable {name} is \"{value}\"; {expected} is expected")]
    Variable {
        name: String,
        value: String,
        /// The expected form.
        expected: &'static str,
    },
    /// A value has the right type and is not allowed.
    #[error("setting {key} is {value}: {reason}")]
    Value {
        /// The key with its section.
        key: String,
        value: String,
        /// The reason, and the allowed values.
        reason: String,
    },
}

impl ConfigError {
    /// Converts an error of the TOML parser.
    pub(super) fn syntax(path: &Path, text: &str, error: &toml::de::Error) -> Self {
        let line = line_of(text, error.span().map_or(0, |span| span.start));
        Self::Syntax { path: path.into(), line, reason: error.message().to_owned() }
    }

    pub(super) fn value(key: impl Into<String>, value: impl ToString, reason: impl Into<String>) -> Self {
        Self::Value { key: key.into(), value: value.to_string(), reason: reason.into() }
    }
}

/// The line of a byte offset, counted from 1.
pub(super) fn line_of(text: &str, offset: usize) -> usize {
    1 + text.as_bytes().iter().take(offset).filter(|byte| **byte == b'\n').count()
}

/// "did you mean ..." for the most similar name in `known`, or the list of all names if none is similar.
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
