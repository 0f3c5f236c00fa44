//! A fast `date_bin` for the usual case: a column of times in order, in steps of constant length.
//!
//! DataFusion's function divides for each row, in nanoseconds and with checks at every step. Rows arrive in the order of time, so
//! most belong to the step of the row before. All other cases go to DataFusion's function, and the results are the same.

use std::sync::Arc;

use arrow_array::cast::AsArray;
use arrow_array::types::TimestampMicrosecondType;
use arrow_array::{Array, PrimitiveArray};
use arrow_schema::{DataType, FieldRef, TimeUnit};
use datafusion::common::{Result, ScalarValue};
use datafusion::functions::datetime;
use datafusion::logical_expr::sort_properties::{ExprProperties, SortProperties};
use datafusion::logical_expr::{
    ColumnarValue, Documentation, ReturnFieldArgs, ScalarFunctionArgs, ScalarUDF, ScalarUDFImpl, Signature,
};
use datafusion::physical_expr::expressions::{CastExpr, Column, Literal};
use datafusion::physical_expr::{PhysicalExpr, ScalarFunctionExpr};

/// Times within this distance from 1970 cannot overflow any sum here, even in nanoseconds.
const TIME_US_MAX: u64 = (i64::MAX / 4_000) as u64;
const MICROSECOND_NS: i64 = 1_000;

pub(super) fn function() -> Arc<ScalarUDF> {
    Arc::new(ScalarUDF::from(DateBin { inner: datetime::date_bin() }))
}

#[derive(Debug, PartialEq, Eq, Hash)]
struct DateBin {
    inner: Arc<ScalarUDF>,
}

impl ScalarUDFImpl for DateBin {
    fn name(&self) -> &str {
        self.inner.name()
    }

    fn signature(&self) -> &Signature {
        self.inner.signature()
    }

    fn coerce_types(&self, types: &[DataType]) -> Result<Vec<DataType>> {
        self.inner.coerce_types(types)
    }

    fn return_type(&self, types: &[DataType]) -> Result<DataType> {
        self.inner.return_type(types)
    }

    fn return_field_from_args(&self, args: ReturnFieldArgs) -> Result<FieldRef> {
        self.inner.return_field_from_args(args)
    }

    fn output_ordering(&self, inputs: &[ExprProperties]) -> Result<SortProperties> {
        self.inner.output_ordering(inputs)
    }

    fn documentation(&self) -> Option<&Documentation> {
        self.inner.documentation()
    }

    fn invoke_with_args(&self, args: ScalarFunctionArgs) -> Result<ColumnarValue> {
        if let Some(steps) = Steps::of_arguments(&args.args)
            && let ColumnarValue::Array(array) = &args.args[1]
            && let Some(times) = array.as_primitive_opt::<TimestampMicrosecondType>()
            && let Some(starts) = steps.starts(times.values())
        {
            let starts =
                PrimitiveArray::<TimestampMicrosecondType>::new(starts.into(), times.nulls().cloned());
            return Ok(ColumnarValue::Array(Arc::new(starts.with_data_type(times.data_type().clone()))));
        }
        self.inner.invoke_with_args(args)
    }
}

/// Steps of equal length in microseconds.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Steps {
    length_us: i64,
    /// The start of one of the steps.
    origin_us: i64,
}

impl Steps {
    /// Returns the column and the steps if an expression is `date_bin` of a column in steps of constant length. A cast of the
    /// column to nanoseconds is allowed, as plans of calls with two arguments have it: the steps are the same.
    pub(crate) fn of_column(expression: &Arc<dyn PhysicalExpr>) -> Option<(Column, Self)> {
        let call = expression.downcast_ref::<ScalarFunctionExpr>()?;
        let constant = |arg: &Arc<dyn PhysicalExpr>| Some(arg.downcast_ref::<Literal>()?.value().clone());
        let [length, time, origin @ ..] = call.args() else { return None };
        let origin = match origin {
            [] => None,
            [origin] => Some(constant(origin)?),
            _ => return None,
        };
        call.fun().inner().downcast_ref::<DateBin>()?;
        let time = match time.downcast_ref::<CastExpr>() {
            Some(cast) if matches!(cast.cast_type(), DataType::Timestamp(TimeUnit::Nanosecond, _)) => {
                cast.expr()
            }
            _ => time,
        };
        let column = time.downcast_ref::<Column>()?.clone();
        Some((column, Self::new(&constant(length)?, origin.as_ref())?))
    }

