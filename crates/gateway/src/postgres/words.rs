//! Takes the tokens of one statement from the left.

use crate::statements::{Token, TokenKind, unquoted};

/// The tokens of one statement, taken from the left.
pub(super) struct Words<'a> {
    pub(super) text: &'a str,
    pub(super) tokens: &'a [Token],
}

impl<'a> Words<'a> {
    fn next(&mut self, is_wanted: impl Fn(TokenKind, &str) -> bool) -> Option<&'a str> {
        let (first, rest) = self.tokens.split_first()?;
        let text = &self.text[first.range.clone()];
        is_wanted(first.kind, text).then(|| self.tokens = rest)?;
        Some(text)
    }

    /// A word, in lower case.
    pub(super) fn word(&mut self) -> Option<String> {
        self.next(|kind, _| kind == TokenKind::Word).map(str::to_ascii_lowercase)
    }

    /// A name, with or without quotes, and parts of it after dots.
    pub(super) fn name(&mut self) -> Option<String> {
        let mut name = unquoted(self.next(|kind, _| matches!(kind, TokenKind::Word | TokenKind::Name))?);
        while self.symbol(".") {
            let part = self.next(|kind, _| matches!(kind, TokenKind::Word | TokenKind::Name))?;
            name = format!("{name}.{}", unquoted(part));
        }
        Some(name)
    }

    /// A name as it is written, and parts of it after dots.
    pub(super) fn quoted_name(&mut self) -> Option<String> {
        let is_name = |kind, _: &str| matches!(kind, TokenKind::Word | TokenKind::Name);
        let mut name = self.next(is_name)?.to_owned();
        while self.symbol(".") {
            name = format!("{name}.{}", self.next(is_name)?);
        }
        Some(name)
    }

    pub(super) fn number(&mut self) -> Option<&'a str> {
        self.next(|kind, _| kind == TokenKind::Number)
    }

    pub(super) fn symbol(&mut self, symbol: &str) -> bool {
        self.next(|kind, text| kind == TokenKind::Symbol && text == symbol).is_some()
    }

    /// Takes the next token if it is one of these words.
    pub(super) fn skip(&mut self, words: &[&str]) -> bool {
        self.next(|kind, text| {
            kind == TokenKind::Word && words.iter().any(|word| word.eq_ignore_ascii_case(text))
        })
        .is_some()
    }

    /// The rest of the text as it is written.
    pub(super) fn rest(&self) -> &'a str {
        match (self.tokens.first(), self.tokens.last()) {
            (Some(first), Some(last)) => &self.text[first.range.start..last.range.end],
            _ => "",
        }
    }

    /// A string, without its quotes.
    pub(super) fn string(&mut self) -> Option<String> {
        let text = self.next(|kind, text| kind == TokenKind::Text && !text.starts_with('$'))?;
        Some(match text.strip_prefix(['e', 'E']) {
            Some(escaped) => unescaped(&unquoted(escaped)),
            None => unquoted(text),
        })
    }

    /// The text between parentheses, if the next token opens them.
    pub(super) fn in_parentheses(&mut self) -> Option<&'a str> {
        let start = self.tokens.first()?.range.end;
        if !self.symbol("(") {
            return None;
        }
        let mut depth = 1_usize;
        while let Some((token, rest)) = self.tokens.split_first() {
            self.tokens = rest;
            match (token.kind, &self.text[token.range.clone()]) {
                (TokenKind::Symbol, "(") => depth += 1,
                (TokenKind::Symbol, ")") => depth -= 1,
                _ => {}
            }
            if depth == 0 {
                return Some(&self.text[start..token.range.start]);
            }
        }
        None
    }

    /// Whether all tokens are taken.
    pub(super) fn is_empty(&self) -> bool {
        self.tokens.is_empty()
    }
}

/// The characters that `\t` and the like stand for.
fn unescaped(text: &str) -> String {
    let mut unescaped = String::with_capacity(text.len());
    let mut chars = text.chars();
    while let Some(char) = chars.next() {
        unescaped.push(match (char, char == '\\') {
            (_, true) => match chars.next() {
                Some('b') => '\u{8}',
                Some('f') => '\u{c}',
                Some('n') => '\n',
                Some('r') => '\r',
                Some('t') => '\t',
                Some(other) => other,
                None => '\\',
            },
            (other, false) => other,
        });
    }
    unescaped
}
