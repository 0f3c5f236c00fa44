//! From a parsed statement to a query over tables.

use sqlparser::ast::{
    Distinct, Expr as Ast, GroupByExpr, Ident, JoinConstraint, JoinOperator, LimitClause, OrderByKind,
    Select, SelectItem, SelectItemQualifiedWildcardKind, Spanned, TableFactor, Value as AstValue,
    visit_expressions,
};

use super::aggregates::AggregateKind;
use super::expr::Expr;
use super::grouping::{Aggregate, GroupBy};
use super::query::{OrderKey, Output, Query};
use super::statement::{Statement, lower};
use crate::virtual_sensors::fault::{Fault, TextPosition};

/// A table that a statement can name, with its columns.
pub(crate) struct Table<'a> {
    pub(crate) name: &'a str,
    pub(crate) columns: Vec<String>,
}

/// Compiles a statement over tables.
pub(crate) fn compile(statement: &Statement, tables: &[Table<'_>]) -> Result<Query, Fault> {
    let select = statement.select()?;
    refuse_rest(statement, select)?;
    let mut compiler = Compiler {
        statement,
        known: tables,
        from: Vec::new(),
        keys: Vec::new(),
        aggregates: Vec::new(),
        mode: Mode::Rows,
        depth: 0,
    };
    compiler.query(select)
}

pub(super) struct Compiler<'a> {
    pub(super) statement: &'a Statement,
    known: &'a [Table<'a>],
    /// The tables of `FROM`: the name that the statement uses, and the number of the table.
    from: Vec<(String, usize)>,
    /// The expressions of `GROUP BY`.
    pub(super) keys: Vec<Expr>,
    pub(super) aggregates: Vec<Aggregate>,
    pub(super) mode: Mode,
    pub(super) depth: usize,
}

/// What an expression may read.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Mode {
    /// Columns of rows.
    Rows,
    /// Keys of groups, and aggregates.
    Groups,
    /// Columns of rows, in the argument of an aggregate.
    Argument,
}

impl<'a> Compiler<'a> {
    fn query(&mut self, select: &'a Select) -> Result<Query, Fault> {
        let mut filter = None;
        for table in &select.from {
            self.table(&table.relation)?;
            for join in &table.joins {
                self.table(&join.relation)?;
                match &join.join_operator {
                    JoinOperator::Join(JoinConstraint::On(on))
                    | JoinOperator::Inner(JoinConstraint::On(on)) => {
                        filter = both(filter, Some(self.expr(on)?));
                    }
                    JoinOperator::CrossJoin(JoinConstraint::None)
                    | JoinOperator::Join(JoinConstraint::None)
                    | JoinOperator::Inner(JoinConstraint::None) => {}
                    _ => {
                        let reason = "only inner joins with ON and cross joins are compiled";
                        return Err(self.not_compiled(join.relation.span(), reason));
                    }
                }
            }
        }
        if self.from.is_empty() {
            return Err(Fault::invalid(self.place(select.span()), "the query has no FROM"));
        }
        if let Some(selection) = &select.selection {
            filter = both(filter, Some(self.expr(selection)?));
        }
        self.group_keys(select)?;
        let grouped = !self.keys.is_empty() || select.having.is_some() || self.has_aggregates(select);
        if grouped {
            self.mode = Mode::Groups;
        }
        let output = self.output(select)?;
        let having = select.having.as_ref().map(|having| self.expr(having)).transpose()?;
        let order = self.order(select, &output)?;
        let (offset, limit) = self.bounds()?;
        let groups = grouped.then(|| GroupBy {
            filter: filter.take(),
            keys: std::mem::take(&mut self.keys),
            aggregates: std::mem::take(&mut self.aggregates),
        });
        let tables = self.from.iter().map(|(_, table)| *table).collect();
        let distinct = matches!(select.distinct, Some(Distinct::Distinct));
        Ok(Query { tables, filter, groups, having, output, distinct, order, offset, limit })
    }

