//! Regular expressions with a bounded size and bounded work.
//!
//! The time of a match grows with the length of the text and with the number of states of the expression. A short expression such as
//! nested `(x?){50}` can have a huge number of states. So two limits hold: one on the states when an expression is compiled, one on
//! states times text length when it is matched.

use std::cell::RefCell;

use model::limits::{QUERY_REGEX_BYTES_MAX, QUERY_REGEX_WORK_MAX};
use regex::{Captures, Match, Regex, RegexBuilder};
use regex_automata::nfa::thompson;

use crate::error::INVALID_REGEX;
use crate::{QueryError, pushdown, scope};

/// Work from which a match checks whether its statement was ended.
const CHECKED_WORK: u64 = 1024 * 1024;

/// A compiled regular expression.
#[derive(Debug, Clone)]
pub(crate) struct BoundedRegex {
    regex: Regex,
    states: u64,
}

/// A pattern, its flags and the compiled expression.
type Compiled = (String, String, BoundedRegex);

thread_local! {
    /// The expression of the row before. Most often the next row has the same one.
    static LAST: RefCell<Option<Compiled>> = const { RefCell::new(None) };
}

impl BoundedRegex {
    /// Compiles a pattern in the language of the `regex` crate.
    pub(crate) fn of_library(pattern: &str, is_insensitive: bool) -> Result<Self, QueryError> {
        let flags = if is_insensitive { "library i" } else { "library" };
        compile_once(pattern, flags, || Self::compile(pattern, pattern, is_insensitive))
    }

    /// Compiles a pattern of LIKE with a backslash as the escape character.
    pub(crate) fn of_like(pattern: &str, is_insensitive: bool) -> Result<Self, QueryError> {
        compile_once(pattern, if is_insensitive { "like i" } else { "like" }, || {
            let regex = pushdown::like_pattern(pattern, '\\');
            // `.*` at the beginning or at the end of a pattern without anchors matches the same texts as no `.*`.
            let regex = match regex.strip_prefix("(?s)^.*") {
                Some(rest) => format!("(?s){rest}"),
                None => regex,
            };
            let regex = regex.strip_suffix(".*$").unwrap_or(&regex);
            Self::compile(regex, pattern, is_insensitive)
        })
    }

    /// Compiles an expression in the language of the `regex` crate. An error shows the `pattern` of the user.
    pub(crate) fn compile(regex: &str, pattern: &str, is_insensitive: bool) -> Result<Self, QueryError> {
        scope::check(0)?;
        let limit = QUERY_REGEX_BYTES_MAX;
        let compiled = RegexBuilder::new(regex)
            .case_insensitive(is_insensitive)
            .size_limit(limit)
            .dfa_size_limit(limit)
            .build()
            .map_err(|error| refused(&error, pattern))?;
        let config = thompson::Config::new().nfa_size_limit(Some(limit));
        // The count ignores case-insensitivity, which at most doubles the states.
        let counted = thompson::NFA::compiler().configure(config).build(regex);
        let states = counted.map_or(limit as u64 / 16, |states| states.states().len() as u64);
        Ok(Self { regex: compiled, states })
    }

    /// Whether the expression matches a text.
    pub(crate) fn is_match(&self, text: &str) -> Result<bool, QueryError> {
        self.check(text.len())?;
        Ok(self.regex.is_match(text))
    }

    /// Returns the first match with its groups.
    pub(crate) fn captures<'t>(&self, text: &'t str) -> Result<Option<Captures<'t>>, QueryError> {
        self.check(text.len())?;
        Ok(self.regex.captures(text))
    }

    /// Returns all matches. Each one may search the whole rest of the text, so each one is checked.
    pub(crate) fn find_each<'r, 't>(
        &'r self,
        text: &'t str,
    ) -> impl Iterator<Item = Result<Match<'t>, QueryError>> + use<'r, 't> {
        let mut matches = self.regex.find_iter(text);
        let mut at = 0;
        std::iter::from_fn(move || {
            if let Err(error) = self.check(text.len() - at) {
                return Some(Err(error));
            }
            let found = matches.next()?;
            at = found.end();
            Some(Ok(found))
        })
    }

    /// Returns all matches with their groups, as [`find_each`](Self::find_each).
    pub(crate) fn captures_each<'r, 't>(
        &'r self,
        text: &'t str,
    ) -> impl Iterator<Item = Result<Captures<'t>, QueryError>> + use<'r, 't> {
        let mut matches = self.regex.captures_iter(text);
        let mut at = 0;
        std::iter::from_fn(move || {
            if let Err(error) = self.check(text.len() - at) {
                return Some(Err(error));
            }
            let found = matches.next()?;
            at = found.get_match().end();
            Some(Ok(found))
        })
    }

    /// Refuses a search through `bytes` of text that exceeds the work limit.
    fn check(&self, bytes: usize) -> Result<(), QueryError> {
        let work = self.states.saturating_mul(bytes as u64);
        if work > QUERY_REGEX_WORK_MAX {
            return Err(QueryError::OverLimit {
                what: "the size of a regular expression times the length of a text",
                limit: format!("{QUERY_REGEX_WORK_MAX} steps"),
                remedy: "match shorter text, or write a simpler expression",
            });
        }
        if work > CHECKED_WORK { scope::check(0) } else { Ok(()) }
    }
}

/// Returns the compiled expression of the row before, or compiles a new one.
pub(crate) fn compile_once(
    pattern: &str,
    flags: &str,
    compile: impl FnOnce() -> Result<BoundedRegex, QueryError>,
) -> Result<BoundedRegex, QueryError> {
    LAST.with_borrow_mut(|last| {
        if let Some((last_pattern, last_flags, regex)) = last
            && last_pattern == pattern
            && last_flags == flags
        {
            return Ok(regex.clone());
        }
        let regex = compile()?;
        *last = Some((pattern.to_owned(), flags.to_owned(), regex.clone()));
        Ok(regex)
    })
}

/// Returns the error for the author of the pattern.
fn refused(error: &regex::Error, pattern: &str) -> QueryError {
    match error {
        regex::Error::CompiledTooBig(limit) => QueryError::OverLimit {
            what: "the size of a regular expression",
            limit: format!("{limit} bytes when compiled"),
            remedy: "repeat less in it",
        },
        error => {
            let error = error.to_string();
            let why = error.lines().last().unwrap_or_default().trim_start_matches("error: ");
            let shown: String = pattern.chars().take(200).collect();
            QueryError::value(INVALID_REGEX, format!("invalid regular expression {shown:?}: {why}"))
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn large_expressions_and_long_texts_are_refused() {
        let small = BoundedRegex::of_postgres("bus-[0-9]+", "i").unwrap();
        assert!(small.is_match("BUS-12").unwrap());
        let nested = "(x?){50}".repeat(5_000);
        assert!(matches!(BoundedRegex::of_postgres(&nested, ""), Err(QueryError::OverLimit { .. })));
        let states = BoundedRegex::of_postgres("(x?){50}", "").unwrap();
        let long = "x".repeat(20_000_000);
        assert!(matches!(states.is_match(&long), Err(QueryError::OverLimit { .. })));
        let error = BoundedRegex::of_postgres("(a", "").unwrap_err();
        assert_eq!(error.sql_state(), INVALID_REGEX);
        assert!(error.to_string().contains("unclosed group"), "{error}");
    }
}
