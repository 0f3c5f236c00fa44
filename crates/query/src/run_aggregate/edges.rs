//! The oldest and the newest value of each run, with its time.

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
use super::states::RunStates;
use crate::reading::is_ts;

/// States of `first_value` and `last_value` by the time of the row: the value, its time, and whether there is one.
pub(super) struct Edges {
    newest: bool,
    ignores_nulls: bool,
    /// Of value and time.
    types: [DataType; 2],
    /// Values and times of the runs of each batch.
    chosen: Vec<[ArrayRef; 2]>,
    chosen_bytes: usize,
    are_set: BooleanBufferBuilder,
}

impl Edges {
    /// The states for an aggregate over rows of a schema, if it is such a one.
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

    /// The row among these that counts.
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

impl RunStates for Edges {
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

/// The same without the texts of other rows, which views of a few would keep in memory.
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

    fn edges(newest: bool, ignores_nulls: bool) -> Vec<(Option<i64>, Option<i64>, bool)> {
        let mut edges = Edges {
            newest,
            ignores_nulls,
            types: [DataType::Int64, TS_TYPE.clone()],
            chosen: Vec::new(),
            chosen_bytes: 0,
            are_set: BooleanBufferBuilder::new(0),
        };
        assert_eq!(edges.take().unwrap()[0].len(), 0);
        for (groups, values, times) in [
            (vec![1, 1, 1, 1], vec![None, Some(5), Some(6), None], vec![10, 30, 20, 40]),
            (vec![1, 2], vec![Some(7), None], vec![50, 60]),
        ] {
            let groups: ArrayRef = Arc::new(Int64Array::from(groups));
            let times = TimestampMicrosecondArray::from(times).with_timezone("UTC");
            let runs = BatchRuns::of_rows(&[groups], 0);
            edges.add(&[Arc::new(Int64Array::from(values)), Arc::new(times)], None, &runs).unwrap();
        }
        assert!(edges.size() > 0);
        let taken = edges.take().unwrap();
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
        assert_eq!(edges(true, true), [(Some(5), Some(30), true), (Some(7), Some(50), true), none]);
        assert_eq!(edges(false, true), [(Some(6), Some(20), true), (Some(7), Some(50), true), none]);
        let null = |ts| (None, Some(ts), true);
        assert_eq!(edges(true, false), [null(40), (Some(7), Some(50), true), null(60)]);
        assert_eq!(edges(false, false), [null(10), (Some(7), Some(50), true), null(60)]);
    }
}
