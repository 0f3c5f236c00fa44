//! Completes `trim(LEADING FROM text)`, which the parser does not read without characters.

use std::borrow::Cow;

use datafusion::sql::sqlparser::dialect::PostgreSqlDialect;
use datafusion::sql::sqlparser::keywords::Keyword;
use datafusion::sql::sqlparser::tokenizer::{Location, Token, TokenWithSpan, Tokenizer};

const SIDES: [Keyword; 3] = [Keyword::BOTH, Keyword::LEADING, Keyword::TRAILING];

/// Writes the blank that PostgreSQL trims: `trim(LEADING ' ' FROM text)`.
pub(super) fn with_blanks(sql: &str) -> Cow<'_, str> {
    let has = |word: &str| {
        sql.as_bytes().windows(word.len()).any(|part| part.eq_ignore_ascii_case(word.as_bytes()))
    };
    if !has("trim") || !has("from") {
        return Cow::Borrowed(sql);
    }
    let Ok(tokens) = Tokenizer::new(&PostgreSqlDialect {}, sql).tokenize_with_location() else {
        return Cow::Borrowed(sql);
    };
    let tokens: Vec<_> = tokens.iter().filter(|token| !matches!(token.token, Token::Whitespace(_))).collect();
    let mut completed = sql.to_owned();
    // From the end, so that the places before it stay.
    for call in tokens.windows(4).rev() {
        if let Some(from) = place_of_blank(call)
            && let Some(place) = place(sql, from)
        {
            completed.insert_str(place, "' ' ");
        }
    }
    Cow::Owned(completed)
}

/// Where the blank is missing: `trim ( side from` or `trim ( from`.
fn place_of_blank(tokens: &[&TokenWithSpan]) -> Option<Location> {
    let keyword = |index: usize| match &tokens[index].token {
        Token::Word(word) if word.quote_style.is_none() => word.keyword,
        _ => Keyword::NoKeyword,
    };
    let is_call = keyword(0) == Keyword::TRIM && tokens[1].token == Token::LParen;
    let from = match keyword(2) {
        Keyword::FROM => 2,
        side if SIDES.contains(&side) && keyword(3) == Keyword::FROM => 3,
        _ => return None,
    };
    is_call.then_some(tokens[from].span.start)
}

/// The byte at a line and a column, which count characters from 1.
fn place(sql: &str, location: Location) -> Option<usize> {
    let line = usize::try_from(location.line).ok()?.checked_sub(1)?;
    let column = usize::try_from(location.column).ok()?.checked_sub(1)?;
    let start: usize = sql.split_inclusive('\n').take(line).map(str::len).sum();
    let rest = sql.get(start..)?;
    Some(start + rest.char_indices().nth(column)?.0)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn blanks_are_written_where_none_are_named() {
        for (sql, expected) in [
            ("SELECT trim(leading from 'ä'), 1", "SELECT trim(leading ' ' from 'ä'), 1"),
            ("SELECT 'ä',\n TRIM ( BOTH FROM a )", "SELECT 'ä',\n TRIM ( BOTH ' ' FROM a )"),
            ("SELECT trim(from a)", "SELECT trim(' ' from a)"),
            ("SELECT trim(both 'x' from a)", "SELECT trim(both 'x' from a)"),
            ("SELECT 'trim(leading from x)' FROM t", "SELECT 'trim(leading from x)' FROM t"),
            ("SELECT trim(a) FROM t", "SELECT trim(a) FROM t"),
        ] {
            assert_eq!(with_blanks(sql), expected);
        }
    }
}
