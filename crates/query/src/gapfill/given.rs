//! Rows that are about to be given: found one by one, then made column by column.

use std::sync::Arc;

use arrow_array::cast::AsArray;
use arrow_array::types::{Float64Type, TimestampMicrosecondType};
use arrow_array::{Array, ArrayRef, Float64Array, PrimitiveArray, RecordBatch, UInt32Array, new_null_array};
use arrow_schema::SchemaRef;
use datafusion::arrow::compute::{interleave, take};
use datafusion::common::Result;

use super::filling::{Group, Known, Window};
use super::{Fill, Shape};
use crate::functions::fill::{Point, between};

pub(super) struct Given<'a> {
    shape: &'a Shape,
    times: Vec<Option<i64>>,
    /// Rows of the window with the keys.
    keys: Vec<u32>,
    /// The row of the window; none if it is made.
    rows: Vec<Option<u32>>,
    /// By filled column.
    fills: Vec<Filled>,
}

enum Filled {
    /// The value from before the window, and for each row an array and its row, as [`interleave`] takes them.
    Carried(Option<ArrayRef>, Vec<(usize, usize)>),
    Line(Vec<Option<f64>>),
}

/// What [`Filled::Carried`] counts: nothing, the value from before the window, the window.
const NOTHING: (usize, usize) = (0, 0);
const EARLIER: (usize, usize) = (1, 0);
const WINDOW: usize = 2;

impl<'a> Given<'a> {
    pub(super) fn new(shape: &'a Shape, group: &Group) -> Self {
        let column = |((_, fill), known): (&(usize, Fill), &Known)| match (fill, known) {
            (Fill::Carry, Known::Earlier(value)) => Filled::Carried(Some(Arc::clone(value)), Vec::new()),
            (Fill::Carry, _) => Filled::Carried(None, Vec::new()),
            (Fill::Line, _) => Filled::Line(Vec::new()),
        };
        let fills = shape.fills.iter().zip(&group.columns).map(column).collect();
        Self { shape, times: Vec::new(), keys: Vec::new(), rows: Vec::new(), fills }
    }

    pub(super) fn len(&self) -> usize {
        self.times.len()
    }

    pub(super) fn is_empty(&self) -> bool {
        self.times.is_empty()
    }

    /// A row that is missing, with the keys of the row `key`, which comes after it if there is a window.
    pub(super) fn make(&mut self, start: i64, key: usize, before: Option<&Window>, group: &Group) {
        self.times.push(Some(start));
        self.keys.push(key as u32);
        self.rows.push(None);
        for (place, (filled, known)) in self.fills.iter_mut().zip(&group.columns).enumerate() {
            match filled {
                Filled::Carried(_, values) => values.push(carried(known)),
                Filled::Line(values) => {
                    let end = before.and_then(|window| window.line_end(place, key, self.shape));
                    values.push(on_line(known, end, start));
                }
            }
        }
    }

    /// A row of the window.
    pub(super) fn take(&mut self, time: Option<i64>, row: usize, group: &mut Group, window: &Window) {
        self.times.push(time);
        self.keys.push(row as u32);
        self.rows.push(Some(row as u32));
        for (place, (filled, known)) in self.fills.iter_mut().zip(&mut group.columns).enumerate() {
            let column = window.rows.column(self.shape.fills[place].0);
            match filled {
                Filled::Carried(_, values) => {
                    if column.is_valid(row) {
                        *known = Known::Row(row as u32);
                    }
                    values.push(carried(known));
                }
                Filled::Line(values) if column.is_valid(row) => {
                    let value = column.as_primitive::<Float64Type>().value(row);
                    if let Some(time) = time {
                        *known = Known::Point(Point { time: time as f64, value });
                    }
                    values.push(Some(value));
                }
                Filled::Line(values) => {
                    let end = window.line_end(place, row, self.shape);
                    values.push(time.and_then(|time| on_line(known, end, time)));
                }
            }
        }
    }

    /// The rows. Columns of `window` and of the batch have the same places.
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
                    Some(place) => fills[place].array(column)?,
                    None => taken(column, &rows)?,
                }
            });
        }
        Ok(RecordBatch::try_new(Arc::clone(schema), columns)?)
    }
}

fn carried(known: &Known) -> (usize, usize) {
    match known {
        Known::Row(row) => (WINDOW, *row as usize),
        Known::Earlier(_) => EARLIER,
        Known::Nothing | Known::Point(_) => NOTHING,
    }
}

fn on_line(known: &Known, end: Option<Point>, time: i64) -> Option<f64> {
    let Known::Point(begin) = known else { return None };
    Some(between(*begin, end?, time as f64))
}

/// The rows, or NULL.
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
