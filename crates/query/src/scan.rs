//! The operator that reads a table.

use std::fmt;
use std::sync::Arc;

use arrow_schema::{SchemaRef, SortOptions};
use datafusion::common::config::ConfigOptions;
use datafusion::common::stats::Precision;
use datafusion::common::tree_node::TreeNodeRecursion;
use datafusion::common::{ColumnStatistics, Result, Statistics};
use datafusion::execution::{SendableRecordBatchStream, TaskContext};
use datafusion::physical_expr::expressions::Column;
use datafusion::physical_expr::{EquivalenceProperties, PhysicalExpr, PhysicalSortExpr};
use datafusion::physical_plan::execution_plan::{
    Boundedness, EmissionType, ReplaceChildrenOptions, SchedulingType,
};
use datafusion::physical_plan::filter_pushdown::{
    ChildPushdownResult, FilterPushdownPhase, FilterPushdownPropagation,
};
use datafusion::physical_plan::metrics::{BaselineMetrics, ExecutionPlanMetricsSet, MetricsSet};
use datafusion::physical_plan::sort_pushdown::SortOrderPushdownResult;
use datafusion::physical_plan::sorts::sort::SortExec;
use datafusion::physical_plan::statistics::StatisticsArgs;
use datafusion::physical_plan::{DisplayAs, DisplayFormatType, ExecutionPlan, Partitioning, PlanProperties};
use model::{TimeRange, limits};
use parking_lot::Mutex;
use store::table::TS_COLUMN;
use store::{Order, ReadOrder, TableRead, TableSnapshot, TagMatcher, TagPredicate};

use crate::reading::{Manner, Reading, RowStream, Rows, field_count, is_ts};
use crate::tables::{OpenTable, OpenTables};
use crate::time_slices::{FIRST_SLICE_ROWS, Slicing, Wanted};

/// Estimated rows from which a scan is shared among threads. Starting a second one costs about as much as reading this many.
const PARALLEL_ROWS_MIN: u64 = 64 * 1024;
/// Rows that a read of one end of a series is estimated to give.
const ROWS_OF_END: u64 = 4;
/// How many times as many rows a table must have. Whoever reads all of them can give answers series by series.
const END_PAYS_FACTOR: u64 = 8;
/// Series for each thread from which on threads that read whole series end at about the same time.
const SERIES_PER_PARTITION_MIN: u64 = 8;

/// What a query asks of a table, whatever the table holds and whoever asks.
#[derive(Debug)]
pub(crate) struct TableQuestion {
    pub(crate) table: Arc<str>,
    /// That of the table when the query was planned.
    pub(crate) schema: SchemaRef,
    pub(crate) columns: Vec<usize>,
    pub(crate) matchers: Vec<TagMatcher>,
    pub(crate) range: TimeRange,
    pub(crate) limit: Option<usize>,
    pub(crate) batch_rows: usize,
    pub(crate) readers_max: usize,
}

/// Reads rows of one table.
#[derive(Debug)]
pub(crate) struct StoreScan {
    question: Arc<TableQuestion>,
    snapshot: Arc<dyn TableSnapshot>,
    read: TableRead,
    /// Tag columns that have the same value in every row.
    constants: Vec<usize>,
    rows: RowCount,
    /// What operators above have said that they still want.
    wanted: Vec<Wanted>,
    slicing: Option<Slicing>,
    properties: Arc<PlanProperties>,
    metrics: ExecutionPlanMetricsSet,
    /// The readers of this execution, and the partitions that have begun to use them.
    reading: Mutex<(Arc<Reading>, Vec<bool>)>,
}

/// A scan without the snapshot, and what the operators over it may have been chosen for.
#[derive(Debug)]
pub(crate) struct KeptScan {
    question: Arc<TableQuestion>,
    order: ReadOrder,
    limit: Option<usize>,
    constants: Vec<usize>,
    partitions: usize,
    rows: u64,
    /// If somebody looked at it.
    series: Option<u64>,
}

