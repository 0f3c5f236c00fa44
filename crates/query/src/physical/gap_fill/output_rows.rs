//! The rows of one output batch: collected row by row, then built column by column.

use std::sync::Arc;

use arrow_array::cast::AsArray;
use arrow_array::types::{Float64Type, TimestampMicrosecondType};
use arrow_array::{Array, ArrayRef, Float64Array, PrimitiveArray, RecordBatch, UInt32Array, new_null_array};
use arrow_schema::SchemaRef;
use datafusion::arrow::compute::{interleave, take};
use datafusion::common::Result;

use super::window::{Group, Newest, Window};
use crate::functions::fill::{Point, between};
use crate::gapfill::{Fill, Shape};

pub(super) struct OutputRows<'a> {
    shape: &'a Shape,
    times: Vec<Option<i64>>,
    /// For each row: a row of the window with the same keys.
    keys: Vec<u32>,
    /// For each row: its row in the window; none if it was missing.
    rows: Vec<Option<u32>>,
    /// The values of each filled column.
    fills: Vec<Filled>,
}

/// The values of a filled column.
enum Filled {
    /// The value from before the window, and for each row an array and an index in it, as [`interleave`] takes them.
    Carried(Option<ArrayRef>, Vec<(usize, usize)>),
    Line(Vec<Option<f64>>),
}

/// The arrays in [`Filled::Carried`]: NULL, the value from before the window, the window.
const NOTHING: (usize, usize) = (0, 0);
const EARLIER: (usize, usize) = (1, 0);
const WINDOW: usize = 2;

impl<'a> OutputRows<'a> {
    pub(super) fn new(shape: &'a Shape, group: &Group) -> Self {
        let column = |((_, fill), newest): (&(usize, Fill), &Newest)| match (fill, newest) {
            (Fill::Carry, Newest::Earlier(value)) => Filled::Carried(Some(Arc::clone(value)), Vec::new()),
            (Fill::Carry, _) => Filled::Carried(None, Vec::new()),
            (Fill::Line, _) => Filled::Line(Vec::new()),
        };
        let fills = shape.fills.iter().zip(&group.newest).map(column).collect();
        Self { shape, times: Vec::new(), keys: Vec::new(), rows: Vec::new(), fills }
    }

    pub(super) fn len(&self) -> usize {
        self.times.len()
    }

    pub(super) fn is_empty(&self) -> bool {
        self.times.is_empty()
    }

    /// Adds a missing row, with the keys of the row `key` of the window. `before` is the window if that row comes later.
    pub(super) fn add_missing(&mut self, start: i64, key: usize, before: Option<&Window>, group: &Group) {
        self.times.push(Some(start));
        self.keys.push(key as u32);
        self.rows.push(None);
        for (fill, (filled, newest)) in self.fills.iter_mut().zip(&group.newest).enumerate() {
            match filled {
                Filled::Carried(_, values) => values.push(carried(newest)),
                Filled::Line(values) => {
                    let end = before.and_then(|window| window.line_end(fill, key, self.shape));
                    values.push(on_line(newest, end, start));
                }
            }
        }
    }

    /// Adds a row of the window.
    pub(super) fn add_input(&mut self, time: Option<i64>, row: usize, group: &mut Group, window: &Window) {
        self.times.push(time);
        self.keys.push(row as u32);
        self.rows.push(Some(row as u32));
        for (fill, (filled, newest)) in self.fills.iter_mut().zip(&mut group.newest).enumerate() {
            let column = window.rows.column(self.shape.fills[fill].0);
            match filled {
                Filled::Carried(_, values) => {
                    if column.is_valid(row) {
                        *newest = Newest::Row(row as u32);
                    }
                    values.push(carried(newest));
                }
                Filled::Line(values) if column.is_valid(row) => {
                    let value = column.as_primitive::<Float64Type>().value(row);
                    if let Some(time) = time {
                        *newest = Newest::Point(Point { time: time as f64, value });
                    }
                    values.push(Some(value));
                }
                Filled::Line(values) => {
                    let end = window.line_end(fill, row, self.shape);
                    values.push(time.and_then(|time| on_line(newest, end, time)));
                }
            }
        }
    }

    /// Builds the batch. `window` and the batch have the same columns.
    pub(super) fn batch(self, schema: &SchemaRef, window: &RecordBatch) -> Result<RecordBatch> {
        let Self { shape, times, keys, rows, fills } = self;
        let (keys, rows) = (UInt32Array::from(keys), UInt32Array::from(rows));
        let mut columns = Vec::with_capacity(schema.fields().len());
        for (index, field) in schema.fields().iter().enumerate() {
            let column = window.column(index);
            columns.push(if index == shape.time {
                let times = PrimitiveArray::<TimestampMicrosecondType>::from(times.clone());
                Arc::new(times.with_data_type(field.data_type().clone()))
            } else if shape.keys.contains(&index) {
                take(column, &keys, None)?
            } else {
                match shape.fills.iter().position(|(column, _)| *column == index) {
                    Some(fill) => fills[fill].array(column)?,
                    None => taken(column, &rows)?,
                }
            });
        }
        Ok(RecordBatch::try_new(Arc::clone(schema), columns)?)
    }
}

fn carried(newest: &Newest) -> (usize, usize) {
    match newest {
        Newest::Row(row) => (WINDOW, *row as usize),
        Newest::Earlier(_) => EARLIER,
        Newest::Nothing | Newest::Point(_) => NOTHING,
    }
}

fn on_line(newest: &Newest, end: Option<Point>, time: i64) -> Option<f64> {
    let Newest::Point(begin) = newest else { return None };
    Some(between(*begin, end?, time as f64))
}

/// Takes rows of a column; NULL for missing rows.
fn taken(column: &ArrayRef, rows: &UInt32Array) -> Result<ArrayRef> {
    if column.is_empty() {
        return Ok(new_null_array(column.data_type(), rows.len()));
    }
    Ok(take(column, rows, None)?)
}

impl Filled {
    fn array(&self, column: &ArrayRef) -> Result<ArrayRef> {
        match self {
            Self::Carried(earlier, values) => {
                let nothing = new_null_array(column.data_type(), 1);
                let earlier = earlier.as_ref().unwrap_or(&nothing);
                Ok(interleave(&[&*nothing, &**earlier, &**column], values)?)
            }
            Self::Line(values) => Ok(Arc::new(Float64Array::from(values.clone()))),
        }
    }
}
