//! Names and patterns in PostgreSQL's syntax.

use datafusion::common::Result;

use crate::QueryError;
use crate::error::INVALID_PARAMETER;

/// Returns a name as it must be written in a statement.
pub(super) fn quote_ident(name: &str) -> String {
    let is_plain = name.bytes().all(|byte| matches!(byte, b'a'..=b'z' | b'0'..=b'9' | b'_'))
        && name.bytes().next().is_some_and(|byte| !byte.is_ascii_digit());
    if is_plain { name.to_owned() } else { format!("\"{}\"", name.replace('"', "\"\"")) }
}

pub(super) fn quote_literal(text: &str) -> String {
    let quoted = text.replace('\'', "''");
    if text.contains('\\') { format!("E'{}'", quoted.replace('\\', "\\\\")) } else { format!("'{quoted}'") }
}

/// Returns a pattern of LIKE with backslashes in place of another escape character.
pub(super) fn like_pattern(pattern: &str, escape: &str) -> String {
    let escape = escape.chars().next();
    let mut written = String::with_capacity(pattern.len());
    let mut characters = pattern.chars();
    while let Some(character) = characters.next() {
        let is_escape = Some(character) == escape;
        let meant = if is_escape { characters.next().unwrap_or(character) } else { character };
        if meant == '\\' || (is_escape && matches!(meant, '%' | '_')) {
            written.push('\\');
        }
        written.push(meant);
    }
    written
}

/// Returns the parts of a name with dots: in lower case, unless quoted.
pub(super) fn parse_ident(name: &str) -> Result<Vec<String>> {
    let wrong =
        || QueryError::value(INVALID_PARAMETER, format!("string is not a valid identifier: {name:?}"));
    let (mut parts, mut rest) = (Vec::new(), name.trim());
    loop {
        let part;
        (part, rest) = match rest.strip_prefix('"') {
            Some(quoted) => take_quoted(quoted).ok_or_else(wrong)?,
            None => {
                let end = rest.find('.').unwrap_or(rest.len());
                (rest[..end].trim().to_lowercase(), &rest[end..])
            }
        };
        if part.is_empty() {
            return Err(wrong().into());
        }
        parts.push(part);
        rest = match rest.trim_start().strip_prefix('.') {
            Some(rest) => rest.trim_start(),
            None if rest.trim().is_empty() => return Ok(parts),
            None => return Err(wrong().into()),
        };
    }
}

/// Returns the name up to its closing quote, and the text after it.
fn take_quoted(text: &str) -> Option<(String, &str)> {
    let (mut name, mut rest) = (String::new(), text);
    loop {
        let end = rest.find('"')?;
        name.push_str(&rest[..end]);
        rest = &rest[end + 1..];
        match rest.strip_prefix('"') {
            Some(after) => {
                name.push('"');
                rest = after;
            }
            None => return Some((name, rest)),
        }
    }
}

/// Shortens a size as PostgreSQL does: ten thousand of a unit or more are shown in the next unit.
pub(super) fn pretty(bytes: i64) -> String {
    let (mut value, mut units) = (bytes, ["bytes", "kB", "MB", "GB", "TB", "PB"].into_iter());
    let mut unit = units.next().unwrap_or_default();
    for next in units {
        if value.abs() < 10_240 {
            break;
        }
        value = (value + 512) / 1_024;
        unit = next;
    }
    format!("{value} {unit}")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_quoted_where_they_must_be() {
        for (name, quoted) in [
            ("telemetry", "telemetry"),
            ("batteryLevel", "\"batteryLevel\""),
            ("a\"b", "\"a\"\"b\""),
            ("1a", "\"1a\""),
        ] {
            assert_eq!(quote_ident(name), quoted);
        }
        assert_eq!((quote_literal("it's"), quote_literal("\\")), ("'it''s'".into(), "E'\\\\'".into()));
    }

    #[test]
    fn patterns_keep_their_meaning() {
        for (pattern, escape, written) in [
            ("pg/_%", "/", "pg\\_%"),
            ("a//b", "/", "a/b"),
            ("a\\b_", "/", "a\\\\b_"),
            ("x!", "!", "x!"),
            ("a%", "", "a%"),
        ] {
            assert_eq!(like_pattern(pattern, escape), written);
        }
    }

    #[test]
    fn names_are_split_at_dots() {
        let parts = |name: &str| parse_ident(name).unwrap_or_default().join("|");
        assert_eq!(parts("Public.\"Tele.Metry\""), "public|Tele.Metry");
        assert_eq!(parts(" a . \"b\"\"c\" "), "a|b\"c");
        for wrong in ["", "a.", "\"a", "\"a\"b", "a..b"] {
            assert!(parse_ident(wrong).is_err(), "{wrong}");
        }
    }

    #[test]
    fn sizes_are_short() {
        for (bytes, text) in [(0, "0 bytes"), (10_239, "10239 bytes"), (10_240, "10 kB"), (50 << 20, "50 MB")]
        {
            assert_eq!(pretty(bytes), text);
        }
    }
}
