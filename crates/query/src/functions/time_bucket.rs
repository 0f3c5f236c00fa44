//! `time_bucket(interval, ts[, origin])`: `date_bin` whose weeks begin on Mondays.

use std::sync::Arc;

use arrow_schema::{DataType, IntervalUnit, TimeUnit};
use datafusion::arrow::datatypes::IntervalMonthDayNano;
use datafusion::common::{DataFusionError, Result, ScalarValue};
use datafusion::logical_expr::expr::ScalarFunction;
use datafusion::logical_expr::simplify::{ExprSimplifyResult, SimplifyContext};
use datafusion::logical_expr::{
    ColumnarValue, Expr, ScalarFunctionArgs, ScalarUDF, ScalarUDFImpl, Signature, Volatility,
};

use super::date_bin;

/// Monday, 2000-01-03, in nanoseconds since 1970.
const MONDAY_NS: i64 = 946_857_600_000_000_000;
/// 2000-01-01 in nanoseconds since 1970: the origin of buckets of months and years.
const FIRST_OF_JANUARY_NS: i64 = 946_684_800_000_000_000;

/// Returns the origin of buckets of an interval, in nanoseconds since 1970.
pub(crate) fn default_origin_ns(interval: IntervalMonthDayNano) -> i64 {
    if interval.months == 0 { MONDAY_NS } else { FIRST_OF_JANUARY_NS }
}

pub(crate) fn function() -> Arc<ScalarUDF> {
    let signature = Signature::user_defined(Volatility::Immutable);
    Arc::new(ScalarUDF::from(TimeBucket { signature }))
}

#[derive(Debug, PartialEq, Eq, Hash)]
struct TimeBucket {
    signature: Signature,
}

impl ScalarUDFImpl for TimeBucket {
    fn name(&self) -> &str {
        "time_bucket"
    }

    fn signature(&self) -> &Signature {
        &self.signature
    }

    fn coerce_types(&self, types: &[DataType]) -> Result<Vec<DataType>> {
        let (2 | 3) = types.len() else {
            let message = "time_bucket takes an interval, a time and perhaps an origin";
            return Err(DataFusionError::Plan(message.into()));
        };
        let time = match &types[1] {
            time @ DataType::Timestamp(_, _) => time.clone(),
            _ => DataType::Timestamp(TimeUnit::Microsecond, Some("UTC".into())),
        };
        let DataType::Timestamp(_, zone) = &time else { return Ok(types.to_vec()) };
        let origin = DataType::Timestamp(TimeUnit::Nanosecond, zone.clone());
        let wanted = [DataType::Interval(IntervalUnit::MonthDayNano), time, origin];
        Ok(wanted.into_iter().take(types.len()).collect())
    }

    fn return_type(&self, types: &[DataType]) -> Result<DataType> {
        Ok(types[1].clone())
    }

    /// A call with a constant interval is replaced before the query runs.
    fn invoke_with_args(&self, _args: ScalarFunctionArgs) -> Result<ColumnarValue> {
        Err(DataFusionError::Plan("the interval of time_bucket must be a constant".into()))
    }

    fn simplify(&self, mut args: Vec<Expr>, context: &SimplifyContext) -> Result<ExprSimplifyResult> {
        let Expr::Literal(ScalarValue::IntervalMonthDayNano(Some(interval)), _) = &args[0] else {
            return Ok(ExprSimplifyResult::Original(args));
        };
        if args.len() == 2 {
            let origin = default_origin_ns(*interval);
            let DataType::Timestamp(_, zone) = context.get_data_type(&args[1])? else {
                return Ok(ExprSimplifyResult::Original(args));
            };
            args.push(Expr::Literal(ScalarValue::TimestampNanosecond(Some(origin), zone), None));
        }
        Ok(ExprSimplifyResult::Simplified(Expr::ScalarFunction(ScalarFunction {
            func: date_bin::function(),
            args,
        })))
    }
}
