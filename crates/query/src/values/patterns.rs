//! Translates PostgreSQL's patterns to regular expressions of the `regex` crate.
//!
//! `~` takes POSIX regular expressions with PostgreSQL's escapes. Syntax with the same meaning stays, other syntax is translated. Back
//! references and look-around do not exist in the `regex` crate and are refused. A point matches any character, a new line too. Where
//! alternatives match texts of different lengths, PostgreSQL takes the longest and this crate the first; whether there is a match does
//! not depend on it.

use crate::QueryError;
use crate::error::INVALID_REGEX;
use crate::values::regex::{BoundedRegex, compile_once};

/// SQLSTATE invalid_escape_sequence.
const INVALID_ESCAPE: &str = "22025";

/// Returns the character that an ESCAPE names; `None` if it is empty.
pub(crate) fn escape_of(text: &str) -> Result<Option<char>, QueryError> {
    let mut chars = text.chars();
    match (chars.next(), chars.next()) {
        (escape, None) => Ok(escape),
        _ => {
            Err(QueryError::value(INVALID_ESCAPE, "invalid escape string: it must be empty or one character"))
        }
    }
}

/// Translates a pattern of SIMILAR TO, which must match the whole text.
pub(crate) fn similar_to(pattern: &str, escape: Option<char>) -> Result<String, QueryError> {
    let mut regex = String::from("(?s)^(?:");
    let mut chars = pattern.chars();
    let mut in_brackets = false;
    while let Some(c) = chars.next() {
        if Some(c) == escape {
            match chars.next() {
                Some('"') => {
                    return Err(QueryError::unsupported("parts of a pattern of SIMILAR TO, marked by \\\""));
                }
                Some(next) => push_literal(&mut regex, next),
                None => {
                    return Err(QueryError::value(
                        INVALID_ESCAPE,
                        "the pattern ends with its escape character",
                    ));
                }
            }
        } else if in_brackets {
            in_brackets = c != ']';
            match c {
                '\\' | '[' | '&' | '~' => push_literal(&mut regex, c),
                _ => regex.push(c),
            }
        } else {
            match c {
                '%' => regex.push_str(".*"),
                '_' => regex.push('.'),
                '(' => regex.push_str("(?:"),
                '[' => {
                    in_brackets = true;
                    regex.push(c);
                }
                '\\' | '.' | '^' | '$' => push_literal(&mut regex, c),
                _ => regex.push(c),
            }
        }
    }
    regex.push_str(")$");
    checked(regex, pattern)
}

fn push_literal(regex: &mut String, c: char) {
    regex.push_str(&regex::escape(c.encode_utf8(&mut [0; 4])));
}

/// Translates a regular expression of PostgreSQL.
pub(crate) fn regex(pattern: &str) -> Result<String, QueryError> {
    let refused = |what: &str| Err(QueryError::unsupported(format!("{what} in a regular expression")));
    if pattern.starts_with("***") {
        return refused("***");
    }
    let (options, rest) = embedded_options(pattern)?;
    let mut regex = String::with_capacity(pattern.len() + 8);
    let mut has_point = false;
    let mut chars = rest.chars().peekable();
    while let Some(c) = chars.next() {
        match c {
            '\\' => match chars.next() {
                Some('1'..='9') => return refused("a back reference"),
                Some('m') => regex.push_str(r"\b{start}"),
                Some('M') => regex.push_str(r"\b{end}"),
                Some('y') => regex.push_str(r"\b"),
                Some('Y') => regex.push_str(r"\B"),
                Some('Z') => regex.push_str(r"\z"),
                Some('e') => regex.push_str(r"\x1b"),
                Some('b') => regex.push_str(r"\x08"),
                Some('B') => regex.push_str(r"\\"),
                Some(
                    class @ ('d' | 'D' | 's' | 'S' | 'w' | 'W' | 'A' | 'a' | 'f' | 'n' | 'r' | 't' | 'v'),
                ) => {
                    regex.push('\\');
                    regex.push(class);
                }
                Some(letter) if letter.is_ascii_alphanumeric() => {
                    return refused(&format!("\\{letter}"));
                }
                Some(other) => push_literal(&mut regex, other),
                None => return Err(invalid(pattern, "it ends with a backslash")),
            },
            '(' if chars.peek() == Some(&'?') => {
                chars.next();
                match chars.peek() {
                    Some(':') => regex.push_str("(?"),
                    Some('=' | '!' | '<') => return refused("looking ahead or behind"),
                    _ => return Err(invalid(pattern, "quantifier operand invalid")),
                }
            }
            '[' => bracket(&mut chars, &mut regex, pattern)?,
            '.' => {
                has_point = true;
                regex.push('.');
            }
            // PostgreSQL takes a brace without a digit for a plain character.
            '{' if !chars.peek().is_some_and(char::is_ascii_digit) => regex.push_str(r"\{"),
            other => regex.push(other),
        }
    }
    let options = if has_point && !options.contains('s') { format!("{options}s") } else { options };
    if !options.is_empty() {
        regex.insert_str(0, &format!("(?{options})"));
    }
    checked(regex, pattern)
}

