//! Reads queries: statements, and the expressions in them. The messages are InfluxDB's, because clients show and match them.

use std::collections::HashMap;

use super::ast::{DataType, Expr, Op, Pattern, Statement};
use super::duration;
use super::limits::{NESTING_MAX, OPERATORS_MAX, QUERY_BYTES_MAX, REGEX_BYTES_MAX, STATEMENTS_MAX};
use super::token::{Lexer, TextPosition, Token, TokenKind};

/// A value for a `$name` in the text of a query.
#[derive(Debug, Clone, PartialEq)]
pub enum Param {
    /// A text.
    Str(String),
    /// An integer.
    Int(i64),
    /// A float.
    Num(f64),
    Bool(bool),
    /// A regular expression.
    Regex(String),
    /// A name.
    Ident(String),
    /// A duration, such as `10s`.
    Duration(String),
    /// The value cannot be bound, for this reason.
    Bad(String),
}

impl Param {
    fn token(&self) -> (TokenKind, String) {
        match self {
            Self::Str(text) => (TokenKind::String, text.clone()),
            Self::Int(number) => (TokenKind::Integer, number.to_string()),
            Self::Num(number) => (TokenKind::Number, format!("{number:?}")),
            Self::Bool(value) => (TokenKind::Word(if *value { "TRUE" } else { "FALSE" }), String::new()),
            Self::Regex(text) => (TokenKind::Regex, text.clone()),
            Self::Ident(text) => (TokenKind::Ident, text.clone()),
            Self::Duration(text) => (TokenKind::Duration, text.clone()),
            Self::Bad(reason) => (TokenKind::BoundParam, reason.clone()),
        }
    }
}

/// The statements of a query.
///
/// # Errors
/// In the words of InfluxDB, without `error parsing query: `.
pub fn parse(text: &str, params: &HashMap<String, Param>) -> Result<Vec<Statement>, String> {
    if text.len() > QUERY_BYTES_MAX {
        return Err(format!(
            "a query of {} bytes is longer than the {QUERY_BYTES_MAX} bytes that are allowed",
            text.len()
        ));
    }
    let mut parser = Parser { lexer: Lexer::new(text), before: Lexer::new(text), params, depth: 0 };
    let mut statements = Vec::new();
    let mut separated = true;
    loop {
        let token = parser.next();
        if token.kind == TokenKind::Eof {
            return Ok(statements);
        }
        if token.is(";") {
            separated = true;
            continue;
        }
        if !separated {
            return Err(found(&token, &[";"]));
        }
        if statements.len() == STATEMENTS_MAX {
            return Err(format!("a query has more than the {STATEMENTS_MAX} statements that are allowed"));
        }
        parser.back();
        statements.push(parser.statement()?);
        separated = false;
    }
}

/// The message for a token that the grammar does not allow.
pub(super) fn found(token: &Token, expected: &[&str]) -> String {
    format!("found {}, expected {}{}", token.shown(), expected.join(", "), at(token.place))
}

pub(super) fn at(place: TextPosition) -> String {
    format!(" at line {}, char {}", place.line + 1, place.column + 1)
}

pub(super) struct Parser<'a> {
    lexer: Lexer<'a>,
    /// Where the lexer was before the last token.
    before: Lexer<'a>,
    params: &'a HashMap<String, Param>,
    depth: usize,
}

