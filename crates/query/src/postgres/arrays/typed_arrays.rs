//! Rewrites arrays in a plan whose types are known.

use arrow_schema::DataType;
use datafusion::common::tree_node::{Transformed, TreeNode, TreeNodeRecursion};
use datafusion::common::{DFSchema, DataFusionError, Result, ScalarValue};
use datafusion::logical_expr::expr::{Cast, InList, ScalarFunction};
use datafusion::logical_expr::expr_rewriter::NamePreserver;
use datafusion::logical_expr::utils::merge_schema;
use datafusion::logical_expr::{Expr, ExprSchemable, LogicalPlan, lit};

use super::casts::{from_text, to_text};
use super::compare::of;
use super::text::{element_field, read};
use crate::QueryError;

/// The name of the function of `ARRAY[...]`.
const MAKE_ARRAY: &str = "make_array";

/// Gives casts of texts to arrays PostgreSQL's meaning, and turns comparisons with known elements into IN. The types of the plan
/// are checked, so every conversion is a cast.
pub(crate) fn settle(plan: LogicalPlan) -> Result<LogicalPlan, QueryError> {
    if !mentions_arrays(&plan)? {
        return Ok(plan);
    }
    let settled = plan.transform_up_with_subqueries(|node| {
        let mut schema = merge_schema(&node.inputs());
        if let LogicalPlan::TableScan(scan) = &node {
            schema.merge(&DFSchema::try_from_qualified_schema(
                scan.table_name.clone(),
                scan.source.schema().as_ref(),
            )?);
        }
        let names = NamePreserver::new(&node);
        let settle_one = |expr: Expr| {
            let saved = names.save(&expr);
            let expr = expr.transform_up(|expr| settled_expr(expr, &schema))?;
            Ok(if expr.transformed { expr.update_data(|expr| saved.restore(expr)) } else { expr })
        };
        let node = node.map_expressions(|expr| match expr {
            // Each key of a grouping set is a column.
            set @ Expr::GroupingSet(_) => set.map_children(settle_one),
            expr => settle_one(expr),
        })?;
        if node.transformed { node.map_data(LogicalPlan::recompute_schema) } else { Ok(node) }
    })?;
    Ok(settled.data)
}

/// Whether the plan needs any change. Most plans do not.
fn mentions_arrays(plan: &LogicalPlan) -> Result<bool> {
    let mut found = false;
    plan.apply_with_subqueries(|node| {
        node.apply_expressions(|expr| {
            expr.apply(|expr| {
                found |= match expr {
                    Expr::Cast(Cast { expr, field }) => {
                        let is_list = |data_type: &DataType| matches!(data_type, DataType::List(_));
                        is_list(field.data_type())
                            || (is_text(field.data_type()) && !matches!(**expr, Expr::Literal(..)))
                    }
                    expr => of(expr).is_some(),
                };
                Ok(if found { TreeNodeRecursion::Stop } else { TreeNodeRecursion::Continue })
            })
        })
    })?;
    Ok(found)
}

/// Returns the parameters on the array side of a comparison, with their types.
pub(crate) fn implied_parameter_types<'a>(expr: &'a Expr, schema: &DFSchema) -> Vec<(&'a Expr, DataType)> {
    let Some((_, [left, right])) = of(expr) else { return Vec::new() };
    let mut found = Vec::new();
    match (left, right) {
        (Expr::Placeholder(_), right) => {
            if let Ok(DataType::List(element)) = right.get_type(schema) {
                found.push((left, element.data_type().clone()));
            }
        }
        (left, Expr::Placeholder(_)) => {
            if let Ok(data_type) = left.get_type(schema) {
                let element = match data_type {
                    DataType::Null | DataType::Utf8View | DataType::LargeUtf8 => DataType::Utf8,
                    other => other,
                };
                found.push((right, DataType::List(element_field(element))));
            }
        }
        _ => {}
    }
    found
}

fn settled_expr(expr: Expr, schema: &DFSchema) -> Result<Transformed<Expr>> {
    if let Some((compare, [left, right])) = of(&expr) {
        if let (Some(negated), Some(elements)) = (compare.membership(), known_elements(right)?) {
            return Ok(Transformed::yes(one_of(left.clone(), elements, negated)));
        }
        return Ok(Transformed::no(expr));
    }
    let Expr::Cast(Cast { expr: inner, field }) = &expr else { return Ok(Transformed::no(expr)) };
    match field.data_type() {
        DataType::List(element) => match &**inner {
            Expr::Literal(value, _) if is_text(&value.data_type()) => {
                let list = match value.try_as_str().flatten() {
                    Some(text) => read(text, element)?,
                    None => ScalarValue::try_new_null(field.data_type())?,
                };
                Ok(Transformed::yes(Expr::Literal(list, None)))
            }
            Expr::Literal(value, _) if matches!(value.data_type(), DataType::List(_)) => {
                Ok(Transformed::yes(Expr::Literal(value.cast_to(field.data_type())?, None)))
            }
            inner => match inner.get_type(schema) {
                Ok(data_type) if is_text(&data_type) => {
                    Ok(Transformed::yes(from_text(inner.clone(), element)))
                }
                Ok(
                    DataType::List(_) | DataType::LargeList(_) | DataType::FixedSizeList(..) | DataType::Null,
                )
                | Err(_) => Ok(Transformed::no(expr)),
                // DataFusion would make an array of one text.
                Ok(other) => Err(DataFusionError::Plan(format!("cannot cast type {other} to an array"))),
            },
        },
        data_type if is_text(data_type) && matches!(inner.get_type(schema), Ok(DataType::List(_))) => {
            let text = to_text((**inner).clone());
            let text = if *data_type == DataType::Utf8 {
                text
            } else {
                Expr::Cast(Cast::new(Box::new(text), data_type.clone()))
            };
            Ok(Transformed::yes(text))
        }
        _ => Ok(Transformed::no(expr)),
    }
}

fn is_text(data_type: &DataType) -> bool {
    matches!(data_type, DataType::Utf8 | DataType::Utf8View | DataType::LargeUtf8)
}

/// Returns the elements of an array that the statement lists; `Some(None)` for NULL in place of an array.
fn known_elements(array: &Expr) -> Result<Option<Option<Vec<Expr>>>> {
    Ok(match array {
        Expr::Literal(ScalarValue::List(list), _) => {
            use arrow_array::Array;
            if list.is_null(0) {
                return Ok(Some(None));
            }
            let values = list.value(0);
            let element = |index| Ok(lit(ScalarValue::try_from_array(&values, index)?));
            Some(Some((0..values.len()).map(element).collect::<Result<_>>()?))
        }
        Expr::Literal(value, _) if value.is_null() => Some(None),
        Expr::ScalarFunction(ScalarFunction { func, args }) if func.name() == MAKE_ARRAY => {
            Some(Some(args.clone()))
        }
        Expr::Cast(Cast { expr, field }) => {
            let DataType::List(element) = field.data_type() else { return Ok(None) };
            let Some(Some(elements)) = known_elements(expr)? else { return Ok(None) };
            let cast = |expr| Expr::Cast(Cast::new(Box::new(expr), element.data_type().clone()));
            Some(Some(elements.into_iter().map(cast).collect()))
        }
        _ => None,
    })
}

fn one_of(left: Expr, elements: Option<Vec<Expr>>, negated: bool) -> Expr {
    match elements {
        None => lit(ScalarValue::Boolean(None)),
        Some(elements) if elements.is_empty() => lit(negated),
        Some(list) => Expr::InList(InList { expr: Box::new(left), list, negated }),
    }
}
