//! Which rows there are, and what they hold. It knows neither streams nor plans.
//!
//! Rows come in the order of the keys and the time. A row waits until the next one is known: only then is it clear
//! whether rows have to follow it. If values are put on lines, rows also wait for the end of their line, which is the
//! next value of their keys; rows with values do not wait for it.

use std::collections::VecDeque;
use std::ops::Range;
use std::sync::Arc;

use arrow_array::cast::AsArray;
use arrow_array::types::{Float64Type, TimestampMicrosecondType};
use arrow_array::{Array, ArrayRef, RecordBatch, UInt32Array};
use arrow_schema::SchemaRef;
use datafusion::arrow::compute::{concat_batches, partition, take};
use datafusion::common::{Result, ScalarValue};

use super::given::Given;
use super::{Fill, Shape};
use crate::functions::fill::Point;

/// Takes rows and gives them with those that are missing.
pub(super) struct Filling {
    shape: Arc<Shape>,
    schema: SchemaRef,
    rows_max: usize,
    /// Rows that wait. The first begins the keys' values or follows a row that was given.
    held: VecDeque<RecordBatch>,
    window: Option<Window>,
    group: Group,
    is_finished: bool,
}

/// What is known of the rows that have been given with the current values of the keys.
pub(super) struct Group {
    /// The next bucket that may be missing.
    bucket: usize,
    /// By filled column.
    pub(super) columns: Vec<Known>,
}

/// The newest value of a column.
#[derive(Clone)]
pub(super) enum Known {
    Nothing,
    /// A row of the window.
    Row(u32),
    /// The only row of an array.
    Earlier(ArrayRef),
    /// Where a line begins.
    Point(Point),
}

/// Rows of which some can be given.
pub(super) struct Window {
    pub(super) rows: RecordBatch,
    /// By row: whether it is the last of its keys' values.
    ends: Vec<bool>,
    /// By filled column, if it is put on lines, and row: the first row from there with a value.
    next: Vec<Option<Vec<u32>>>,
    /// How many rows can be given.
    ready: usize,
    /// The row that is given next.
    row: usize,
    /// Whether it has been given and those that follow it have not.
    is_after: bool,
}

/// There is no such row.
const NONE: u32 = u32::MAX;

impl Filling {
    /// `schema` is that of the given rows; those that are taken have columns of the same types.
    pub(super) fn new(shape: Arc<Shape>, schema: SchemaRef, rows_max: usize) -> Self {
        let group = Group::new(&shape);
        let held = VecDeque::new();
        Self { shape, schema, rows_max: rows_max.max(1), held, window: None, group, is_finished: false }
    }

    pub(super) fn schema(&self) -> &SchemaRef {
        &self.schema
    }

    /// Bytes of the rows that wait or are being given.
    pub(super) fn held_bytes(&self) -> usize {
        let batches = self.held.iter().chain(self.window.as_ref().map(|window| &window.rows));
        batches.map(RecordBatch::get_array_memory_size).sum()
    }

    /// Takes the rows that come next. All that could be given have been.
    pub(super) fn push(&mut self, batch: RecordBatch) -> Result<()> {
        if batch.num_rows() == 0 {
            return Ok(());
        }
        let decides_nothing = self.decides_nothing(&batch)?;
        self.held.push_back(batch);
        if decides_nothing { Ok(()) } else { self.open() }
    }

    /// There are no more rows.
    pub(super) fn finish(&mut self) -> Result<()> {
        self.is_finished = true;
        self.open()
    }

    /// Whether there is nothing more to give.
    pub(super) fn is_over(&self) -> bool {
        self.is_finished && self.window.is_none()
    }

    /// The next rows; `None` if that takes more of them, or it is over.
    pub(super) fn next(&mut self) -> Result<Option<RecordBatch>> {
        let Some(mut window) = self.window.take() else { return Ok(None) };
        let shape = Arc::clone(&self.shape);
        let given = self.give(&shape, &mut window);
        let batch = if given.is_empty() { None } else { Some(given.batch(&self.schema, &window.rows)?) };
        self.keep(&window)?;
        if window.row < window.ready {
            self.window = Some(window);
        } else if window.ready < window.rows.num_rows() {
            let rest = window.rows.num_rows() - window.ready;
            self.held.push_back(window.rows.slice(window.ready, rest));
        }
        Ok(batch)
    }

