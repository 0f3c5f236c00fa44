//! Reading the newest or the oldest rows of many series without reading the others.
//!
//! `ORDER BY ts DESC LIMIT 100` over a few series is answered by merging them. Over many, rows are sorted, and of them all only the
//! best hundred are kept. The sort tells which rows still have a chance. So the scan gives time in slices, beginning at the
//! end that is wanted, and stops before the first slice in which no row has one. A condition between them changes nothing: what
//! it hides does not count, and the slices go on. Slices grow, so that few of them reach everything.

use std::collections::HashSet;
use std::sync::Arc;

use arrow_array::{ArrayRef, BooleanArray, TimestampMicrosecondArray, UInt64Array};
use arrow_schema::{Schema, SchemaRef};
use datafusion::common::config::ConfigOptions;
use datafusion::common::pruning::PruningStatistics;
use datafusion::common::tree_node::{Transformed, TransformedResult, TreeNode};
use datafusion::common::{Column as NamedColumn, Result, ScalarValue};
use datafusion::physical_expr::PhysicalExpr;
use datafusion::physical_expr::expressions::{Column, DynamicFilterPhysicalExpr};
use datafusion::physical_optimizer::PhysicalOptimizerRule;
use datafusion::physical_optimizer::pruning::PruningPredicateBuilder;
use datafusion::physical_plan::coalesce_partitions::CoalescePartitionsExec;
use datafusion::physical_plan::coop::CooperativeExec;
use datafusion::physical_plan::filter::FilterExec;
use datafusion::physical_plan::projection::ProjectionExec;
use datafusion::physical_plan::repartition::RepartitionExec;
use datafusion::physical_plan::sorts::sort::SortExec;
use datafusion::physical_plan::{ExecutionPlan, Partitioning};
use model::{TimeRange, Timestamp};
use store::{Order, TableSnapshot};

use crate::reading::is_ts;
use crate::rewriting::{with_child, with_scan};

/// Estimated rows of the first slice. More than most who ask for a few rows need, and read in about a millisecond.
pub(crate) const FIRST_SLICE_ROWS: u64 = 64 * 1024;
/// How many times as many rows the next slice has. Rows of a day may lie in one file, and each slice of the day decodes it again.
const GROWTH: u64 = 8;

/// Tells scans below sorts with a limit from which end on to read.
#[derive(Debug)]
pub(crate) struct ReadInSlices;

impl PhysicalOptimizerRule for ReadInSlices {
    fn optimize(
        &self,
        plan: Arc<dyn ExecutionPlan>,
        _config: &ConfigOptions,
    ) -> Result<Arc<dyn ExecutionPlan>> {
        let tell = |node: Arc<dyn ExecutionPlan>| {
            let Some(sort) = node.downcast_ref::<SortExec>() else { return Ok(Transformed::no(node)) };
            let descending = sort.expr().first().options.descending;
            let order = if descending { Order::Descending } else { Order::Ascending };
            Ok(
                match with_scan(sort.input(), &gives_rows_as_they_come, &|scan| scan.in_slices(sort, order))?
                {
                    Some(input) => Transformed::yes(with_child(&node, at_once(input)?)?),
                    None => Transformed::no(node),
                },
            )
        };
        plan.transform_up(tell).data()
    }

    fn name(&self) -> &str {
        "read_in_slices"
    }

    fn schema_check(&self) -> bool {
        true
    }
}

/// Whether an operator needs no row but the next to give one.
fn gives_rows_as_they_come(plan: &Arc<dyn ExecutionPlan>) -> bool {
    plan.is::<ProjectionExec>()
        || plan.is::<CooperativeExec>()
        || plan.downcast_ref::<FilterExec>().is_some_and(|filter| filter.fetch().is_none())
        || plan.downcast_ref::<CoalescePartitionsExec>().is_some_and(|all| all.fetch().is_none())
        || plan
            .downcast_ref::<RepartitionExec>()
            .is_some_and(|dealt| matches!(dealt.partitioning(), Partitioning::RoundRobinBatch(_)))
}

