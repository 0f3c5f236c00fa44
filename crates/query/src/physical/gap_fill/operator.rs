//! The operator that adds the rows of missing buckets.

use std::fmt;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll, ready};

use arrow_array::RecordBatch;
use arrow_schema::{Schema, SchemaRef, SortOptions};
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
    DisplayFormatType, Distribution, ExecutionPlan, ExecutionPlanProperties, Partitioning, PlanProperties,
};
use futures_util::{Stream, StreamExt};

use super::filling::Filling;
use crate::gapfill::Shape;
use crate::physical::unary::UnaryOperator;

/// Takes the rows of an aggregation in the order of their keys. Returns them, and the rows of missing buckets, in that order.
#[derive(Debug)]
pub(crate) struct GapFillOperator {
    input: Arc<dyn ExecutionPlan>,
    shape: Arc<Shape>,
    order: LexOrdering,
    properties: Arc<PlanProperties>,
    metrics: ExecutionPlanMetricsSet,
}

impl GapFillOperator {
    /// Creates the operator; `schema` is that of its output.
    pub(super) fn over(input: Arc<dyn ExecutionPlan>, shape: Arc<Shape>, schema: SchemaRef) -> Result<Self> {
        let order = order_of(&shape, &schema)?;
        let mut equivalence = EquivalenceProperties::new(schema);
        let input_constants = input.equivalence_properties().constants();
        let is_key = |constant: &ConstExpr| {
            constant.expr.downcast_ref::<Column>().is_some_and(|column| shape.keys.contains(&column.index()))
        };
        // The ordering is added first: DataFusion leaves constants out of an ordering that it already has.
        equivalence.add_ordering(order.clone());
        equivalence.add_constants(input_constants.into_iter().filter(is_key))?;
        let properties = Arc::new(PlanProperties::new(
            equivalence,
            Partitioning::UnknownPartitioning(1),
            EmissionType::Incremental,
            Boundedness::Bounded,
        ));
        Ok(Self { input, shape, order, properties, metrics: ExecutionPlanMetricsSet::new() })
    }
}

/// The order of the rows: by the keys, then by the time, ascending, NULL last. ORDER BY without further words means the same.
fn order_of(shape: &Shape, schema: &Schema) -> Result<LexOrdering> {
    let options = SortOptions { descending: false, nulls_first: false };
    let column = |index: &usize| {
        let column: Arc<dyn PhysicalExpr> = Arc::new(Column::new(schema.field(*index).name(), *index));
        PhysicalSortExpr::new(column, options)
    };
    LexOrdering::new(shape.keys.iter().chain([&shape.time]).map(column))
        .ok_or_else(|| DataFusionError::Internal("an order of nothing".into()))
}

impl UnaryOperator for GapFillOperator {
    const NAME: &'static str = "GapFill";

    fn input(&self) -> &Arc<dyn ExecutionPlan> {
        &self.input
    }

    fn properties(&self) -> &Arc<PlanProperties> {
        &self.properties
    }

    fn with_input(&self, input: Arc<dyn ExecutionPlan>, _options: ReplaceChildrenOptions) -> Result<Self> {
        Self::over(input, Arc::clone(&self.shape), self.schema())
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

    fn cardinality_effect(&self) -> CardinalityEffect {
        CardinalityEffect::GreaterEqual
    }

    fn describe(&self, _format: DisplayFormatType, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("GapFill: ")?;
        self.shape.describe(&self.schema(), f)
    }

    fn input_distribution(&self) -> Distribution {
        Distribution::SinglePartition
    }

    fn input_ordering(&self) -> Option<OrderingRequirements> {
        Some(OrderingRequirements::from(self.order.clone()))
    }

    fn metrics(&self) -> Option<MetricsSet> {
        Some(self.metrics.clone_inner())
    }
}

struct GapFillStream {
    input: SendableRecordBatchStream,
    filling: Filling,
    /// The memory of the rows that wait.
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
