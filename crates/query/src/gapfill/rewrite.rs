//! Replaces the calls of gap filling in a plan by the node that adds rows.

use std::sync::Arc;

use arrow_schema::DataType;
use chrono::{DateTime, Utc};
use datafusion::common::config::ConfigOptions;
use datafusion::common::tree_node::{Transformed, TransformedResult, TreeNode, TreeNodeRecursion};
use datafusion::common::{Column, DataFusionError, Result, ScalarValue};
use datafusion::logical_expr::expr::ScalarFunction;
use datafusion::logical_expr::expr_rewriter::NamePreserver;
use datafusion::logical_expr::{
    Aggregate, Expr, ExprSchemable, Extension, Filter, LogicalPlan, Projection, Window,
};
use model::{TimeRange, Timestamp};

use super::bounds::{column_of, range_of, unalias};
use super::buckets::Buckets;
use super::calls::{Key, misplaced_fill, misplaced_key};
use super::constants::Constants;
use super::node::GapFill;
use super::shape::{Fill, Shape};
use crate::functions::time_bucket;

/// Puts a [`GapFill`] above each aggregation that groups by a call of gap filling. Types are known, and no parameters are left.
///
/// # Errors
/// When a function of gap filling is in the wrong position, when the range of time is not known, or when it has too many buckets.
pub(crate) fn rewrite(
    plan: LogicalPlan,
    started_at: DateTime<Utc>,
    options: &Arc<ConfigOptions>,
) -> Result<LogicalPlan> {
    if first_call(&plan)?.is_none() {
        return Ok(plan);
    }
    refuse_chance(&plan)?;
    let constants = Constants { options, started_at };
    let fill = |node: LogicalPlan| {
        if fills_gaps(&node) {
            fill_gaps(node, &constants).map(Transformed::yes)
        } else {
            Ok(Transformed::no(node))
        }
    };
    let plan = plan.transform_down_with_subqueries(fill).data()?;
    if let Some(error) = first_call(&plan)? {
        return Err(error);
    }
    // Columns that were never NULL may be NULL now.
    plan.transform_up_with_subqueries(|node| node.recompute_schema().map(Transformed::yes)).data()
}

/// Refuses random conditions. The optimiser would apply them to the rows below the gap filling, not to the rows that it adds.
fn refuse_chance(plan: &LogicalPlan) -> Result<()> {
    let mut has_chance = false;
    plan.apply_with_subqueries(|node| {
        has_chance |= matches!(node, LogicalPlan::Filter(filter) if filter.predicate.is_volatile());
        Ok(if has_chance { TreeNodeRecursion::Stop } else { TreeNodeRecursion::Continue })
    })?;
    if has_chance {
        let message = "a query that fills gaps has no condition that leaves rows to chance, such as random()";
        return Err(DataFusionError::Plan(message.into()));
    }
    Ok(())
}

/// Returns the error of the first call of gap filling in the plan.
fn first_call(plan: &LogicalPlan) -> Result<Option<DataFusionError>> {
    let mut found = None;
    plan.apply_with_subqueries(|node| {
        node.apply_expressions(|expr| {
            expr.apply(|expr| {
                let error = Key::of(expr)
                    .map(|(key, _)| misplaced_key(key))
                    .or_else(|| Fill::of(expr).map(|(fill, _)| misplaced_fill(fill)));
                found = found.take().or(error);
                Ok(if found.is_some() { TreeNodeRecursion::Stop } else { TreeNodeRecursion::Continue })
            })
        })
    })?;
    Ok(found)
}

/// Whether this is the top of a SELECT that groups by a call: the projection, windows and HAVING above the aggregation.
fn fills_gaps(node: &LogicalPlan) -> bool {
    match node {
        LogicalPlan::Aggregate(aggregate) => {
            aggregate.group_expr.iter().any(|group| Key::of(unalias(group)).is_some())
        }
        LogicalPlan::Projection(Projection { input, .. })
        | LogicalPlan::Filter(Filter { input, .. })
        | LogicalPlan::Window(Window { input, .. }) => {
            !matches!(**input, LogicalPlan::Projection(_)) && fills_gaps(input)
        }
        _ => false,
    }
}

fn fill_gaps(top: LogicalPlan, constants: &Constants<'_>) -> Result<LogicalPlan> {
    let mut calls = Vec::new();
    collect_fills(&top, &mut calls)?;
    below(top, &calls, constants)
}

