//! A statement for another database. It is parsed to check that it only reads, and it is not compiled.

use std::ops::ControlFlow;

use sqlparser::ast::{Query, Select, Statement as AstStatement, Visit as _, Visitor};
use sqlparser::dialect::AnsiDialect;
use sqlparser::tokenizer::{Token, Tokenizer, Whitespace};

use super::statement::Statement;
use crate::virtual_sensors::descriptor::Located;
use crate::virtual_sensors::fault::Fault;

/// Checks that a text is one `SELECT` that writes nothing and locks nothing.
///
/// # Errors
/// The text is not SQL, it is several statements, it writes or locks rows, or it has a comment or a backslash.
pub(crate) fn check_reads(said: &Located<String>) -> Result<(), Fault> {
    if said.value.contains('\\') {
        let reason =
            "the query has a backslash, which ends a text in some databases and not in others; leave it out";
        return Err(Fault::invalid(said.place, reason));
    }
    if has_comment(&said.value) {
        let reason = "the query has a comment, which databases may execute; leave it out";
        return Err(Fault::invalid(said.place, reason));
    }
    let statement = Statement::parse(said)?;
    match statement.query.visit(&mut Reads) {
        ControlFlow::Continue(()) => Ok(()),
        ControlFlow::Break(reason) => Err(Fault::invalid(said.place, reason)),
    }
}

fn has_comment(text: &str) -> bool {
    let is_comment = |token: &Token| {
        matches!(
            token,
            Token::Whitespace(Whitespace::SingleLineComment { .. } | Whitespace::MultiLineComment(_))
        )
    };
    // MySQL executes the comment `/*! ... */`, and the dialects of MySQL read it as a part of the statement.
    let tokens = Tokenizer::new(&AnsiDialect {}, text).tokenize();
    tokens.map_or(true, |tokens| tokens.iter().any(is_comment))
}

/// Stops at the first part of a statement that does more than to read.
struct Reads;

impl Visitor for Reads {
    type Break = String;

    fn pre_visit_statement(&mut self, statement: &AstStatement) -> ControlFlow<String> {
        let text = statement.to_string();
        let word = text.split_whitespace().next().unwrap_or_default();
        ControlFlow::Break(format!("{word} does not read; the query is a SELECT"))
    }

    fn pre_visit_query(&mut self, query: &Query) -> ControlFlow<String> {
        if query.locks.is_empty() {
            return ControlFlow::Continue(());
        }
        ControlFlow::Break("FOR UPDATE and FOR SHARE lock rows; the query only reads".to_owned())
    }

    fn pre_visit_select(&mut self, select: &Select) -> ControlFlow<String> {
        if select.into.is_none() {
            return ControlFlow::Continue(());
        }
        ControlFlow::Break("INTO writes; the query only reads".to_owned())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::virtual_sensors::fault::TextPosition;

    fn checked(text: &str) -> Result<(), String> {
        let said = Located { value: text.to_owned(), place: TextPosition::START };
        check_reads(&said).map_err(|fault| fault.to_string())
    }

    #[test]
    fn statements_that_read_are_accepted() {
        for text in [
            "select * from road",
            "SELECT r.timed, r.celsius, s.name FROM road r JOIN station s ON s.id = r.station WHERE r.celsius > -60;",
            "with warm as (select * from road where celsius > 20) select * from warm",
            "select timed, 'insert /* no comment */ into' as text from road union all select timed, text from street",
        ] {
            assert_eq!(checked(text), Ok(()), "{text}");
        }
    }

    #[test]
    fn statements_that_write_or_lock_are_refused() {
        for (text, expected) in [
            ("delete from road", "DELETE does not read"),
            ("insert into road values (1)", "INSERT does not read"),
            ("drop table road", "DROP does not read"),
            ("select 1; delete from road", "a query is one statement"),
            ("with gone as (delete from road returning *) select * from gone", "DELETE does not read"),
            ("select * into copy from road", "INTO writes"),
            ("select * from road for update", "lock rows"),
            ("select * from (select * from road for update) as locked", "lock rows"),
            ("select 1 /*! into outfile '/tmp/road' */", "has a comment"),
            ("select 1 -- where", "has a comment"),
            ("select '\\', ') as e into outfile \"/tmp/x\" # '", "a backslash"),
            ("select 1) as a; delete from road; select (1", "this is not SQL"),
            ("", "the query is empty"),
        ] {
            let refused = checked(text).expect_err(text);
            assert!(refused.contains(expected), "{text}: {refused}");
        }
    }
}
