//! Splits SQL text into statements and tokens (PostgreSQL's manual, "Lexical Structure"). The query engine parses the statements.

use std::ops::Range;

/// A token of a statement. White space and comments are not tokens.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Token {
    pub(crate) kind: TokenKind,
    /// Its range in the text, in bytes.
    pub(crate) range: Range<usize>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum TokenKind {
    /// A keyword or a name, without quotes.
    Word,
    /// A name in double quotes.
    Name,
    /// A string in quotes or between dollar tags.
    Text,
    Number,
    /// One character of anything else.
    Symbol,
}

/// The tokens of a text. A quote or comment that does not end takes the rest; the parser proper complains about it.
pub(crate) fn tokens(text: &str) -> Vec<Token> {
    let bytes = text.as_bytes();
    let (mut found, mut at) = (Vec::new(), 0);
    while let Some(&byte) = bytes.get(at) {
        let next = bytes.get(at + 1).copied();
        let (kind, end) = match byte {
            _ if byte.is_ascii_whitespace() => {
                at += 1;
                continue;
            }
            b'-' if next == Some(b'-') => {
                at = end_of(bytes, at, |byte| byte != b'\n');
                continue;
            }
            b'/' if next == Some(b'*') => {
                at = end_of_comment(bytes, at);
                continue;
            }
            b'\'' => (TokenKind::Text, end_of_quote(bytes, at, b'\'', false)),
            b'e' | b'E' if next == Some(b'\'') => (TokenKind::Text, end_of_quote(bytes, at + 1, b'\'', true)),
            b'"' => (TokenKind::Name, end_of_quote(bytes, at, b'"', false)),
            b'$' => match end_of_dollars(text, at) {
                Some(end) => (TokenKind::Text, end),
                None => (TokenKind::Symbol, at + 1),
            },
            _ if byte.is_ascii_digit() => {
                (TokenKind::Number, end_of(bytes, at, |byte| byte.is_ascii_alphanumeric() || byte == b'.'))
            }
            _ if is_word(byte) => (TokenKind::Word, end_of(bytes, at, |byte| is_word(byte) || byte == b'$')),
            _ => (TokenKind::Symbol, at + 1),
        };
        found.push(Token { kind, range: at..end });
        at = end;
    }
    found
}

/// Bytes of names; all of a character beyond ASCII are.
fn is_word(byte: u8) -> bool {
    byte.is_ascii_alphanumeric() || byte == b'_' || !byte.is_ascii()
}

fn end_of(bytes: &[u8], start: usize, is_part: impl Fn(u8) -> bool) -> usize {
    let length = bytes[start..].iter().position(|byte| !is_part(*byte));
    length.map_or(bytes.len(), |length| start + length)
}

/// Comments nest.
fn end_of_comment(bytes: &[u8], start: usize) -> usize {
    let (mut depth, mut at) = (0_usize, start);
    while at < bytes.len() {
        match bytes.get(at..at + 2) {
            Some(b"/*") => (depth, at) = (depth + 1, at + 2),
            Some(b"*/") if depth == 1 => return at + 2,
            Some(b"*/") => (depth, at) = (depth - 1, at + 2),
            _ => at += 1,
        }
    }
    bytes.len()
}

/// A doubled quote stands for one; with `escapes` so does one after a backslash.
fn end_of_quote(bytes: &[u8], start: usize, quote: u8, escapes: bool) -> usize {
    let mut at = start + 1;
    while let Some(&byte) = bytes.get(at) {
        if escapes && byte == b'\\' {
            at += 2;
        } else if byte != quote {
            at += 1;
        } else if bytes.get(at + 1) == Some(&quote) {
            at += 2;
        } else {
            return at + 1;
        }
    }
    bytes.len()
}

/// `$$...$$` or `$tag$...$tag$`; `$1` is a parameter.
fn end_of_dollars(text: &str, start: usize) -> Option<usize> {
    let length = text[start + 1..].find('$')? + 2;
    let tag = &text[start..start + length];
    let name = &tag.as_bytes()[1..length - 1];
    if name.first().is_some_and(u8::is_ascii_digit) || !name.iter().all(|byte| is_word(*byte)) {
        return None;
    }
    let body = start + length;
    Some(text[body..].find(tag).map_or(text.len(), |end| body + end + length))
}

/// The statements of a text, separated by semicolons, without empty ones.
pub fn statements(text: &str) -> Vec<&str> {
    let mut found = Vec::new();
    let mut range: Option<Range<usize>> = None;
    for token in tokens(text) {
        if text[token.range.clone()] == *";" {
            found.extend(range.take());
        } else {
            range = Some(range.map_or(token.range.start, |range| range.start)..token.range.end);
        }
    }
    found.extend(range);
    found.into_iter().map(|range| &text[range]).collect()
}

