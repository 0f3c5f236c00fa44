//! Names of metrics and tags.

use std::fmt::Write;

use super::super::limits::TAGS_DEFAULT;
use super::refusal::{Refusal, RefusalKind, quoted};

/// Characters that names can have besides letters of any script and the digits `0` to `9`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Charset {
    special: String,
}

impl Charset {
    /// OpenTSDB's `-_./`, and the characters that an operator adds (its setting `tsd.core.tag.allow_specialchars`).
    #[must_use]
    pub fn opentsdb(added: &str) -> Self {
        Self { special: format!("-_./{added}") }
    }

    /// HiTSDB's, which has blanks and brackets too, and those of [`Charset::opentsdb`].
    #[must_use]
    pub fn hitsdb(added: &str) -> Self {
        Self { special: format!("-_./ ():,[]='#{added}") }
    }

    fn illegal(&self, name: &str) -> Option<char> {
        let is_plain = |byte: u8| byte.is_ascii_alphanumeric() || matches!(byte, b'-' | b'_' | b'.' | b'/');
        if name.bytes().all(is_plain) {
            return None;
        }
        let is_legal = |c: char| c.is_ascii_digit() || c.is_alphabetic() || self.special.contains(c);
        name.chars().find(|c| !is_legal(*c))
    }
}

/// What names and how many tags a point can have.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SeriesRules {
    /// Characters of names.
    pub charset: Charset,
    /// Most tags.
    pub tags_max: usize,
}

impl Default for SeriesRules {
    fn default() -> Self {
        Self { charset: Charset::opentsdb(""), tags_max: TAGS_DEFAULT }
    }
}

/// Checks the metric and the tags of a point.
///
/// # Errors
/// Without tags, with too many, and for an empty name or one with an illegal character.
pub fn check_series<T: AsRef<str>>(
    metric: &str,
    tags: &[(T, T)],
    rules: &SeriesRules,
) -> Result<(), Refusal> {
    if tags.is_empty() {
        return Err(Refusal::new(RefusalKind::Tags, "Missing tags"));
    }
    if tags.len() > rules.tags_max {
        let (sent, max, shown) = (tags.len(), rules.tags_max, shown_tags(tags));
        let message = format!("Too many tags: {sent} maximum allowed: {max}, tags: {shown}");
        return Err(Refusal::new(RefusalKind::Tags, message));
    }
    let check = |kind, name, what: &dyn Fn() -> String| check_name(kind, name, what, &rules.charset);
    check(RefusalKind::Metric, metric, &|| "metric name".to_owned())?;
    for (key, value) in tags {
        let (key, value) = (key.as_ref(), value.as_ref());
        check(RefusalKind::Tags, key, &|| format!("tag name with value [{}]", quoted(value)))?;
        check(RefusalKind::Tags, value, &|| format!("tag value with key [{}]", quoted(key)))?;
    }
    Ok(())
}

fn check_name(
    kind: RefusalKind,
    name: &str,
    what: &dyn Fn() -> String,
    charset: &Charset,
) -> Result<(), Refusal> {
    if name.is_empty() {
        return Err(Refusal::new(kind, format!("Invalid {}: empty string", what())));
    }
    match charset.illegal(name) {
        None => Ok(()),
        Some(c) => {
            let name = quoted(name);
            Err(Refusal::new(kind, format!("Invalid {} (\"{name}\"): illegal character: {c}", what())))
        }
    }
}

/// Tags as Java shows a map: `{host=a, dc=b}`.
pub(in crate::opentsdb) fn shown_tags<T: AsRef<str>>(tags: &[(T, T)]) -> String {
    let mut shown = String::from("{");
    for (index, (key, value)) in tags.iter().enumerate() {
        let comma = if index == 0 { "" } else { ", " };
        let _ = write!(shown, "{comma}{}={}", key.as_ref(), value.as_ref());
    }
    quoted(&shown).to_owned() + "}"
}

#[cfg(test)]
mod tests {
    use super::*;

    fn refusal(metric: &str, tags: &[(&str, &str)]) -> String {
        check_series(metric, tags, &SeriesRules::default()).unwrap_err().to_string()
    }

    #[test]
    fn letters_of_any_script_and_four_marks_are_legal() {
        let rules = SeriesRules::default();
        assert_eq!(check_series("sys.cpu-0/Nice_1", &[("hôte", "東京")], &rules), Ok(()));
    }

    #[test]
    fn illegal_names_are_refused_in_opentsdbs_words() {
        assert_eq!(refusal("a b", &[("k", "v")]), "Invalid metric name (\"a b\"): illegal character:  ");
        assert_eq!(
            refusal("m", &[("k", "a:b")]),
            "Invalid tag value with key [k] (\"a:b\"): illegal character: :"
        );
        assert_eq!(refusal("m", &[("", "v")]), "Invalid tag name with value [v]: empty string");
        let nine = [("k", "v"); 9];
        assert!(refusal("m", &nine).starts_with("Too many tags: 9 maximum allowed: 8, tags: {k=v, "));
    }

    #[test]
    fn an_operator_adds_characters() {
        let rules = SeriesRules { charset: Charset::opentsdb(":%"), ..SeriesRules::default() };
        assert_eq!(check_series("a:b", &[("k", "50%")], &rules), Ok(()));
        assert!(check_series("a b", &[("k", "50%")], &rules).is_err());
        let rules = SeriesRules { charset: Charset::hitsdb(""), ..rules };
        assert_eq!(check_series("a b", &[("k", "[50]")], &rules), Ok(()));
    }
}
