//! Plans joins with common columns.

use std::collections::{HashMap, HashSet};
use std::sync::atomic::{AtomicBool, Ordering};

use datafusion::common::{Column, Result, TableReference};
use datafusion::logical_expr::planner::{
    PlannedRelation, RelationPlanner, RelationPlannerContext, RelationPlanning,
};
use datafusion::logical_expr::type_coercion::binary::comparison_coercion;
use datafusion::logical_expr::{Expr, ExprSchemable, JoinType, LogicalPlan, LogicalPlanBuilder, cast};
use datafusion::sql::sqlparser::ast::{JoinConstraint, JoinOperator, TableFactor, TableWithJoins};
use parking_lot::Mutex;

use super::wrap::constraint_of;
use super::{alias, mark};
use crate::QueryError;
use crate::parsed::last_part;

/// Plans the joins that [`super::enclose`] has found, for one statement.
#[derive(Debug, Default)]
pub(crate) struct JoinPlanner {
    /// The keys of NATURAL joins, by the alias of the join.
    natural: Mutex<HashMap<String, Vec<String>>>,
    /// Whether the next relation is one that this planner has passed on.
    is_passed_on: AtomicBool,
}

impl RelationPlanner for JoinPlanner {
    fn plan_relation(
        &self,
        relation: TableFactor,
        context: &mut dyn RelationPlannerContext,
    ) -> Result<RelationPlanning> {
        let plan = match relation {
            TableFactor::NestedJoin { table_with_joins, alias: Some(alias) } if alias::is_ours(&alias) => {
                self.joined(*table_with_joins, &alias.name.value, context)?
            }
            // Marks hold for the query that they are in.
            TableFactor::Derived { .. } | TableFactor::Table { args: None, .. }
                if !self.is_passed_on.swap(false, Ordering::Relaxed) =>
            {
                self.is_passed_on.store(true, Ordering::Relaxed);
                mark::without_marks(context.plan(relation)?)?
            }
            other => return Ok(RelationPlanning::Original(Box::new(other))),
        };
        Ok(RelationPlanning::Planned(Box::new(PlannedRelation::new(plan, None))))
    }
}

impl JoinPlanner {
    /// The keys of a NATURAL join that was planned.
    pub(super) fn keys(&self, alias: &str) -> Option<Vec<String>> {
        self.natural.lock().get(alias).cloned()
    }

    fn joined(
        &self,
        mut from: TableWithJoins,
        alias: &str,
        context: &mut dyn RelationPlannerContext,
    ) -> Result<LogicalPlan> {
        let join = from.joins.pop().expect("BUG: a join is enclosed");
        let left = if from.joins.is_empty() {
            context.plan(from.relation)?
        } else {
            context.plan(TableFactor::NestedJoin { table_with_joins: Box::new(from), alias: None })?
        };
        let right = context.plan(join.relation)?;
        let names = match constraint_of(&join.join_operator) {
            Some(JoinConstraint::Using(names)) => names.iter().map(last_part).collect(),
            _ => {
                let names = names_of_both(&left, &right);
                self.natural.lock().insert(alias.to_owned(), names.clone());
                names
            }
        };
        let join_type = type_of(&join.join_operator);
        let left_keys = keys(&left, &names)?;
        let right_keys = keys(&right, &names)?;
        let joined = LogicalPlanBuilder::from(left);
        if names.is_empty() {
            return joined.join_on(right, join_type, [])?.build();
        }
        let joined = joined.join(right, join_type, (left_keys.clone(), right_keys.clone()), None)?.build()?;
        with_common(joined, alias, &names, left_keys.into_iter().zip(right_keys), join_type, context)
    }
}

/// The names of columns of both sides, each once.
fn names_of_both(left: &LogicalPlan, right: &LogicalPlan) -> Vec<String> {
    let of_right: HashSet<&str> = right.schema().fields().iter().map(|field| field.name().as_str()).collect();
    let mut seen = HashSet::new();
    let of_left = left.schema().fields().iter().map(|field| field.name().as_str());
    of_left.filter(|name| of_right.contains(name) && seen.insert(*name)).map(str::to_owned).collect()
}

/// The key columns of a side.
fn keys(side: &LogicalPlan, names: &[String]) -> Result<Vec<Column>> {
    let (schema, same) = (side.schema(), side.using_columns()?);
    let key = |name: &String| {
        Column::from_name(name).normalize_with_schemas_and_ambiguity_check(&[&[schema]], &same)
    };
    names.iter().map(key).collect()
}

/// Adds the common columns of a join before its others. They replace those of joins within it.
fn with_common(
    joined: LogicalPlan,
    alias: &str,
    names: &[String],
    keys: impl Iterator<Item = (Column, Column)>,
    join_type: JoinType,
    context: &dyn RelationPlannerContext,
) -> Result<LogicalPlan> {
    let mut items = Vec::new();
    for (name, (left, right)) in names.iter().zip(keys) {
        let common = common_value(&joined, left, right, join_type, context)?;
        items.push(common.alias_qualified(Some(TableReference::bare(alias)), name));
    }
    let is_replaced = |column: &Column| {
        names.contains(&column.name)
            && column.relation.as_ref().is_some_and(|relation| alias::is_name(relation.table()))
    };
    let columns = joined.schema().columns().into_iter();
    items.extend(columns.filter(|column| !is_replaced(column)).map(Expr::Column));
    let plan = LogicalPlanBuilder::from(joined).project(items)?.build()?;
    let mut same = Vec::new();
    for name in names {
        let common = Column::new(Some(TableReference::bare(alias)), name);
        let others = plan.schema().columns_with_unqualified_name(name).into_iter();
        same.extend(others.filter(|other| *other != common).map(|other| (common.clone(), other)));
    }
    Ok(mark::marked(plan, &same))
}

/// The value of a common column, of the common type of both.
fn common_value(
    joined: &LogicalPlan,
    left: Column,
    right: Column,
    join_type: JoinType,
    context: &dyn RelationPlannerContext,
) -> Result<Expr> {
    let (left, right) = (Expr::Column(left), Expr::Column(right));
    let types = (left.get_type(joined.schema())?, right.get_type(joined.schema())?);
    let of_common_type = |column: Expr| match comparison_coercion(&types.0, &types.1) {
        Some(common) if types.0 != types.1 => cast(column, common),
        _ => column,
    };
    Ok(match join_type {
        JoinType::Right => of_common_type(right),
        JoinType::Full => {
            let coalesce = context.context_provider().get_function_meta("coalesce");
            let coalesce = coalesce.ok_or_else(|| QueryError::unsupported("FULL JOIN with USING"))?;
            coalesce.call(vec![of_common_type(left), of_common_type(right)])
        }
        _ => of_common_type(left),
    })
}

fn type_of(operator: &JoinOperator) -> JoinType {
    match operator {
        JoinOperator::Left(_) | JoinOperator::LeftOuter(_) => JoinType::Left,
        JoinOperator::Right(_) | JoinOperator::RightOuter(_) => JoinType::Right,
        JoinOperator::FullOuter(_) => JoinType::Full,
        _ => JoinType::Inner,
    }
}
