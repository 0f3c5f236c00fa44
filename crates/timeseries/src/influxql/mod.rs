//! InfluxQL, the query language of InfluxDB 1.x.
//!
//! [`parse`] reads the statements of a query. [`select`] and [`show`] run one over the tables of a database and give their answer
//! in pieces. Statements that change something are for the caller, which knows who may do that.

mod aggregate;
mod answer;
pub mod ast;
mod calls;
mod cells;
mod check;
mod duration;
mod fill;
mod frame;
pub mod limits;
mod parse;
mod parse_select;
mod parse_show;
mod plan;
mod reduce;
mod removal;
mod scan;
mod select;
mod show;
mod time;
mod token;
mod transform;
mod value;
mod wanted_groups;
mod window;

#[cfg(test)]
mod golden;

use std::ops::ControlFlow;

pub use answer::{Context, Error, Head, Limits, Visit};
pub use parse::{Param, parse};
pub use removal::Removal;
pub use show::show;
pub use time::rfc3339;
pub use value::Value;

use crate::Source;

/// Runs a SELECT statement over the tables of a database.
///
/// # Errors
/// The statement is wrong, exceeds a limit, or a table cannot be read. Rows that were visited before are part of the answer.
pub fn select(
    statement: &ast::Select,
    source: &dyn Source,
    context: &Context,
    visit: &mut Visit<'_>,
) -> Result<(), Error> {
    let checked = check::check(statement, context.now).map_err(Error::Statement)?;
    let plan = plan::Plan::bind(checked, source)?;
    let mut columns = vec![plan.checked.time_column.clone()];
    columns.extend(plan.columns.iter().cloned());
    let zone = statement.zone;
    let mut head: Option<(select::GroupKey, Head)> = None;
    select::run(&plan, &context.limits, &mut |row| {
        if head.as_ref().is_none_or(|(key, _)| key != row.group) {
            let tags = plan.tags.iter().cloned().zip(row.group.tags.iter().cloned()).collect();
            let new =
                Head { name: row.group.name.clone(), tags, columns: columns.clone(), timed: true, zone };
            head = Some((row.group.clone(), new));
        }
        let mut values = Vec::with_capacity(row.values.len() + 1);
        values.push(Value::Int(row.time));
        values.extend(row.values);
        match &head {
            Some((_, head)) => visit(head, values),
            None => ControlFlow::Continue(()),
        }
    })
}
