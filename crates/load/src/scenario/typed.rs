//! Converts tables into typed values. An error names the place and suggests a correction.

use serde::Deserialize;
use serde::de::DeserializeOwned;
use toml::Table;

/// The similarity of two words that differ by one letter, or by two that are swapped.
const ONE_SLIP: f64 = 0.9;
/// The smallest similarity of a suggestion.
const LIKENESS_MIN: f64 = 0.65;

/// Converts a table. `place` is for the error; `more` are other keys known there, for suggestions only.
pub fn typed<T: DeserializeOwned>(table: Table, place: &str, more: &[&str]) -> Result<T, String> {
    T::deserialize(toml::Value::Table(table)).map_err(|error| {
        let text = error.to_string();
        let text = text.trim();
        match suggestion(text, more) {
            Some(meant) => format!("{place}: {text}; did you mean `{meant}`?"),
            None => format!("{place}: {text}"),
        }
    })
}

/// A suggestion for an unknown field, from serde's message with the known ones.
fn suggestion(text: &str, more: &[&str]) -> Option<String> {
    let unknown = text.strip_prefix("unknown field `")?.split('`').next()?;
    let known = text.split('`').skip(3).step_by(2);
    known
        .chain(more.iter().copied())
        .map(|name| (likeness(unknown, name), name))
        .filter(|(likeness, _)| *likeness >= LIKENESS_MIN)
        .max_by(|a, b| a.0.total_cmp(&b.0))
        .map(|(_, name)| name.to_owned())
}

/// The name in a list that is most similar to `name`.
pub(crate) fn nearest<'a>(name: &str, known: impl Iterator<Item = &'a str>) -> Option<&'a str> {
    known
        .map(|candidate| (likeness(name, candidate), candidate))
        .filter(|(likeness, _)| *likeness >= LIKENESS_MIN)
        .max_by(|a, b| a.0.total_cmp(&b.0))
        .map(|(_, candidate)| candidate)
}

/// The similarity, from 0 to 1. It favours swapped letters and different endings, the usual typing errors.
fn likeness(a: &str, b: &str) -> f64 {
    // In a short word one slip is a large share, although it is the likeliest error.
    let one_slip = if strsim::damerau_levenshtein(a, b) == 1 { ONE_SLIP } else { 0.0 };
    strsim::jaro_winkler(a, b).max(strsim::normalized_damerau_levenshtein(a, b)).max(one_slip)
}

/// A table without any key.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct NoKeys {}

/// Refuses every key of a table; `more` are keys known there, for suggestions.
pub fn no_keys(table: &toml::Table, place: &str, more: &[&str]) -> std::result::Result<(), String> {
    typed::<NoKeys>(table.clone(), place, more).map(|NoKeys {}| ())
}