    fn of_arguments(args: &[ColumnarValue]) -> Option<Self> {
        let constant = |arg: &ColumnarValue| match arg {
            ColumnarValue::Scalar(value) => Some(value.clone()),
            ColumnarValue::Array(_) => None,
        };
        let origin = match args.get(2) {
            None => None,
            Some(origin) => Some(constant(origin)?),
        };
        Self::new(&constant(&args[0])?, origin.as_ref())
    }

    /// Returns the steps of these arguments if they are whole microseconds.
    fn new(length: &ScalarValue, origin: Option<&ScalarValue>) -> Option<Self> {
        let ScalarValue::IntervalMonthDayNano(Some(length)) = length else { return None };
        let origin_ns = match origin {
            None => 0,
            Some(ScalarValue::TimestampNanosecond(Some(origin_ns), _)) => *origin_ns,
            Some(_) => return None,
        };
        let days_ns = i64::from(length.days).checked_mul(24 * 3_600 * 1_000_000_000)?;
        let length_ns = days_ns.checked_add(length.nanoseconds)?;
        let is_whole = length_ns % MICROSECOND_NS == 0 && origin_ns % MICROSECOND_NS == 0;
        let (length_us, origin_us) = (length_ns / MICROSECOND_NS, origin_ns / MICROSECOND_NS);
        let is_near = |us: i64| us.unsigned_abs() <= TIME_US_MAX;
        (length.months == 0 && is_whole && length_us > 0 && is_near(length_us) && is_near(origin_us))
            .then_some(Self { length_us, origin_us })
    }

    /// Returns how many steps begin between two times, at most.
    pub(crate) fn count_max(self, first_us: i64, end_us: i64) -> u64 {
        end_us.abs_diff(first_us) / self.length_us.unsigned_abs() + 2
    }

    /// Returns the start of each time's step; `None` if a time is too far away.
    fn starts(self, times: &[i64]) -> Option<Vec<i64>> {
        let mut starts = Vec::with_capacity(times.len());
        let are_near = self.runs(times, |end, start| starts.resize(end, start));
        are_near.then_some(starts)
    }

    /// Calls a function for each run of neighbouring times in one step, with the index after the run and the start of the step.
    /// Returns `false`, early, if a time is too far away.
    pub(crate) fn runs(self, times: &[i64], mut tell: impl FnMut(usize, i64)) -> bool {
        const AT_ONCE: usize = 8;
        let mut first = 0;
        while let Some(ts) = times.get(first) {
            // A time in the step of a near time is near enough.
            if ts.unsigned_abs() > TIME_US_MAX {
                return false;
            }
            let start = self.start(*ts);
            // For a time below the start the difference wraps to a large number.
            let is_inside =
                |ts: &i64| ts.wrapping_sub(start).cast_unsigned() < self.length_us.cast_unsigned();
            let mut end = first + 1;
            while let Some(next) = times[end..].first_chunk::<AT_ONCE>()
                && next.iter().fold(true, |all, ts| all & is_inside(ts))
            {
                end += AT_ONCE;
            }
            end += times[end..].iter().take_while(|ts| is_inside(ts)).count();
            tell(end, start);
            first = end;
        }
        true
    }

    /// Returns the start of a time's step. The result is meaningless for a time that is too far away.
    pub(crate) fn start(self, ts: i64) -> i64 {
        ts.wrapping_sub(ts.wrapping_sub(self.origin_us).rem_euclid(self.length_us))
    }
}

#[cfg(test)]
mod tests {
    use arrow_array::{ArrayRef, TimestampMicrosecondArray};
    use arrow_schema::Field;
    use datafusion::arrow::datatypes::IntervalMonthDayNano;
    use datafusion::common::config::ConfigOptions;

