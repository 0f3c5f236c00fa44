//! The condition that a sort with a limit gives to the scan below it.
//!
//! `ORDER BY ts DESC LIMIT 100` keeps the best hundred rows. DataFusion's sort publishes a dynamic filter: the condition that a row must
//! satisfy to be among them.

use std::collections::HashSet;
use std::sync::Arc;

use arrow_array::{ArrayRef, BooleanArray, TimestampMicrosecondArray, UInt64Array};
use arrow_schema::{Schema, SchemaRef};
use datafusion::common::pruning::PruningStatistics;
use datafusion::common::{Column as NamedColumn, Result, ScalarValue};
use datafusion::physical_expr::PhysicalExpr;
use datafusion::physical_expr::expressions::{Column, DynamicFilterPhysicalExpr};
use datafusion::physical_optimizer::pruning::PruningPredicateBuilder;
use datafusion::physical_plan::ExecutionPlan;
use datafusion::physical_plan::sorts::sort::SortExec;
use model::{TimeRange, Timestamp};

use crate::column_kind::is_ts;

/// The condition of a sort whose first key is the time. It becomes stricter while the sort takes rows.
#[derive(Debug, Clone)]
pub(crate) struct TopKFilter {
    condition: Arc<dyn PhysicalExpr>,
    schema: SchemaRef,
}

impl TopKFilter {
    /// Returns the filter if the condition, over rows of this schema, is such a one.
    pub(crate) fn of(condition: &Arc<dyn PhysicalExpr>, schema: &SchemaRef) -> Option<Self> {
        let changing = condition.downcast_ref::<DynamicFilterPhysicalExpr>()?;
        let by = changing.children();
        let first = by.first()?.downcast_ref::<Column>()?;
        let is_by_time = schema.fields().get(first.index()).is_some_and(|field| is_ts(field));
        is_by_time.then(|| Self { condition: Arc::clone(condition), schema: Arc::clone(schema) })
    }

    /// Whether this sort makes the condition.
    pub(crate) fn is_of(&self, sort: &SortExec) -> bool {
        let produced = sort.dynamic_expressions_produced();
        produced.iter().any(|produced| {
            produced.expression_id().is_some() && produced.expression_id() == self.condition.expression_id()
        })
    }

    /// Whether a row with a time in the range may satisfy the condition. True if that cannot be decided.
    pub(super) fn may_pass(&self, range: TimeRange) -> bool {
        let decide = || -> Result<bool> {
            let condition = PruningPredicateBuilder::new()
                .with_file_schema(Arc::clone(&self.schema))
                .try_build(Arc::clone(&self.condition))?;
            Ok(condition
                .prune(&RangeStatistics { range, schema: &self.schema })?
                .iter()
                .all(|may_pass| *may_pass))
        };
        decide().unwrap_or(true)
    }
}

/// The statistics of the rows of a range: their times lie in it.
struct RangeStatistics<'a> {
    range: TimeRange,
    schema: &'a Schema,
}

impl RangeStatistics<'_> {
    fn time(&self, column: &NamedColumn, ts: Timestamp) -> Option<ArrayRef> {
        let field = self.schema.field_with_name(&column.name).ok().filter(|field| is_ts(field))?;
        let micros = TimestampMicrosecondArray::from_value(ts.micros(), 1);
        Some(Arc::new(micros.with_data_type(field.data_type().clone())))
    }
}

impl PruningStatistics for RangeStatistics<'_> {
    fn min_values(&self, column: &NamedColumn) -> Option<ArrayRef> {
        self.time(column, self.range.start)
    }

    fn max_values(&self, column: &NamedColumn) -> Option<ArrayRef> {
        self.time(column, Timestamp::from_micros(self.range.end.micros().saturating_sub(1)))
    }

    fn num_containers(&self) -> usize {
        1
    }

    fn null_counts(&self, column: &NamedColumn) -> Option<ArrayRef> {
        // Every row has a time.
        self.time(column, self.range.start).map(|_| Arc::new(UInt64Array::from(vec![0])) as ArrayRef)
    }

    fn row_counts(&self) -> Option<ArrayRef> {
        None
    }

    fn contained(&self, _column: &NamedColumn, _values: &HashSet<ScalarValue>) -> Option<BooleanArray> {
        None
    }
}

#[cfg(test)]
mod tests {
    use std::collections::HashMap;

    use arrow_schema::{DataType, Field, TimeUnit};
    use datafusion::logical_expr::Operator;
    use datafusion::physical_expr::expressions::{binary, col, is_null, lit};
    use store::table::COLUMN_KIND;

    use super::*;

    fn range(start: i64, end: i64) -> TimeRange {
        TimeRange::new(Timestamp::from_micros(start), Timestamp::from_micros(end))
    }

    #[test]
    fn the_sort_determines_the_filter() {
        let kind = |kind: &str| HashMap::from([(COLUMN_KIND.to_owned(), kind.to_owned())]);
        let time = DataType::Timestamp(TimeUnit::Microsecond, Some("UTC".into()));
        let schema: SchemaRef = Arc::new(Schema::new(vec![
            Field::new("device", DataType::Utf8View, true).with_metadata(kind("tag")),
            Field::new("ts", time, false).with_metadata(kind("ts")),
        ]));
        let (ts, device) = (col("ts", &schema).unwrap(), col("device", &schema).unwrap());
        let filter = |by: Vec<_>| Arc::new(DynamicFilterPhysicalExpr::new(by, lit(true)));
        let of = |filter: &Arc<DynamicFilterPhysicalExpr>| {
            TopKFilter::of(&(Arc::clone(filter) as Arc<dyn PhysicalExpr>), &schema)
        };
        assert!(of(&filter(vec![Arc::clone(&device), Arc::clone(&ts)])).is_none());
        assert!(TopKFilter::of(&ts, &schema).is_none());

        let changing = filter(vec![Arc::clone(&ts), Arc::clone(&device)]);
        let wanted = of(&changing).unwrap();
        assert!(wanted.may_pass(range(0, 10)));
        let at = |micros| lit(ScalarValue::TimestampMicrosecond(Some(micros), Some("UTC".into())));
        let compared = |op, micros| binary(Arc::clone(&ts), op, at(micros), &schema).unwrap();
        let or = |one, other| binary(one, Operator::Or, other, &schema).unwrap();
        let smaller =
            binary(device, Operator::Lt, lit(ScalarValue::Utf8View(Some("d".into()))), &schema).unwrap();
        let tied = binary(compared(Operator::Eq, 50), Operator::And, smaller, &schema).unwrap();
        let newer = or(is_null(Arc::clone(&ts)).unwrap(), compared(Operator::Gt, 50));
        changing.update(or(newer, tied)).unwrap();
        for (piece, may_be) in [((0, 50), false), ((0, 51), true), ((50, 51), true), ((51, 60), true)] {
            assert_eq!(wanted.may_pass(range(piece.0, piece.1)), may_be, "{piece:?}");
        }
        changing.update(compared(Operator::Lt, 50)).unwrap();
        assert!(wanted.may_pass(range(49, 90)) && !wanted.may_pass(range(50, 90)));
    }
}
