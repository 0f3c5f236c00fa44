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
pub(super) enum Kind {
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
    pub kind: Kind,
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
            Kind::Mark(text) | Kind::Word(text) => text,
            Kind::Eof => "EOF",
            Kind::Space => "WS",
            Kind::Comment => "COMMENT",
            Kind::Ident => "IDENT",
            Kind::BoundParam => "BOUNDPARAM",
            Kind::Number => "NUMBER",
            Kind::Integer => "INTEGER",
            Kind::Duration => "DURATIONVAL",
            Kind::String => "STRING",
            Kind::BadString => "BADSTRING",
            Kind::BadEscape => "BADESCAPE",
            Kind::Regex => "REGEX",
            Kind::BadRegex => "BADREGEX",
            Kind::Illegal => "ILLEGAL",
        }
    }

    pub(super) fn is(&self, text: &str) -> bool {
        matches!(self.kind, Kind::Mark(own) | Kind::Word(own) if own == text)
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
pub(super) fn keyword(word: &str) -> Option<Kind> {
    if word.eq_ignore_ascii_case("true") {
        return Some(Kind::Word("TRUE"));
    }
    if word.eq_ignore_ascii_case("false") {
        return Some(Kind::Word("FALSE"));
    }
    KEYWORDS.iter().find(|keyword| keyword.eq_ignore_ascii_case(word)).map(|keyword| Kind::Word(keyword))
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
            Kind::Eof if self.after_word => place.column += 1,
            Kind::BadString => place.column = place.column.saturating_sub(1),
            _ => {}
        }
        self.after_word = word;
        Token { kind, text, place }
    }

    fn scan(&mut self) -> (Kind, String) {
        let mut text = String::new();
        let Some(first) = self.peek() else { return (Kind::Eof, text) };
        match first {
            ' ' | '\t' | '\n' | '\r' => {
                self.take_while(&mut text, |next| matches!(next, ' ' | '\t' | '\n' | '\r'));
                (Kind::Space, text)
            }
            '"' => self.quoted('"', Kind::Ident),
            '\'' => self.quoted('\'', Kind::String),
            '$' => {
                self.bump();
                let (kind, name) = match self.peek() {
                    Some('"') => self.quoted('"', Kind::BoundParam),
                    _ => {
                        self.take_while(&mut text, is_word);
                        (Kind::BoundParam, text)
                    }
                };
                (kind, format!("${name}"))
            }
            _ if first.is_ascii_alphabetic() || first == '_' => {
                self.take_while(&mut text, is_word);
                match keyword(&text) {
                    Some(word) => (word, String::new()),
                    None => (Kind::Ident, text),
                }
            }
            _ if first.is_ascii_digit() => self.number(),
            '.' if self.rest[1..].starts_with(|next: char| next.is_ascii_digit()) => self.number(),
            _ => self.mark(first),
        }
    }

    fn mark(&mut self, first: char) -> (Kind, String) {
        if self.rest.starts_with("--") {
            while self.bump().is_some_and(|next| next != '\n') {}
            return (Kind::Comment, String::new());
        }
        if self.rest.starts_with("/*") {
            return match self.rest[2..].find("*/") {
                Some(end) => {
                    let end = self.rest.len() - (end + 4);
                    while self.rest.len() > end {
                        self.bump();
                    }
                    (Kind::Comment, String::new())
                }
                None => {
                    while self.bump().is_some() {}
                    (Kind::Illegal, String::new())
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
            return (Kind::Illegal, first.to_string());
        }
        for _ in 0..mark.len() {
            self.bump();
        }
        (Kind::Mark(if mark == "<>" { "!=" } else { mark }), String::new())
    }

    fn number(&mut self) -> (Kind, String) {
        let mut text = String::new();
        self.take_while(&mut text, |next| next.is_ascii_digit());
        if self.peek() == Some('.') && self.rest[1..].starts_with(|next: char| next.is_ascii_digit()) {
            text.push('.');
            self.bump();
            self.take_while(&mut text, |next| next.is_ascii_digit());
            return (Kind::Number, text);
        }
        if self.peek() == Some('.') && !text.is_empty() {
            text.push('.');
            self.bump();
            return (Kind::Number, text);
        }
        if !self.peek().is_some_and(|next| next.is_ascii_alphabetic() || next == 'µ') {
            return (Kind::Integer, text);
        }
        self.take_while(&mut text, |next| next.is_ascii_alphanumeric() || next == 'µ');
        (Kind::Duration, text)
    }

    fn quoted(&mut self, quote: char, kind: Kind) -> (Kind, String) {
        self.bump();
        let mut text = String::new();
        loop {
            match self.peek() {
                None => return (Kind::BadString, text),
                Some('\n') => {
                    self.bump();
                    return (Kind::BadString, text);
                }
                Some('\\') => {
                    self.bump();
                    let escaped = self.bump();
                    match escaped {
                        Some('n') => text.push('\n'),
                        Some(same @ ('\\' | '"' | '\'')) => text.push(same),
                        Some(other) => return (Kind::BadEscape, format!("\\{other}")),
                        None => return (Kind::BadString, text),
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
                None | Some('\n') => break Kind::BadRegex,
                Some('/') => break Kind::Regex,
                Some('\\') if self.peek() == Some('/') => {
                    self.bump();
                    text.push('/');
                }
                Some('\\') => {
                    text.push('\\');
                    match self.bump() {
                        None | Some('\n') => break Kind::BadRegex,
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