/// The same without filters that collect rows until they are so many. A sort can say nothing of rows that it has not seen.
fn at_once(plan: Arc<dyn ExecutionPlan>) -> Result<Arc<dyn ExecutionPlan>> {
    let hand_on = |node: Arc<dyn ExecutionPlan>| {
        let Some(filter) = node.downcast_ref::<FilterExec>() else { return Ok(Transformed::no(node)) };
        Ok(Transformed::yes(Arc::new(filter.with_batch_size(1)?) as Arc<dyn ExecutionPlan>))
    };
    plan.transform_up(hand_on).data()
}

/// Which rows an operator above still has use for, by their time first. It changes while rows are given.
#[derive(Debug, Clone)]
pub(crate) struct Wanted {
    condition: Arc<dyn PhysicalExpr>,
    schema: SchemaRef,
}

impl Wanted {
    /// Of what operators above tell a scan that gives rows of this schema.
    pub(crate) fn of(condition: &Arc<dyn PhysicalExpr>, schema: &SchemaRef) -> Option<Self> {
        let changing = condition.downcast_ref::<DynamicFilterPhysicalExpr>()?;
        let by = changing.children();
        let first = by.first()?.downcast_ref::<Column>()?;
        let is_by_time = schema.fields().get(first.index()).is_some_and(|field| is_ts(field));
        is_by_time.then(|| Self { condition: Arc::clone(condition), schema: Arc::clone(schema) })
    }

    /// Whether it is this sort that says so.
    pub(crate) fn is_of(&self, sort: &SortExec) -> bool {
        let said = sort.dynamic_expressions_produced();
        said.iter().any(|said| {
            said.expression_id().is_some() && said.expression_id() == self.condition.expression_id()
        })
    }

    /// Whether there may be such a row in a range.
    fn may_be_in(&self, range: TimeRange) -> bool {
        // Whatever cannot be decided may be.
        let decide = || -> Result<bool> {
            let condition = PruningPredicateBuilder::new()
                .with_file_schema(Arc::clone(&self.schema))
                .try_build(Arc::clone(&self.condition))?;
            Ok(condition.prune(&Within { range, schema: &self.schema })?.iter().all(|may_be| *may_be))
        };
        decide().unwrap_or(true)
    }
}

/// What is known of the rows of a range: their times lie in it.
struct Within<'a> {
    range: TimeRange,
    schema: &'a Schema,
}

impl Within<'_> {
    fn time(&self, column: &NamedColumn, ts: Timestamp) -> Option<ArrayRef> {
        let field = self.schema.field_with_name(&column.name).ok().filter(|field| is_ts(field))?;
        let micros = TimestampMicrosecondArray::from_value(ts.micros(), 1);
        Some(Arc::new(micros.with_data_type(field.data_type().clone())))
    }
}

impl PruningStatistics for Within<'_> {
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

/// How a scan reads in slices.
#[derive(Debug, Clone)]
pub(crate) struct Slicing {
    pub(crate) wanted: Wanted,
    /// Ascending: from the oldest rows on.
    pub(crate) order: Order,
    /// Has the times of all rows.
    pub(crate) range: TimeRange,
    /// The share of the table's rows that belongs to the series asked for.
    pub(crate) share: f64,
}

/// The slices that are still to be read.
#[derive(Debug)]
pub(crate) struct Slices {
    slicing: Slicing,
    rest: TimeRange,
    /// About how many rows the next one has.
    rows: f64,
}

impl Slices {
    /// All that a scan has.
    pub(crate) fn new(slicing: Slicing) -> Self {
        let rows = FIRST_SLICE_ROWS as f64 / slicing.share.clamp(f64::MIN_POSITIVE, 1.0);
        Self { rest: slicing.range, slicing, rows }
    }

    /// The next one; `None` when no row of those that are left can be wanted.
    pub(crate) fn next(&mut self, snapshot: &dyn TableSnapshot) -> Option<TimeRange> {
        if self.rest.is_empty() || !self.slicing.wanted.may_be_in(self.rest) {
            return None;
        }
        let order = self.slicing.order;
        let (slice, rest) = cut(self.rest, order, |range| snapshot.rows_within(range) as f64 >= self.rows);
        self.rest = rest;
        self.rows *= GROWTH as f64;
        Some(slice)
    }
}