/// Splits options at the beginning, such as `(?i)`, off a pattern and translates them.
fn embedded_options(pattern: &str) -> Result<(String, &str), QueryError> {
    let Some((letters, rest)) = pattern.strip_prefix("(?").and_then(|options| options.split_once(')')) else {
        return Ok((String::new(), pattern));
    };
    if letters.is_empty() || !letters.bytes().all(|letter| letter.is_ascii_lowercase()) {
        return Ok((String::new(), pattern));
    }
    let mut options = String::new();
    for letter in letters.chars() {
        match letter {
            'i' if !options.contains('i') => options.push('i'),
            'i' | 's' | 'c' | 't' => {}
            other => {
                return Err(QueryError::unsupported(format!("the option {other:?} of a regular expression")));
            }
        }
    }
    Ok((options, rest))
}

/// Translates a bracket expression. A bracket in it, and the set operators of the `regex` crate, are plain characters.
fn bracket(
    chars: &mut std::iter::Peekable<std::str::Chars<'_>>,
    regex: &mut String,
    pattern: &str,
) -> Result<(), QueryError> {
    regex.push('[');
    if chars.peek() == Some(&'^') {
        chars.next();
        regex.push('^');
    }
    let mut is_first = true;
    while let Some(c) = chars.next() {
        match c {
            ']' if !is_first => {
                regex.push(']');
                return Ok(());
            }
            ']' => regex.push_str(r"\]"),
            '[' => match chars.peek() {
                Some(':') => {
                    regex.push('[');
                    for c in chars.by_ref() {
                        regex.push(c);
                        if c == ']' {
                            break;
                        }
                    }
                }
                Some('.' | '=') => {
                    return Err(QueryError::unsupported("collating elements in a regular expression"));
                }
                _ => regex.push_str(r"\["),
            },
            '\\' => match chars.next() {
                Some(class @ ('d' | 's' | 'w' | 'n' | 'r' | 't' | 'f' | 'v' | 'a')) => {
                    regex.push('\\');
                    regex.push(class);
                }
                Some(letter) if letter.is_ascii_alphanumeric() => {
                    return Err(QueryError::unsupported(format!("\\{letter} in a regular expression")));
                }
                Some(other) => push_literal(regex, other),
                None => break,
            },
            '&' | '~' => push_literal(regex, c),
            other => regex.push(other),
        }
        is_first = false;
    }
    Err(invalid(pattern, "brackets [] not balanced"))
}

fn invalid(pattern: &str, why: &str) -> QueryError {
    QueryError::value(INVALID_REGEX, format!("invalid regular expression {pattern:?}: {why}"))
}

fn checked(regex: String, pattern: &str) -> Result<String, QueryError> {
    BoundedRegex::compile(&regex, pattern, false)?;
    Ok(regex)
}

impl BoundedRegex {
    /// Compiles a pattern in PostgreSQL's language with flags. The caller handles the flag `g`.
    pub(crate) fn of_postgres(pattern: &str, flags: &str) -> Result<Self, QueryError> {
        compile_once(pattern, flags, || Self::compile(&regex(pattern)?, pattern, is_insensitive(flags)?))
    }
}

/// Whether flags say that case does not count; the last of `i` and `c` decides.
pub(crate) fn is_insensitive(flags: &str) -> Result<bool, QueryError> {
    let mut is_insensitive = false;
    for flag in flags.chars() {
        match flag {
            'i' => is_insensitive = true,
            'c' => is_insensitive = false,
            'g' | 's' | 't' => {}
            other => {
                return Err(QueryError::unsupported(format!("the option {other:?} of a regular expression")));
            }
        }
    }
    Ok(is_insensitive)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn matches(regex: &str, text: &str) -> bool {
        regex::Regex::new(regex).unwrap().is_match(text)
    }

    #[test]
    fn similar_to_matches_all_of_a_text() {
        for (pattern, text, is_match) in [
            ("abc", "abc", true),
            ("a", "abc", false),
            ("%(b|d)%", "abc", true),
            ("a|b", "ab", false),
            ("a.c", "abc", false),
            ("a_c", "a\nc", true),
            ("[a[]", "[", true),
            ("a{2}b", "aab", true),
            ("\\%", "%", true),
            ("^a$", "^a$", true),
        ] {
            assert_eq!(
                matches(&similar_to(pattern, Some('\\')).unwrap(), text),
                is_match,
                "{pattern} {text}"
            );
        }
        assert!(similar_to("a\\", Some('\\')).is_err());
        assert!(escape_of("ab").is_err());
    }

    #[test]
    fn regular_expressions_have_the_meaning_of_postgresql() {
        for (pattern, text, is_match) in [
            ("a.b", "a\nb", true),
            ("\\mb", "a b", true),
            ("\\mb", "ab", false),
            ("[a[]", "[", true),
            ("[&&]", "&", true),
            ("[]a]", "]", true),
            ("[[:digit:]]", "5", true),
            ("(?i)ABC", "abc", true),
            ("a{", "a{", true),
            ("\\Aa\\Z", "a", true),
        ] {
            assert_eq!(matches(&regex(pattern).unwrap(), text), is_match, "{pattern} {text}");
        }
        for refused in ["(a)\\1", "a(?=b)", "(?<=a)b", "(?n)a", "***=a", "[[.a.]]", "a\\", "[a", "(a"] {
            assert!(regex(refused).is_err(), "{refused}");
        }
    }
}