/// Collects the calls that fill, each once, in the nodes above the aggregation. HAVING has none: it runs before gaps are filled.
fn collect_fills(node: &LogicalPlan, calls: &mut Vec<Expr>) -> Result<()> {
    let (LogicalPlan::Projection(_) | LogicalPlan::Filter(_) | LogicalPlan::Window(_)) = node else {
        return Ok(());
    };
    if is_having(node) {
        return Ok(());
    }
    node.apply_expressions(|expr| {
        expr.apply(|expr| {
            if Fill::of(expr).is_none() {
                return Ok(TreeNodeRecursion::Continue);
            }
            if !calls.contains(expr) {
                calls.push(expr.clone());
            }
            Ok(TreeNodeRecursion::Jump)
        })
    })?;
    node.inputs().into_iter().try_for_each(|input| collect_fills(input, calls))
}

fn is_having(node: &LogicalPlan) -> bool {
    matches!(node, LogicalPlan::Filter(filter) if matches!(*filter.input, LogicalPlan::Aggregate(_)))
}

/// Returns the nodes above the aggregation with columns in place of calls.
fn below(node: LogicalPlan, calls: &[Expr], constants: &Constants<'_>) -> Result<LogicalPlan> {
    if is_having(&node) || matches!(node, LogicalPlan::Aggregate(_)) {
        return grouped(node, calls, constants);
    }
    let node = node.map_children(|input| below(input, calls, constants).map(Transformed::yes)).data()?;
    let names = NamePreserver::new(&node);
    let replace = |expr: Expr| {
        let name = names.save(&expr);
        let replaced = expr.transform_down(|expr| {
            Ok(match calls.iter().position(|call| *call == expr) {
                Some(index) => {
                    Transformed::yes(Expr::Column(Column::new_unqualified(fill_name(calls, index))))
                }
                None => Transformed::no(expr),
            })
        })?;
        Ok(replaced.update_data(|expr| name.restore(expr)))
    };
    node.map_expressions(replace).data()?.recompute_schema()
}

/// Returns the name of the column that replaces a call.
fn fill_name(calls: &[Expr], index: usize) -> String {
    let name = |call: &Expr| call.schema_name().to_string();
    let own = name(&calls[index]);
    // Calls that differ only in a type have the same text.
    let same = calls[..index].iter().filter(|call| name(call) == own).count();
    if same == 0 { own } else { format!("{own}:{same}") }
}

/// Returns the aggregation, HAVING, and above them the node that adds rows.
fn grouped(node: LogicalPlan, calls: &[Expr], constants: &Constants<'_>) -> Result<LogicalPlan> {
    let (aggregate, having) = match node {
        LogicalPlan::Aggregate(aggregate) => (aggregate, None),
        LogicalPlan::Filter(Filter { predicate, input, .. }) => match Arc::unwrap_or_clone(input) {
            LogicalPlan::Aggregate(aggregate) => (aggregate, Some(predicate)),
            other => return Err(DataFusionError::Internal(format!("HAVING above {}", other.display()))),
        },
        other => return Err(DataFusionError::Internal(format!("gap filling above {}", other.display()))),
    };
    let (aggregate, time, buckets) = with_ordinary_key(aggregate, constants)?;
    let keys = (0..aggregate.group_expr.len()).filter(|index| *index != time).collect();
    let mut plan = LogicalPlan::Aggregate(aggregate);
    if let Some(having) = having {
        plan = LogicalPlan::Filter(Filter::try_new(having, Arc::new(plan))?);
    }
    let mut columns: Vec<_> = plan.schema().columns().into_iter().map(Expr::Column).collect();
    let mut fills = Vec::new();
    for (index, call) in calls.iter().enumerate() {
        let Some((fill, value)) = Fill::of(call) else { continue };
        fills.push((columns.len(), fill));
        columns.push(value.clone().alias(fill_name(calls, index)));
    }
    if !fills.is_empty() {
        plan = LogicalPlan::Projection(Projection::try_new(columns, Arc::new(plan))?);
    }
    let node = GapFill::new(plan, Shape { keys, time, fills, buckets })?;
    Ok(LogicalPlan::Extension(Extension { node: Arc::new(node) }))
}