impl KeptScan {
    /// The scan of the table as another query sees it; `None` if other operators may suit it.
    pub(crate) fn scan(&self, tables: &OpenTables) -> Result<Option<StoreScan>> {
        let scan = StoreScan::read_in(self.order, self.limit, Arc::clone(&self.question), tables)?;
        Ok(scan.kept()?.is_some_and(|now| self.stands_for(&now)).then_some(scan))
    }

    fn stands_for(&self, now: &Self) -> bool {
        let is_like = |before: u64, now: u64| {
            before.max(now) <= before.min(now).saturating_mul(limits::SQL_OPERATORS_KEPT_GROWTH_MAX)
        };
        let series_are_like = match (self.series, now.series) {
            (Some(before), Some(now)) => is_like(before, now) && (before == 1) == (now == 1),
            (before, now) => before == now,
        };
        let can_be_ordered = matches!(self.order, ReadOrder::Any | ReadOrder::LastRow(_))
            || now.series.is_some_and(|series| series <= limits::QUERY_TIME_ORDER_SERIES_MAX);
        self.constants == now.constants
            && self.partitions == now.partitions
            && is_like(self.rows, now.rows)
            && series_are_like
            && can_be_ordered
    }
}

/// How many rows a scan gives.
#[derive(Debug, Clone, Copy)]
enum RowCount {
    None,
    About(u64),
}

impl StoreScan {
    /// Over the table as the query sees it.
    pub(crate) fn new(question: Arc<TableQuestion>, tables: &OpenTables) -> Result<Self> {
        let limit = question.limit;
        Self::read_in(ReadOrder::Any, limit, question, tables)
    }

    /// The same in an order, and with the limit that operators above it have found.
    fn read_in(
        order: ReadOrder,
        limit: Option<usize>,
        question: Arc<TableQuestion>,
        tables: &OpenTables,
    ) -> Result<Self> {
        let OpenTable { snapshot, mut matchers, .. } = tables.open(&question.table)?;
        matchers.extend_from_slice(&question.matchers);
        let series = match &*matchers {
            [] => None,
            matchers => Some(snapshot.select(matchers).map_err(crate::error::external)?),
        };
        let read = TableRead {
            columns: question.columns.clone(),
            series,
            range: question.range,
            order,
            limit,
            batch_rows: question.batch_rows,
            readers_max: question.readers_max,
            tag_runs: false,
        };
        let schema: SchemaRef = Arc::new(question.schema.project(&read.columns)?);
        let columns = snapshot.columns();
        let is_constant = |tag: &str| {
            matchers.iter().any(|matcher| {
                let one_value = matches!(matcher.predicate, TagPredicate::Is(_) | TagPredicate::Absent);
                matcher.tag == tag && one_value
            })
        };
        let constants = (0..read.columns.len())
            .filter(|&index| columns.tags.get(read.columns[index]).is_some_and(|tag| is_constant(&tag.tag)))
            .collect();
        let rows = row_count(&*snapshot, &read, question.limit)?;
        Ok(Self::with(question, snapshot, schema, read, constants, rows))
    }

    fn with(
        question: Arc<TableQuestion>,
        snapshot: Arc<dyn TableSnapshot>,
        schema: SchemaRef,
        read: TableRead,
        constants: Vec<usize>,
        rows: RowCount,
    ) -> Self {
        let partitions = partitions(&read, rows);
        let properties = Arc::new(properties(&schema, &read, &constants, partitions));
        let reading = Reading::new(Arc::clone(&snapshot), schema, read.clone(), Manner::default(), None);
        Self {
            question,
            snapshot,
            read,
            constants,
            rows,
            wanted: Vec::new(),
            slicing: None,
            properties,
            metrics: ExecutionPlanMetricsSet::new(),
            reading: Mutex::new((Arc::new(reading), vec![false; partitions])),
        }
    }

    /// The same rows, read otherwise.
    fn reading_as(&self, read: TableRead) -> Self {
        self.reading_about(self.rows, read)
    }

    /// So many rows, read otherwise.
    fn reading_about(&self, rows: RowCount, read: TableRead) -> Self {
        let (question, snapshot) = (Arc::clone(&self.question), Arc::clone(&self.snapshot));
        Self::with(question, snapshot, self.schema(), read, self.constants.clone(), rows)
    }