/// Whether a statement is a DELETE.
pub fn is_deletion(text: &str) -> bool {
    let first = tokens(text).into_iter().next();
    first.is_some_and(|first| {
        first.kind == TokenKind::Word && text[first.range].eq_ignore_ascii_case("delete")
    })
}

/// Whether the last statement of a text has its semicolon, so that it can be run.
pub fn is_complete(text: &str) -> bool {
    tokens(text).last().is_some_and(|token| text[token.range.clone()] == *";")
}

/// The text of a name or string without its quotes.
pub(crate) fn unquoted(text: &str) -> String {
    let inner = |quote: char, text: &str| {
        let doubled = [quote, quote].iter().collect::<String>();
        let text = text.strip_prefix(quote).and_then(|text| text.strip_suffix(quote)).unwrap_or(text);
        text.replace(&doubled, &quote.to_string())
    };
    match text.as_bytes().first() {
        Some(b'"') => inner('"', text),
        Some(b'\'') => inner('\'', text),
        _ => text.to_ascii_lowercase(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn statements_end_at_semicolons_outside_of_quotes_and_comments() {
        for (text, expected) in [
            ("SELECT 1", vec!["SELECT 1"]),
            (" SELECT 1 ; ;\n SELECT 2;", vec!["SELECT 1", "SELECT 2"]),
            ("SELECT ';', \";\"; x", vec!["SELECT ';', \";\"", "x"]),
            ("SELECT 'it''s;'; x", vec!["SELECT 'it''s;'", "x"]),
            (r"SELECT E'\';', 'a\'; x", vec![r"SELECT E'\';', 'a\'", "x"]),
            ("SELECT $$;$$, $a$;$$;$a$; x", vec!["SELECT $$;$$, $a$;$$;$a$", "x"]),
            ("SELECT $1; SELECT $2", vec!["SELECT $1", "SELECT $2"]),
            ("a -- b; c\n; d", vec!["a", "d"]),
            ("a /* ; /* ; */ ; */ b; c", vec!["a /* ; /* ; */ ; */ b", "c"]),
            ("-- nothing", vec![]),
            ("", vec![]),
            ("SELECT 'open; x", vec!["SELECT 'open; x"]),
            ("SELECT \"ä;\", 'ö;'; ü", vec!["SELECT \"ä;\", 'ö;'", "ü"]),
            (r"SELECT E'\", vec![r"SELECT E'\"]),
        ] {
            assert_eq!(statements(text), expected, "{text}");
        }
    }

    #[test]
    fn a_semicolon_completes_unless_it_is_in_a_quote_or_comment() {
        for text in ["SELECT 1;", "SELECT 1; -- so", "SELECT ';' ;  "] {
            assert!(is_complete(text), "{text}");
        }
        for text in [
            "",
            "SELECT 1",
            "SELECT 1; SELECT",
            "SELECT ';",
            "SELECT 1 -- ;",
            "SELECT 1 /* ; */",
            "SELECT $$;",
        ] {
            assert!(!is_complete(text), "{text}");
        }
    }

    #[test]
    fn a_deletion_is_known_by_its_first_word() {
        for text in ["DELETE FROM t WHERE true", " -- c\n/* d */ delete from t"] {
            assert!(is_deletion(text), "{text}");
        }
        for text in ["SELECT 1", "\"delete\"", "'delete'", "deleted", ""] {
            assert!(!is_deletion(text), "{text}");
        }
    }

    #[test]
    fn quotes_are_removed_and_names_are_folded() {
        assert_eq!(unquoted("'it''s'"), "it's");
        assert_eq!(unquoted("\"Tab\"\"le\""), "Tab\"le");
        assert_eq!(unquoted("TimeZone"), "timezone");
    }

    #[test]
    fn tokens_are_classified() {
        let text = "FETCH 10 FROM \"c 1\" = 'x', ünder_1";
        let found: Vec<(TokenKind, &str)> =
            tokens(text).into_iter().map(|token| (token.kind, &text[token.range])).collect();
        assert_eq!(
            found,
            [
                (TokenKind::Word, "FETCH"),
                (TokenKind::Number, "10"),
                (TokenKind::Word, "FROM"),
                (TokenKind::Name, "\"c 1\""),
                (TokenKind::Symbol, "="),
                (TokenKind::Text, "'x'"),
                (TokenKind::Symbol, ","),
                (TokenKind::Word, "ünder_1"),
            ]
        );
    }
}