/// Returns the aggregation by the ordinary function, the index of the time key, and the buckets.
fn with_ordinary_key(aggregate: Aggregate, constants: &Constants<'_>) -> Result<(Aggregate, usize, Buckets)> {
    let Aggregate { input, mut group_expr, aggr_expr, .. } = aggregate;
    let is_set = group_expr.iter().any(|group| matches!(group, Expr::GroupingSet(_)));
    let mut keys_of_time =
        (0..group_expr.len()).filter(|index| Key::of(unalias(&group_expr[*index])).is_some());
    let (Some(time), None, false) = (keys_of_time.next(), keys_of_time.next(), is_set) else {
        return Err(misplaced_key(
            group_expr.iter().find_map(|group| Some(Key::of(unalias(group))?.0)).unwrap_or(Key::TimeBucket),
        ));
    };
    let Some((key, args)) = Key::of(unalias(&group_expr[time])) else {
        return Err(DataFusionError::Internal("a key that is not one".into()));
    };
    let args: Vec<_> =
        args.iter().map(|arg| constants.simplify(arg.clone(), input.schema())).collect::<Result<_>>()?;
    let (ordinary, buckets) = ordinary_key(key, args, &input, constants)?;
    let name = group_expr[time].schema_name().to_string();
    group_expr[time] = ordinary.alias(name);
    Ok((Aggregate::try_new(input, group_expr, aggr_expr)?, time, buckets))
}

/// Returns a call of `time_bucket` with the same buckets, and the buckets of the range.
fn ordinary_key(
    key: Key,
    args: Vec<Expr>,
    input: &LogicalPlan,
    constants: &Constants<'_>,
) -> Result<(Expr, Buckets)> {
    let function = key.name();
    let Expr::Literal(ScalarValue::IntervalMonthDayNano(Some(width)), _) = &args[0] else {
        return Err(DataFusionError::Plan(format!("the interval of {function} must be a constant")));
    };
    let width = *width;
    let mut range = match column_of(&args[1], input) {
        Some(column) => range_of(input, column, constants)?,
        None => TimeRange::ALL,
    };
    let mut origin_ns = match key {
        Key::TimeBucket => time_bucket::default_origin_ns(width),
        Key::DateBin => 0,
    };
    match key {
        Key::TimeBucket => {
            range.start = constant_time(args.get(2), "start", function)?.unwrap_or(range.start);
            range.end = constant_time(args.get(3), "finish", function)?.unwrap_or(range.end);
        }
        Key::DateBin => {
            if let Some(origin) = constant_time(args.get(2), "origin", function)? {
                origin_ns = origin.micros().checked_mul(1_000).ok_or_else(|| {
                    DataFusionError::Plan(format!("the origin of {function} is too far from 1970"))
                })?;
            }
        }
    }
    check_ends(range, key)?;
    let buckets = Buckets::over(range, width, origin_ns.div_euclid(1_000), function)?;
    let mut args = args.into_iter();
    let (Some(width), Some(time)) = (args.next(), args.next()) else {
        return Err(DataFusionError::Internal(format!("{function} without arguments")));
    };
    let zone = match time.get_type(input.schema())? {
        DataType::Timestamp(_, zone) => zone,
        _ => None,
    };
    let origin = Expr::Literal(ScalarValue::TimestampNanosecond(Some(origin_ns), zone), None);
    let call = ScalarFunction { func: time_bucket::function(), args: vec![width, time, origin] };
    Ok((Expr::ScalarFunction(call), buckets))
}

/// Returns the value of an argument; `None` if it is left out or NULL.
fn constant_time(arg: Option<&Expr>, what: &str, function: &str) -> Result<Option<Timestamp>> {
    match arg {
        None => Ok(None),
        Some(Expr::Literal(ScalarValue::TimestampMicrosecond(us, _), _)) => {
            Ok(us.map(Timestamp::from_micros))
        }
        Some(Expr::Literal(value, _)) if value.is_null() => Ok(None),
        Some(_) => Err(DataFusionError::Plan(format!("the {what} of {function} must be a constant"))),
    }
}

fn check_ends(range: TimeRange, key: Key) -> Result<()> {
    let TimeRange { start: all_start, end: all_end } = TimeRange::ALL;
    let (missing, condition, argument) = match (range.start == all_start, range.end == all_end) {
        (false, false) => return Ok(()),
        (true, false) => ("begin", "ts >= now() - INTERVAL '1 hour'", "its third argument, start"),
        (false, true) => ("end", "ts < now()", "its fourth argument, finish"),
        (true, true) => (
            "begin and end",
            "ts >= now() - INTERVAL '1 hour' AND ts < now()",
            "its third and fourth arguments, start and finish",
        ),
    };
    let name = key.name();
    let or = match key {
        Key::TimeBucket => format!(", or give {argument}"),
        Key::DateBin => String::new(),
    };
    Err(DataFusionError::Plan(format!(
        "{name} does not know where to {missing}: add a condition with constants to WHERE, such as {condition}{or}"
    )))
}