    fn table(&mut self, factor: &TableFactor) -> Result<(), Fault> {
        let TableFactor::Table { name, alias, args: None, .. } = factor else {
            return Err(self.not_compiled(factor.span(), "a subquery in FROM is not compiled"));
        };
        let table = lower(name);
        let Some(number) = self.known.iter().position(|known| known.name == table) else {
            let names: Vec<_> = self.known.iter().map(|known| known.name).collect();
            let reason = format!("there is no {table:?} here; FROM reads {}", names.join(", "));
            return Err(Fault::invalid(self.place(name.span()), reason));
        };
        let shown = alias.as_ref().map_or(table, |alias| alias.name.value.to_lowercase());
        if self.from.iter().any(|(other, _)| *other == shown) {
            let reason = format!("{shown:?} appears twice in FROM; give one of them an alias");
            return Err(Fault::invalid(self.place(factor.span()), reason));
        }
        self.from.push((shown, number));
        Ok(())
    }

    fn group_keys(&mut self, select: &Select) -> Result<(), Fault> {
        let GroupByExpr::Expressions(expressions, modifiers) = &select.group_by else {
            return Err(self.not_compiled(select.span(), "GROUP BY ALL is not compiled"));
        };
        if !modifiers.is_empty() {
            return Err(self.not_compiled(select.span(), "modifiers of GROUP BY are not compiled"));
        }
        for expression in expressions {
            let item = ordinal(expression).map(|number| self.item(select, number, expression)).transpose()?;
            let named = || alias_of(select, expression);
            let key = match (item, self.expr(item.unwrap_or(expression))) {
                (_, Ok(key)) => key,
                (Some(_), Err(fault)) => return Err(fault),
                // MySQL and H2 let it name a column of the result too.
                (None, Err(fault)) => match named() {
                    Some(expr) => self.expr(expr)?,
                    None => return Err(fault),
                },
            };
            self.keys.push(key);
        }
        Ok(())
    }

