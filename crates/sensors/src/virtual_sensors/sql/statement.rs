//! SQL as text: one statement that reads, within limits.

use std::collections::{BTreeMap, BTreeSet};

use sqlparser::ast::{
    Expr as Ast, ObjectName, Query as AstQuery, Select, SelectItem, SelectItemQualifiedWildcardKind, SetExpr,
    Spanned, Statement as AstStatement, TableFactor, visit_expressions,
};
use sqlparser::dialect::GenericDialect;
use sqlparser::keywords::Keyword;
use sqlparser::parser::{Parser, ParserError};
use sqlparser::tokenizer::{Span, Token, Tokenizer, TokenizerError};

use crate::virtual_sensors::descriptor::Located;
use crate::virtual_sensors::fault::{Fault, TextPosition};
use crate::virtual_sensors::limits::{SQL_NESTING_MAX, SQL_OPERATORS_MAX, SQL_TOKENS_MAX};

/// A statement that has been parsed.
#[derive(Debug, Clone)]
pub(crate) struct Statement {
    pub(super) query: AstQuery,
    /// Where its text begins.
    place: TextPosition,
}

/// Columns that a statement names, and of which tables it takes all.
#[derive(Debug, Default)]
pub(crate) struct Demand {
    /// Columns with their table, if it is said.
    pub(crate) columns: BTreeSet<(Option<String>, String)>,
    /// `*`.
    pub(crate) everything: bool,
    /// Tables with `table.*`.
    pub(crate) whole_tables: BTreeSet<String>,
}

impl Statement {
    /// Parses the text of a query.
    pub(crate) fn parse(said: &Located<String>) -> Result<Self, Fault> {
        let dialect = GenericDialect {};
        let tokens = Tokenizer::new(&dialect, &said.value).tokenize_with_location();
        let tokens = tokens.map_err(|error| tokenizer_fault(said.place, &error))?;
        check_size(said.place, tokens.iter().map(|token| &token.token))?;
        let parser = Parser::new(&dialect).with_recursion_limit(SQL_NESTING_MAX);
        let statements = parser.with_tokens_with_locations(tokens).parse_statements();
        let mut statements = statements.map_err(|error| parser_fault(said.place, &error))?;
        let Some(statement) = statements.pop() else {
            return Err(Fault::syntax(said.place, "the query is empty; it is a SELECT"));
        };
        if !statements.is_empty() {
            let place = shift(said.place, statement.span());
            return Err(Fault::invalid(place, "a query is one statement; this is a second one"));
        }
        let AstStatement::Query(query) = statement else {
            return Err(writes(said.place, &statement.to_string()));
        };
        let statement = Self { query: *query, place: said.place };
        if let SetExpr::Insert(inner) | SetExpr::Update(inner) | SetExpr::Delete(inner) =
            &*statement.query.body
        {
            return Err(writes(said.place, &inner.to_string()));
        }
        Ok(statement)
    }

    /// The place of a piece of the statement.
    pub(super) fn place(&self, span: Span) -> TextPosition {
        shift(self.place, span)
    }

    /// The `SELECT`.
    pub(super) fn select(&self) -> Result<&Select, Fault> {
        match &*self.query.body {
            SetExpr::Select(select) => Ok(select),
            SetExpr::SetOperation { op, .. } => {
                Err(Fault::not_compiled(self.place, format!("{op} is not compiled")))
            }
            _ => Err(Fault::not_compiled(self.place, "a query that is not a plain SELECT is not compiled")),
        }
    }

