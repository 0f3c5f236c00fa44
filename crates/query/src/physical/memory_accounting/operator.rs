//! The operator that accounts for the rows of one input.

use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};

use arrow_array::RecordBatch;
use arrow_schema::SchemaRef;
use datafusion::common::Result;
use datafusion::execution::memory_pool::{MemoryConsumer, MemoryReservation};
use datafusion::execution::{RecordBatchStream, SendableRecordBatchStream, TaskContext};
use datafusion::physical_plan::execution_plan::{CardinalityEffect, ReplaceChildrenOptions};
use datafusion::physical_plan::{ExecutionPlan, PlanProperties};
use futures_util::{Stream, StreamExt};

use super::repeated_values::{InputUse, PassedRows};
use crate::physical::unary::UnaryOperator;

/// Passes rows on. Rows that the operator above holds count as memory until the stream is dropped.
#[derive(Debug)]
pub(super) struct MemoryAccounting {
    input: Arc<dyn ExecutionPlan>,
    input_use: InputUse,
}

impl MemoryAccounting {
    pub(super) fn new(input: Arc<dyn ExecutionPlan>, input_use: InputUse) -> Self {
        Self { input, input_use }
    }
}

impl UnaryOperator for MemoryAccounting {
    const NAME: &'static str = "MemoryAccounting";

    fn input(&self) -> &Arc<dyn ExecutionPlan> {
        &self.input
    }

    fn properties(&self) -> &Arc<PlanProperties> {
        self.input.properties()
    }

    fn with_input(&self, input: Arc<dyn ExecutionPlan>, _options: ReplaceChildrenOptions) -> Result<Self> {
        Ok(Self::new(input, self.input_use.clone()))
    }

    fn execute(&self, partition: usize, context: Arc<TaskContext>) -> Result<SendableRecordBatchStream> {
        let reservation = MemoryConsumer::new("held rows").register(context.memory_pool());
        let batch_rows = context.session_config().batch_size();
        let input = self.input.execute(partition, context)?;
        let (input_use, seen) = (self.input_use.clone(), PassedRows::default());
        Ok(Box::pin(AccountedRows { input, input_use, seen, reservation, batch_rows }))
    }

    fn cardinality_effect(&self) -> CardinalityEffect {
        CardinalityEffect::Equal
    }

    fn keeps_order(&self) -> bool {
        true
    }

    fn keeps_statistics(&self) -> bool {
        true
    }

    fn benefits_from_partitioning(&self) -> bool {
        false
    }
}

struct AccountedRows {
    input: SendableRecordBatchStream,
    input_use: InputUse,
    seen: PassedRows,
    reservation: MemoryReservation,
    batch_rows: usize,
}

impl AccountedRows {
    fn account(&mut self, batch: &RecordBatch) -> Result<()> {
        if self.input_use.is_held {
            self.reservation.try_grow(batch.get_array_memory_size())?;
        }
        Ok(self.input_use.check(batch, &mut self.seen, self.batch_rows)?)
    }
}

impl Stream for AccountedRows {
    type Item = Result<RecordBatch>;

    fn poll_next(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<Option<Self::Item>> {
        let next = self.input.poll_next_unpin(context);
        if let Poll::Ready(Some(Ok(batch))) = &next
            && let Err(error) = self.account(batch)
        {
            return Poll::Ready(Some(Err(error)));
        }
        next
    }
}

impl RecordBatchStream for AccountedRows {
    fn schema(&self) -> SchemaRef {
        self.input.schema()
    }
}
