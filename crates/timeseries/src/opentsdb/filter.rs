//! Filters: conditions on the value of one tag.

use regex::RegexBuilder;
use store::{TagMatcher, TagPredicate};

use super::{QueryError, limits};

/// A condition on the value of one tag.
#[derive(Debug, Clone)]
pub struct Filter {
    pub tag: String,
    /// The type of the condition.
    pub kind: FilterType,
    /// The statement of the type about the value.
    pub text: String,
    /// Whether each value of the tag is a group of its own.
    pub group_by: bool,
    predicate: TagPredicate,
}

/// The type of a filter.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct FilterType {
    pub name: &'static str,
    /// Its operation.
    pub description: &'static str,
    /// An example of its text.
    pub example: &'static str,
}

const LITERAL: &str = "The value is one of the texts, which | separates.";
const NOT_LITERAL: &str = "The series has the tag and its value is none of the texts, which | separates.";
const WILDCARD: &str = "The value has the form of the text, in which * stands for any characters.";

/// All types of filters.
pub const FILTER_TYPES: [FilterType; 8] = [
    FilterType { name: "iliteral_or", description: LITERAL, example: "web01|WEB02" },
    FilterType { name: "iwildcard", description: WILDCARD, example: "web*" },
    FilterType { name: "literal_or", description: LITERAL, example: "web01|web02" },
    FilterType { name: "not_iliteral_or", description: NOT_LITERAL, example: "web01|WEB02" },
    FilterType {
        name: "not_key",
        description: "The series does not have the tag. The text is empty.",
        example: "",
    },
    FilterType { name: "not_literal_or", description: NOT_LITERAL, example: "web01|web02" },
    FilterType {
        name: "regexp",
        description: "The value contains a match of the regular expression.",
        example: "^web[0-9]+$",
    },
    FilterType { name: "wildcard", description: WILDCARD, example: "web*.example" },
];

impl Filter {
    /// A filter of the type with this name.
    ///
    /// # Errors
    /// [`QueryError::Invalid`]: there is no such type, or the text does not suit it.
    pub fn new(tag: &str, kind: &str, text: &str, group_by: bool) -> Result<Self, QueryError> {
        let known = FILTER_TYPES.iter().find(|known| known.name.eq_ignore_ascii_case(kind));
        let known = *known.ok_or_else(|| {
            QueryError::Invalid(format!("Could not find a tag value filter of the type: {kind}"))
        })?;
        let predicate = predicate(known, text)?;
        Self::with(tag, known, text, group_by, predicate)
    }

    /// The filter of an entry of a map of tags: a value, `a|b`, `*`, `web*` or a filter such as `wildcard(web*)`.
    ///
    /// # Errors
    /// [`QueryError::Invalid`]: the value is empty or a wrong filter.
    pub fn of_tag(tag: &str, value: &str, group_by: bool) -> Result<Self, QueryError> {
        if value.is_empty() {
            return Err(QueryError::invalid("Filter cannot be null or empty"));
        }
        if let Some((kind, rest)) = value.split_once('(') {
            let text = rest
                .strip_suffix(')')
                .ok_or_else(|| QueryError::Invalid(format!("Filter must end with a ')': {value}")))?;
            return Self::new(tag, kind, text, group_by);
        }
        if value.contains('*') {
            // The wildcards of a map of tags do not regard case.
            let kind = FILTER_TYPES[7];
            return Self::with(tag, kind, value, group_by, glob(value, true)?);
        }
        Self::new(tag, "literal_or", value, group_by)
    }

    fn with(
        tag: &str,
        kind: FilterType,
        text: &str,
        group_by: bool,
        predicate: TagPredicate,
    ) -> Result<Self, QueryError> {
        if tag.is_empty() {
            return Err(QueryError::invalid("Filter must have a tagk"));
        }
        Ok(Self { tag: tag.to_owned(), kind, text: text.to_owned(), group_by, predicate })
    }

    /// Whether only series without the tag satisfy the filter.
    pub(super) fn wants_no_tag(&self) -> bool {
        matches!(self.predicate, TagPredicate::Absent)
    }
}

/// The conditions that a series of all filters satisfies. Several filters `literal_or` of one tag are alternatives.
pub(super) fn matchers(filters: &[Filter]) -> Vec<TagMatcher> {
    let mut matchers: Vec<TagMatcher> = Vec::new();
    for filter in filters {
        if let TagPredicate::OneOf(more) = &filter.predicate {
            let same = matchers.iter_mut().find_map(|matcher| match &mut matcher.predicate {
                TagPredicate::OneOf(texts) if *matcher.tag == *filter.tag => Some(texts),
                _ => None,
            });
            if let Some(texts) = same {
                texts.extend_from_slice(more);
                continue;
            }
        }
        matchers.push(TagMatcher { tag: filter.tag.clone(), predicate: filter.predicate.clone() });
    }
    matchers
}

