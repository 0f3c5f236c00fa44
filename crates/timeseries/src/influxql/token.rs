//! The tokens of InfluxQL.
//!
//! The grammar looks at white space and has two readings of `/`, so the parser asks for one token at a time and may go back.

/// A place in the text of a query: both count from 0, in characters.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct TextPosition {
    pub line: usize,
    pub column: usize,
}

/// The kind of a token.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum TokenKind {
    Illegal,
    Eof,
    Space,
    Comment,
    Ident,
    BoundParam,
    Number,
    Integer,
    Duration,
    String,
    BadString,
    BadEscape,
    Regex,
    BadRegex,
    /// An operator or a punctuation mark: its text.
    Mark(&'static str),
    /// A keyword in capital letters.
    Word(&'static str),
}

/// A token and its text. Keywords and marks have no text.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct Token {
    pub kind: TokenKind,
    pub text: String,
    pub place: TextPosition,
}

impl Token {
    /// The token as error messages show it.
    pub(super) fn shown(&self) -> &str {
        if !self.text.is_empty() {
            return &self.text;
        }
        match self.kind {
            TokenKind::Mark(text) | TokenKind::Word(text) => text,
            TokenKind::Eof => "EOF",
            TokenKind::Space => "WS",
            TokenKind::Comment => "COMMENT",
            TokenKind::Ident => "IDENT",
            TokenKind::BoundParam => "BOUNDPARAM",
            TokenKind::Number => "NUMBER",
            TokenKind::Integer => "INTEGER",
            TokenKind::Duration => "DURATIONVAL",
            TokenKind::String => "STRING",
            TokenKind::BadString => "BADSTRING",
            TokenKind::BadEscape => "BADESCAPE",
            TokenKind::Regex => "REGEX",
            TokenKind::BadRegex => "BADREGEX",
            TokenKind::Illegal => "ILLEGAL",
        }
    }

    pub(super) fn is(&self, text: &str) -> bool {
        matches!(self.kind, TokenKind::Mark(own) | TokenKind::Word(own) if own == text)
    }
}

const KEYWORDS: &[&str] = &[
    "ALL",
    "ALTER",
    "ANALYZE",
    "ANY",
    "AND",
    "AS",
    "ASC",
    "BEGIN",
    "BY",
    "CARDINALITY",
    "CREATE",
    "CONTINUOUS",
    "DATABASE",
    "DATABASES",
    "DEFAULT",
    "DELETE",
    "DESC",
    "DESTINATIONS",
    "DIAGNOSTICS",
    "DISTINCT",
    "DROP",
    "DURATION",
    "END",
    "EVERY",
    "EXACT",
    "EXPLAIN",
    "FIELD",
    "FOR",
    "FROM",
    "GRANT",
    "GRANTS",
    "GROUP",
    "GROUPS",
    "IN",
    "INF",
    "INSERT",
    "INTO",
    "KEY",
    "KEYS",
    "KILL",
    "LIMIT",
    "MEASUREMENT",
    "MEASUREMENTS",
    "NAME",
    "OFFSET",
    "ON",
    "OR",
    "ORDER",
    "PASSWORD",
    "POLICY",
    "POLICIES",
    "PRIVILEGES",
    "QUERIES",
    "QUERY",
    "READ",
    "REPLICATION",
    "RESAMPLE",
    "RETENTION",
    "REVOKE",
    "SELECT",
    "SERIES",
    "SET",
    "SHOW",
    "SHARD",
    "SHARDS",
    "SLIMIT",
    "SOFFSET",
    "STATS",
    "SUBSCRIPTION",
    "SUBSCRIPTIONS",
    "TAG",
    "TO",
    "USER",
    "USERS",
    "VALUES",
    "WHERE",
    "WITH",
    "WRITE",
];

/// The keyword that a word is, in any case of its letters.
pub(super) fn keyword(word: &str) -> Option<TokenKind> {
    if word.eq_ignore_ascii_case("true") {
        return Some(TokenKind::Word("TRUE"));
    }
    if word.eq_ignore_ascii_case("false") {
        return Some(TokenKind::Word("FALSE"));
    }
    KEYWORDS.iter().find(|keyword| keyword.eq_ignore_ascii_case(word)).map(|keyword| TokenKind::Word(keyword))
}

/// Reads tokens from a text. It is cheap to copy: a copy is a place to go back to.
#[derive(Debug, Clone, Copy)]
pub(super) struct Lexer<'a> {
    rest: &'a str,
    place: TextPosition,
    /// Whether the last token was a word.
    after_word: bool,
}

impl<'a> Lexer<'a> {
    pub(super) fn new(text: &'a str) -> Self {
        Self { rest: text, place: TextPosition { line: 0, column: 0 }, after_word: false }
    }

    /// The next character.
    pub(super) fn peek(&self) -> Option<char> {
        self.rest.chars().next()
    }

    fn bump(&mut self) -> Option<char> {
        let next = self.peek()?;
        self.rest = &self.rest[next.len_utf8()..];
        match next {
            '\n' => self.place = TextPosition { line: self.place.line + 1, column: 0 },
            _ => self.place.column += 1,
        }
        Some(next)
    }

    fn take_while(&mut self, text: &mut String, wanted: impl Fn(char) -> bool) {
        while let Some(next) = self.peek().filter(|next| wanted(*next)) {
            text.push(next);
            self.bump();
        }
    }

