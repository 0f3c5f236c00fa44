//! A rule: a filter learns nothing about a column from a condition on a cast of it that loses something.
//!
//! For `WHERE ts::date = '2026-03-29'` DataFusion casts the date back and takes `ts` for the constant midnight of that day. Then it leaves out
//! what seems to be sorted already: an ORDER BY, the order of a window, of a group. So does `n::float8 = 9007199254740992`, which two
//! integers satisfy. This rule hides such casts in filters.

use std::fmt;
use std::hash::{Hash, Hasher};
use std::sync::Arc;

use arrow_array::RecordBatch;
use arrow_schema::{DataType, FieldRef, Schema};
use datafusion::common::Result;
use datafusion::common::tree_node::{Transformed, TransformedResult, TreeNode};
use datafusion::logical_expr::ColumnarValue;
use datafusion::logical_expr::interval_arithmetic::Interval;
use datafusion::logical_expr::sort_properties::ExprProperties;
use datafusion::physical_expr::PhysicalExpr;
use datafusion::physical_expr::expressions::CastExpr;
use datafusion::physical_plan::ExecutionPlan;
use datafusion::physical_plan::filter::{FilterExec, FilterExecBuilder};

/// Hides the casts that lose something in the conditions of all filters. The rule runs before DataFusion's rules remove sorts.
pub(super) fn hide_filter_casts(plan: Arc<dyn ExecutionPlan>) -> Result<Arc<dyn ExecutionPlan>> {
    let hide = |node: Arc<dyn ExecutionPlan>| {
        let Some(filter) = node.downcast_ref::<FilterExec>() else { return Ok(Transformed::no(node)) };
        let schema = filter.input().schema();
        let hidden = Arc::clone(filter.predicate()).transform_up(|expr| hide_cast(expr, &schema))?;
        if !hidden.transformed {
            return Ok(Transformed::no(node));
        }
        let filter = FilterExecBuilder::from(filter).with_predicate(hidden.data).build()?;
        Ok(Transformed::yes(Arc::new(filter) as Arc<dyn ExecutionPlan>))
    };
    plan.transform_up(hide).data()
}

fn hide_cast(expr: Arc<dyn PhysicalExpr>, schema: &Schema) -> Result<Transformed<Arc<dyn PhysicalExpr>>> {
    let Some(cast) = expr.downcast_ref::<CastExpr>() else { return Ok(Transformed::no(expr)) };
    let from = cast.expr().data_type(schema)?;
    if from == *cast.cast_type() || CastExpr::check_bigger_cast(cast.cast_type(), &from) {
        return Ok(Transformed::no(expr));
    }
    Ok(Transformed::yes(Arc::new(HiddenCast { cast: expr })))
}

/// A cast whose value says nothing about its argument.
#[derive(Debug, Clone, Eq)]
struct HiddenCast {
    cast: Arc<dyn PhysicalExpr>,
}

impl PartialEq for HiddenCast {
    fn eq(&self, other: &Self) -> bool {
        self.cast.eq(&other.cast)
    }
}

impl Hash for HiddenCast {
    fn hash<H: Hasher>(&self, state: &mut H) {
        self.cast.hash(state);
    }
}

impl fmt::Display for HiddenCast {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.cast.fmt(f)
    }
}

impl PhysicalExpr for HiddenCast {
    fn data_type(&self, schema: &Schema) -> Result<DataType> {
        self.cast.data_type(schema)
    }

    fn nullable(&self, schema: &Schema) -> Result<bool> {
        self.cast.nullable(schema)
    }

    fn return_field(&self, schema: &Schema) -> Result<FieldRef> {
        self.cast.return_field(schema)
    }

    fn evaluate(&self, batch: &RecordBatch) -> Result<ColumnarValue> {
        self.cast.evaluate(batch)
    }

    fn children(&self) -> Vec<&Arc<dyn PhysicalExpr>> {
        self.cast.children()
    }

    fn with_new_children(
        self: Arc<Self>,
        children: Vec<Arc<dyn PhysicalExpr>>,
    ) -> Result<Arc<dyn PhysicalExpr>> {
        Ok(Arc::new(Self { cast: Arc::clone(&self.cast).with_new_children(children)? }))
    }

    fn evaluate_bounds(&self, children: &[&Interval]) -> Result<Interval> {
        self.cast.evaluate_bounds(children)
    }

    /// Any value of the argument is possible.
    fn propagate_constraints(
        &self,
        _interval: &Interval,
        children: &[&Interval],
    ) -> Result<Option<Vec<Interval>>> {
        Ok(Some(children.iter().map(|child| (*child).clone()).collect()))
    }

    fn get_properties(&self, children: &[ExprProperties]) -> Result<ExprProperties> {
        self.cast.get_properties(children)
    }

    fn fmt_sql(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.cast.fmt_sql(f)
    }
}