    /// The same rows but for those behind one end of each series ([`ReadOrder::LastRow`]); `None` if they have an order, a limit or very many
    /// fields, or if the others are too few to be worth it.
    pub(crate) fn at_end(&self, end: Order) -> Result<Option<Self>> {
        let RowCount::About(all) = self.rows else { return Ok(None) };
        let of_ends = self.series_count()?.saturating_mul(ROWS_OF_END);
        let pays = all >= of_ends.saturating_mul(END_PAYS_FACTOR);
        let is_plain = self.read.order == ReadOrder::Any && self.read.limit.is_none();
        if !pays || !is_plain || field_count(&self.schema()) > limits::QUERY_END_FIELDS_MAX {
            return Ok(None);
        }
        let read = TableRead { order: ReadOrder::LastRow(end), ..self.read.clone() };
        Ok(Some(self.reading_about(RowCount::About(of_ends), read)))
    }

    /// The same rows, those of the newest or the oldest time first, and none that a sort above does not want any more; `None` if that sort
    /// has not told what it wants, if they have an order or a limit, or if they are few.
    pub(crate) fn in_slices(&self, sort: &SortExec, order: Order) -> Result<Option<Self>> {
        let RowCount::About(rows) = self.rows else { return Ok(None) };
        let is_plain = self.read.order == ReadOrder::Any && self.read.limit.is_none();
        let wanted = self.wanted.iter().find(|wanted| wanted.is_of(sort)).cloned();
        let Some(wanted) = wanted.filter(|_| is_plain && rows > FIRST_SLICE_ROWS) else { return Ok(None) };
        let Some(range) = self.time_range() else { return Ok(None) };
        let share = share_of_series(&*self.snapshot, &self.read)?;
        let mut scan = self.reading_as(self.read.clone());
        scan.slicing = Some(Slicing { wanted, order, range, share });
        *scan.reading.get_mut() = scan.new_reading(Manner::default());
        Ok(Some(scan))
    }

    /// What a plan that is kept holds instead of this; `None` if there were no rows, which a plan may rely on.
    pub(crate) fn kept(&self) -> Result<Option<KeptScan>> {
        let RowCount::About(rows) = self.rows else { return Ok(None) };
        let counts_series = self.read.series.is_some() || self.read.order != ReadOrder::Any;
        Ok(Some(KeptScan {
            question: Arc::clone(&self.question),
            order: self.read.order,
            limit: self.read.limit,
            constants: self.constants.clone(),
            partitions: self.properties.partitioning.partition_count(),
            rows,
            series: if counts_series { Some(self.series_count()?) } else { None },
        }))
    }

    /// The direction, if the store can give the rows in this order.
    fn time_order(&self, order: &[PhysicalSortExpr]) -> Result<Option<Order>> {
        let index = |sort: &PhysicalSortExpr| sort.expr.downcast_ref::<Column>().map(Column::index);
        let is_constant =
            |sort: &&PhysicalSortExpr| index(sort).is_some_and(|index| self.constants.contains(&index));
        let mut rest = order.iter().skip_while(is_constant);
        let Some(first) = rest.next() else { return Ok(None) };
        let is_by_time = index(first).is_some_and(|index| is_ts(self.schema().field(index)));
        if !is_by_time {
            return Ok(None);
        }
        let series = self.series_count()?;
        // Rows of one series have different times, so whatever comes after the time changes nothing.
        if series > limits::QUERY_TIME_ORDER_SERIES_MAX
            || (series > 1 && rest.any(|sort| !is_constant(&sort)))
        {
            return Ok(None);
        }
        Ok(Some(if first.options.descending { Order::Descending } else { Order::Ascending }))
    }

    /// The readers, for a partition that begins to use them.
    fn begin(&self, partition: usize, manner: Manner) -> Arc<Reading> {
        let mut reading = self.reading.lock();
        // A partition that is begun again belongs to another execution of the plan.
        if reading.1[partition] || reading.0.manner() != manner {
            *reading = self.new_reading(manner);
        }
        reading.1[partition] = true;
        Arc::clone(&reading.0)
    }

