//! Window functions that fill gaps: `locf(x)` and `interpolate(x, t)`.

use std::sync::Arc;

use arrow_array::cast::AsArray;
use arrow_array::types::{Float64Type, TimestampMicrosecondType};
use arrow_array::{Array, ArrayRef, Float64Array, UInt64Array};
use arrow_schema::{DataType, Field, FieldRef, TimeUnit};
use datafusion::arrow::compute::take;
use datafusion::common::{DataFusionError, Result};
use datafusion::logical_expr::function::{PartitionEvaluatorArgs, WindowUDFFieldArgs};
use datafusion::logical_expr::{PartitionEvaluator, Signature, Volatility, WindowUDF, WindowUDFImpl};

pub(super) fn functions() -> [Arc<WindowUDF>; 2] {
    let carry = Signature::any(1, Volatility::Immutable);
    let interpolate = Signature::user_defined(Volatility::Immutable);
    [(Fill::Carry, carry), (Fill::Interpolate, interpolate)]
        .map(|(fill, signature)| Arc::new(WindowUDF::from(GapFill { fill, signature })))
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
enum Fill {
    /// The last value that is not NULL.
    Carry,
    /// The point at that time on the line between the values before and after; NULL outside of all values.
    Interpolate,
}

#[derive(Debug, PartialEq, Eq, Hash)]
struct GapFill {
    fill: Fill,
    signature: Signature,
}

impl WindowUDFImpl for GapFill {
    fn name(&self) -> &str {
        match self.fill {
            Fill::Carry => "locf",
            Fill::Interpolate => "interpolate",
        }
    }

    fn signature(&self) -> &Signature {
        &self.signature
    }

    fn coerce_types(&self, types: &[DataType]) -> Result<Vec<DataType>> {
        let fits = matches!(types, [value, DataType::Timestamp(_, _)] if value.is_numeric());
        if !fits {
            let message = "interpolate takes a number and a time, such as interpolate(speed, ts)";
            return Err(DataFusionError::Plan(message.into()));
        }
        Ok(vec![DataType::Float64, DataType::Timestamp(TimeUnit::Microsecond, Some("UTC".into()))])
    }

    fn field(&self, args: WindowUDFFieldArgs) -> Result<FieldRef> {
        let data_type = match (self.fill, args.get_input_field(0)) {
            (Fill::Carry, Some(field)) => field.data_type().clone(),
            _ => DataType::Float64,
        };
        Ok(Arc::new(Field::new(args.name(), data_type, true)))
    }

    fn partition_evaluator(&self, _args: PartitionEvaluatorArgs) -> Result<Box<dyn PartitionEvaluator>> {
        Ok(Box::new(Filling(self.fill)))
    }
}

#[derive(Debug)]
struct Filling(Fill);

impl PartitionEvaluator for Filling {
    fn evaluate_all(&mut self, columns: &[ArrayRef], rows: usize) -> Result<ArrayRef> {
        match self.0 {
            Fill::Carry => carry(&columns[0], rows),
            Fill::Interpolate => Ok(Arc::new(interpolate(
                columns[0].as_primitive::<Float64Type>(),
                columns[1].as_primitive::<TimestampMicrosecondType>().values(),
            ))),
        }
    }
}

fn carry(values: &ArrayRef, rows: usize) -> Result<ArrayRef> {
    let mut last = None;
    let sources: UInt64Array = (0..rows)
        .map(|row| {
            last = if values.is_valid(row) { Some(row as u64) } else { last };
            last
        })
        .collect();
    Ok(take(values, &sources, None)?)
}

fn interpolate(values: &Float64Array, times: &[i64]) -> Float64Array {
    let mut filled = Vec::with_capacity(values.len());
    let mut before: Option<Point> = None;
    for row in 0..values.len() {
        if values.is_valid(row) {
            let here = Point { time: times[row] as f64, value: values.value(row) };
            fill_between(before, here, times, &mut filled);
            filled.push(Some(here.value));
            before = Some(here);
        }
    }
    filled.resize(values.len(), None);
    filled.into()
}

/// Fills from the end of `filled` up to the row of `here`, the next row with a value.
fn fill_between(before: Option<Point>, here: Point, times: &[i64], filled: &mut Vec<Option<f64>>) {
    while (times[filled.len()] as f64) < here.time {
        let time = times[filled.len()] as f64;
        filled.push(before.map(|before| between(before, here, time)));
    }
}

/// An end of a straight line. The time is in microseconds, which are exact until the year 2255.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Point {
    pub(crate) time: f64,
    pub(crate) value: f64,
}

/// Returns the value at a time on the line between two points.
pub(crate) fn between(before: Point, after: Point, time: f64) -> f64 {
    before.value + (after.value - before.value) * (time - before.time) / (after.time - before.time)
}
