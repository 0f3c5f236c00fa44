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
use store::{Order, ReadOrder, TableRead, TableSnapshot, TagPredicate};

use super::fingerprint::ScanFingerprint;
use super::partition_rows::PartitionRows;
use super::row_estimate::{RowEstimate, last_rows, partitions, row_estimate, series_count, share_of_series};
use super::row_stream::RowStream;
use super::shared_readers::{ReadMode, SharedReaders};
use super::slices::{FIRST_SLICE_ROWS, Slicing};
use super::spec::ScanSpec;
use super::top_k_filter::TopKFilter;
use crate::column_kind::{field_count, is_ts};
use crate::pushdown;
use crate::tables::{OpenTable, OpenTables};

/// A scan must have this many times the rows of a read of the last rows before that read pays: a scan of all rows can aggregate series
/// by series.
const LAST_ROWS_PAY_FACTOR: u64 = 8;
/// Series per partition from which on threads that read whole series end at about the same time.
const SERIES_PER_PARTITION_MIN: u64 = 8;

/// Reads rows of one table.
#[derive(Debug)]
pub(crate) struct StoreScan {
    spec: Arc<ScanSpec>,
    snapshot: Arc<dyn TableSnapshot>,
    read: TableRead,
    /// Tag columns that have the same value in every row.
    constants: Vec<usize>,
    rows: RowEstimate,
    /// The conditions that sorts above have offered.
    top_k_filters: Vec<TopKFilter>,
    slicing: Option<Slicing>,
    properties: Arc<PlanProperties>,
    metrics: ExecutionPlanMetricsSet,
    /// The readers of this execution, and for each partition whether it has begun to use them.
    readers: Mutex<(Arc<SharedReaders>, Vec<bool>)>,
}

impl StoreScan {
    /// Creates a scan of the table as the query sees it.
    pub(crate) fn new(spec: Arc<ScanSpec>, tables: &OpenTables) -> Result<Self> {
        let limit = spec.limit;
        Self::read_in(ReadOrder::Any, limit, spec, tables)
    }

    /// Creates a scan of the same table as another query sees it; `None` if operators that were chosen for the fingerprint do not suit it.
    pub(crate) fn like(fingerprint: &ScanFingerprint, tables: &OpenTables) -> Result<Option<Self>> {
        let spec = Arc::clone(&fingerprint.spec);
        let scan = Self::read_in(fingerprint.order, fingerprint.limit, spec, tables)?;
        Ok(scan.fingerprint()?.is_some_and(|now| fingerprint.suits(&now)).then_some(scan))
    }

    /// Creates a scan with an order, and with the limit that operators above have pushed down.
    fn read_in(
        order: ReadOrder,
        limit: Option<usize>,
        spec: Arc<ScanSpec>,
        tables: &OpenTables,
    ) -> Result<Self> {
        let OpenTable { snapshot, mut matchers, .. } = tables.open(&spec.table)?;
        matchers.extend_from_slice(&spec.matchers);
        let series = match &*matchers {
            [] => None,
            matchers => Some(snapshot.select(matchers).map_err(crate::error::external)?),
        };
        let read = TableRead {
            columns: spec.columns.clone(),
            series,
            range: spec.range,
            order,
            limit,
            batch_rows: spec.batch_rows,
            readers_max: spec.readers_max,
            tag_runs: false,
        };
        let schema: SchemaRef = Arc::new(spec.schema.project(&read.columns)?);
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
        let rows = row_estimate(&*snapshot, &read, spec.limit)?;
        Ok(Self::with(spec, snapshot, schema, read, constants, rows))
    }

    fn with(
        spec: Arc<ScanSpec>,
        snapshot: Arc<dyn TableSnapshot>,
        schema: SchemaRef,
        read: TableRead,
        constants: Vec<usize>,
        rows: RowEstimate,
    ) -> Self {
        let partitions = partitions(&read, rows);
        let properties = Arc::new(properties(&schema, &read, &constants, partitions));
        let readers =
            SharedReaders::new(Arc::clone(&snapshot), schema, read.clone(), ReadMode::default(), None);
        Self {
            spec,
            snapshot,
            read,
            constants,
            rows,
            top_k_filters: Vec::new(),
            slicing: None,
            properties,
            metrics: ExecutionPlanMetricsSet::new(),
            readers: Mutex::new((Arc::new(readers), vec![false; partitions])),
        }
    }