    /// Whether the rows that wait go on waiting after this batch: it has the same keys throughout and a column
    /// without any value to draw a line to.
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

    /// Looks at the rows that wait.
    fn open(&mut self) -> Result<()> {
        let batches = std::mem::take(&mut self.held);
        let Some(first) = batches.front() else {
            // Without other keys there is one group, even of no rows.
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

    fn give<'a>(&mut self, shape: &'a Shape, window: &mut Window) -> Given<'a> {
        let mut given = Given::new(shape, &self.group);
        let times = window.rows.column(shape.time).as_primitive::<TimestampMicrosecondType>().clone();
        let (group, buckets) = (&mut self.group, &shape.buckets);
        while given.len() < self.rows_max && window.row < window.ready {
            let row = window.row;
            let next = (group.bucket < buckets.count()).then(|| buckets.start_us(group.bucket));
            if window.is_after {
                match next {
                    Some(start) => {
                        given.make(start, row, None, group);
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
                    given.make(start, row, Some(window), group);
                    group.bucket += 1;
                }
                _ => {
                    given.take(time, row, group, window);
                    group.bucket += usize::from(next.is_some() && next == time);
                    if window.ends[row] {
                        window.is_after = true;
                    } else {
                        window.row += 1;
                    }
                }
            }
        }
        given
    }

    /// Makes what is known independent of the window.
    fn keep(&mut self, window: &Window) -> Result<()> {
        for (known, (column, _)) in self.group.columns.iter_mut().zip(&self.shape.fills) {
            if let Known::Row(row) = known {
                let value = take(window.rows.column(*column), &UInt32Array::from(vec![*row]), None)?;
                *known = Known::Earlier(value);
            }
        }
        Ok(())
    }
}

impl Group {
    fn new(shape: &Shape) -> Self {
        Self { bucket: 0, columns: vec![Known::Nothing; shape.fills.len()] }
    }
}

impl Window {
    fn new(rows: RecordBatch, shape: &Shape, is_last: bool) -> Result<Self> {
        let keys: Vec<_> = shape.keys.iter().map(|key| Arc::clone(rows.column(*key))).collect();
        let groups = if keys.is_empty() {
            std::iter::once(0..rows.num_rows()).collect()
        } else {
            partition(&keys)?.ranges()
        };
        let mut ends = vec![false; rows.num_rows()];
        groups.iter().for_each(|group| ends[group.end - 1] = true);
        let is_line = |fill: Fill| fill == Fill::Line;
        let next: Vec<_> = shape
            .fills
            .iter()
            .map(|(column, fill)| is_line(*fill).then(|| next_values(rows.column(*column), &groups)))
            .collect();
        let ready = match groups.last() {
            Some(last) if !is_last => {
                ends[last.end - 1] = false;
                ready(last.clone(), next.iter().flatten())
            }
            _ => rows.num_rows(),
        };
        Ok(Self { rows, ends, next, ready, row: 0, is_after: false })
    }

    /// Where the line of a filled column ends that goes by the row; `None` if it has no end.
    pub(super) fn line_end(&self, place: usize, row: usize, shape: &Shape) -> Option<Point> {
        let end = self.next.get(place)?.as_ref()?[row];
        let end = (end != NONE).then_some(end as usize)?;
        let times = self.rows.column(shape.time).as_primitive::<TimestampMicrosecondType>();
        let values = self.rows.column(shape.fills[place].0).as_primitive::<Float64Type>();
        times.is_valid(end).then(|| Point { time: times.value(end) as f64, value: values.value(end) })
    }

    /// One group of no rows: only those that are to be made.
    fn empty(schema: &SchemaRef, fills: usize) -> Self {
        let rows = RecordBatch::new_empty(Arc::clone(schema));
        Self { rows, ends: Vec::new(), next: vec![None; fills], ready: 1, row: 0, is_after: true }
    }
}

/// The first row from each row on, within its group, that has a value.
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

/// How many rows can be given if more rows may follow the last group: not its last row, and none after the last value
/// of a line.
fn ready<'a>(last: Range<usize>, lines: impl Iterator<Item = &'a Vec<u32>>) -> usize {
    let after_value = |next: &Vec<u32>| {
        let rows_without = last.clone().rev().take_while(|row| next[*row] == NONE).count();
        last.end - rows_without
    };
    lines.map(after_value).min().unwrap_or(last.end).min(last.end - 1).max(last.start)
}