/// The shortest part of a range at one end of it that is enough, and the rest; all if nothing is.
fn cut(range: TimeRange, order: Order, is_enough: impl Fn(TimeRange) -> bool) -> (TimeRange, TimeRange) {
    let length = range.end.micros().abs_diff(range.start.micros());
    let split = |length: u64| match order {
        Order::Ascending => {
            let at = Timestamp::from_micros(range.start.micros().saturating_add_unsigned(length));
            (TimeRange::new(range.start, at), TimeRange::new(at, range.end))
        }
        Order::Descending => {
            let at = Timestamp::from_micros(range.end.micros().saturating_sub_unsigned(length));
            (TimeRange::new(at, range.end), TimeRange::new(range.start, at))
        }
    };
    let (mut low, mut high) = (1, length.max(1));
    while low < high {
        let middle = low + (high - low) / 2;
        if is_enough(split(middle).0) {
            high = middle;
        } else {
            low = middle + 1;
        }
    }
    split(low)
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
    fn a_cut_is_as_short_as_it_may_be() {
        let holds = |instant: i64| move |part: TimeRange| part.contains(Timestamp::from_micros(instant));
        let whole = range(-10, 100);
        assert_eq!(cut(whole, Order::Descending, holds(70)), (range(70, 100), range(-10, 70)));
        assert_eq!(cut(whole, Order::Ascending, holds(70)), (range(-10, 71), range(71, 100)));
        assert_eq!(cut(whole, Order::Descending, holds(99)), (range(99, 100), range(-10, 99)));
        assert_eq!(cut(whole, Order::Descending, |_| false), (whole, range(-10, -10)));
        let (all, none) = cut(TimeRange::ALL, Order::Ascending, |_| false);
        assert!(all == TimeRange::ALL && none.is_empty());
    }

    #[test]
    fn what_is_wanted_is_found_out_from_the_sort() {
        let kind = |kind: &str| HashMap::from([(COLUMN_KIND.to_owned(), kind.to_owned())]);
        let time = DataType::Timestamp(TimeUnit::Microsecond, Some("UTC".into()));
        let schema: SchemaRef = Arc::new(Schema::new(vec![
            Field::new("device", DataType::Utf8View, true).with_metadata(kind("tag")),
            Field::new("ts", time, false).with_metadata(kind("ts")),
        ]));
        let (ts, device) = (col("ts", &schema).unwrap(), col("device", &schema).unwrap());
        let filter = |by: Vec<_>| Arc::new(DynamicFilterPhysicalExpr::new(by, lit(true)));
        let of = |filter: &Arc<DynamicFilterPhysicalExpr>| {
            Wanted::of(&(Arc::clone(filter) as Arc<dyn PhysicalExpr>), &schema)
        };
        assert!(of(&filter(vec![Arc::clone(&device), Arc::clone(&ts)])).is_none());
        assert!(Wanted::of(&ts, &schema).is_none());

        let changing = filter(vec![Arc::clone(&ts), Arc::clone(&device)]);
        let wanted = of(&changing).unwrap();
        assert!(wanted.may_be_in(range(0, 10)));
        let at = |micros| lit(ScalarValue::TimestampMicrosecond(Some(micros), Some("UTC".into())));
        let compared = |op, micros| binary(Arc::clone(&ts), op, at(micros), &schema).unwrap();
        let or = |one, other| binary(one, Operator::Or, other, &schema).unwrap();
        let smaller =
            binary(device, Operator::Lt, lit(ScalarValue::Utf8View(Some("d".into()))), &schema).unwrap();
        let tied = binary(compared(Operator::Eq, 50), Operator::And, smaller, &schema).unwrap();
        let newer = or(is_null(Arc::clone(&ts)).unwrap(), compared(Operator::Gt, 50));
        changing.update(or(newer, tied)).unwrap();
        for (part, may_be) in [((0, 50), false), ((0, 51), true), ((50, 51), true), ((51, 60), true)] {
            assert_eq!(wanted.may_be_in(range(part.0, part.1)), may_be, "{part:?}");
        }
        changing.update(compared(Operator::Lt, 50)).unwrap();
        assert!(wanted.may_be_in(range(49, 90)) && !wanted.may_be_in(range(50, 90)));
    }
}
