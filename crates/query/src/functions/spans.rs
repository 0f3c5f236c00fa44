//! `sum` and `avg` of intervals.
//!
//! Months, days and hours are added apart from each other, as in PostgreSQL: twice 13 hours are 26 hours and not a day and two hours.

use std::sync::Arc;

use arrow_array::cast::AsArray;
use arrow_array::types::{DurationMicrosecondType, Int64Type, IntervalMonthDayNanoType};
use arrow_array::{Array, ArrayRef};
use arrow_schema::{DataType, Field, FieldRef, IntervalUnit, TimeUnit};
use datafusion::arrow::compute::cast;
use datafusion::common::{Result, ScalarValue};
use datafusion::logical_expr::Accumulator;
use datafusion::logical_expr::function::{AccumulatorArgs, StateFieldsArgs};
use datafusion::logical_expr::utils::format_state_name;
use model::Interval;

use super::by_value::interval_out_of_range;
use super::calendar;
use crate::QueryError;
use crate::values::intervals::{from_arrow, to_arrow};

/// The type of sums and averages of intervals.
pub(super) const INTERVAL: DataType = DataType::Interval(IntervalUnit::MonthDayNano);

/// The parts of the state, in order.
const PARTS: [&str; 4] = ["months", "days", "micros", "count"];

/// Whether values are intervals, or differences of times, which are intervals in PostgreSQL.
pub(super) fn is_span(data_type: &DataType) -> bool {
    matches!(data_type, DataType::Duration(_)) || *data_type == INTERVAL
}

/// Whether an aggregate is one of intervals.
pub(super) fn are_spans(args: &AccumulatorArgs<'_>) -> bool {
    args.expr_fields.first().is_some_and(|field| is_span(field.data_type()))
}

/// Makes an accumulator.
pub(super) fn accumulator(args: &AccumulatorArgs<'_>, gives: Outcome) -> Result<Box<dyn Accumulator>> {
    if args.is_distinct {
        let message = "sum and avg of DISTINCT intervals beside other aggregates; select the distinct intervals in a subquery";
        return Err(QueryError::unsupported(message).into());
    }
    Ok(Box::new(Spans { gives, months: 0, days: 0, micros: 0, count: 0 }))
}

/// The fields of the state.
pub(super) fn state_fields(args: &StateFieldsArgs<'_>) -> Vec<FieldRef> {
    PARTS.map(|part| Arc::new(Field::new(format_state_name(args.name, part), DataType::Int64, true))).into()
}

/// What is computed from the sum.
#[derive(Debug, Clone, Copy)]
pub(super) enum Outcome {
    Sum,
    Mean,
}

/// Adds intervals.
#[derive(Debug)]
struct Spans {
    gives: Outcome,
    months: i64,
    days: i64,
    micros: i64,
    count: i64,
}

impl Spans {
    /// Adds each interval as often as `times` says: once, or minus once.
    fn add_all(&mut self, values: &ArrayRef, times: i64) -> Result<()> {
        if matches!(values.data_type(), DataType::Duration(_)) {
            let values = cast(values, &DataType::Duration(TimeUnit::Microsecond))?;
            let spans = values.as_primitive::<DurationMicrosecondType>().iter().flatten();
            return spans.map(Interval::of_difference).try_for_each(|span| self.add(span, times));
        }
        let spans = values.as_primitive::<IntervalMonthDayNanoType>().iter().flatten();
        spans.map(from_arrow).try_for_each(|span| self.add(span, times))
    }

    fn add(&mut self, span: Interval, times: i64) -> Result<()> {
        self.add_parts([span.months.into(), span.days.into(), span.micros, 1], times)
    }

    fn add_parts(&mut self, parts: [i64; 4], times: i64) -> Result<()> {
        let sums = [&mut self.months, &mut self.days, &mut self.micros, &mut self.count];
        for (sum, part) in sums.into_iter().zip(parts) {
            let part = part.checked_mul(times).and_then(|part| sum.checked_add(part));
            *sum = part.ok_or_else(interval_out_of_range)?;
        }
        Ok(())
    }

    fn result(&self) -> Result<Interval> {
        let part = |sum: i64| i32::try_from(sum).map_err(|_| interval_out_of_range());
        let sum = Interval { months: part(self.months)?, days: part(self.days)?, micros: self.micros };
        Ok(match self.gives {
            Outcome::Sum => sum,
            Outcome::Mean => calendar::divided(sum, self.count as f64)?,
        })
    }
}

impl Accumulator for Spans {
    fn update_batch(&mut self, values: &[ArrayRef]) -> Result<()> {
        self.add_all(&values[0], 1)
    }

    fn evaluate(&mut self) -> Result<ScalarValue> {
        if self.count == 0 {
            return Ok(ScalarValue::IntervalMonthDayNano(None));
        }
        let interval = to_arrow(self.result()?).ok_or_else(interval_out_of_range)?;
        Ok(ScalarValue::IntervalMonthDayNano(Some(interval)))
    }

    fn size(&self) -> usize {
        size_of_val(self)
    }

    fn state(&mut self) -> Result<Vec<ScalarValue>> {
        let parts = [self.months, self.days, self.micros, self.count];
        Ok(parts.map(|part| ScalarValue::Int64(Some(part))).into())
    }

    fn merge_batch(&mut self, states: &[ArrayRef]) -> Result<()> {
        let parts: Vec<_> = states.iter().map(|part| part.as_primitive::<Int64Type>()).collect();
        let [months, days, micros, count] = parts.as_slice() else { return Ok(()) };
        for row in (0..months.len()).filter(|row| count.is_valid(*row)) {
            self.add_parts([months.value(row), days.value(row), micros.value(row), count.value(row)], 1)?;
        }
        Ok(())
    }

    fn retract_batch(&mut self, values: &[ArrayRef]) -> Result<()> {
        self.add_all(&values[0], -1)
    }

    fn supports_retract_batch(&self) -> bool {
        true
    }
}
