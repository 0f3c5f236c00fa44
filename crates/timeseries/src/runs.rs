//! Splits batches of rows by series.

use std::ops::{ControlFlow, Range};

use arrow_array::types::Int32Type;
use arrow_array::{Array, RecordBatch, RunArray, StringViewArray};

/// Calls `visit` for each run of neighbouring rows of one series, with the values of the tags in the order of the columns and the
/// numbers of the rows. A series may have several runs; `None` is a tag that the series does not have.
///
/// # Panics
/// One of the first `tags` columns is not in the form that [`Table::read`](crate::Table::read) gives.
pub fn each_series(
    batch: &RecordBatch,
    tags: usize,
    mut visit: impl FnMut(&[Option<&str>], Range<usize>) -> ControlFlow<()>,
) -> ControlFlow<()> {
    let mut columns: Vec<Runs<'_>> =
        batch.columns()[..tags].iter().map(|column| Runs::of(column.as_ref())).collect();
    let mut values = vec![None; tags];
    let mut begin = 0;
    while begin < batch.num_rows() {
        let mut end = batch.num_rows();
        for (value, column) in values.iter_mut().zip(&mut columns) {
            let (text, run_end) = column.at(begin);
            *value = text;
            end = end.min(run_end);
        }
        visit(&values, begin..end)?;
        begin = end;
    }
    ControlFlow::Continue(())
}

/// A column of tags, read from its first row to its last.
struct Runs<'a> {
    ends: &'a [i32],
    values: &'a StringViewArray,
    offset: usize,
    current: usize,
}

impl<'a> Runs<'a> {
    fn of(column: &'a dyn Array) -> Self {
        let runs = column.as_any().downcast_ref::<RunArray<Int32Type>>();
        let runs = runs.expect("BUG: a tag column comes in runs");
        let values = runs.values().as_any().downcast_ref::<StringViewArray>();
        Self {
            ends: runs.run_ends().values(),
            values: values.expect("BUG: the runs of a tag column are texts"),
            offset: runs.run_ends().offset(),
            current: 0,
        }
    }

    /// The value at a row, and the row at which its run ends. The caller asks for rows in ascending order.
    fn at(&mut self, row: usize) -> (Option<&'a str>, usize) {
        while self.ends[self.current] as usize <= row + self.offset {
            self.current += 1;
        }
        let value = self.values.is_valid(self.current).then(|| self.values.value(self.current));
        (value, self.ends[self.current] as usize - self.offset)
    }
}