    /// The expression of a column of the result, counted from 1.
    fn item<'s>(&self, select: &'s Select, number: usize, at: &Ast) -> Result<&'s Ast, Fault> {
        match number.checked_sub(1).and_then(|at| select.projection.get(at)) {
            Some(SelectItem::UnnamedExpr(expr) | SelectItem::ExprWithAlias { expr, .. }) => Ok(expr),
            _ => Err(Fault::invalid(self.place(at.span()), format!("the result has no column {number}"))),
        }
    }

    fn has_aggregates(&mut self, select: &Select) -> bool {
        select.projection.iter().any(|item| match item {
            SelectItem::UnnamedExpr(expr) | SelectItem::ExprWithAlias { expr, .. } => has_aggregate(expr),
            _ => false,
        })
    }

    fn output(&mut self, select: &Select) -> Result<Vec<Output>, Fault> {
        let mut output: Vec<Output> = Vec::new();
        for item in &select.projection {
            match item {
                SelectItem::UnnamedExpr(expr) => {
                    let name = match expr {
                        Ast::Identifier(name) => name.value.to_lowercase(),
                        Ast::CompoundIdentifier(names) => {
                            names.last().map(|name| name.value.to_lowercase()).unwrap_or_default()
                        }
                        expr => expr.to_string().to_lowercase(),
                    };
                    self.add(&mut output, name, expr)?;
                }
                SelectItem::ExprWithAlias { expr, alias } => {
                    self.add(&mut output, alias.value.to_lowercase(), expr)?;
                }
                SelectItem::Wildcard(options) if *options == Default::default() => {
                    self.add_all(&mut output, None, item)?;
                }
                SelectItem::QualifiedWildcard(SelectItemQualifiedWildcardKind::ObjectName(name), options)
                    if *options == Default::default() =>
                {
                    let name = lower(name);
                    let found = self.from.iter().position(|(shown, _)| *shown == name);
                    let reason = || format!("FROM has no {name:?}");
                    let table = found.ok_or_else(|| Fault::invalid(self.place(item.span()), reason()))?;
                    self.add_all(&mut output, Some(table), item)?;
                }
                item => {
                    let reason = format!("{item} is not compiled");
                    return Err(self.not_compiled(item.span(), &reason));
                }
            }
        }
        Ok(output)
    }

    fn add(&mut self, output: &mut Vec<Output>, name: String, expr: &Ast) -> Result<(), Fault> {
        if output.iter().any(|other| other.name == name) {
            let reason =
                format!("the result has two columns {name:?}; give one of them another name with AS");
            return Err(Fault::invalid(self.place(expr.span()), reason));
        }
        let expr = self.expr(expr)?;
        output.push(Output { name, expr });
        Ok(())
    }

    /// All columns of one table of `FROM` or of all. Of columns with one name the first is taken, because each table has `timed`.
    fn add_all(&self, output: &mut Vec<Output>, only: Option<usize>, item: &SelectItem) -> Result<(), Fault> {
        if self.mode == Mode::Groups {
            let reason = "* is beside an aggregate or GROUP BY; name the columns";
            return Err(Fault::invalid(self.place(item.span()), reason));
        }
        for (table, (_, number)) in self.from.iter().enumerate() {
            if only.is_some_and(|only| only != table) {
                continue;
            }
            for (column, name) in self.known[*number].columns.iter().enumerate() {
                if !output.iter().any(|other| other.name == *name) {
                    output.push(Output { name: name.clone(), expr: Expr::Column { table, column } });
                }
            }
        }
        Ok(())
    }

    fn order(&mut self, select: &Select, output: &[Output]) -> Result<Vec<OrderKey>, Fault> {
        let Some(order) = &self.statement.query.order_by else { return Ok(Vec::new()) };
        let OrderByKind::Expressions(expressions) = &order.kind else {
            return Err(self.not_compiled(select.span(), "ORDER BY ALL is not compiled"));
        };
        let mut keys = Vec::new();
        for key in expressions {
            let by_name = |name: &Ident| output.iter().find(|out| out.name == name.value.to_lowercase());
            let expr = match (&key.expr, ordinal(&key.expr)) {
                (_, Some(number)) => match number.checked_sub(1).and_then(|at| output.get(at)) {
                    Some(column) => column.expr.clone(),
                    None => {
                        let reason = format!("the result has no column {number}");
                        return Err(Fault::invalid(self.place(key.expr.span()), reason));
                    }
                },
                (Ast::Identifier(name), _) if by_name(name).is_some() => by_name(name)
                    .map(|column| column.expr.clone())
                    .unwrap_or(Expr::Literal(super::datum::Datum::Null)),
                (expr, _) => self.expr(expr)?,
            };
            let descending = key.options.asc == Some(false);
            // H2 and MySQL hold no value for the smallest one.
            let nulls_first = key.options.nulls_first.unwrap_or(!descending);
            keys.push(OrderKey { expr, descending, nulls_first });
        }
        Ok(keys)
    }

    fn bounds(&self) -> Result<(usize, Option<usize>), Fault> {
        let (offset, limit) = match &self.statement.query.limit_clause {
            None => (None, None),
            Some(LimitClause::LimitOffset { limit, offset, limit_by }) if limit_by.is_empty() => {
                (offset.as_ref().map(|offset| &offset.value), limit.as_ref())
            }
            Some(LimitClause::OffsetCommaLimit { offset, limit }) => (Some(offset), Some(limit)),
            Some(_) => return Err(self.not_compiled(self.statement.query.span(), "LIMIT BY is not compiled")),
        };
        let number = |expr: &Ast| {
            let reason = format!("{expr} is not a bound; LIMIT and OFFSET take a whole number");
            ordinal(expr).ok_or_else(|| Fault::invalid(self.place(expr.span()), reason))
        };
        let limit = limit.map(number).transpose()?;
        Ok((offset.map(number).transpose()?.unwrap_or(0), limit))
    }

    /// The column of a name, with or without its table.
    pub(super) fn column(&self, table: Option<&Ident>, name: &Ident) -> Result<Expr, Fault> {
        let column = name.value.to_lowercase();
        let place = self.place(name.span);
        if column == "pk" {
            let reason = "pk is a column of GSN's tables, which are not kept here; use timed";
            return Err(Fault::unsupported(place, reason));
        }
        let mut found = None;
        let mut seen = Vec::new();
        for (at, (shown, number)) in self.from.iter().enumerate() {
            if table.is_some_and(|table| table.value.to_lowercase() != *shown) {
                continue;
            }
            let columns = &self.known[*number].columns;
            seen.extend(columns.iter().map(|name| format!("{shown}.{name}")));
            let Some(position) = columns.iter().position(|other| *other == column) else { continue };
            if found.is_some() {
                let reason = format!("{column:?} is in several tables; write TABLE.{column}");
                return Err(Fault::invalid(place, reason));
            }
            found = Some(Expr::Column { table: at, column: position });
        }
        found.ok_or_else(|| {
            const SHOWN: usize = 20;
            let more = if seen.len() > SHOWN { ", …" } else { "" };
            let shown = seen.iter().take(SHOWN).map(String::as_str).collect::<Vec<_>>().join(", ");
            let table =
                table.map(|table| format!(" in {:?}", table.value.to_lowercase())).unwrap_or_default();
            Fault::invalid(place, format!("there is no field {column:?}{table}; fields are {shown}{more}"))
        })
    }

    pub(super) fn place(&self, span: sqlparser::tokenizer::Span) -> TextPosition {
        self.statement.place(span)
    }

    pub(super) fn not_compiled(&self, span: sqlparser::tokenizer::Span, reason: &str) -> Fault {
        Fault::not_compiled(self.place(span), reason)
    }
}