    /// Readers that nobody has used.
    fn new_reading(&self, manner: Manner) -> (Arc<Reading>, Vec<bool>) {
        let (snapshot, slicing) = (Arc::clone(&self.snapshot), self.slicing.clone());
        let reading = Reading::new(snapshot, self.schema(), self.read.clone(), manner, slicing);
        (Arc::new(reading), vec![false; self.properties.partitioning.partition_count()])
    }

    /// The rows of one partition, for an operator that reads by itself.
    pub(crate) fn rows(&self, partition: usize, manner: Manner) -> Rows {
        Rows::new(self.begin(partition, manner))
    }

    /// What such an operator tells of the scan.
    pub(crate) fn baseline(&self, partition: usize) -> BaselineMetrics {
        BaselineMetrics::new(&self.metrics, partition)
    }

    /// A range that has the times of all rows; `None` when there are none.
    pub(crate) fn time_range(&self) -> Option<TimeRange> {
        let whole = self.snapshot.time_range()?;
        Some(crate::pushdown::intersect(whole, self.read.range)).filter(|range| !range.is_empty())
    }

    /// Whether rows of a series can come one after the other by time, and all in one partition, for about the same work.
    pub(crate) fn can_give_whole_series(&self) -> Result<bool> {
        let RowCount::About(rows) = self.rows else { return Ok(true) };
        let partitions = self.properties.partitioning.partition_count() as u64;
        Ok(match self.read.order {
            ReadOrder::Any if rows > limits::QUERY_WHOLE_SERIES_ROWS_MAX => false,
            // Each thread reads other series then, so there have to be some for each.
            ReadOrder::Any => {
                partitions == 1 || self.series_count()? >= SERIES_PER_PARTITION_MIN * partitions
            }
            ReadOrder::SeriesThenTime => true,
            ReadOrder::LastRow(_) => false,
            ReadOrder::Time(_) => self.series_count()? == 1,
        })
    }

    /// The columns of all tags of the table.
    pub(crate) fn tag_columns(&self) -> impl Iterator<Item = &str> {
        self.snapshot.columns().tags.iter().map(|tag| &*tag.column)
    }

    /// Series that may have rows.
    pub(crate) fn series_count(&self) -> Result<u64> {
        match &self.read.series {
            Some(series) => Ok(series.len()),
            None => all_series(&*self.snapshot),
        }
    }
}

/// What is known of the number of rows without reading.
fn row_count(snapshot: &dyn TableSnapshot, read: &TableRead, limit: Option<usize>) -> Result<RowCount> {
    let rows = snapshot.rows_within(read.range);
    if rows == 0 || read.series.as_ref().is_some_and(|series| series.is_empty()) {
        return Ok(RowCount::None);
    }
    let mut rows = (rows as f64 * share_of_series(snapshot, read)?).ceil() as u64;
    if let ReadOrder::LastRow(_) = read.order {
        let series = match &read.series {
            Some(series) => series.len(),
            None => all_series(snapshot)?,
        };
        rows = rows.min(series.saturating_mul(ROWS_OF_END));
    }
    Ok(RowCount::About(limit.map_or(rows, |limit| rows.min(limit as u64)).max(1)))
}

/// The share of a table's series that is read.
fn share_of_series(snapshot: &dyn TableSnapshot, read: &TableRead) -> Result<f64> {
    let Some(series) = &read.series else { return Ok(1.0) };
    Ok(series.len() as f64 / all_series(snapshot)?.max(1) as f64)
}

fn all_series(snapshot: &dyn TableSnapshot) -> Result<u64> {
    Ok(snapshot.select(&[]).map_err(crate::error::external)?.len())
}

fn partitions(read: &TableRead, rows: RowCount) -> usize {
    match (read.order, rows) {
        (ReadOrder::Any | ReadOrder::LastRow(_), RowCount::About(rows)) if rows >= PARALLEL_ROWS_MIN => {
            read.readers_max.max(1)
        }
        _ => 1,
    }
}

