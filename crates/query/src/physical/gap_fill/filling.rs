//! Decides which rows there are and what they hold, without streams or plans.
//!
//! Rows arrive in the order of keys and time. A row waits until the next one arrives: only then is it known whether rows are missing
//! between them. If lines fill a column, a row without a value also waits for the end of its line, which is the next value of its
//! group.

use std::collections::VecDeque;
use std::sync::Arc;

use arrow_array::cast::AsArray;
use arrow_array::types::TimestampMicrosecondType;
use arrow_array::{Array, RecordBatch};
use arrow_schema::SchemaRef;
use datafusion::arrow::compute::concat_batches;
use datafusion::common::{Result, ScalarValue};

use super::output_rows::OutputRows;
use super::window::{Group, Window};
use crate::gapfill::{Fill, Shape};

/// Takes rows and returns them together with the missing ones.
pub(super) struct Filling {
    shape: Arc<Shape>,
    schema: SchemaRef,
    rows_max: usize,
    /// Rows that wait. The first one begins a group or follows a row that was returned.
    held: VecDeque<RecordBatch>,
    window: Option<Window>,
    group: Group,
    is_finished: bool,
}

impl Filling {
    /// `schema` is that of the returned rows. The rows that are taken have columns of the same types.
    pub(super) fn new(shape: Arc<Shape>, schema: SchemaRef, rows_max: usize) -> Self {
        let group = Group::new(&shape);
        let held = VecDeque::new();
        Self { shape, schema, rows_max: rows_max.max(1), held, window: None, group, is_finished: false }
    }

    pub(super) fn schema(&self) -> &SchemaRef {
        &self.schema
    }

    /// Bytes of the rows that wait or are in the window.
    pub(super) fn held_bytes(&self) -> usize {
        let batches = self.held.iter().chain(self.window.as_ref().map(|window| &window.rows));
        batches.map(RecordBatch::get_array_memory_size).sum()
    }

    /// Takes the next rows. The caller has called [`next`](Self::next) until it returned `None`.
    pub(super) fn push(&mut self, batch: RecordBatch) -> Result<()> {
        if batch.num_rows() == 0 {
            return Ok(());
        }
        let decides_nothing = self.decides_nothing(&batch)?;
        self.held.push_back(batch);
        if decides_nothing { Ok(()) } else { self.open() }
    }

    /// Reports that no more rows come.
    pub(super) fn finish(&mut self) -> Result<()> {
        self.is_finished = true;
        self.open()
    }

    /// Whether all rows have been returned.
    pub(super) fn is_over(&self) -> bool {
        self.is_finished && self.window.is_none()
    }

    /// Returns the next rows; `None` if more input is needed, or if all rows have been returned.
    pub(super) fn next(&mut self) -> Result<Option<RecordBatch>> {
        let Some(mut window) = self.window.take() else { return Ok(None) };
        let shape = Arc::clone(&self.shape);
        let output = self.fill(&shape, &mut window);
        let batch = if output.is_empty() { None } else { Some(output.batch(&self.schema, &window.rows)?) };
        self.keep(&window)?;
        if window.row < window.ready {
            self.window = Some(window);
        } else if window.ready < window.rows.num_rows() {
            let rest = window.rows.num_rows() - window.ready;
            self.held.push_back(window.rows.slice(window.ready, rest));
        }
        Ok(batch)
    }

    /// Whether the waiting rows continue waiting after this batch: all of it belongs to the same group, and in a column that lines fill
    /// it has no value.
    fn decides_nothing(&self, batch: &RecordBatch) -> Result<bool> {
        let Some(last) = self.held.back() else { return Ok(false) };
        let mut lines = self.shape.fills.iter().filter(|(_, fill)| *fill == Fill::Line);
        if !lines.any(|(column, _)| batch.column(*column).null_count() == batch.num_rows()) {
            return Ok(false);
        }
        for &key in &self.shape.keys {
            let before = ScalarValue::try_from_array(last.column(key), last.num_rows() - 1)?;
            let after = ScalarValue::try_from_array(batch.column(key), batch.num_rows() - 1)?;
            if before != after {
                return Ok(false);
            }
        }
        Ok(true)
    }

    /// Makes a window of the waiting rows.
    fn open(&mut self) -> Result<()> {
        let batches = std::mem::take(&mut self.held);
        let Some(first) = batches.front() else {
            // Without keys there is one group, even if it has no rows.
            if self.is_finished && self.shape.keys.is_empty() {
                self.window = Some(Window::empty(&self.schema, self.shape.fills.len()));
            }
            return Ok(());
        };
        let rows = concat_batches(&first.schema(), &batches)?;
        let window = Window::new(rows, &self.shape, self.is_finished)?;
        if window.ready > 0 {
            self.window = Some(window);
        } else {
            self.held.push_back(window.rows);
        }
        Ok(())
    }

    /// Passes rows of the window on, with the missing rows between them.
    fn fill<'a>(&mut self, shape: &'a Shape, window: &mut Window) -> OutputRows<'a> {
        let mut output = OutputRows::new(shape, &self.group);
        let times = window.rows.column(shape.time).as_primitive::<TimestampMicrosecondType>().clone();
        let (group, buckets) = (&mut self.group, &shape.buckets);
        while output.len() < self.rows_max && window.row < window.ready {
            let row = window.row;
            let next = (group.bucket < buckets.count()).then(|| buckets.start_us(group.bucket));
            if window.is_after {
                match next {
                    Some(start) => {
                        output.add_missing(start, row, None, group);
                        group.bucket += 1;
                    }
                    None => {
                        *group = Group::new(shape);
                        (window.row, window.is_after) = (row + 1, false);
                    }
                }
                continue;
            }
            let time = times.is_valid(row).then(|| times.value(row));
            match next {
                // NULL comes after all times.
                Some(start) if time.is_none_or(|time| start < time) => {
                    output.add_missing(start, row, Some(window), group);
                    group.bucket += 1;
                }
                _ => {
                    output.add_input(time, row, group, window);
                    group.bucket += usize::from(next.is_some() && next == time);
                    if window.is_group_end[row] {
                        window.is_after = true;
                    } else {
                        window.row += 1;
                    }
                }
            }
        }
        output
    }

    /// Copies the newest values out of the window.
    fn keep(&mut self, window: &Window) -> Result<()> {
        let columns = self.group.newest.iter_mut().zip(&self.shape.fills);
        for (newest, (column, _)) in columns {
            newest.keep(window.rows.column(*column))?;
        }
        Ok(())
    }
}
