//! What rows are grouped by, in the form in which runs are found in it soonest.

use std::ops::{BitOr, BitXor};
use std::sync::Arc;

use arrow_array::cast::AsArray;
use arrow_array::types::{Int32Type, Int64Type, TimestampMicrosecondType};
use arrow_array::{Array, ArrayRef, PrimitiveArray, RecordBatch, RunArray, UInt32Array};
use arrow_buffer::BooleanBuffer;
use arrow_schema::DataType;
use datafusion::arrow::compute::{cast, partition, take};
use datafusion::common::Result;
use datafusion::physical_expr::PhysicalExpr;

use crate::functions::date_bin::Steps;

/// An expression that rows are grouped by.
pub(super) struct Group {
    expression: Arc<dyn PhysicalExpr>,
    /// The column of times and the steps that the expression makes of them, if it does nothing else.
    steps: Option<(usize, Steps)>,
}

/// Its values for the rows of a batch.
pub(super) enum GroupValues {
    /// For each row.
    Rows(ArrayRef),
    /// For each run.
    Runs(RunArray<Int32Type>),
    /// For each step of time: the row behind it, and where the step begins.
    Steps { ends: Vec<u32>, starts: ArrayRef },
}

impl Group {
    pub(super) fn new(expression: &Arc<dyn PhysicalExpr>) -> Self {
        let steps = Steps::of_column(expression).map(|(column, steps)| (column.index(), steps));
        Self { expression: Arc::clone(expression), steps }
    }

    pub(super) fn values(&self, batch: &RecordBatch) -> Result<GroupValues> {
        if let Some((column, steps)) = self.steps
            && let Some(values) =
                values_of_steps(batch.column(column), steps, &self.expression.data_type(&batch.schema())?)?
        {
            return Ok(values);
        }
        let values = self.expression.evaluate(batch)?.into_array(batch.num_rows())?;
        Ok(match values.as_run_opt::<Int32Type>() {
            Some(runs) => GroupValues::Runs(runs.clone()),
            None => GroupValues::Rows(values),
        })
    }
}

/// None if a time is missing or so far away that the steps might not reach it.
fn values_of_steps(times: &ArrayRef, steps: Steps, data_type: &DataType) -> Result<Option<GroupValues>> {
    let times = times.as_primitive_opt::<TimestampMicrosecondType>().filter(|times| times.null_count() == 0);
    let Some(times) = times else { return Ok(None) };
    let (mut ends, mut starts) = (Vec::new(), Vec::new());
    // A batch has less than 2^32 rows.
    let are_near = steps.runs(times.values(), |end, start| {
        ends.push(end as u32);
        starts.push(start);
    });
    if !are_near {
        return Ok(None);
    }
    let starts = PrimitiveArray::<TimestampMicrosecondType>::new(starts.into(), None);
    let starts = starts.with_data_type(times.data_type().clone());
    Ok(Some(GroupValues::Steps { ends, starts: cast(&starts, data_type)? }))
}

impl GroupValues {
    /// By row but the last: whether the next one differs, or may differ.
    ///
    /// Texts are compared by their views, so long ones that are equal and stand in two places begin a run anew. The last
    /// stage puts such runs together, as it does with those of different batches.
    pub(super) fn changes(&self, rows: usize) -> Result<BooleanBuffer> {
        match self {
            Self::Rows(values) => changes_of(values),
            Self::Runs(runs) => {
                let ends = runs.run_ends().sliced_values().map(|end| end as usize);
                Ok(changes_at(ends, rows))
            }
            Self::Steps { ends, .. } => Ok(changes_at(ends.iter().map(|end| *end as usize), rows)),
        }
    }

    /// The values of runs that begin in these rows, in ascending order.
    pub(super) fn of_runs(&self, first_rows: &UInt32Array) -> Result<ArrayRef> {
        match self {
            Self::Rows(values) => Ok(take(values, first_rows, None)?),
            Self::Runs(runs) => {
                let ends = runs.run_ends().sliced_values().map(|end| end as u32);
                let first_run = runs.run_ends().get_start_physical_index() as u32;
                let runs_of_rows = run_of_each(first_rows.values(), ends);
                let runs_of_rows: UInt32Array = runs_of_rows.map(|run| first_run + run).collect();
                Ok(take(runs.values(), &runs_of_rows, None)?)
            }
            Self::Steps { ends, starts } => {
                let runs_of_rows: UInt32Array =
                    run_of_each(first_rows.values(), ends.iter().copied()).collect();
                Ok(take(starts, &runs_of_rows, None)?)
            }
        }
    }
}