    /// The columns that the statement names.
    pub(crate) fn demand(&self) -> Demand {
        let mut demand = Demand::default();
        let _ = visit_expressions(&self.query, |expr| {
            match expr {
                Ast::Identifier(name) => drop(demand.columns.insert((None, name.value.to_lowercase()))),
                Ast::CompoundIdentifier(names) => {
                    if let [table, column] = &names[..] {
                        let table = Some(table.value.to_lowercase());
                        demand.columns.insert((table, column.value.to_lowercase()));
                    }
                }
                _ => {}
            }
            std::ops::ControlFlow::<()>::Continue(())
        });
        if let Ok(select) = self.select() {
            let tables = select.from.iter().flat_map(|from| {
                std::iter::once(&from.relation).chain(from.joins.iter().map(|join| &join.relation))
            });
            let aliases: BTreeMap<_, _> = tables.filter_map(alias).collect();
            let real = |shown: String| aliases.get(&shown).cloned().unwrap_or(shown);
            let columns = std::mem::take(&mut demand.columns).into_iter();
            demand.columns = columns.map(|(table, column)| (table.map(real), column)).collect();
            for item in &select.projection {
                match item {
                    SelectItem::Wildcard(_) => demand.everything = true,
                    SelectItem::QualifiedWildcard(SelectItemQualifiedWildcardKind::ObjectName(name), _) => {
                        demand.whole_tables.insert(real(lower(name)));
                    }
                    _ => {}
                }
            }
        }
        demand
    }
}

/// A name without quotes, in lower case.
pub(super) fn lower(name: &ObjectName) -> String {
    name.to_string().replace(['"', '`'], "").to_lowercase()
}

/// The alias of a table, and its name.
fn alias(table: &TableFactor) -> Option<(String, String)> {
    let TableFactor::Table { name, alias: Some(alias), .. } = table else { return None };
    Some((alias.name.value.to_lowercase(), lower(name)))
}

/// A place in a statement as a place in the file. The text of a statement is in the file as it is, but for references such as
/// `&lt;`, which make later columns of their line smaller here than there.
fn shift(base: TextPosition, span: Span) -> TextPosition {
    match (span.start.line as u32, span.start.column as u32) {
        (0, _) => base,
        (1, column) => TextPosition { line: base.line, column: base.column + column.saturating_sub(1) },
        (line, column) => TextPosition { line: base.line + line - 1, column },
    }
}

fn writes(place: TextPosition, text: &str) -> Fault {
    let word = text.split_whitespace().next().unwrap_or_default().to_owned();
    Fault::invalid(place, format!("{word} does not read; the query of a sensor is a SELECT"))
}

fn check_size<'a>(place: TextPosition, tokens: impl Iterator<Item = &'a Token>) -> Result<(), Fault> {
    let (mut count, mut operators) = (0, 0);
    for token in tokens.filter(|token| !matches!(token, Token::Whitespace(_))) {
        count += 1;
        operators += usize::from(match token {
            Token::Word(word) => !matches!(word.keyword, Keyword::NoKeyword | Keyword::AS),
            Token::Comma | Token::Period | Token::LParen | Token::RParen | Token::Number(..) => false,
            Token::SingleQuotedString(_) | Token::EOF => false,
            _ => true,
        });
    }
    let over = |what, found, most, limit| {
        Err(Fault::limit(place, format!("the query has {found} {what}; at most {most} ({limit})")))
    };
    if count > SQL_TOKENS_MAX {
        return over("words and signs", count, SQL_TOKENS_MAX, "SQL_TOKENS_MAX");
    }
    if operators > SQL_OPERATORS_MAX {
        return over("operators and key words", operators, SQL_OPERATORS_MAX, "SQL_OPERATORS_MAX");
    }
    Ok(())
}

fn tokenizer_fault(base: TextPosition, error: &TokenizerError) -> Fault {
    let span = Span::new(error.location, error.location);
    Fault::syntax(shift(base, span), format!("this is not SQL: {}", error.message))
}

fn parser_fault(base: TextPosition, error: &ParserError) -> Fault {
    let text = match error {
        ParserError::TokenizerError(text) | ParserError::ParserError(text) => text,
        ParserError::RecursionLimitExceeded => {
            let reason = format!("the query nests deeper than {SQL_NESTING_MAX} (SQL_NESTING_MAX)");
            return Fault::limit(base, reason);
        }
    };
    // The parser writes the place behind the reason.
    let parts = text.rsplit_once(" at Line: ").and_then(|(reason, place)| {
        let (line, column) = place.split_once(", Column: ")?;
        Some((reason, line.parse().ok()?, column.parse().ok()?))
    });
    let (reason, place) = match parts {
        Some((reason, line, column)) => {
            let at = sqlparser::tokenizer::Location::new(line, column);
            (reason, shift(base, Span::new(at, at)))
        }
        None => (text.as_str(), base),
    };
    Fault::syntax(place, format!("this is not SQL: {reason}"))
}
