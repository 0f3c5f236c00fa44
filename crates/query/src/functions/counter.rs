//! `rate`, `increase` and `delta` of (value, time): the change of a value over the rows of a group.

use std::collections::VecDeque;
use std::sync::Arc;

use arrow_array::cast::AsArray;
use arrow_array::types::{Float64Type, Int64Type, TimestampMicrosecondType};
use arrow_array::{Array, ArrayRef, Float64Array, Int64Array, ListArray};
use arrow_schema::{DataType, Field, FieldRef, TimeUnit};
use datafusion::arrow::buffer::OffsetBuffer;
use datafusion::common::{DataFusionError, Result, ScalarValue};
use datafusion::logical_expr::function::{AccumulatorArgs, StateFieldsArgs};
use datafusion::logical_expr::utils::{AggregateOrderSensitivity, format_state_name};
use datafusion::logical_expr::{Accumulator, AggregateUDF, AggregateUDFImpl, Signature, Volatility};

pub(super) fn functions() -> [Arc<AggregateUDF>; 3] {
    [Change::Rate, Change::Increase, Change::Delta].map(|change| {
        let signature = Signature::user_defined(Volatility::Immutable);
        Arc::new(AggregateUDF::from(Counter { change, signature }))
    })
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
enum Change {
    /// The increase per second.
    Rate,
    /// The sum of all steps. A step down means that the counter has begun again at zero.
    Increase,
    /// The newest value minus the oldest.
    Delta,
}

#[derive(Debug, PartialEq, Eq, Hash)]
struct Counter {
    change: Change,
    signature: Signature,
}

impl AggregateUDFImpl for Counter {
    fn name(&self) -> &str {
        match self.change {
            Change::Rate => "rate",
            Change::Increase => "increase",
            Change::Delta => "delta",
        }
    }

    fn signature(&self) -> &Signature {
        &self.signature
    }

    fn coerce_types(&self, types: &[DataType]) -> Result<Vec<DataType>> {
        let fits =
            matches!(types, [value, DataType::Timestamp(_, _)] if value.is_numeric() || value.is_null());
        if !fits {
            let message = format!("{} takes a number and a time, such as {0}(odometer, ts)", self.name());
            return Err(DataFusionError::Plan(message));
        }
        Ok(vec![DataType::Float64, DataType::Timestamp(TimeUnit::Microsecond, Some("UTC".into()))])
    }

    fn return_type(&self, _types: &[DataType]) -> Result<DataType> {
        Ok(DataType::Float64)
    }

    fn accumulator(&self, args: AccumulatorArgs) -> Result<Box<dyn Accumulator>> {
        if args.is_distinct {
            return Err(DataFusionError::NotImplemented(format!("DISTINCT in {}", self.name())));
        }
        Ok(Box::new(Samples { change: self.change, samples: VecDeque::new() }))
    }

    fn state_fields(&self, args: StateFieldsArgs) -> Result<Vec<FieldRef>> {
        let list = |name, data_type| {
            Arc::new(Field::new_list(format_state_name(args.name, name), item(data_type), true)) as FieldRef
        };
        Ok(vec![list("times", DataType::Int64), list("values", DataType::Float64)])
    }

    fn order_sensitivity(&self) -> AggregateOrderSensitivity {
        AggregateOrderSensitivity::Insensitive
    }
}

fn item(data_type: DataType) -> FieldRef {
    Arc::new(Field::new_list_field(data_type, true))
}

/// All samples of a group. They arrive in any order from several readers. A step needs two neighbouring samples, so all are kept
/// until the end.
#[derive(Debug)]
struct Samples {
    change: Change,
    /// Time in microseconds, and value.
    samples: VecDeque<(i64, f64)>,
}

impl Samples {
    fn list(array: ArrayRef, data_type: DataType) -> ScalarValue {
        let offsets = OffsetBuffer::from_lengths([array.len()]);
        ScalarValue::List(Arc::new(ListArray::new(item(data_type), offsets, array, None)))
    }

    fn result(&mut self) -> Option<f64> {
        self.samples.make_contiguous().sort_by_key(|(time, _)| *time);
        let (first, last) = (self.samples.front()?, self.samples.back()?);
        if self.samples.len() < 2 {
            return None;
        }
        let steps = self.samples.iter().zip(self.samples.iter().skip(1));
        let increase =
            || steps.map(|(one, next)| if next.1 < one.1 { next.1 } else { next.1 - one.1 }).sum::<f64>();
        match self.change {
            Change::Delta => Some(last.1 - first.1),
            Change::Increase => Some(increase()),
            Change::Rate => {
                let seconds = (last.0 as f64 - first.0 as f64) / 1e6;
                (seconds > 0.0).then(|| increase() / seconds)
            }
        }
    }
}

impl Accumulator for Samples {
    fn update_batch(&mut self, columns: &[ArrayRef]) -> Result<()> {
        let values = columns[0].as_primitive::<Float64Type>();
        let times = columns[1].as_primitive::<TimestampMicrosecondType>();
        let known = times.iter().zip(values).filter_map(|(time, value)| Some((time?, value?)));
        self.samples.extend(known);
        Ok(())
    }

    /// A sliding window removes the samples that it has taken first.
    fn retract_batch(&mut self, columns: &[ArrayRef]) -> Result<()> {
        let known =
            (0..columns[0].len()).filter(|&row| columns.iter().all(|column| column.is_valid(row))).count();
        self.samples.drain(..known.min(self.samples.len()));
        Ok(())
    }

    fn supports_retract_batch(&self) -> bool {
        true
    }

    fn evaluate(&mut self) -> Result<ScalarValue> {
        Ok(ScalarValue::Float64(self.result()))
    }

    fn size(&self) -> usize {
        size_of_val(self) + self.samples.capacity() * size_of::<(i64, f64)>()
    }

    fn state(&mut self) -> Result<Vec<ScalarValue>> {
        let times: Int64Array = self.samples.iter().map(|(time, _)| *time).collect();
        let values: Float64Array = self.samples.iter().map(|(_, value)| *value).collect();
        Ok(vec![
            Self::list(Arc::new(times), DataType::Int64),
            Self::list(Arc::new(values), DataType::Float64),
        ])
    }

    fn merge_batch(&mut self, states: &[ArrayRef]) -> Result<()> {
        let (times, values) = (states[0].as_list::<i32>(), states[1].as_list::<i32>());
        for (times, values) in times.iter().zip(values.iter()) {
            let (Some(times), Some(values)) = (times, values) else { continue };
            let times = times.as_primitive::<Int64Type>().values().iter().copied();
            let values = values.as_primitive::<Float64Type>().values().iter().copied();
            self.samples.extend(times.zip(values));
        }
        Ok(())
    }
}
