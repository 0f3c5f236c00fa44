//! Patterns of text.

use regex::{Regex, RegexBuilder};

use super::error::{EntityQueryError, within};
use super::limits::QUERY_TEXT_BYTES_MAX;

/// A pattern that ignores case. It matches without a copy of the text.
#[derive(Debug, Clone)]
pub(crate) struct Pattern(Regex);

impl Pattern {
    /// Text that contains a part. Without a part there is no pattern: all text matches.
    pub(crate) fn containing(part: &str) -> Result<Option<Self>, EntityQueryError> {
        check("the bytes of the search text", part)?;
        match part.is_empty() {
            true => Ok(None),
            false => Self::new(&regex::escape(part)).map(Some),
        }
    }

    /// A name filter: the beginning of names, in which `%` stands for any text and `_` for one character (SQL's LIKE). A filter
    /// that begins or ends with `%` is the pattern of whole names.
    pub(crate) fn of_names(filter: Option<&str>) -> Result<Option<Self>, EntityQueryError> {
        let Some(filter) = filter.filter(|filter| !filter.trim().is_empty()) else { return Ok(None) };
        check("the bytes of the name filter", filter)?;
        let is_whole = filter.starts_with('%') || filter.ends_with('%');
        let mut pattern = String::from(r"\A");
        for character in filter.chars() {
            match character {
                '%' => pattern.push_str(".*"),
                '_' => pattern.push('.'),
                other => pattern.push_str(&regex::escape(other.encode_utf8(&mut [0; 4]))),
            }
        }
        pattern.push_str(if is_whole { r"\z" } else { "" });
        Self::new(&pattern).map(Some)
    }

    fn new(pattern: &str) -> Result<Self, EntityQueryError> {
        let built = RegexBuilder::new(pattern).case_insensitive(true).dot_matches_new_line(true).build();
        built
            .map(Self)
            .map_err(|error| EntityQueryError::Invalid(format!("a text cannot be searched: {error}")))
    }

    /// Whether the text matches.
    pub(crate) fn matches(&self, text: &str) -> bool {
        self.0.is_match(text)
    }
}

fn check(what: &'static str, text: &str) -> Result<(), EntityQueryError> {
    within(what, text.len(), ("QUERY_TEXT_BYTES_MAX", QUERY_TEXT_BYTES_MAX), "use a shorter text")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn name_filters_are_beginnings_or_patterns() {
        let matches = |filter: &str, name: &str| {
            Pattern::of_names(Some(filter)).unwrap().is_none_or(|pattern| pattern.matches(name))
        };
        assert!(
            matches("Car ", "car 1") && !matches("ar", "car 1") && matches("", "car") && matches(" ", "car")
        );
        assert!(matches("%AR%", "car 1") && matches("%1", "car 1") && !matches("%ar", "car 1"));
        assert!(matches("c%1", "car 17") && matches("c_r", "car") && !matches("c.r", "car"));
        assert!(matches("%(a+", "x(A+") && matches("É", "électrique"));
        assert!(matches!(
            Pattern::of_names(Some(&"x".repeat(QUERY_TEXT_BYTES_MAX + 1))),
            Err(EntityQueryError::OverLimit { .. })
        ));
    }

    #[test]
    fn a_search_text_is_not_a_pattern() {
        let search = Pattern::containing("%.").unwrap().unwrap();
        assert!(search.matches("a%.b") && !search.matches("a.b"));
        assert!(Pattern::containing("").unwrap().is_none());
    }
}
