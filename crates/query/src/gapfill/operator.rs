//! The operator that makes rows.

use std::fmt;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll, ready};

use arrow_array::RecordBatch;
use arrow_schema::{Schema, SchemaRef, SortOptions};
use datafusion::common::tree_node::TreeNodeRecursion;
use datafusion::common::{DataFusionError, Result};
use datafusion::execution::memory_pool::{MemoryConsumer, MemoryReservation};
use datafusion::execution::{RecordBatchStream, SendableRecordBatchStream, TaskContext};
use datafusion::physical_expr::expressions::Column;
use datafusion::physical_expr::{
    ConstExpr, EquivalenceProperties, LexOrdering, OrderingRequirements, PhysicalExpr, PhysicalSortExpr,
};
use datafusion::physical_plan::execution_plan::{
    Boundedness, CardinalityEffect, EmissionType, ReplaceChildrenOptions,
};
use datafusion::physical_plan::metrics::{BaselineMetrics, ExecutionPlanMetricsSet, MetricsSet};
use datafusion::physical_plan::{
    DisplayAs, DisplayFormatType, Distribution, ExecutionPlan, ExecutionPlanProperties,
    InputDistributionRequirements, Partitioning, PlanProperties,
};
use futures_util::{Stream, StreamExt};

use super::Shape;
use super::filling::Filling;

impl Shape {
    pub(super) fn describe(&self, schema: &Schema, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let name = |index: usize| schema.field(index).name().as_str();
        let keys: Vec<_> = self.keys.iter().map(|key| name(*key)).collect();
        let fills: Vec<_> = self.fills.iter().map(|(column, _)| name(*column)).collect();
        write!(f, "time={}, keys=[{}]", name(self.time), keys.join(", "))?;
        write!(f, ", fills=[{}], buckets={}", fills.join(", "), self.buckets.count())?;
        match self.buckets.first_start() {
            Some(start) => write!(f, ", from={start}"),
            None => Ok(()),
        }
    }

    /// The other keys, then the time, ascending and NULL last, as ORDER BY asks for when nothing is said.
    fn order(&self, schema: &Schema) -> Result<LexOrdering> {
        let options = SortOptions { descending: false, nulls_first: false };
        let columns = self.keys.iter().chain([&self.time]);
        LexOrdering::new(columns.map(|index| PhysicalSortExpr::new(column(schema, *index), options)))
            .ok_or_else(|| DataFusionError::Internal("an order of nothing".into()))
    }
}

fn column(schema: &Schema, index: usize) -> Arc<dyn PhysicalExpr> {
    Arc::new(Column::new(schema.field(index).name(), index))
}

/// Takes the rows of an aggregation in the order of its keys and gives them, and those that it makes, in that order.
#[derive(Debug)]
pub(crate) struct GapFillOperator {
    input: Arc<dyn ExecutionPlan>,
    shape: Arc<Shape>,
    order: LexOrdering,
    properties: Arc<PlanProperties>,
    metrics: ExecutionPlanMetricsSet,
}

impl GapFillOperator {
    pub(super) fn new(input: Arc<dyn ExecutionPlan>, shape: Shape, schema: SchemaRef) -> Result<Self> {
        Self::over(input, Arc::new(shape), schema)
    }

    fn over(input: Arc<dyn ExecutionPlan>, shape: Arc<Shape>, schema: SchemaRef) -> Result<Self> {
        let order = shape.order(&schema)?;
        let mut equivalence = EquivalenceProperties::new(schema);
        let of_input = input.equivalence_properties().constants();
        let is_key = |constant: &ConstExpr| {
            constant.expr.downcast_ref::<Column>().is_some_and(|column| shape.keys.contains(&column.index()))
        };
        // Constants are left out of orders that are there before them.
        equivalence.add_ordering(order.clone());
        equivalence.add_constants(of_input.into_iter().filter(is_key))?;
        let properties = Arc::new(PlanProperties::new(
            equivalence,
            Partitioning::UnknownPartitioning(1),
            EmissionType::Incremental,
            Boundedness::Bounded,
        ));
        Ok(Self { input, shape, order, properties, metrics: ExecutionPlanMetricsSet::new() })
    }

