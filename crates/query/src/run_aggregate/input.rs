//! What an aggregation reads: a table, and the conditions that the store does not check.

use std::sync::Arc;

use arrow_array::RecordBatch;
use arrow_array::cast::AsArray;
use datafusion::arrow::compute::filter_record_batch;
use datafusion::common::{DataFusionError, Result};
use datafusion::physical_expr::PhysicalExpr;
use datafusion::physical_plan::ExecutionPlan;
use datafusion::physical_plan::filter::FilterExec;

use crate::reading::{Manner, Rows, is_tag};
use crate::scan::StoreScan;

/// The operators below an aggregation.
pub(super) struct Input<'a> {
    pub(super) scan: &'a StoreScan,
    /// The nearest to the table first.
    filters: Vec<&'a FilterExec>,
}

impl<'a> Input<'a> {
    /// Those of a plan, if its rows are those of a table in the order in which the store gives them.
    pub(super) fn of(plan: &'a Arc<dyn ExecutionPlan>) -> Option<Self> {
        if let Some(scan) = plan.downcast_ref::<StoreScan>() {
            return Some(Self { scan, filters: Vec::new() });
        }
        let filter = plan.downcast_ref::<FilterExec>().filter(|filter| filter.fetch().is_none())?;
        let mut input = Self::of(filter.input())?;
        input.filters.push(filter);
        Some(input)
    }

    /// Whether a condition looks at a tag.
    pub(super) fn filters_look_at_tags(&self) -> bool {
        self.filters.iter().any(|filter| looks_at_tags(filter.predicate(), filter.input()))
    }

    /// The rows of one partition.
    pub(super) fn rows(&self, partition: usize, manner: Manner) -> FilteredRows {
        let step = |filter: &&FilterExec| Step {
            condition: Arc::clone(filter.predicate()),
            columns: filter.projection().as_ref().map(|columns| columns.to_vec()),
        };
        FilteredRows {
            rows: self.scan.rows(partition, manner),
            steps: self.filters.iter().map(step).collect(),
        }
    }
}

/// Whether an expression over the rows of a plan looks at a tag.
pub(super) fn looks_at_tags(expression: &Arc<dyn PhysicalExpr>, input: &Arc<dyn ExecutionPlan>) -> bool {
    let schema = input.schema();
    let columns = datafusion::physical_expr::utils::collect_columns(expression);
    columns.iter().any(|column| is_tag(schema.field(column.index())))
}

/// Rows that satisfy conditions.
pub(super) struct FilteredRows {
    rows: Rows,
    steps: Vec<Step>,
}

struct Step {
    condition: Arc<dyn PhysicalExpr>,
    /// Which columns are left; all when `None`.
    columns: Option<Vec<usize>>,
}

impl FilteredRows {
    /// The next rows and how many had to be read for them, at least one; `None` after the last. There may be none among
    /// those that were read.
    pub(super) fn next(&mut self) -> Result<Option<(RecordBatch, usize)>> {
        let Some(mut batch) = self.rows.next()? else { return Ok(None) };
        let read = batch.num_rows();
        for step in &self.steps {
            batch = step.apply(batch)?;
        }
        Ok(Some((batch, read)))
    }
}

impl Step {
    fn apply(&self, batch: RecordBatch) -> Result<RecordBatch> {
        let are_true = self.condition.evaluate(&batch)?.into_array(batch.num_rows())?;
        let Some(are_true) = are_true.as_boolean_opt() else {
            return Err(DataFusionError::Internal("a condition is neither true nor false".into()));
        };
        let batch = match &self.columns {
            Some(columns) => batch.project(columns)?,
            None => batch,
        };
        if are_true.true_count() == batch.num_rows() {
            return Ok(batch);
        }
        Ok(filter_record_batch(&batch, are_true)?)
    }
}
