//! Finds where the runs of a batch begin.

use std::cell::OnceCell;
use std::ops::Range;

use arrow_array::UInt32Array;
use arrow_buffer::BooleanBuffer;
use datafusion::common::Result;

use super::groups::GroupValues;

/// The runs of one batch: neighbouring rows whose groups are equal.
pub(super) struct BatchRuns {
    /// The first row of each run.
    starts: Vec<u32>,
    rows: usize,
    /// The number of runs of earlier batches.
    before: usize,
    run_of_row: OnceCell<Vec<usize>>,
}

impl BatchRuns {
    /// Finds the runs of a batch of `rows` rows, at least one. Earlier batches had `before` runs.
    pub(super) fn of(groups: &[GroupValues], rows: usize, before: usize) -> Result<Self> {
        let mut changes = BooleanBuffer::new_unset(rows - 1);
        for group in groups {
            changes = &changes | &group.changes(rows)?;
        }
        // A batch has less than 2^32 rows.
        let starts = std::iter::once(0).chain(changes.set_indices().map(|row| row as u32 + 1)).collect();
        Ok(Self { starts, rows, before, run_of_row: OnceCell::new() })
    }

    /// The number of runs of this batch.
    pub(super) fn count(&self) -> usize {
        self.starts.len()
    }

    /// The number of runs of this batch and all earlier ones.
    pub(super) fn total(&self) -> usize {
        self.before + self.count()
    }

    /// The rows of each run.
    pub(super) fn ranges(&self) -> impl Iterator<Item = Range<usize>> + '_ {
        let ends = self.starts[1..].iter().map(|end| *end as usize).chain([self.rows]);
        self.starts.iter().zip(ends).map(|(start, end)| *start as usize..end)
    }

    /// The first row of each run.
    pub(super) fn first_rows(&self) -> UInt32Array {
        self.starts.clone().into()
    }

    /// For each row: the index of its run, counted through all batches.
    pub(super) fn run_of_row(&self) -> &[usize] {
        self.run_of_row.get_or_init(|| {
            let mut runs = Vec::with_capacity(self.rows);
            for (run, rows) in self.ranges().enumerate() {
                runs.resize(rows.end, self.before + run);
            }
            runs
        })
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use arrow_array::{
        Array, ArrayRef, BooleanArray, Int64Array, StringArray, StringViewArray, TimestampMicrosecondArray,
    };

    use super::*;

    impl BatchRuns {
        /// The boundaries of groups that have a value for each row.
        pub(in super::super) fn of_rows(groups: &[ArrayRef], before: usize) -> Self {
            let values: Vec<_> = groups.iter().map(|group| GroupValues::Rows(Arc::clone(group))).collect();
            Self::of(&values, groups[0].len(), before).unwrap()
        }
    }

    fn ranges(groups: &[ArrayRef]) -> Vec<Range<usize>> {
        BatchRuns::of_rows(groups, 0).ranges().collect()
    }

    #[test]
    fn a_run_ends_where_any_group_changes() {
        let long = "a text that is longer than a view holds";
        let texts: ArrayRef = Arc::new(StringViewArray::from(vec!["a", "a", "a", long, "b"]));
        let times: ArrayRef = Arc::new(TimestampMicrosecondArray::from(vec![1, 1, 2, 2, 2]));
        let numbers: ArrayRef = Arc::new(Int64Array::from(vec![7, 8, 8, 8, 8]));
        assert_eq!(ranges(&[Arc::clone(&texts)]), [0..3, 3..4, 4..5]);
        assert_eq!(ranges(&[Arc::clone(&texts), Arc::clone(&times)]), [0..2, 2..3, 3..4, 4..5]);
        assert_eq!(ranges(&[texts, times, numbers]), [0..1, 1..2, 2..3, 3..4, 4..5]);
    }

    #[test]
    fn changes_are_found_in_every_place_of_a_byte() {
        for length in [2, 8, 9, 10, 17, 30] {
            for change in 1..length {
                let numbers: ArrayRef =
                    Arc::new(Int64Array::from_iter_values((0..length).map(|row| i64::from(row >= change))));
                let change = change as usize;
                assert_eq!(ranges(&[numbers]), [0..change, change..length as usize]);
            }
        }
    }

    #[test]
    fn nulls_and_other_types_make_runs_of_their_own() {
        let texts: ArrayRef = Arc::new(StringViewArray::from(vec![None, None, Some("a"), Some(""), None]));
        assert_eq!(ranges(&[texts]), [0..2, 2..3, 3..4, 4..5]);
        let others: ArrayRef = Arc::new(StringArray::from(vec!["a", "a", "b"]));
        assert_eq!(ranges(&[others]), [0..2, 2..3]);
        let flags: ArrayRef = Arc::new(BooleanArray::from(vec![Some(true), None, None]));
        assert_eq!(ranges(&[flags]), [0..1, 1..3]);
    }

    #[test]
    fn rows_know_their_run_through_all_batches() {
        let numbers: ArrayRef = Arc::new(Int64Array::from(vec![7, 8, 8]));
        let found = BatchRuns::of_rows(&[numbers], 5);
        assert_eq!((found.count(), found.total(), found.run_of_row()), (2, 7, &[5, 6, 6][..]));
        assert_eq!(found.first_rows().values(), &[0, 1]);
        let one: ArrayRef = Arc::new(Int64Array::from(vec![7]));
        assert_eq!(BatchRuns::of_rows(&[one], 0).count(), 1);
    }
}
