//! The input of a run aggregation: a scan, and the conditions that the store does not decide.

use std::sync::Arc;

use arrow_array::RecordBatch;
use arrow_array::cast::AsArray;
use datafusion::arrow::compute::filter_record_batch;
use datafusion::common::{DataFusionError, Result};
use datafusion::physical_expr::PhysicalExpr;
use datafusion::physical_plan::ExecutionPlan;
use datafusion::physical_plan::filter::FilterExec;

use crate::column_kind::is_tag;
use crate::physical::scan::{PartitionRows, ReadMode, StoreScan};

/// The operators below an aggregation.
pub(super) struct Input<'a> {
    pub(super) scan: &'a StoreScan,
    /// The filters above the scan, the lowest one first.
    filters: Vec<&'a FilterExec>,
}

impl<'a> Input<'a> {
    /// Returns the scan and the filters of a plan that consists of nothing else.
    pub(super) fn of(plan: &'a Arc<dyn ExecutionPlan>) -> Option<Self> {
        if let Some(scan) = plan.downcast_ref::<StoreScan>() {
            return Some(Self { scan, filters: Vec::new() });
        }
        let filter = plan.downcast_ref::<FilterExec>().filter(|filter| filter.fetch().is_none())?;
        let mut input = Self::of(filter.input())?;
        input.filters.push(filter);
        Some(input)
    }

    /// Whether a condition uses a tag.
    pub(super) fn filters_look_at_tags(&self) -> bool {
        self.filters.iter().any(|filter| looks_at_tags(filter.predicate(), filter.input()))
    }

    /// Reads the rows of one partition.
    pub(super) fn rows(&self, partition: usize, mode: ReadMode) -> FilteredRows {
        let filtering = |filter: &&FilterExec| Filtering {
            condition: Arc::clone(filter.predicate()),
            columns: filter.projection().as_ref().map(|columns| columns.to_vec()),
        };
        FilteredRows {
            rows: self.scan.rows(partition, mode),
            filterings: self.filters.iter().map(filtering).collect(),
        }
    }
}

/// Whether an expression over the rows of a plan uses a tag.
pub(super) fn looks_at_tags(expression: &Arc<dyn PhysicalExpr>, input: &Arc<dyn ExecutionPlan>) -> bool {
    let schema = input.schema();
    let columns = datafusion::physical_expr::utils::collect_columns(expression);
    columns.iter().any(|column| is_tag(schema.field(column.index())))
}

/// Reads rows and drops those that fail a condition.
pub(super) struct FilteredRows {
    rows: PartitionRows,
    filterings: Vec<Filtering>,
}

/// A condition and the projection behind it.
struct Filtering {
    condition: Arc<dyn PhysicalExpr>,
    /// The columns that are kept; all if `None`.
    columns: Option<Vec<usize>>,
}

impl FilteredRows {
    /// Returns the next rows, perhaps none, and how many were read for them, at least one; `None` after the last.
    pub(super) fn next(&mut self) -> Result<Option<(RecordBatch, usize)>> {
        let Some(mut batch) = self.rows.next()? else { return Ok(None) };
        let read = batch.num_rows();
        for filtering in &self.filterings {
            batch = filtering.apply(batch)?;
        }
        Ok(Some((batch, read)))
    }
}

impl Filtering {
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