impl Parser<'_> {
    /// The next token, white space and comments included.
    pub(super) fn raw(&mut self) -> Token {
        self.before = self.lexer;
        let mut token = self.lexer.next();
        if token.kind == TokenKind::BoundParam
            && let Some(value) = self.params.get(&token.text[1..])
            && !matches!(value, Param::Bad(_))
        {
            (token.kind, token.text) = value.token();
        }
        token
    }

    /// The next token that is neither white space nor a comment.
    pub(super) fn next(&mut self) -> Token {
        loop {
            let token = self.raw();
            if !matches!(token.kind, TokenKind::Space | TokenKind::Comment) {
                return token;
            }
        }
    }

    /// Goes back before the last token.
    pub(super) fn back(&mut self) {
        self.lexer = self.before;
    }

    pub(super) fn peek_char(&self) -> Option<char> {
        self.lexer.peek()
    }

    /// Takes the token if it is next.
    pub(super) fn take(&mut self, text: &str) -> bool {
        let found = self.next().is(text);
        if !found {
            self.back();
        }
        found
    }

    pub(super) fn expect(&mut self, text: &'static str) -> Result<(), String> {
        let token = self.next();
        if token.is(text) { Ok(()) } else { Err(found(&token, &[text])) }
    }

    pub(super) fn skip_space(&mut self) {
        if self.raw().kind != TokenKind::Space {
            self.back();
        }
    }

    pub(super) fn ident(&mut self) -> Result<String, String> {
        let token = self.next();
        if token.kind == TokenKind::Ident { Ok(token.text) } else { Err(found(&token, &["identifier"])) }
    }

    /// The number after a word such as LIMIT; 0 if the word is not next.
    pub(super) fn optional_number(&mut self, word: &str) -> Result<usize, String> {
        if !self.take(word) {
            return Ok(0);
        }
        let token = self.next();
        match token.kind {
            TokenKind::Integer => Ok(token.text.parse().unwrap_or(usize::MAX)),
            _ => Err(found(&token, &["integer"])),
        }
    }

    /// A duration, or INF, which is 0.
    pub(super) fn duration(&mut self) -> Result<i64, String> {
        let token = self.next();
        match token.kind {
            TokenKind::Duration => duration::parse(&token.text).map_err(|reason| reason + &at(token.place)),
            TokenKind::Word("INF") => Ok(0),
            _ => Err(found(&token, &["duration"])),
        }
    }

    /// Names between dots, such as `db.policy.measurement`; a name may be empty.
    pub(super) fn segments(&mut self) -> Result<Vec<String>, String> {
        let mut names = vec![self.ident()?];
        loop {
            if !self.raw().is(".") {
                self.back();
                break;
            }
            match self.peek_char() {
                Some('/' | ':') => break,
                Some('.') => names.push(String::new()),
                _ => names.push(self.ident()?),
            }
            if names.len() > NESTING_MAX {
                break;
            }
        }
        if names.len() > 3 {
            let shown: Vec<String> = names.iter().map(|name| format!("\"{name}\"")).collect();
            return Err(format!("too many segments in {} at line 1, char 1", shown.join(".")));
        }
        Ok(names)
    }

    /// A regular expression between slashes, if it is next.
    pub(super) fn regex(&mut self) -> Result<Option<Pattern>, String> {
        let mut ahead = self.lexer;
        if ahead.peek().is_some_and(|next| next.is_ascii_whitespace()) {
            ahead.next();
        }
        let token = match ahead.peek() {
            Some('/') => {
                // A comment may begin with a slash too; only a regular expression is asked for here.
                self.lexer = ahead;
                self.before = ahead;
                self.lexer.regex()
            }
            Some('$') => {
                self.lexer = ahead;
                let token = self.raw();
                if token.kind != TokenKind::Regex {
                    self.back();
                    return Ok(None);
                }
                token
            }
            _ => {
                self.lexer = ahead;
                return Ok(None);
            }
        };
        match token.kind {
            TokenKind::Regex => pattern(&token).map(Some),
            _ => Err(format!("bad regex: {}{}", token.text, at(token.place))),
        }
    }

    /// Counts a level of nesting.
    pub(super) fn nested<T>(
        &mut self,
        inner: impl FnOnce(&mut Self) -> Result<T, String>,
    ) -> Result<T, String> {
        if self.depth == NESTING_MAX {
            return Err(format!(
                "a query has more than the {NESTING_MAX} levels of nesting that are allowed"
            ));
        }
        self.depth += 1;
        let result = inner(self);
        self.depth -= 1;
        result
    }

    pub(super) fn expr(&mut self) -> Result<Expr, String> {
        self.nested(Self::operators)
    }

    fn operators(&mut self) -> Result<Expr, String> {
        let mut root = self.unary()?;
        for _ in 0..OPERATORS_MAX {
            let token = self.next();
            let op = Op::ALL.into_iter().find(|(text, _)| token.is(text));
            let Some((_, op)) = op else {
                self.back();
                return Ok(root);
            };
            let right = match op {
                Op::Match | Op::NotMatch => match self.regex()? {
                    Some(pattern) => Expr::Regex(pattern),
                    None => return Err(found(&self.next(), &["regex"])),
                },
                _ => self.unary()?,
            };
            root = attach(root, op, right);
        }
        Err(format!("an expression has more than the {OPERATORS_MAX} operators that are allowed"))
    }

    fn unary(&mut self) -> Result<Expr, String> {
        let token = self.next();
        match token.kind {
            TokenKind::Mark("(") => {
                let inner = self.expr()?;
                self.expect(")")?;
                Ok(Expr::Paren(Box::new(inner)))
            }
            TokenKind::Ident => {
                let start = self.before;
                if self.raw().is("(") {
                    return self.call(&token.text);
                }
                self.lexer = start;
                self.reference()
            }
            TokenKind::Word("DISTINCT") => self.distinct(),
            TokenKind::String => Ok(Expr::Str(token.text)),
            TokenKind::Number => number(&token),
            TokenKind::Integer => integer(&token),
            TokenKind::Word("TRUE") => Ok(Expr::Bool(true)),
            TokenKind::Word("FALSE") => Ok(Expr::Bool(false)),
            TokenKind::Duration => duration::parse(&token.text).map(Expr::Dur),
            TokenKind::Mark("*") => self.wildcard(),
            TokenKind::Regex => pattern(&token).map(Expr::Regex),
            TokenKind::BoundParam => Err(self.unbound(&token.text[1..])),
            TokenKind::Mark(sign @ ("+" | "-")) => self.nested(|parser| parser.signed(sign == "-")),
            _ => Err(found(&token, &["identifier", "string", "number", "bool"])),
        }
    }

    fn unbound(&self, name: &str) -> String {
        match self.params.get(name) {
            Some(Param::Bad(reason)) => reason.clone(),
            _ if name.is_empty() => "empty bound parameter".to_owned(),
            _ => format!("missing parameter: {name}"),
        }
    }

    fn distinct(&mut self) -> Result<Expr, String> {
        let token = self.raw();
        match token.kind {
            TokenKind::Mark("(") => self.call("distinct"),
            TokenKind::Space => Ok(Expr::Distinct(self.ident()?)),
            _ => Err(found(&token, &["(", "identifier"])),
        }
    }

    fn wildcard(&mut self) -> Result<Expr, String> {
        if !self.raw().is("::") {
            self.back();
            return Ok(Expr::Wildcard(DataType::Unknown));
        }
        let token = self.raw();
        match token.kind {
            TokenKind::Word("FIELD") => Ok(Expr::Wildcard(DataType::AnyField)),
            TokenKind::Word("TAG") => Ok(Expr::Wildcard(DataType::Tag)),
            _ => Err(found(&token, &["field", "tag"])),
        }
    }

    fn signed(&mut self, minus: bool) -> Result<Expr, String> {
        let token = self.next();
        if !matches!(
            token.kind,
            TokenKind::Number
                | TokenKind::Integer
                | TokenKind::Duration
                | TokenKind::Mark("(")
                | TokenKind::Ident
        ) {
            return Err(found(&token, &["identifier", "number", "duration", "("]));
        }
        self.back();
        let sign = if minus { -1 } else { 1 };
        Ok(match self.unary()? {
            Expr::Num(value) if minus => Expr::Num(-value),
            Expr::Int(value) => Expr::Int(value.wrapping_mul(sign)),
            Expr::Uint(value) if minus && value == i64::MAX as u64 + 1 => Expr::Int(i64::MIN),
            Expr::Uint(value) if minus => return Err(format!("constant -{value} underflows int64")),
            Expr::Dur(value) => Expr::Dur(value.wrapping_mul(sign)),
            literal if literal.is_literal() => literal,
            other => Expr::binary(Op::Mul, Expr::Int(sign), other),
        })
    }

    /// The arguments of a call. Its name and the parenthesis are taken.
    fn call(&mut self, name: &str) -> Result<Expr, String> {
        let name = name.to_ascii_lowercase();
        let mut args = Vec::new();
        match self.regex()? {
            Some(pattern) => args.push(Expr::Regex(pattern)),
            None => {
                if self.raw().is(")") {
                    return Ok(Expr::Call(name, args));
                }
                self.back();
                args.push(self.expr()?);
            }
        }
        while self.take(",") {
            if args.len() == OPERATORS_MAX {
                return Err(format!("a call has more than the {OPERATORS_MAX} arguments that are allowed"));
            }
            match self.regex()? {
                Some(pattern) => args.push(Expr::Regex(pattern)),
                None => args.push(self.expr()?),
            }
        }
        let token = self.raw();
        if token.is(")") { Ok(Expr::Call(name, args)) } else { Err(found(&token, &[")"])) }
    }

    /// A field or a tag, perhaps with its type.
    pub(super) fn reference(&mut self) -> Result<Expr, String> {
        let name = self.segments()?.join(".");
        if !self.raw().is("::") {
            self.back();
            return Ok(Expr::Ref(name, DataType::Unknown));
        }
        let token = self.raw();
        let lower = token.text.to_ascii_lowercase();
        let kind = match (token.kind, lower.as_str()) {
            (TokenKind::Ident, "float") => DataType::Float,
            (TokenKind::Ident, "integer") => DataType::Integer,
            (TokenKind::Ident, "unsigned") => DataType::Unsigned,
            (TokenKind::Ident, "string") => DataType::String,
            (TokenKind::Ident, "boolean") => DataType::Boolean,
            (TokenKind::Word("FIELD"), _) => DataType::AnyField,
            (TokenKind::Word("TAG"), _) => DataType::Tag,
            (TokenKind::Ident, _) => {
                return Err(found(
                    &token,
                    &["float", "integer", "unsigned", "string", "boolean", "field", "tag"],
                ));
            }
            _ => return Err(found(&token, &["float", "integer", "string", "boolean", "field", "tag"])),
        };
        Ok(Expr::Ref(name, kind))
    }
}