    use super::*;

    fn interval(months: i32, days: i32, nanoseconds: i64) -> ColumnarValue {
        let length = IntervalMonthDayNano { months, days, nanoseconds };
        ColumnarValue::Scalar(ScalarValue::IntervalMonthDayNano(Some(length)))
    }

    fn call(function: &ScalarUDF, args: Vec<ColumnarValue>) -> Result<ArrayRef, String> {
        let field = |arg: &ColumnarValue| Arc::new(Field::new("argument", arg.data_type(), true));
        let number_rows = if let ColumnarValue::Array(array) = &args[1] { array.len() } else { 1 };
        let return_type = args[1].data_type();
        let args = ScalarFunctionArgs {
            arg_fields: args.iter().map(field).collect(),
            args,
            number_rows,
            return_field: Arc::new(Field::new("date_bin", return_type, true)),
            config_options: Arc::new(ConfigOptions::default()),
        };
        let value = function.invoke_with_args(args).map_err(|error| error.to_string())?;
        value.to_array(number_rows).map_err(|error| error.to_string())
    }

    /// For many steps, origins and times: result and error are those of DataFusion.
    #[test]
    fn the_results_equal_those_of_the_library() {
        let (ours, theirs) = (function(), datetime::date_bin());
        let mut random = 1_u64;
        let mut next = |bits: u32| {
            random = random.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
            (random >> 1).cast_signed() >> (63 - bits)
        };
        let zone = Some(Arc::<str>::from("UTC"));
        for round in 0..500 {
            let length = match round % 5 {
                0 => interval(0, 0, 1 + next(12)),
                1 => interval(0, 0, 1_000 * (1 + next(30))),
                2 => interval(0, 1 + next(4) as i32, -1_000 * next(20)),
                3 => interval(1 + next(2) as i32, 0, 0),
                _ => interval(0, 0, -next(3)),
            };
            let sign = if round % 2 == 0 { 1 } else { -1 };
            let mut times: Vec<Option<i64>> = (0..50).map(|_| Some(sign * next(round % 60))).collect();
            times.sort_unstable();
            times[7] = None;
            let times = TimestampMicrosecondArray::from(times).with_timezone_opt(zone.clone());
            let mut args = vec![length, ColumnarValue::Array(Arc::new(times))];
            if round % 3 != 0 {
                let origin_ns = sign * (next(round % 60) + 999) / 1_000 * 1_000;
                let origin = ScalarValue::TimestampNanosecond(Some(origin_ns), zone.clone());
                args.push(ColumnarValue::Scalar(origin));
            }
            assert_eq!(call(&ours, args.clone()), call(&theirs, args.clone()), "{args:?}");
        }
    }

    #[test]
    fn steps_of_constant_length_are_ours() {
        let origin = |ns: i64| ColumnarValue::Scalar(ScalarValue::TimestampNanosecond(Some(ns), None));
        let times = || ColumnarValue::Array(Arc::new(TimestampMicrosecondArray::from(vec![0])));
        let of = |length: ColumnarValue, origin: Option<ColumnarValue>| {
            Steps::of_arguments(
                &[Some(length), Some(times()), origin].into_iter().flatten().collect::<Vec<_>>(),
            )
        };
        let minute = 60_000_000_000;
        assert_eq!(of(interval(0, 0, minute), None), Some(Steps { length_us: 60_000_000, origin_us: 0 }));
        let week = Steps { length_us: 7 * 86_400_000_000, origin_us: 5 };
        assert_eq!(of(interval(0, 7, 0), Some(origin(5_000))), Some(week));
        for (length, begin) in [
            (interval(1, 0, 0), None),
            (interval(0, 0, 0), None),
            (interval(0, 0, 1_001), None),
            (interval(0, 0, minute), Some(origin(1))),
        ] {
            assert_eq!(of(length, begin), None);
        }
        assert_eq!(times().data_type(), DataType::Timestamp(TimeUnit::Microsecond, None));
    }
}