fn properties(
    schema: &SchemaRef,
    read: &TableRead,
    constants: &[usize],
    partitions: usize,
) -> PlanProperties {
    let column =
        |index: usize| Arc::new(Column::new(schema.field(index).name(), index)) as Arc<dyn PhysicalExpr>;
    let mut equivalence = EquivalenceProperties::new(Arc::clone(schema));
    if let ReadOrder::Time(order) = read.order
        && let Ok(ts) = schema.index_of(TS_COLUMN)
    {
        let options = SortOptions { descending: order == Order::Descending, nulls_first: false };
        // The column is never null, so the rows are in order wherever a query wants nulls to be.
        equivalence.add_ordering([PhysicalSortExpr::new(column(ts), options)]);
        let options = SortOptions { nulls_first: true, ..options };
        equivalence.add_ordering([PhysicalSortExpr::new(column(ts), options)]);
    }
    let constants = constants.iter().map(|&index| datafusion::physical_expr::ConstExpr::from(column(index)));
    // Constants cannot contradict anything here.
    drop(equivalence.add_constants(constants));
    PlanProperties::new(
        equivalence,
        Partitioning::UnknownPartitioning(partitions),
        EmissionType::Incremental,
        Boundedness::Bounded,
    )
    .with_scheduling_type(SchedulingType::Cooperative)
}

impl DisplayAs for StoreScan {
    fn fmt_as(&self, _format: DisplayFormatType, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let table = &self.snapshot.columns().table;
        let schema = self.schema();
        let columns: Vec<_> = schema.fields().iter().map(|field| field.name().as_str()).collect();
        write!(f, "StoreScan: table={table}, columns=[{}]", columns.join(", "))?;
        if let Some(series) = &self.read.series {
            write!(f, ", series={}", series.len())?;
        }
        let TimeRange { start, end } = self.read.range;
        if start != TimeRange::ALL.start {
            write!(f, ", from={start}")?;
        }
        if end != TimeRange::ALL.end {
            write!(f, ", before={end}")?;
        }
        match self.read.order {
            ReadOrder::Time(order) => {
                write!(f, ", order=ts {}", if order == Order::Descending { "DESC" } else { "ASC" })?;
            }
            ReadOrder::LastRow(end) => {
                write!(f, ", only={}", if end == Order::Descending { "newest" } else { "oldest" })?;
            }
            ReadOrder::Any | ReadOrder::SeriesThenTime => {}
        }
        if let Some(slicing) = &self.slicing {
            write!(f, ", first={}", if slicing.order == Order::Descending { "newest" } else { "oldest" })?;
        }
        if let Some(limit) = self.read.limit {
            write!(f, ", limit={limit}")?;
        }
        write!(f, ", partitions={}", self.properties.partitioning.partition_count())
    }
}

impl ExecutionPlan for StoreScan {
    fn name(&self) -> &str {
        "StoreScan"
    }

    fn properties(&self) -> &Arc<PlanProperties> {
        &self.properties
    }

    fn children(&self) -> Vec<&Arc<dyn ExecutionPlan>> {
        Vec::new()
    }

    fn apply_expressions(
        &self,
        _visit: &mut dyn FnMut(&Arc<dyn PhysicalExpr>) -> Result<TreeNodeRecursion>,
    ) -> Result<TreeNodeRecursion> {
        Ok(TreeNodeRecursion::Continue)
    }

    fn replace_children(
        self: Arc<Self>,
        _children: Vec<Arc<dyn ExecutionPlan>>,
        _options: ReplaceChildrenOptions,
    ) -> Result<Arc<dyn ExecutionPlan>> {
        Ok(self)
    }

    fn with_new_children(
        self: Arc<Self>,
        _children: Vec<Arc<dyn ExecutionPlan>>,
    ) -> Result<Arc<dyn ExecutionPlan>> {
        Ok(self)
    }

    fn reset_state(self: Arc<Self>) -> Result<Arc<dyn ExecutionPlan>> {
        Ok(Arc::new(self.reading_as(self.read.clone())))
    }

    fn execute(&self, partition: usize, _context: Arc<TaskContext>) -> Result<SendableRecordBatchStream> {
        Ok(Box::pin(RowStream::new(self.begin(partition, Manner::default()), self.baseline(partition))))
    }

    fn metrics(&self) -> Option<MetricsSet> {
        Some(self.metrics.clone_inner())
    }

