//! Intervals compared by their length.
//!
//! PostgreSQL takes a month for 30 days and a day for 24 hours when it compares intervals, so 25 hours are more than a day. The
//! library compares months, then days, then the rest.

use std::sync::{Arc, LazyLock};

use arrow_array::cast::AsArray;
use arrow_array::types::{Decimal128Type, IntervalMonthDayNanoType};
use arrow_array::{Array, PrimitiveArray};
use arrow_schema::{DataType, IntervalUnit};
use datafusion::common::{DFSchema, Result, ScalarValue};
use datafusion::logical_expr::expr::BinaryExpr;
use datafusion::logical_expr::{
    ColumnarValue, Expr, ExprSchemable, Operator, ScalarFunctionArgs, ScalarUDF, ScalarUDFImpl, Signature,
    Volatility,
};

use super::intervals::from_arrow;
use super::rules::call;

const INTERVAL: DataType = DataType::Interval(IntervalUnit::MonthDayNano);
const LENGTH: DataType = DataType::Decimal128(38, 0);

/// A comparison of the lengths of two intervals; `None` if something else is compared or done.
pub(super) fn compared(binary: &BinaryExpr, schema: &DFSchema) -> Option<Expr> {
    let compares = matches!(
        binary.op,
        Operator::Eq
            | Operator::NotEq
            | Operator::Lt
            | Operator::LtEq
            | Operator::Gt
            | Operator::GtEq
            | Operator::IsDistinctFrom
            | Operator::IsNotDistinctFrom
    );
    let is_interval = |expr: &Expr| matches!(expr.get_type(schema), Ok(INTERVAL));
    if !compares || !is_interval(&binary.left) || !is_interval(&binary.right) {
        return None;
    }
    let length = |expr: &Expr| Box::new(call(&function(), vec![expr.clone()]));
    Some(Expr::BinaryExpr(BinaryExpr {
        left: length(&binary.left),
        op: binary.op,
        right: length(&binary.right),
    }))
}

fn function() -> Arc<ScalarUDF> {
    static FUNCTION: LazyLock<Arc<ScalarUDF>> = LazyLock::new(|| {
        let signature = Signature::exact(vec![INTERVAL], Volatility::Immutable);
        Arc::new(ScalarUDF::from(Length { signature }))
    });
    Arc::clone(&FUNCTION)
}

#[derive(Debug, PartialEq, Eq, Hash)]
struct Length {
    signature: Signature,
}

impl ScalarUDFImpl for Length {
    fn name(&self) -> &str {
        "interval_length_us"
    }

    fn schema_name(&self, args: &[Expr]) -> Result<String> {
        Ok(args[0].schema_name().to_string())
    }

    fn signature(&self) -> &Signature {
        &self.signature
    }

    fn return_type(&self, _types: &[DataType]) -> Result<DataType> {
        Ok(LENGTH)
    }

    fn is_strict(&self) -> bool {
        true
    }

    fn invoke_with_args(&self, args: ScalarFunctionArgs) -> Result<ColumnarValue> {
        let array = args.args[0].to_array(1)?;
        let intervals = array.as_primitive::<IntervalMonthDayNanoType>();
        let lengths: PrimitiveArray<Decimal128Type> =
            intervals.unary(|interval| from_arrow(interval).length_us());
        let lengths = lengths.with_data_type(LENGTH);
        if matches!(args.args[0], ColumnarValue::Scalar(_)) {
            return Ok(ColumnarValue::Scalar(ScalarValue::try_from_array(&lengths, 0)?));
        }
        Ok(ColumnarValue::Array(Arc::new(lengths) as Arc<dyn Array>))
    }
}
