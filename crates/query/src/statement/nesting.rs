//! Checks the nesting of a statement by its tokens, before it is parsed.
//!
//! The parser limits its own depth, but not in types and not for EXPLAIN of EXPLAIN. Where a bracket can begin several constructs,
//! the parser tries them one after the other, each time with the whole nested text. So each nested call doubles the cost.

use datafusion::sql::sqlparser::dialect::PostgreSqlDialect;
use datafusion::sql::sqlparser::keywords::Keyword;
use datafusion::sql::sqlparser::tokenizer::{Token, Tokenizer, Word};

use super::check_count::check_count;
use crate::QueryError;

/// Most calls, subqueries and lists within each other.
pub(super) const CALL_LEVELS_MAX: usize = 16;
/// Most pairs of brackets after a type or value, most types within `ARRAY<`, and most EXPLAINs.
pub(super) const REPEATED_MAX: usize = 16;

/// Keywords before a bracket that is a plain bracket, unless a query begins in it.
const CONNECTIVES: [Keyword; 13] = [
    Keyword::AND,
    Keyword::OR,
    Keyword::NOT,
    Keyword::WHERE,
    Keyword::ON,
    Keyword::HAVING,
    Keyword::BETWEEN,
    Keyword::WHEN,
    Keyword::THEN,
    Keyword::ELSE,
    Keyword::SELECT,
    Keyword::BY,
    Keyword::IN,
];

/// Refuses a statement that would keep the parser busy or overflow its stack. A text that has no tokens is left to the parser,
/// which reports it.
pub(super) fn check(sql: &str) -> Result<(), QueryError> {
    let Ok(tokens) = Tokenizer::new(&PostgreSqlDialect {}, sql).tokenize() else { return Ok(()) };
    let tokens: Vec<Token> =
        tokens.into_iter().filter(|token| !matches!(token, Token::Whitespace(_))).collect();
    let mut brackets = Vec::new();
    let (mut calls, mut explains, mut types, mut empty) = (0, 0, 0, 0);
    for (at, token) in tokens.iter().enumerate() {
        let (before, next) = (at.checked_sub(1).map(|before| &tokens[before]), tokens.get(at + 1));
        match token {
            Token::LParen | Token::LBracket => {
                let is_call = *token == Token::LBracket || is_call(before, next);
                calls += usize::from(is_call);
                brackets.push(is_call);
            }
            Token::RParen | Token::RBracket => calls -= usize::from(brackets.pop() == Some(true)),
            Token::Lt => types += usize::from(before.and_then(keyword).is_some_and(is_generic)),
            token if keyword(token) == Some(Keyword::EXPLAIN) => explains += 1,
            _ => {}
        }
        empty += usize::from(*token == Token::LBracket && next == Some(&Token::RBracket));
        check_count(calls, CALL_LEVELS_MAX, "the nesting of calls, lists and subqueries", "levels")?;
    }
    check_count(explains, REPEATED_MAX, "the number of EXPLAIN", "of them")?;
    check_count(types, REPEATED_MAX, "the nesting of types", "levels")?;
    check_count(empty, REPEATED_MAX, "the number of []", "of them")
}

/// Whether a bracket may begin the arguments of a call, or a query.
fn is_call(before: Option<&Token>, next: Option<&Token>) -> bool {
    let begins_query =
        matches!(next.and_then(keyword), Some(Keyword::SELECT | Keyword::WITH | Keyword::VALUES));
    let follows_name = match before {
        Some(Token::Word(word)) => !CONNECTIVES.contains(&word.keyword),
        _ => false,
    };
    begins_query || follows_name
}

fn keyword(token: &Token) -> Option<Keyword> {
    match token {
        Token::Word(Word { keyword, quote_style: None, .. }) => Some(*keyword),
        _ => None,
    }
}

/// Whether a type may follow in angle brackets.
fn is_generic(keyword: Keyword) -> bool {
    matches!(keyword, Keyword::ARRAY | Keyword::STRUCT | Keyword::MAP)
}