    fn statistics_from_inputs(
        &self,
        _inputs: &[Arc<Statistics>],
        args: &StatisticsArgs,
    ) -> Result<Arc<Statistics>> {
        let partitions = self.properties.partitioning.partition_count() as u64;
        let num_rows = match self.rows {
            RowCount::None => Precision::Exact(0),
            RowCount::About(rows) if args.partition().is_some() => {
                Precision::Inexact((rows / partitions) as usize)
            }
            RowCount::About(rows) => Precision::Inexact(rows as usize),
        };
        Ok(Arc::new(Statistics {
            num_rows,
            total_byte_size: Precision::Absent,
            column_statistics: vec![ColumnStatistics::new_unknown(); self.read.columns.len()],
        }))
    }

    fn with_fetch(&self, limit: Option<usize>) -> Option<Arc<dyn ExecutionPlan>> {
        Some(Arc::new(self.reading_as(TableRead { limit, ..self.read.clone() })))
    }

    fn fetch(&self) -> Option<usize> {
        self.read.limit
    }

    /// Keeps what operators above say that they want. Nothing is decided here for good, so everybody above still has to.
    fn handle_child_pushdown_result(
        &self,
        _phase: FilterPushdownPhase,
        told: ChildPushdownResult,
        _config: &ConfigOptions,
    ) -> Result<FilterPushdownPropagation<Arc<dyn ExecutionPlan>>> {
        let schema = self.schema();
        let told_by = told.parent_filters.iter();
        let wanted: Vec<_> = told_by.filter_map(|told| Wanted::of(&told.filter, &schema)).collect();
        let answer = FilterPushdownPropagation::all_unsupported(told);
        if wanted.is_empty() {
            return Ok(answer);
        }
        let mut scan = self.reading_as(self.read.clone());
        scan.wanted = wanted;
        Ok(answer.with_updated_node(Arc::new(scan)))
    }

    fn try_pushdown_sort(
        &self,
        order: &[PhysicalSortExpr],
    ) -> Result<SortOrderPushdownResult<Arc<dyn ExecutionPlan>>> {
        Ok(match self.time_order(order)? {
            Some(time) => {
                let read = TableRead { order: ReadOrder::Time(time), ..self.read.clone() };
                SortOrderPushdownResult::Exact { inner: Arc::new(self.reading_as(read)) }
            }
            None => SortOrderPushdownResult::Unsupported,
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn kept(order: ReadOrder, rows: u64, series: Option<u64>) -> KeptScan {
        let question = TableQuestion {
            table: "t".into(),
            schema: Arc::new(arrow_schema::Schema::empty()),
            columns: Vec::new(),
            matchers: Vec::new(),
            range: TimeRange::ALL,
            limit: None,
            batch_rows: 1,
            readers_max: 1,
        };
        let question = Arc::new(question);
        KeptScan { question, order, limit: None, constants: vec![0], partitions: 2, rows, series }
    }

    #[test]
    fn operators_stand_for_scans_like_their_own_only() {
        let any = |rows, series| kept(ReadOrder::Any, rows, series);
        let by_time = |series| kept(ReadOrder::Time(Order::Ascending), 100, Some(series));
        let before = any(100, Some(10));
        assert!(before.stands_for(&any(200, Some(20))) && before.stands_for(&any(50, Some(5))));
        assert!(!before.stands_for(&any(201, Some(10))) && !before.stands_for(&any(49, Some(10))));
        assert!(!before.stands_for(&any(100, Some(21))) && !before.stands_for(&any(100, Some(4))));
        assert!(!before.stands_for(&any(100, None)) && !any(100, None).stands_for(&before));
        assert!(any(100, None).stands_for(&any(100, None)));
        // One series has an order that two do not have.
        assert!(!any(100, Some(1)).stands_for(&any(100, Some(2))));
        assert!(!any(100, Some(2)).stands_for(&any(100, Some(1))));
        let most = limits::QUERY_TIME_ORDER_SERIES_MAX;
        assert!(by_time(most).stands_for(&by_time(most)) && !by_time(most).stands_for(&by_time(most + 1)));
        assert!(!before.stands_for(&KeptScan { partitions: 1, ..any(100, Some(10)) }));
        assert!(!before.stands_for(&KeptScan { constants: Vec::new(), ..any(100, Some(10)) }));
    }
}
