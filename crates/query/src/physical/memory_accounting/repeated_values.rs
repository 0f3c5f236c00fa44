//! Finds how an operator uses the rows of an input, and how large their values can become in it.

use std::sync::Arc;

use arrow_array::RecordBatch;
use arrow_schema::Schema;
use datafusion::physical_expr::PhysicalExpr;
use datafusion::physical_expr::utils::collect_columns;
use datafusion::physical_expr::window::{PlainAggregateWindowExpr, WindowExpr};
use datafusion::physical_plan::ExecutionPlan;
use datafusion::physical_plan::joins::{CrossJoinExec, HashJoinExec, NestedLoopJoinExec, SortMergeJoinExec};
use datafusion::physical_plan::unnest::UnnestExec;
use datafusion::physical_plan::windows::{BoundedWindowAggExec, WindowAggExec};
use model::limits::QUERY_REPEATED_BYTES_MAX;

use crate::QueryError;
use crate::batch_rows::is_copied;
use crate::value_sizes::{value_bytes, value_elements};

/// How an operator uses one of its inputs.
#[derive(Debug, Clone, Default)]
pub(super) struct InputUse {
    /// Whether the operator holds the rows. They then count as memory.
    pub(super) is_held: bool,
    repeated: Vec<RepeatedValues>,
}

/// Values that the operator repeats.
#[derive(Debug, Clone)]
struct RepeatedValues {
    /// The columns that hold the values.
    columns: Vec<usize>,
    /// The values that are the same in each row.
    constants: Vec<Arc<dyn PhysicalExpr>>,
    times: Times,
}

impl RepeatedValues {
    fn of(columns: Vec<usize>, times: Times) -> Self {
        Self { columns, constants: Vec::new(), times }
    }
}

/// How often the operator repeats a value.
#[derive(Debug, Clone)]
enum Times {
    /// In all rows of one output batch.
    Batch,
    /// In all rows that the operator holds.
    HeldRows,
    /// Once for each element of the lists in these columns.
    Lists(Vec<usize>),
    /// Together with the values of all rows before, in all rows of a batch, or in all rows that the operator holds.
    Gathered { in_held_rows: bool },
}

/// The rows that have passed so far.
#[derive(Debug, Default)]
pub(super) struct PassedRows {
    rows: u64,
    /// Bytes of the longest row, for each of the repeated values.
    longest: Vec<u64>,
}

impl InputUse {
    /// Returns the use of each input; `None` if the operator neither holds nor repeats them.
    pub(super) fn of_inputs(node: &dyn ExecutionPlan) -> Option<Vec<Self>> {
        let inputs = node.children();
        if let Some(window) = node.downcast_ref::<WindowAggExec>() {
            return Some(vec![Self { is_held: true, repeated: of_windows(window.window_expr(), true) }]);
        }
        let of_repeated = |repeated: Vec<RepeatedValues>| Self { is_held: false, repeated };
        let uses: Vec<_> = if let Some(window) = node.downcast_ref::<BoundedWindowAggExec>() {
            vec![of_repeated(of_windows(window.window_expr(), false))]
        } else if let Some(unnest) = node.downcast_ref::<UnnestExec>() {
            let lists = unnest.list_column_indices().iter().map(|list| list.index_in_input_schema);
            let lists: Vec<_> = lists.collect();
            let mut columns = copied(&inputs.first()?.schema());
            columns.retain(|column| !lists.contains(column));
            vec![of_repeated(vec![RepeatedValues::of(columns, Times::Lists(lists))])]
        } else if is_join(node) {
            let side = |input: &&Arc<dyn ExecutionPlan>| {
                of_repeated(vec![RepeatedValues::of(copied(&input.schema()), Times::Batch)])
            };
            inputs.iter().map(side).collect()
        } else {
            return None;
        };
        let is_there = |input_use: &Self| {
            input_use.repeated.iter().any(|values| !values.columns.is_empty() || !values.constants.is_empty())
        };
        uses.iter().any(is_there).then_some(uses)
    }