/// Whether an expression has an aggregate somewhere.
fn has_aggregate(expr: &Ast) -> bool {
    let found = visit_expressions(expr, |expr| match expr {
        Ast::Function(call)
            if AggregateKind::named(&call.name.to_string().to_lowercase(), false).is_some() =>
        {
            std::ops::ControlFlow::Break(())
        }
        _ => std::ops::ControlFlow::Continue(()),
    });
    found.is_break()
}

/// Refuses the clauses that nothing else looks at.
fn refuse_rest(statement: &Statement, select: &Select) -> Result<(), Fault> {
    let query = &statement.query;
    let clauses = [
        (query.with.is_some(), "WITH"),
        (query.fetch.is_some(), "FETCH; use LIMIT"),
        (!query.locks.is_empty(), "FOR UPDATE"),
        (query.for_clause.is_some(), "FOR"),
        (query.settings.is_some() || query.format_clause.is_some(), "SETTINGS or FORMAT"),
        (!query.pipe_operators.is_empty(), "|>"),
        (select.top.is_some(), "TOP; use LIMIT"),
        (matches!(select.distinct, Some(Distinct::On(_))), "DISTINCT ON"),
        (select.into.is_some(), "INTO"),
        (!select.lateral_views.is_empty(), "LATERAL VIEW"),
        (select.prewhere.is_some(), "PREWHERE"),
        (!select.connect_by.is_empty(), "CONNECT BY"),
        (!select.cluster_by.is_empty() || !select.distribute_by.is_empty(), "CLUSTER BY or DISTRIBUTE BY"),
        (!select.sort_by.is_empty(), "SORT BY"),
        (!select.named_window.is_empty(), "WINDOW"),
        (select.qualify.is_some(), "QUALIFY"),
        (select.exclude.is_some(), "EXCLUDE"),
    ];
    match clauses.into_iter().find(|(present, _)| *present) {
        None => Ok(()),
        Some((_, name)) => {
            Err(Fault::not_compiled(statement.place(select.span()), format!("not compiled: {name}")))
        }
    }
}

pub(super) fn both(left: Option<Expr>, right: Option<Expr>) -> Option<Expr> {
    match (left, right) {
        (Some(left), Some(right)) => Some(Expr::And(Box::new(left), Box::new(right))),
        (left, right) => left.or(right),
    }
}

/// The expression of the result that has a name.
fn alias_of<'s>(select: &'s Select, name: &Ast) -> Option<&'s Ast> {
    let Ast::Identifier(name) = name else { return None };
    select.projection.iter().find_map(|item| match item {
        SelectItem::ExprWithAlias { expr, alias } if alias.value.eq_ignore_ascii_case(&name.value) => {
            Some(expr)
        }
        _ => None,
    })
}

/// A whole number that stands for itself.
fn ordinal(expr: &Ast) -> Option<usize> {
    match expr {
        Ast::Value(value) => match &value.value {
            AstValue::Number(text, _) => text.parse().ok(),
            _ => None,
        },
        _ => None,
    }
}
