//! Joins with USING, and NATURAL joins, with PostgreSQL's columns.
//!
//! Such a join has one column for each pair of key columns: `k` without a table is the value of the side that has one. `a.k` and `b.k` stay
//! the columns of the tables. `*` lists the common columns first, then the others. DataFusion takes one of the two columns for `k`, by the
//! names of the tables.
//!
//! [`enclose`] puts each such join into parentheses with an alias of its own. [`JoinPlanner`] plans them with a projection that adds the
//! common columns under this alias, and names in the statement are qualified with it. A mark tells DataFusion which columns `*` leaves
//! out.

mod alias;
mod mark;
mod names;
mod planner;
mod wrap;

use datafusion::sql::parser::Statement;

pub(crate) use mark::without_marks;
pub(crate) use planner::JoinPlanner;

use crate::walk::walk_mut;

/// Encloses the joins of a statement that have common columns. Returns whether there are some.
pub(crate) fn enclose(statement: &mut Statement) -> bool {
    let mut wrap = wrap::Wrap::default();
    if let Some(statement) = statement_of(statement) {
        // The visitor never stops early.
        let _ = walk_mut(statement, &mut wrap);
    }
    wrap.count > 0
}

/// Qualifies the names of common columns.
pub(crate) fn qualify(statement: &mut Statement) {
    if let Some(statement) = statement_of(statement) {
        // The visitor never stops early.
        let _ = walk_mut(statement, &mut names::Qualify);
    }
}

/// Writes the keys that [`JoinPlanner`] has found for NATURAL joins into a statement. Returns whether there are new ones.
pub(crate) fn name_keys(statement: &mut Statement, planner: &JoinPlanner) -> bool {
    let mut keys = names::NameKeys { planner, is_changed: false };
    if let Some(statement) = statement_of(statement) {
        // The visitor never stops early.
        let _ = walk_mut(statement, &mut keys);
    }
    keys.is_changed
}

fn statement_of(statement: &mut Statement) -> Option<&mut datafusion::sql::sqlparser::ast::Statement> {
    match statement {
        Statement::Statement(statement) => Some(statement),
        Statement::Explain(explain) => statement_of(&mut explain.statement),
        _ => None,
    }
}