/// Puts an operator and its right side into a tree by precedence.
fn attach(root: Expr, op: Op, right: Expr) -> Expr {
    match root {
        Expr::Binary(own, left, inner) if own.precedence() < op.precedence() => {
            Expr::Binary(own, left, Box::new(attach(*inner, op, right)))
        }
        other => Expr::binary(op, other, right),
    }
}

fn number(token: &Token) -> Result<Expr, String> {
    let value: Result<f64, _> = token.text.parse();
    match value {
        Ok(value) if value.is_finite() => Ok(Expr::Num(value)),
        _ => Err("unable to parse number".to_owned() + &at(token.place)),
    }
}

fn integer(token: &Token) -> Result<Expr, String> {
    let signed = token.text.parse().map(Expr::Int);
    let unsigned = || token.text.parse().map(Expr::Uint);
    signed.or_else(|_| unsigned()).map_err(|_| "unable to parse integer".to_owned() + &at(token.place))
}

/// Compiles a regular expression. The engine takes linear time for every pattern.
fn pattern(token: &Token) -> Result<Pattern, String> {
    let built = regex::RegexBuilder::new(&token.text).size_limit(REGEX_BYTES_MAX).build();
    built.map(Pattern).map_err(|error| {
        let text = error.to_string();
        let reason = text.lines().last().unwrap_or_default().trim_start_matches("error: ");
        format!("error parsing regexp: {reason}: `{}`{}", token.text, at(token.place))
    })
}