    /// Returns a scan that reads the same rows in another way.
    fn with_read(&self, read: TableRead) -> Self {
        self.with_rows(self.rows, read)
    }

    /// Returns a scan with another read and another estimate of its rows.
    fn with_rows(&self, rows: RowEstimate, read: TableRead) -> Self {
        let (spec, snapshot) = (Arc::clone(&self.spec), Arc::clone(&self.snapshot));
        Self::with(spec, snapshot, self.schema(), read, self.constants.clone(), rows)
    }

    /// Returns a scan that reads the last row of each series, or the first one ([`ReadOrder::LastRow`]). Returns `None` if this scan has an
    /// order, a limit or very many fields, or too few rows to make it pay.
    pub(crate) fn last_rows(&self, order: Order) -> Result<Option<Self>> {
        let RowEstimate::About(all) = self.rows else { return Ok(None) };
        let last_rows = last_rows(self.series_count()?);
        let pays = all >= last_rows.saturating_mul(LAST_ROWS_PAY_FACTOR);
        let is_plain = self.read.order == ReadOrder::Any && self.read.limit.is_none();
        if !pays || !is_plain || field_count(&self.schema()) > limits::QUERY_END_FIELDS_MAX {
            return Ok(None);
        }
        let read = TableRead { order: ReadOrder::LastRow(order), ..self.read.clone() };
        Ok(Some(self.with_rows(RowEstimate::About(last_rows), read)))
    }

    /// Returns a scan that reads the newest or the oldest rows first, and stops before rows that the sort above does not need any more.
    /// Returns `None` if the sort has offered no condition, or if this scan has an order, a limit or few rows.
    pub(crate) fn in_slices(&self, sort: &SortExec, order: Order) -> Result<Option<Self>> {
        let RowEstimate::About(rows) = self.rows else { return Ok(None) };
        let is_plain = self.read.order == ReadOrder::Any && self.read.limit.is_none();
        let filter = self.top_k_filters.iter().find(|filter| filter.is_of(sort)).cloned();
        let Some(filter) = filter.filter(|_| is_plain && rows > FIRST_SLICE_ROWS) else { return Ok(None) };
        let Some(range) = self.time_range() else { return Ok(None) };
        let share = share_of_series(&*self.snapshot, &self.read)?;
        let mut scan = self.with_read(self.read.clone());
        scan.slicing = Some(Slicing { filter, order, range, share });
        *scan.readers.get_mut() = scan.new_readers(ReadMode::default());
        Ok(Some(scan))
    }

    /// Returns what a cached plan holds in place of this scan; `None` if it has no rows, because the operators may rely on that.
    pub(crate) fn fingerprint(&self) -> Result<Option<ScanFingerprint>> {
        let RowEstimate::About(rows) = self.rows else { return Ok(None) };
        let counts_series = self.read.series.is_some() || self.read.order != ReadOrder::Any;
        Ok(Some(ScanFingerprint {
            spec: Arc::clone(&self.spec),
            order: self.read.order,
            limit: self.read.limit,
            constants: self.constants.clone(),
            partitions: self.properties.partitioning.partition_count(),
            rows,
            series: if counts_series { Some(self.series_count()?) } else { None },
        }))
    }

