//! The words of an expression.

use super::error::Fault;

#[derive(Debug, Clone, PartialEq)]
pub(crate) enum Token {
    Number(f64),
    Text(String),
    Name(String),
    /// A name in backticks, which is never a keyword or a function.
    Quoted(String),
    Symbol(&'static str),
}

/// Longer symbols come first, so that `<=` is not `<`.
const SYMBOLS: [&str; 13] = ["<=", ">=", "==", "!=", "<", ">", "+", "-", "*", "/", "(", ")", ","];

/// Factors that may follow a number.
const FACTORS: [(&str, f64); 4] =
    [("KiB", 1_024.0), ("MiB", 1_048_576.0), ("GiB", 1_073_741_824.0), ("TiB", 1_099_511_627_776.0)];

/// Splits a text into tokens, each with the byte at which it begins.
pub(crate) fn tokens(text: &str) -> Result<Vec<(usize, Token)>, Fault> {
    let mut tokens = Vec::new();
    let mut at = 0;
    while let Some(first) = text[at..].chars().next() {
        let rest = &text[at..];
        let (token, length) = if first.is_whitespace() {
            at += first.len_utf8();
            continue;
        } else if first.is_ascii_digit() {
            number(rest).map_err(|message| Fault::new(at, message))?
        } else if first == '\'' {
            let inner =
                delimited(rest, '\'').ok_or_else(|| Fault::new(at, "this text has no closing quote"))?;
            (Token::Text(inner.to_owned()), inner.len() + 2)
        } else if first == '`' {
            let inner =
                delimited(rest, '`').ok_or_else(|| Fault::new(at, "this name has no closing backtick"))?;
            (Token::Quoted(inner.to_owned()), inner.len() + 2)
        } else if first.is_ascii_alphabetic() || first == '_' {
            let name = leading(rest, |c| c.is_ascii_alphanumeric() || c == '_' || c == '.');
            (Token::Name(name.to_owned()), name.len())
        } else {
            let symbol = SYMBOLS.into_iter().find(|symbol| rest.starts_with(symbol));
            let symbol = symbol.ok_or_else(|| Fault::new(at, format!("`{first}` has no meaning here")))?;
            (Token::Symbol(symbol), symbol.len())
        };
        tokens.push((at, token));
        at += length;
    }
    Ok(tokens)
}

/// The text between two delimiters.
fn delimited(rest: &str, delimiter: char) -> Option<&str> {
    let inner = &rest[1..];
    inner.find(delimiter).map(|end| &inner[..end])
}

fn leading(text: &str, is_part: impl Fn(char) -> bool) -> &str {
    &text[..text.find(|c| !is_part(c)).unwrap_or(text.len())]
}

/// A number, with `_` between digits, decimals and a factor of bytes.
fn number(rest: &str) -> Result<(Token, usize), String> {
    let digits = leading(rest, |c| c.is_ascii_digit() || c == '_' || c == '.');
    let number: f64 = digits.replace('_', "").parse().map_err(|_| format!("`{digits}` is not a number"))?;
    let suffix = leading(&rest[digits.len()..], |c| c.is_ascii_alphanumeric() || c == '_');
    if suffix.is_empty() {
        return Ok((Token::Number(number), digits.len()));
    }
    let factor = FACTORS.into_iter().find(|(name, _)| *name == suffix);
    let (_, factor) = factor.ok_or_else(|| {
        format!("`{suffix}` cannot follow a number: write KiB, MiB, GiB or TiB, or an operator")
    })?;
    Ok((Token::Number(number * factor), digits.len() + suffix.len()))
}
