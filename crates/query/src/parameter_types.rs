//! Finds the types of the parameters of a statement.

use std::collections::{BTreeSet, HashMap};

use arrow_schema::DataType;
use datafusion::common::tree_node::{TreeNode, TreeNodeRecursion};
use datafusion::logical_expr::expr::{Cast, Placeholder};
use datafusion::logical_expr::utils::merge_schema;
use datafusion::logical_expr::{Expr, Limit, LogicalPlan};
use model::limits;

use crate::{QueryError, gapfill, postgres};

/// Returns the types of all parameters from `$1` to the highest number. `given` are the types that the client declares, `named` the names
/// of the parameters in the statement.
pub(crate) fn parameter_types(
    plan: &LogicalPlan,
    given: &[Option<DataType>],
    named: &BTreeSet<String>,
) -> Result<Vec<DataType>, QueryError> {
    let found: HashMap<String, Option<DataType>> = plan.get_parameter_types()?;
    let mut highest = 0;
    for name in named {
        let number = name.strip_prefix('$').and_then(|number| number.parse::<usize>().ok());
        let Some(number) = number.filter(|number| (1..=limits::SQL_PARAMETERS_MAX).contains(number)) else {
            let message = format!("{name} is not a parameter; write $1, $2...");
            return Err(QueryError::Invalid { message });
        };
        highest = highest.max(number);
    }
    let implied = implied_types(plan)?;
    let type_of = |number: usize| {
        let name = format!("${number}");
        // Queries of empty system tables are no longer in the plan, nor are their parameters.
        let is_unused = named.contains(&name) && !found.contains_key(&name);
        let found = found.get(&name).cloned().flatten().or_else(|| implied.get(&name).cloned());
        let found = found.or(if is_unused { Some(DataType::Utf8) } else { None });
        found.or_else(|| given.get(number - 1).cloned().flatten()).ok_or_else(|| QueryError::Invalid {
            message: format!("the type of ${number} is not known; write ${number}::type"),
        })
    };
    (1..=highest.max(given.len())).map(type_of).collect()
}

/// Returns the types that follow from the context of a parameter where DataFusion leaves them open: below a cast, as an argument of gap
/// filling, and as a LIMIT or an OFFSET.
fn implied_types(plan: &LogicalPlan) -> Result<HashMap<String, DataType>, QueryError> {
    let mut types = HashMap::new();
    plan.apply_with_subqueries(|node| {
        if let LogicalPlan::Limit(Limit { skip, fetch, .. }) = node {
            for count in [skip, fetch].into_iter().flatten() {
                count.apply(|expr| {
                    if let Expr::Placeholder(Placeholder { id, .. }) = expr {
                        types.entry(id.clone()).or_insert(DataType::Int64);
                    }
                    Ok(TreeNodeRecursion::Continue)
                })?;
            }
        }
        let schema = merge_schema(&node.inputs());
        node.apply_expressions(|expr| {
            expr.apply(|expr| {
                for (argument, data_type) in postgres::implied_parameter_types(expr, &schema) {
                    if let Expr::Placeholder(Placeholder { id, .. }) = argument {
                        types.entry(id.clone()).or_insert(data_type);
                    }
                }
                if let Expr::ScalarFunction(call) = expr
                    && postgres::is_of_catalog(&call.func)
                {
                    // These functions take names or numbers. A number comes with its type.
                    for argument in &call.args {
                        if let Expr::Placeholder(Placeholder { id, .. }) = argument {
                            types.entry(id.clone()).or_insert(DataType::Utf8);
                        }
                    }
                }
                for (argument, data_type) in gapfill::argument_types(expr) {
                    if let Expr::Placeholder(Placeholder { id, .. }) = argument {
                        types.entry(id.clone()).or_insert(data_type);
                    }
                }
                if let Expr::Cast(Cast { expr, field }) = expr
                    && let Expr::Placeholder(Placeholder { id, .. }) = &**expr
                {
                    types.insert(id.clone(), field.data_type().clone());
                }
                Ok(TreeNodeRecursion::Continue)
            })
        })
    })?;
    Ok(types)
}