    /// The next token, where `/` is the sign of a division.
    pub(super) fn next(&mut self) -> Token {
        let mut place = self.place;
        let begins_word = |next: char| next.is_ascii_alphabetic() || next == '_';
        let word = self.peek().is_some_and(begins_word);
        let (kind, text) = self.scan();
        // InfluxDB counts the end of a text behind a word one character further, and a text without its closing quote one less.
        match kind {
            TokenKind::Eof if self.after_word => place.column += 1,
            TokenKind::BadString => place.column = place.column.saturating_sub(1),
            _ => {}
        }
        self.after_word = word;
        Token { kind, text, place }
    }

    fn scan(&mut self) -> (TokenKind, String) {
        let mut text = String::new();
        let Some(first) = self.peek() else { return (TokenKind::Eof, text) };
        match first {
            ' ' | '\t' | '\n' | '\r' => {
                self.take_while(&mut text, |next| matches!(next, ' ' | '\t' | '\n' | '\r'));
                (TokenKind::Space, text)
            }
            '"' => self.quoted('"', TokenKind::Ident),
            '\'' => self.quoted('\'', TokenKind::String),
            '$' => {
                self.bump();
                let (kind, name) = match self.peek() {
                    Some('"') => self.quoted('"', TokenKind::BoundParam),
                    _ => {
                        self.take_while(&mut text, is_word);
                        (TokenKind::BoundParam, text)
                    }
                };
                (kind, format!("${name}"))
            }
            _ if first.is_ascii_alphabetic() || first == '_' => {
                self.take_while(&mut text, is_word);
                match keyword(&text) {
                    Some(word) => (word, String::new()),
                    None => (TokenKind::Ident, text),
                }
            }
            _ if first.is_ascii_digit() => self.number(),
            '.' if self.rest[1..].starts_with(|next: char| next.is_ascii_digit()) => self.number(),
            _ => self.mark(first),
        }
    }

    fn mark(&mut self, first: char) -> (TokenKind, String) {
        if self.rest.starts_with("--") {
            while self.bump().is_some_and(|next| next != '\n') {}
            return (TokenKind::Comment, String::new());
        }
        if self.rest.starts_with("/*") {
            return match self.rest[2..].find("*/") {
                Some(end) => {
                    let end = self.rest.len() - (end + 4);
                    while self.rest.len() > end {
                        self.bump();
                    }
                    (TokenKind::Comment, String::new())
                }
                None => {
                    while self.bump().is_some() {}
                    (TokenKind::Illegal, String::new())
                }
            };
        }
        const MARKS: [&str; 25] = [
            "=~", "!=", "!~", "<=", ">=", "<>", "::", "+", "-", "*", "/", "%", "&", "|", "^", "=", "<", ">",
            "(", ")", ",", ";", ":", ".", "",
        ];
        let mark = MARKS.iter().find(|mark| self.rest.starts_with(**mark)).copied().unwrap_or("");
        if mark.is_empty() {
            self.bump();
            return (TokenKind::Illegal, first.to_string());
        }
        for _ in 0..mark.len() {
            self.bump();
        }
        (TokenKind::Mark(if mark == "<>" { "!=" } else { mark }), String::new())
    }

    fn number(&mut self) -> (TokenKind, String) {
        let mut text = String::new();
        self.take_while(&mut text, |next| next.is_ascii_digit());
        if self.peek() == Some('.') && self.rest[1..].starts_with(|next: char| next.is_ascii_digit()) {
            text.push('.');
            self.bump();
            self.take_while(&mut text, |next| next.is_ascii_digit());
            return (TokenKind::Number, text);
        }
        if self.peek() == Some('.') && !text.is_empty() {
            text.push('.');
            self.bump();
            return (TokenKind::Number, text);
        }
        if !self.peek().is_some_and(|next| next.is_ascii_alphabetic() || next == 'µ') {
            return (TokenKind::Integer, text);
        }
        self.take_while(&mut text, |next| next.is_ascii_alphanumeric() || next == 'µ');
        (TokenKind::Duration, text)
    }

    fn quoted(&mut self, quote: char, kind: TokenKind) -> (TokenKind, String) {
        self.bump();
        let mut text = String::new();
        loop {
            match self.peek() {
                None => return (TokenKind::BadString, text),
                Some('\n') => {
                    self.bump();
                    return (TokenKind::BadString, text);
                }
                Some('\\') => {
                    self.bump();
                    let escaped = self.bump();
                    match escaped {
                        Some('n') => text.push('\n'),
                        Some(same @ ('\\' | '"' | '\'')) => text.push(same),
                        Some(other) => return (TokenKind::BadEscape, format!("\\{other}")),
                        None => return (TokenKind::BadString, text),
                    }
                }
                Some(next) => {
                    self.bump();
                    if next == quote {
                        return (kind, text);
                    }
                    text.push(next);
                }
            }
        }
    }

    /// A regular expression between slashes. The next character is `/`.
    pub(super) fn regex(&mut self) -> Token {
        let place = self.place;
        self.bump();
        let mut text = String::new();
        let kind = loop {
            match self.bump() {
                None | Some('\n') => break TokenKind::BadRegex,
                Some('/') => break TokenKind::Regex,
                Some('\\') if self.peek() == Some('/') => {
                    self.bump();
                    text.push('/');
                }
                Some('\\') => {
                    text.push('\\');
                    match self.bump() {
                        None | Some('\n') => break TokenKind::BadRegex,
                        Some(next) => text.push(next),
                    }
                }
                Some(next) => text.push(next),
            }
        };
        Token { kind, text, place }
    }
}

fn is_word(next: char) -> bool {
    next.is_ascii_alphanumeric() || next == '_'
}