/// Rows before which runs end, as changes.
fn changes_at(ends: impl Iterator<Item = usize>, rows: usize) -> BooleanBuffer {
    let mut bytes = vec![0_u8; (rows - 1).div_ceil(8)];
    // The last one ends behind the last row, where nothing follows.
    for last in ends.map(|end| end - 1).filter(|last| *last < rows - 1) {
        bytes[last / 8] |= 1 << (last % 8);
    }
    BooleanBuffer::new(bytes.into(), 0, rows - 1)
}

/// For each of some ascending rows: the run, given by their ends, that has it.
fn run_of_each(rows: &[u32], ends: impl Iterator<Item = u32>) -> impl Iterator<Item = u32> {
    let mut ends = ends.enumerate().peekable();
    rows.iter().map(move |row| {
        while ends.next_if(|(_, end)| end <= row).is_some() {}
        ends.peek().map_or(0, |(run, _)| *run as u32)
    })
}

fn changes_of(group: &ArrayRef) -> Result<BooleanBuffer> {
    if group.null_count() == 0 {
        if let Some(texts) = group.as_string_view_opt() {
            return Ok(changes_between(texts.views()));
        }
        if let Some(times) = group.as_primitive_opt::<TimestampMicrosecondType>() {
            return Ok(changes_between(times.values()));
        }
        if let Some(numbers) = group.as_primitive_opt::<Int64Type>() {
            return Ok(changes_between(numbers.values()));
        }
    }
    let mut ends =
        partition(std::slice::from_ref(group))?.ranges().into_iter().map(|rows| rows.end - 1).peekable();
    Ok(BooleanBuffer::collect_bool(group.len() - 1, |row| ends.next_if_eq(&row).is_some()))
}

/// Most rows are like the one before. Eight differences at once say so for eight of them.
fn changes_between<T>(values: &[T]) -> BooleanBuffer
where
    T: Copy + Default + PartialEq + BitXor<Output = T> + BitOr<Output = T>,
{
    let count = values.len() - 1;
    let mut bytes = vec![0_u8; count.div_ceil(8)];
    for (byte, first) in bytes.iter_mut().zip((0..count).step_by(8)) {
        let pairs = values[first..values.len().min(first + 9)].array_windows();
        let any = pairs.clone().fold(T::default(), |any, [one, next]| any | (*one ^ *next));
        if any != T::default() {
            *byte = pairs.enumerate().fold(0, |byte, (bit, [one, next])| byte | u8::from(one != next) << bit);
        }
    }
    BooleanBuffer::new(bytes.into(), 0, count)
}

#[cfg(test)]
mod tests {
    use arrow_array::{Int32Array, Int64Array, StringViewArray};

    use super::*;

    /// The rows after which another group begins, and the values of runs that begin in these rows.
    fn found(values: &GroupValues, rows: usize, first_rows: &[u32]) -> (Vec<usize>, ArrayRef) {
        let changes = values.changes(rows).unwrap();
        assert_eq!(changes.len(), rows - 1);
        (changes.set_indices().collect(), values.of_runs(&first_rows.to_vec().into()).unwrap())
    }

    #[test]
    fn runs_change_where_they_end_even_when_cut() {
        let texts = StringViewArray::from(vec![Some("a"), None, Some("b")]);
        let runs = RunArray::<Int32Type>::try_new(&Int32Array::from(vec![2, 3, 9]), &texts).unwrap();
        let (changes, values) = found(&GroupValues::Runs(runs.clone()), 9, &[0, 1, 2, 3, 8]);
        assert_eq!(changes, [1, 2]);
        let expected = [Some("a"), Some("a"), None, Some("b"), Some("b")];
        assert_eq!(values.as_string_view().iter().collect::<Vec<_>>(), expected);
        let (changes, values) = found(&GroupValues::Runs(runs.slice(2, 4)), 4, &[0, 1]);
        assert_eq!(changes, [0]);
        assert_eq!(values.as_string_view().iter().collect::<Vec<_>>(), [None, Some("b")]);
        let (changes, values) = found(&GroupValues::Runs(runs.slice(5, 1)), 1, &[0]);
        assert_eq!((changes.len(), values.as_string_view().value(0)), (0, "b"));
    }

    #[test]
    fn steps_change_where_the_next_one_begins() {
        let ends = vec![3, 4, 20];
        let starts: ArrayRef = Arc::new(Int64Array::from(vec![10, 20, 0]));
        let (changes, values) = found(&GroupValues::Steps { ends, starts }, 20, &[0, 2, 3, 4, 19]);
        assert_eq!(changes, [2, 3]);
        assert_eq!(values.as_primitive::<Int64Type>().values(), &[10, 10, 20, 0, 0]);
    }
}