    /// Checks the next rows.
    ///
    /// # Errors
    /// When the operator could make too large a batch of them.
    pub(super) fn check(
        &self,
        batch: &RecordBatch,
        seen: &mut PassedRows,
        batch_rows: usize,
    ) -> Result<(), QueryError> {
        if seen.rows == 0 {
            let constants = self.repeated.iter().map(|values| values.constant_bytes(batch));
            seen.longest = constants.collect::<Result<_, QueryError>>()?;
        }
        seen.rows += batch.num_rows() as u64;
        for (values, longest) in self.repeated.iter().zip(&mut seen.longest) {
            *longest = values.longest(batch).max(*longest);
            if longest.saturating_mul(values.times(seen.rows, batch_rows as u64))
                > QUERY_REPEATED_BYTES_MAX as u64
            {
                return Err(QueryError::OverLimit {
                    what: "what a join, a window or a list could make of one row by repeating it",
                    limit: format!("{QUERY_REPEATED_BYTES_MAX} bytes"),
                    remedy: "leave long text out of it or shorten it with left(...); give array_agg and string_agg groups",
                });
            }
        }
        Ok(())
    }
}

impl RepeatedValues {
    /// Bytes of the values that are the same in each row.
    fn constant_bytes(&self, batch: &RecordBatch) -> Result<u64, QueryError> {
        let mut bytes = 0u64;
        for constant in &self.constants {
            let value = constant.evaluate(&batch.slice(0, batch.num_rows().min(1)))?.into_array(1)?;
            bytes = bytes.saturating_add(value_bytes(&value).into_iter().sum());
        }
        Ok(bytes)
    }

    /// Bytes of the longest row; for lists, multiplied by the number of elements.
    fn longest(&self, batch: &RecordBatch) -> u64 {
        if self.columns.is_empty() {
            return 0;
        }
        let mut bytes = vec![0u64; batch.num_rows()];
        for column in self.columns.iter().filter_map(|column| batch.columns().get(*column)) {
            bytes.iter_mut().zip(value_bytes(column)).for_each(|(sum, bytes)| *sum += bytes);
        }
        if let Times::Lists(lists) = &self.times {
            let mut times = vec![0; batch.num_rows()];
            for list in lists.iter().filter_map(|list| batch.columns().get(*list)) {
                times.iter_mut().zip(value_elements(list)).for_each(|(most, count)| *most = count.max(*most));
            }
            bytes.iter_mut().zip(times).for_each(|(bytes, times)| *bytes = bytes.saturating_mul(times));
        }
        bytes.into_iter().max().unwrap_or(0)
    }

    /// Returns how often the operator repeats a row after it has read `rows` rows.
    fn times(&self, rows: u64, batch_rows: u64) -> u64 {
        match &self.times {
            Times::Batch => batch_rows,
            Times::HeldRows => rows,
            Times::Lists(_) => 1,
            Times::Gathered { in_held_rows } => {
                rows.saturating_mul(if *in_held_rows { rows } else { batch_rows })
            }
        }
    }
}

fn is_join(node: &dyn ExecutionPlan) -> bool {
    node.is::<CrossJoinExec>()
        || node.is::<NestedLoopJoinExec>()
        || node.is::<HashJoinExec>()
        || node.is::<SortMergeJoinExec>()
}

fn copied(schema: &Schema) -> Vec<usize> {
    let fields = schema.fields().iter().enumerate();
    fields.filter(|(_, field)| is_copied(field.data_type())).map(|(index, _)| index).collect()
}

/// The values that windows copy: those of no fixed size. A window copies text even where its input only refers to it.
fn of_windows(windows: &[Arc<dyn WindowExpr>], is_held: bool) -> Vec<RepeatedValues> {
    let sized = |window: &&Arc<dyn WindowExpr>| {
        window.field().is_ok_and(|field| {
            field.data_type().primitive_width().is_none()
                && *field.data_type() != arrow_schema::DataType::Boolean
        })
    };
    let values_of = |window: &Arc<dyn WindowExpr>| {
        let (constants, arguments): (Vec<_>, Vec<_>) =
            window.expressions().into_iter().partition(|argument| collect_columns(argument).is_empty());
        let columns = arguments.iter().flat_map(collect_columns).map(|column| column.index());
        let times = if gathers(&**window) {
            Times::Gathered { in_held_rows: is_held }
        } else if is_held {
            Times::HeldRows
        } else {
            Times::Batch
        };
        RepeatedValues { columns: columns.collect(), constants, times }
    };
    windows.iter().filter(sized).map(values_of).collect()
}

/// Whether each value of the window contains the values of all rows before it. DataFusion has no such window over fewer rows.
fn gathers(window: &dyn WindowExpr) -> bool {
    let window = window.as_any().downcast_ref::<PlainAggregateWindowExpr>();
    let function = window.map(|window| window.get_aggregate_expr().fun().name());
    function.is_some_and(|name| ["array_agg", "string_agg"].contains(&name))
}
