//! Completion at the prompt: keywords, tables, columns.

use rustyline::completion::Completer;
use rustyline::highlight::Highlighter;
use rustyline::hint::Hinter;
use rustyline::validate::Validator;
use rustyline::{Context, Helper};

use crate::limits::COMPLETIONS_MAX;

const KEYWORDS: &[&str] = &[
    "ALL",
    "AND",
    "AS",
    "ASC",
    "AVG",
    "BETWEEN",
    "BY",
    "CASE",
    "CAST",
    "COUNT",
    "CROSS",
    "DATE_TRUNC",
    "DESC",
    "DESCRIBE",
    "DISTINCT",
    "ELSE",
    "END",
    "EXISTS",
    "EXPLAIN",
    "FALSE",
    "FIRST_VALUE",
    "FROM",
    "FULL",
    "GROUP",
    "HAVING",
    "ILIKE",
    "IN",
    "INNER",
    "INTERPOLATE",
    "INTERVAL",
    "IS",
    "JOIN",
    "LAST_VALUE",
    "LEFT",
    "LIKE",
    "LIMIT",
    "LOCF",
    "MAX",
    "MIN",
    "NOT",
    "NOW",
    "NULL",
    "NULLS",
    "OFFSET",
    "ON",
    "OR",
    "ORDER",
    "OUTER",
    "OVER",
    "PARTITION",
    "RIGHT",
    "SELECT",
    "SHOW",
    "SUM",
    "TABLES",
    "THEN",
    "TIME_BUCKET",
    "TIME_BUCKET_GAPFILL",
    "TRUE",
    "UNION",
    "USING",
    "VALUES",
    "WHEN",
    "WHERE",
    "WINDOW",
    "WITH",
];

/// Completes the word before the cursor.
#[derive(Debug, Default)]
pub(super) struct Words {
    names: Vec<String>,
}

impl Words {
    /// Replaces the known names of tables and columns. Names that need quotes get them.
    pub(super) fn learn<'a>(&mut self, names: impl Iterator<Item = &'a str>) {
        self.names = names.take(COMPLETIONS_MAX).map(quoted).collect();
        self.names.sort_unstable();
        self.names.dedup();
    }

    /// The start of the word before the cursor, and its possible completions.
    fn find(&self, line: &str, cursor: usize) -> (usize, Vec<String>) {
        let before = &line[..cursor];
        let start = before
            .rfind(|c: char| !(c.is_alphanumeric() || c == '_' || c == '"'))
            .map_or(0, |at| at + before[at..].chars().next().map_or(1, char::len_utf8));
        let word = before[start..].trim_start_matches('"').to_lowercase();
        if word.is_empty() && !before[start..].starts_with('"') {
            return (start, Vec::new());
        }
        let fits = |name: &str| name.trim_start_matches('"').to_lowercase().starts_with(&word);
        let names = self.names.iter().filter(|name| fits(name)).cloned();
        let lower = before[start..].chars().all(char::is_lowercase);
        let keywords = KEYWORDS
            .iter()
            .filter(|keyword| fits(keyword))
            .map(|keyword| if lower { keyword.to_lowercase() } else { (*keyword).to_owned() });
        (start, names.chain(keywords).collect())
    }
}

fn quoted(name: &str) -> String {
    let plain = name.starts_with(|c: char| c.is_ascii_lowercase() || c == '_')
        && name.chars().all(|c| c.is_ascii_lowercase() || c.is_ascii_digit() || c == '_');
    if plain { name.to_owned() } else { format!("\"{}\"", name.replace('"', "\"\"")) }
}

impl Completer for Words {
    type Candidate = String;

    fn complete(
        &self,
        line: &str,
        cursor: usize,
        _: &Context<'_>,
    ) -> rustyline::Result<(usize, Vec<String>)> {
        Ok(self.find(line, cursor))
    }
}

impl Hinter for Words {
    type Hint = String;
}
impl Highlighter for Words {}
impl Validator for Words {}
impl Helper for Words {}

#[cfg(test)]
mod tests {
    use super::*;

    fn words() -> Words {
        let mut words = Words::default();
        words.learn(["telemetry", "speed", "Engine RPM", "ts", "ts"].into_iter());
        words
    }

    #[test]
    fn names_come_before_keywords_and_keep_the_case() {
        assert_eq!(
            words().find("SELECT t", 8),
            (
                7,
                vec![
                    "telemetry".into(),
                    "ts".into(),
                    "tables".into(),
                    "then".into(),
                    "time_bucket".into(),
                    "time_bucket_gapfill".into(),
                    "true".into()
                ]
            )
        );
        assert_eq!(words().find("SELECT x FR", 11), (9, vec!["FROM".into()]));
        assert_eq!(words().find("sel", 3), (0, vec!["select".into()]));
    }

    #[test]
    fn names_that_need_quotes_get_them() {
        assert_eq!(words().find("SELECT eng", 10), (7, vec!["\"Engine RPM\"".into()]));
        assert_eq!(words().find("SELECT \"eng", 11), (7, vec!["\"Engine RPM\"".into()]));
    }

    #[test]
    fn an_empty_prefix_completes_to_all_names() {
        assert_eq!(words().find("SELECT ", 7), (7, vec![]));
        assert_eq!(words().find("SELECT ä,", 10), (10, vec![]));
    }
}