    fn with_input(&self, children: Vec<Arc<dyn ExecutionPlan>>) -> Result<Arc<dyn ExecutionPlan>> {
        let input = children.into_iter().next().unwrap_or_else(|| Arc::clone(&self.input));
        Ok(Arc::new(Self::over(input, Arc::clone(&self.shape), self.schema())?))
    }
}

impl DisplayAs for GapFillOperator {
    fn fmt_as(&self, _format: DisplayFormatType, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("GapFill: ")?;
        self.shape.describe(&self.schema(), f)
    }
}

impl ExecutionPlan for GapFillOperator {
    fn name(&self) -> &str {
        "GapFill"
    }

    fn properties(&self) -> &Arc<PlanProperties> {
        &self.properties
    }

    fn input_distribution_requirements(&self) -> InputDistributionRequirements {
        InputDistributionRequirements::new(vec![Distribution::SinglePartition])
    }

    fn required_input_ordering(&self) -> Vec<Option<OrderingRequirements>> {
        vec![Some(OrderingRequirements::from(self.order.clone()))]
    }

    fn children(&self) -> Vec<&Arc<dyn ExecutionPlan>> {
        vec![&self.input]
    }

    fn apply_expressions(
        &self,
        _visit: &mut dyn FnMut(&Arc<dyn PhysicalExpr>) -> Result<TreeNodeRecursion>,
    ) -> Result<TreeNodeRecursion> {
        Ok(TreeNodeRecursion::Continue)
    }

    fn replace_children(
        self: Arc<Self>,
        children: Vec<Arc<dyn ExecutionPlan>>,
        _options: ReplaceChildrenOptions,
    ) -> Result<Arc<dyn ExecutionPlan>> {
        self.with_input(children)
    }

    fn with_new_children(
        self: Arc<Self>,
        children: Vec<Arc<dyn ExecutionPlan>>,
    ) -> Result<Arc<dyn ExecutionPlan>> {
        self.with_input(children)
    }

    fn execute(&self, partition: usize, context: Arc<TaskContext>) -> Result<SendableRecordBatchStream> {
        let rows_max = context.session_config().batch_size();
        Ok(Box::pin(GapFillStream {
            reservation: MemoryConsumer::new("gap filling").register(context.memory_pool()),
            filling: Filling::new(Arc::clone(&self.shape), self.schema(), rows_max),
            metrics: BaselineMetrics::new(&self.metrics, partition),
            input: self.input.execute(partition, context)?,
        }))
    }

    fn metrics(&self) -> Option<MetricsSet> {
        Some(self.metrics.clone_inner())
    }

    fn cardinality_effect(&self) -> CardinalityEffect {
        CardinalityEffect::GreaterEqual
    }
}

struct GapFillStream {
    input: SendableRecordBatchStream,
    filling: Filling,
    /// For the rows that wait.
    reservation: MemoryReservation,
    metrics: BaselineMetrics,
}

impl GapFillStream {
    fn poll_batch(&mut self, context: &mut Context<'_>) -> Poll<Option<Result<RecordBatch>>> {
        loop {
            let time = self.metrics.elapsed_compute().clone();
            {
                let _timer = time.timer();
                match self.filling.next().transpose() {
                    None if self.filling.is_over() => return Poll::Ready(None),
                    None => {}
                    some => return Poll::Ready(some),
                }
            }
            match ready!(self.input.poll_next_unpin(context)).transpose() {
                Ok(batch) => {
                    let _timer = time.timer();
                    if let Err(error) = self.take(batch) {
                        return Poll::Ready(Some(Err(error)));
                    }
                }
                Err(error) => return Poll::Ready(Some(Err(error))),
            }
        }
    }

    fn take(&mut self, batch: Option<RecordBatch>) -> Result<()> {
        match batch {
            Some(batch) => self.filling.push(batch)?,
            None => self.filling.finish()?,
        }
        self.reservation.try_resize(self.filling.held_bytes())
    }
}

impl Stream for GapFillStream {
    type Item = Result<RecordBatch>;

    fn poll_next(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<Option<Self::Item>> {
        let poll = self.poll_batch(context);
        self.metrics.record_poll(poll)
    }
}

impl RecordBatchStream for GapFillStream {
    fn schema(&self) -> SchemaRef {
        Arc::clone(self.filling.schema())
    }
}