fn predicate(kind: FilterType, text: &str) -> Result<TagPredicate, QueryError> {
    match (kind.name, text) {
        ("not_key", "") => return Ok(TagPredicate::Absent),
        ("not_key", _) => {
            return Err(QueryError::invalid("The filter must be empty for the not_key filter"));
        }
        (_, "") => return Err(QueryError::invalid("Filter cannot be null or empty")),
        ("regexp", _) => return regexp(text).map(TagPredicate::Matches),
        ("wildcard" | "iwildcard", _) => return glob(text, kind.name == "iwildcard"),
        (_, "|") => return Err(QueryError::invalid("Filter must contain more than just a pipe")),
        _ => {}
    }
    let literals: Vec<String> = text.trim_end_matches('|').split('|').map(str::to_owned).collect();
    let any_case = || {
        let escaped: Vec<String> = literals.iter().map(|literal| regex::escape(literal)).collect();
        regexp(&format!("(?i)^(?:{})$", escaped.join("|")))
    };
    Ok(match kind.name {
        "literal_or" => TagPredicate::OneOf(literals),
        "not_literal_or" => TagPredicate::NoneOf(literals),
        "iliteral_or" => TagPredicate::Matches(any_case()?),
        _ => TagPredicate::MatchesNot(any_case()?),
    })
}

fn glob(text: &str, any_case: bool) -> Result<TagPredicate, QueryError> {
    if !text.contains('*') {
        return Err(QueryError::invalid("Filter must contain an asterisk"));
    }
    if text.bytes().all(|byte| byte == b'*') {
        return Ok(TagPredicate::Present);
    }
    let parts: Vec<String> = text.split('*').map(regex::escape).collect();
    let flags = if any_case { "(?is)" } else { "(?s)" };
    regexp(&format!("{flags}^{}$", parts.join(".*"))).map(TagPredicate::Matches)
}

fn regexp(pattern: &str) -> Result<regex::Regex, QueryError> {
    let built = RegexBuilder::new(pattern).size_limit(limits::REGEXP_BYTES_MAX).build();
    built.map_err(|error| QueryError::Invalid(format!("The regular expression cannot be used: {error}")))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn accepts(kind: &str, text: &str) -> Vec<&'static str> {
        let filter = Filter::new("host", kind, text, false).unwrap();
        let values = ["web01", "WEB01", "web02", "db.1", "a|b"];
        values.into_iter().filter(|value| filter.predicate.accepts(Some(value))).collect()
    }

    #[test]
    fn each_type_accepts_its_values() {
        assert_eq!(accepts("literal_or", "web01|db.1"), ["web01", "db.1"]);
        assert_eq!(accepts("iliteral_or", "wEb01|db.1"), ["web01", "WEB01", "db.1"]);
        assert_eq!(accepts("not_literal_or", "web01|db.1"), ["WEB01", "web02", "a|b"]);
        assert_eq!(accepts("not_iliteral_or", "web01"), ["web02", "db.1", "a|b"]);
        assert_eq!(accepts("wildcard", "web*"), ["web01", "web02"]);
        assert_eq!(accepts("wildcard", "*b*1"), ["web01", "db.1"]);
        assert_eq!(accepts("iwildcard", "web*1"), ["web01", "WEB01"]);
        assert_eq!(accepts("regexp", "b.?[12]$"), ["web01", "web02", "db.1"]);
        assert_eq!(accepts("wildcard", "*").len(), 5);
    }

    #[test]
    fn a_wrong_filter_is_refused() {
        for (kind, text) in [
            ("literal_or", ""),
            ("literal_or", "|"),
            ("wildcard", "web01"),
            ("not_key", "x"),
            ("regexp", "("),
            ("regexp", "((a{1,1000}){1,1000}){1,1000}"),
            ("soundex", "x"),
        ] {
            assert!(Filter::new("host", kind, text, false).is_err(), "{kind} {text}");
        }
    }

    #[test]
    fn filters_of_literals_on_one_tag_are_alternatives() {
        let filters = ["a", "b"].map(|text| Filter::new("host", "literal_or", text, false).unwrap());
        let [matcher] = matchers(&filters).try_into().unwrap();
        assert!(matcher.predicate.accepts(Some("a")) && matcher.predicate.accepts(Some("b")));
    }
}
