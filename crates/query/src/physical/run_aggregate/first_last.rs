//! The first or the last value of each run by time, with its time.

use std::ops::Range;
use std::sync::Arc;

use arrow_array::cast::AsArray;
use arrow_array::types::TimestampMicrosecondType;
use arrow_array::{Array, ArrayRef, BooleanArray, UInt32Array, new_empty_array};
use arrow_buffer::{BooleanBufferBuilder, NullBuffer};
use arrow_schema::{DataType, Schema};
use datafusion::arrow::compute::{concat, take};
use datafusion::common::Result;
use datafusion::physical_expr::aggregate::AggregateFunctionExpr;
use datafusion::physical_expr::expressions::Column;
use store::table::TS_TYPE;

use super::boundaries::BatchRuns;
use super::run_states::RunStates;
use crate::column_kind::is_ts;

/// The states of `first_value` and `last_value` in the order of time: the value, its time, and whether there is a value.
pub(super) struct FirstLast {
    newest: bool,
    ignores_nulls: bool,
    /// The types of value and time.
    types: [DataType; 2],
    /// For each batch: the values and the times of its runs.
    chosen: Vec<[ArrayRef; 2]>,
    chosen_bytes: usize,
    are_set: BooleanBufferBuilder,
}

impl FirstLast {
    /// Returns the states for an aggregate over rows of a schema, if it is one of these functions by time.
    pub(super) fn of(
        aggregate: &AggregateFunctionExpr,
        schema: &Schema,
        states: &[&DataType],
    ) -> Option<Self> {
        let is_last = match aggregate.fun().name() {
            "first_value" => false,
            "last_value" => true,
            _ => return None,
        };
        let [order] = aggregate.order_bys() else { return None };
        let column = order.expr.downcast_ref::<Column>()?;
        let is_by_time = is_ts(schema.field(column.index()));
        let [value, ts, DataType::Boolean] = states else { return None };
        (is_by_time && **ts == *TS_TYPE).then(|| Self {
            newest: is_last != order.options.descending,
            ignores_nulls: aggregate.ignore_nulls(),
            types: [DataType::clone(value), TS_TYPE.clone()],
            chosen: Vec::new(),
            chosen_bytes: 0,
            are_set: BooleanBufferBuilder::new(0),
        })
    }

    /// Returns the row among these whose value is the result.
    fn choose(&self, times: &[i64], values: Option<&NullBuffer>, mut rows: Range<usize>) -> Option<u32> {
        let has_value = |row: &usize| values.is_none_or(|values| values.is_valid(*row));
        let first = rows.find(has_value)?;
        let further = |chosen: usize, row: usize| {
            let is_further =
                if self.newest { times[row] > times[chosen] } else { times[row] < times[chosen] };
            if is_further { row } else { chosen }
        };
        // A batch has less than 2^32 rows.
        Some(rows.filter(has_value).fold(first, further) as u32)
    }
}

impl RunStates for FirstLast {
    fn add(
        &mut self,
        arguments: &[ArrayRef],
        _filter: Option<&BooleanArray>,
        runs: &BatchRuns,
    ) -> Result<()> {
        let [values, ts] = [&arguments[0], &arguments[1]];
        let nulls = values.logical_nulls().filter(|_| self.ignores_nulls);
        let times = ts.as_primitive::<TimestampMicrosecondType>().values();
        let rows: UInt32Array = runs.ranges().map(|rows| self.choose(times, nulls.as_ref(), rows)).collect();
        rows.iter().for_each(|row| self.are_set.append(row.is_some()));
        let chosen = [own(take(values, &rows, None)?), take(ts, &rows, None)?];
        self.chosen_bytes += chosen.iter().map(|array| array.get_array_memory_size()).sum::<usize>();
        self.chosen.push(chosen);
        Ok(())
    }

    fn take(&mut self) -> Result<Vec<ArrayRef>> {
        let chosen = std::mem::take(&mut self.chosen);
        self.chosen_bytes = 0;
        let column = |index: usize| {
            let pieces: Vec<_> = chosen.iter().map(|batch| batch[index].as_ref()).collect();
            if pieces.is_empty() { Ok(new_empty_array(&self.types[index])) } else { Ok(concat(&pieces)?) }
        };
        let (values, times): (Result<_>, Result<_>) = (column(0), column(1));
        Ok(vec![values?, times?, Arc::new(BooleanArray::new(self.are_set.finish(), None))])
    }

    fn size(&self) -> usize {
        self.chosen_bytes + self.are_set.capacity() / 8
    }
}

/// Copies texts out of their buffers: a few views would keep the texts of all other rows in memory.
fn own(values: ArrayRef) -> ArrayRef {
    match values.as_string_view_opt() {
        Some(texts) => Arc::new(texts.gc()),
        None => values,
    }
}

#[cfg(test)]
mod tests {
    use arrow_array::types::Int64Type;
    use arrow_array::{Int64Array, TimestampMicrosecondArray};

    use super::*;

    fn first_last(newest: bool, ignores_nulls: bool) -> Vec<(Option<i64>, Option<i64>, bool)> {
        let mut states = FirstLast {
            newest,
            ignores_nulls,
            types: [DataType::Int64, TS_TYPE.clone()],
            chosen: Vec::new(),
            chosen_bytes: 0,
            are_set: BooleanBufferBuilder::new(0),
        };
        assert_eq!(states.take().unwrap()[0].len(), 0);
        for (groups, values, times) in [
            (vec![1, 1, 1, 1], vec![None, Some(5), Some(6), None], vec![10, 30, 20, 40]),
            (vec![1, 2], vec![Some(7), None], vec![50, 60]),
        ] {
            let groups: ArrayRef = Arc::new(Int64Array::from(groups));
            let times = TimestampMicrosecondArray::from(times).with_timezone("UTC");
            let runs = BatchRuns::of_rows(&[groups], 0);
            states.add(&[Arc::new(Int64Array::from(values)), Arc::new(times)], None, &runs).unwrap();
        }
        assert!(states.size() > 0);
        let taken = states.take().unwrap();
        let (values, times) =
            (taken[0].as_primitive::<Int64Type>(), taken[1].as_primitive::<TimestampMicrosecondType>());
        let is_set = taken[2].as_boolean();
        let rows = values.iter().zip(times).zip(is_set);
        rows.map(|((value, ts), is_set)| (value, ts, is_set == Some(true))).collect()
    }

    #[test]
    fn a_chosen_text_keeps_no_others() {
        let long = |number| format!("the text of row number {number}, too long for a view");
        let texts: ArrayRef = Arc::new(arrow_array::StringViewArray::from_iter_values((0..1_000).map(long)));
        let one = own(take(&texts, &UInt32Array::from(vec![7]), None).unwrap());
        assert_eq!(one.as_string_view().value(0), long(7));
        assert!(one.get_array_memory_size() < 1_000, "{} bytes", one.get_array_memory_size());
    }

    #[test]
    fn each_run_has_the_value_of_its_farthest_time() {
        let none = (None, None, false);
        assert_eq!(first_last(true, true), [(Some(5), Some(30), true), (Some(7), Some(50), true), none]);
        assert_eq!(first_last(false, true), [(Some(6), Some(20), true), (Some(7), Some(50), true), none]);
        let null = |ts| (None, Some(ts), true);
        assert_eq!(first_last(true, false), [null(40), (Some(7), Some(50), true), null(60)]);
        assert_eq!(first_last(false, false), [null(10), (Some(7), Some(50), true), null(60)]);
    }
}