    /// Returns the direction of time if the store can return the rows in this order.
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
        // The rows of one series have different times, so sort keys after the time change nothing.
        if series > limits::QUERY_TIME_ORDER_SERIES_MAX
            || (series > 1 && rest.any(|sort| !is_constant(&sort)))
        {
            return Ok(None);
        }
        Ok(Some(if first.options.descending { Order::Descending } else { Order::Ascending }))
    }

    /// Returns the readers for a partition that begins to use them.
    fn begin(&self, partition: usize, mode: ReadMode) -> Arc<SharedReaders> {
        let mut readers = self.readers.lock();
        // A partition that begins again belongs to another execution of the plan.
        if readers.1[partition] || readers.0.mode() != mode {
            *readers = self.new_readers(mode);
        }
        readers.1[partition] = true;
        Arc::clone(&readers.0)
    }

    /// Creates the readers of a new execution.
    fn new_readers(&self, mode: ReadMode) -> (Arc<SharedReaders>, Vec<bool>) {
        let (snapshot, slicing) = (Arc::clone(&self.snapshot), self.slicing.clone());
        let readers = SharedReaders::new(snapshot, self.schema(), self.read.clone(), mode, slicing);
        (Arc::new(readers), vec![false; self.properties.partitioning.partition_count()])
    }

    /// Reads the rows of one partition for an operator that does not use the stream.
    pub(crate) fn rows(&self, partition: usize, mode: ReadMode) -> PartitionRows {
        PartitionRows::new(self.begin(partition, mode))
    }

    /// The metrics of one partition, for an operator that does not use the stream.
    pub(crate) fn baseline(&self, partition: usize) -> BaselineMetrics {
        BaselineMetrics::new(&self.metrics, partition)
    }

    /// Returns a range that holds the times of all rows; `None` if there are no rows.
    pub(crate) fn time_range(&self) -> Option<TimeRange> {
        let whole = self.snapshot.time_range()?;
        Some(pushdown::intersect(whole, self.read.range)).filter(|range| !range.is_empty())
    }

    /// Whether the scan can return each series as a whole ([`ReadMode::whole_series`]) for about the same work.
    pub(crate) fn can_give_whole_series(&self) -> Result<bool> {
        let RowEstimate::About(rows) = self.rows else { return Ok(true) };
        let partitions = self.properties.partitioning.partition_count() as u64;
        Ok(match self.read.order {
            ReadOrder::Any if rows > limits::QUERY_WHOLE_SERIES_ROWS_MAX => false,
            // Each thread then reads its own series, so there must be several for each.
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

    /// Returns how many series may have rows.
    pub(crate) fn series_count(&self) -> Result<u64> {
        series_count(&*self.snapshot, &self.read)
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
        // The column is never NULL, so the rows are in order wherever a query wants NULL to be.
        equivalence.add_ordering([PhysicalSortExpr::new(column(ts), options)]);
        let options = SortOptions { nulls_first: true, ..options };
        equivalence.add_ordering([PhysicalSortExpr::new(column(ts), options)]);
    }
    let constants = constants.iter().map(|&index| datafusion::physical_expr::ConstExpr::from(column(index)));
    // No constant contradicts another one, so there is no error.
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
        let table = self.snapshot.columns().table.name();
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
        Ok(Arc::new(self.with_read(self.read.clone())))
    }

    fn execute(&self, partition: usize, _context: Arc<TaskContext>) -> Result<SendableRecordBatchStream> {
        Ok(Box::pin(RowStream::new(self.begin(partition, ReadMode::default()), self.baseline(partition))))
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
            RowEstimate::None => Precision::Exact(0),
            RowEstimate::About(rows) if args.partition().is_some() => {
                Precision::Inexact((rows / partitions) as usize)
            }
            RowEstimate::About(rows) => Precision::Inexact(rows as usize),
        };
        Ok(Arc::new(Statistics {
            num_rows,
            total_byte_size: Precision::Absent,
            column_statistics: vec![ColumnStatistics::new_unknown(); self.read.columns.len()],
        }))
    }

    fn with_fetch(&self, limit: Option<usize>) -> Option<Arc<dyn ExecutionPlan>> {
        Some(Arc::new(self.with_read(TableRead { limit, ..self.read.clone() })))
    }

    fn fetch(&self) -> Option<usize> {
        self.read.limit
    }

    /// Keeps the conditions of sorts above. The scan does not apply them to rows, so the operators above still must.
    fn handle_child_pushdown_result(
        &self,
        _phase: FilterPushdownPhase,
        pushed: ChildPushdownResult,
        _config: &ConfigOptions,
    ) -> Result<FilterPushdownPropagation<Arc<dyn ExecutionPlan>>> {
        let schema = self.schema();
        let filters = pushed.parent_filters.iter();
        let filters: Vec<_> = filters.filter_map(|pushed| TopKFilter::of(&pushed.filter, &schema)).collect();
        let unsupported = FilterPushdownPropagation::all_unsupported(pushed);
        if filters.is_empty() {
            return Ok(unsupported);
        }
        let mut scan = self.with_read(self.read.clone());
        scan.top_k_filters = filters;
        Ok(unsupported.with_updated_node(Arc::new(scan)))
    }

    fn try_pushdown_sort(
        &self,
        order: &[PhysicalSortExpr],
    ) -> Result<SortOrderPushdownResult<Arc<dyn ExecutionPlan>>> {
        Ok(match self.time_order(order)? {
            Some(time) => {
                let read = TableRead { order: ReadOrder::Time(time), ..self.read.clone() };
                SortOrderPushdownResult::Exact { inner: Arc::new(self.with_read(read)) }
            }
            None => SortOrderPushdownResult::Unsupported,
        })
    }
}
