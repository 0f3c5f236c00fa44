//! Compares intervals by their length.
//!
//! When PostgreSQL compares intervals, a month has 30 days and a day has 24 hours, so 25 hours are more than a day. DataFusion
//! compares months, then days, then the rest.

use std::sync::{Arc, LazyLock};

use arrow_array::cast::AsArray;
use arrow_array::types::{Decimal128Type, IntervalMonthDayNanoType};
use arrow_array::{Array, PrimitiveArray};
use arrow_schema::{DataType, IntervalUnit, TimeUnit};
use datafusion::common::{DFSchema, Result, ScalarValue};
use datafusion::logical_expr::expr::BinaryExpr;
use datafusion::logical_expr::planner::{ExprPlanner, PlannerResult, RawBinaryExpr};
use datafusion::logical_expr::{
    ColumnarValue, Expr, ExprSchemable, LogicalPlan, Operator, ScalarFunctionArgs, ScalarUDF, ScalarUDFImpl,
    Signature, Volatility, cast,
};

use datafusion::sql::sqlparser::ast::BinaryOperator;

use crate::functions::times;
use crate::values::intervals::from_arrow;

use super::call::call;

const INTERVAL: DataType = DataType::Interval(IntervalUnit::MonthDayNano);
const LENGTH: DataType = DataType::Decimal128(38, 0);

/// Returns the comparison of the lengths of two intervals; `None` if the expression is not a comparison of intervals.
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
    if !compares || !is_interval(&binary.left, schema) || !is_interval(&binary.right, schema) {
        return None;
    }
    let length = |expr: &Expr| Box::new(length(expr.clone()));
    Some(Expr::BinaryExpr(BinaryExpr {
        left: length(&binary.left),
        op: binary.op,
        right: length(&binary.right),
    }))
}

/// The length of an interval in microseconds.
pub(super) fn length(interval: Expr) -> Expr {
    call(&function(), vec![interval])
}

/// Whether a value is an interval with months and days. DataFusion compares intervals of microseconds correctly.
pub(super) fn is_interval(expr: &Expr, schema: &DFSchema) -> bool {
    matches!(expr.get_type(schema), Ok(INTERVAL))
}

/// Sorts intervals by their length.
pub(super) fn in_order(plan: LogicalPlan, schema: &DFSchema) -> Result<LogicalPlan> {
    let LogicalPlan::Sort(mut sort) = plan else { return Ok(plan) };
    for order in &mut sort.expr {
        if is_interval(&order.expr, schema) {
            order.expr = length(order.expr.clone());
        }
    }
    Ok(LogicalPlan::Sort(sort))
}

fn is_span(data_type: &DataType) -> bool {
    matches!(data_type, DataType::Interval(_) | DataType::Duration(_))
}

fn is_day(data_type: &DataType) -> bool {
    matches!(data_type, DataType::Date32 | DataType::Date64)
}

/// Whether PostgreSQL computes with an interval in another way than DataFusion. DataFusion multiplies no interval by a number, and
/// the sum of a date and an interval is a date there.
pub(crate) fn computes(binary: &BinaryExpr, schema: &DFSchema) -> bool {
    let (Ok(left), Ok(right)) = (binary.left.get_type(schema), binary.right.get_type(schema)) else {
        return false;
    };
    match binary.op {
        Operator::Plus => (is_day(&left) && is_span(&right)) || (is_span(&left) && is_day(&right)),
        Operator::Minus => is_day(&left) && is_span(&right),
        Operator::Multiply => {
            (is_span(&left) && right.is_numeric()) || (left.is_numeric() && is_span(&right))
        }
        Operator::Divide => is_span(&left) && right.is_numeric(),
        _ => false,
    }
}

/// Returns the expression as PostgreSQL computes it.
pub(crate) fn computed(binary: BinaryExpr, schema: &DFSchema) -> Result<Expr> {
    let BinaryExpr { left, op, right } = binary;
    if matches!(op, Operator::Plus | Operator::Minus) {
        let of_time = |expr: Box<Expr>| -> Result<Box<Expr>> {
            let is_date = is_day(&expr.get_type(schema)?);
            let time = DataType::Timestamp(TimeUnit::Microsecond, None);
            Ok(if is_date { Box::new(cast(*expr, time)) } else { expr })
        };
        return Ok(Expr::BinaryExpr(BinaryExpr { left: of_time(left)?, op, right: of_time(right)? }));
    }
    let function = if op == Operator::Divide { times::divided() } else { times::multiplied() };
    let (span, number) = if is_span(&left.get_type(schema)?) { (left, right) } else { (right, left) };
    Ok(call(&function, vec![*span, *number]))
}

/// Plans the product and the quotient of an interval and a number, which DataFusion refuses.
#[derive(Debug)]
pub(crate) struct IntervalOperators;

impl ExprPlanner for IntervalOperators {
    fn plan_binary_op(&self, expr: RawBinaryExpr, schema: &DFSchema) -> Result<PlannerResult<RawBinaryExpr>> {
        let op = match expr.op {
            BinaryOperator::Multiply => Operator::Multiply,
            BinaryOperator::Divide => Operator::Divide,
            _ => return Ok(PlannerResult::Original(expr)),
        };
        let binary = BinaryExpr::new(Box::new(expr.left.clone()), op, Box::new(expr.right.clone()));
        if !computes(&binary, schema) {
            return Ok(PlannerResult::Original(expr));
        }
        Ok(PlannerResult::Planned(computed(binary, schema)?))
    }
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
