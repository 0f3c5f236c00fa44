//! The window: the input rows that can be passed on now, and the values that are known before each of them.

use std::ops::Range;
use std::sync::Arc;

use arrow_array::cast::AsArray;
use arrow_array::types::{Float64Type, TimestampMicrosecondType};
use arrow_array::{Array, ArrayRef, RecordBatch, UInt32Array};
use arrow_schema::SchemaRef;
use datafusion::arrow::compute::{partition, take};
use datafusion::common::Result;

use crate::functions::fill::Point;
use crate::gapfill::{Fill, Shape};

/// The group that is being filled: the rows with the current values of the keys.
pub(super) struct Group {
    /// The next bucket that may be missing.
    pub(super) bucket: usize,
    /// The newest value of each filled column.
    pub(super) newest: Vec<Newest>,
}

/// The newest value of a filled column.
#[derive(Clone)]
pub(super) enum Newest {
    /// There has been no value.
    Nothing,
    /// The value in this row of the window.
    Row(u32),
    /// A value from before the window: an array of one row.
    Earlier(ArrayRef),
    /// The point where a line begins.
    Point(Point),
}

/// Input rows, of which the first `ready` can be passed on.
pub(super) struct Window {
    pub(super) rows: RecordBatch,
    /// For each row: whether it is the last one of its group.
    pub(super) is_group_end: Vec<bool>,
    /// For each filled column, if lines fill it, and each row: the first row from there on with a value.
    next: Vec<Option<Vec<u32>>>,
    /// How many rows can be passed on.
    pub(super) ready: usize,
    /// The row that is passed on next.
    pub(super) row: usize,
    /// Whether that row has been passed on and the missing rows behind it have not.
    pub(super) is_after: bool,
}

/// Stands in [`Window::next`] where no such row exists.
const NONE: u32 = u32::MAX;

impl Group {
    pub(super) fn new(shape: &Shape) -> Self {
        Self { bucket: 0, newest: vec![Newest::Nothing; shape.fills.len()] }
    }
}

impl Newest {
    /// Copies a value out of the window, which is about to be dropped.
    pub(super) fn keep(&mut self, column: &ArrayRef) -> Result<()> {
        if let Self::Row(row) = self {
            *self = Self::Earlier(take(column, &UInt32Array::from(vec![*row]), None)?);
        }
        Ok(())
    }
}

impl Window {
    /// Looks at rows that begin a group or follow a row that was passed on. If `is_last`, no rows follow them.
    pub(super) fn new(rows: RecordBatch, shape: &Shape, is_last: bool) -> Result<Self> {
        let keys: Vec<_> = shape.keys.iter().map(|key| Arc::clone(rows.column(*key))).collect();
        let groups = if keys.is_empty() {
            std::iter::once(0..rows.num_rows()).collect()
        } else {
            partition(&keys)?.ranges()
        };
        let mut is_group_end = vec![false; rows.num_rows()];
        groups.iter().for_each(|group| is_group_end[group.end - 1] = true);
        let is_line = |fill: Fill| fill == Fill::Line;
        let next: Vec<_> = shape
            .fills
            .iter()
            .map(|(column, fill)| is_line(*fill).then(|| next_values(rows.column(*column), &groups)))
            .collect();
        let ready = match groups.last() {
            Some(last) if !is_last => {
                is_group_end[last.end - 1] = false;
                ready(last.clone(), next.iter().flatten())
            }
            _ => rows.num_rows(),
        };
        Ok(Self { rows, is_group_end, next, ready, row: 0, is_after: false })
    }

    /// Returns the end of the line through a row, for the filled column with this index in the shape; `None` if the line has no end.
    pub(super) fn line_end(&self, fill: usize, row: usize, shape: &Shape) -> Option<Point> {
        let end = self.next.get(fill)?.as_ref()?[row];
        let end = (end != NONE).then_some(end as usize)?;
        let times = self.rows.column(shape.time).as_primitive::<TimestampMicrosecondType>();
        let values = self.rows.column(shape.fills[fill].0).as_primitive::<Float64Type>();
        times.is_valid(end).then(|| Point { time: times.value(end) as f64, value: values.value(end) })
    }

    /// One group without input rows: all its rows are missing ones.
    pub(super) fn empty(schema: &SchemaRef, fills: usize) -> Self {
        let rows = RecordBatch::new_empty(Arc::clone(schema));
        Self { rows, is_group_end: Vec::new(), next: vec![None; fills], ready: 1, row: 0, is_after: true }
    }
}

/// For each row: the first row from there on, within its group, that has a value.
fn next_values(column: &ArrayRef, groups: &[Range<usize>]) -> Vec<u32> {
    let mut next = vec![NONE; column.len()];
    for group in groups {
        let mut found = NONE;
        for row in group.clone().rev() {
            if column.is_valid(row) {
                // A window has less than 2^32 rows.
                found = row as u32;
            }
            next[row] = found;
        }
    }
    next
}

/// Returns how many rows can be passed on if more rows may follow the last group: all but its last row, and none after the
/// last value of a line.
fn ready<'a>(last: Range<usize>, lines: impl Iterator<Item = &'a Vec<u32>>) -> usize {
    let after_value = |next: &Vec<u32>| {
        let rows_without = last.clone().rev().take_while(|row| next[*row] == NONE).count();
        last.end - rows_without
    };
    lines.map(after_value).min().unwrap_or(last.end).min(last.end - 1).max(last.start)
}
