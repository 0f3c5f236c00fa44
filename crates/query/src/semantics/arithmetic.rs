//! `+ - * / %` and the sign with PostgreSQL's errors: they fail on overflow and on division by zero.

use std::fmt::Write as _;
use std::sync::{Arc, LazyLock};

use arrow_array::cast::AsArray;
use arrow_array::types::{ArrowPrimitiveType, Float32Type, Float64Type, Int16Type, Int32Type, Int64Type};
use arrow_array::{Array, ArrayRef, ArrowNativeTypeOp, Datum, PrimitiveArray};
use arrow_schema::{ArrowError, DataType, Field, FieldRef};
use datafusion::arrow::compute::kernels::numeric;
use datafusion::common::{DFSchema, Result, ScalarValue, exec_err};
use datafusion::logical_expr::{
    ColumnarValue, Expr, ExprSchemable, Operator, ReturnFieldArgs, ScalarFunctionArgs, ScalarUDF,
    ScalarUDFImpl, Signature, Volatility,
};
use datafusion::physical_expr_common::datum::apply;

use crate::QueryError;

/// The numbers of Rust that are computed here. DataFusion computes all others.
fn is_checked(data_type: &DataType) -> bool {
    matches!(
        data_type,
        DataType::Int16 | DataType::Int32 | DataType::Int64 | DataType::Float32 | DataType::Float64
    )
}

/// Returns the function that replaces an operator between two values of a type; `None` if the operator already does the right
/// thing.
pub(super) fn function(operator: Operator, data_type: &DataType) -> Option<Arc<ScalarUDF>> {
    static FUNCTIONS: LazyLock<[Arc<ScalarUDF>; 5]> = LazyLock::new(|| {
        [Operator::Plus, Operator::Minus, Operator::Multiply, Operator::Divide, Operator::Modulo].map(
            |operator| {
                let signature = Signature::any(2, Volatility::Immutable);
                Arc::new(ScalarUDF::from(Checked { operation: Operation::Between(operator), signature }))
            },
        )
    });
    let index = match operator {
        Operator::Plus => 0,
        Operator::Minus => 1,
        Operator::Multiply => 2,
        Operator::Divide => 3,
        Operator::Modulo if data_type.is_integer() => 4,
        _ => return None,
    };
    is_checked(data_type).then(|| Arc::clone(&FUNCTIONS[index]))
}

/// Returns the function that replaces a sign.
pub(super) fn negation(data_type: &DataType) -> Option<Arc<ScalarUDF>> {
    static FUNCTION: LazyLock<Arc<ScalarUDF>> = LazyLock::new(|| {
        let signature = Signature::any(1, Volatility::Immutable);
        Arc::new(ScalarUDF::from(Checked { operation: Operation::Sign, signature }))
    });
    (is_checked(data_type) && data_type.is_integer()).then(|| Arc::clone(&FUNCTION))
}

/// Whether such a call can fail for values that a condition beside it may exclude.
pub(super) fn divides(function: &ScalarUDF) -> bool {
    let checked = function.inner().downcast_ref::<Checked>();
    checked.is_some_and(|checked| {
        matches!(checked.operation, Operation::Between(Operator::Divide | Operator::Modulo))
    })
}

/// Returns the operator and the values of a call of such a function.
fn checked_call(expr: &Expr) -> Option<(Operator, &[Expr; 2])> {
    let Expr::ScalarFunction(call) = expr else { return None };
    match call.func.inner().downcast_ref::<Checked>()?.operation {
        Operation::Between(operator) => Some((operator, call.args.as_array()?)),
        Operation::Sign => None,
    }
}

/// Returns the type of a value. In a chain of links of the same type, only the first is asked.
pub(super) fn type_of(expr: &Expr, schema: &DFSchema) -> Result<DataType> {
    let mut expr = expr;
    while let Some((_, [left, _])) = checked_call(expr) {
        expr = left;
    }
    expr.get_type(schema)
}

/// The operation of a function.
#[derive(Debug, PartialEq, Eq, Hash)]
enum Operation {
    Between(Operator),
    Sign,
}

#[derive(Debug, PartialEq, Eq, Hash)]
struct Checked {
    operation: Operation,
    signature: Signature,
}

impl ScalarUDFImpl for Checked {
    fn name(&self) -> &str {
        match self.operation {
            Operation::Between(Operator::Plus) => "add",
            Operation::Between(Operator::Minus) => "subtract",
            Operation::Between(Operator::Multiply) => "multiply",
            Operation::Between(Operator::Divide) => "divide",
            Operation::Between(_) => "remainder",
            Operation::Sign => "negate",
        }
    }

    /// The name of the operator, so that columns keep their names.
    fn schema_name(&self, args: &[Expr]) -> Result<String> {
        let Operation::Between(operator) = self.operation else {
            return Ok(format!("(- {})", args[0].schema_name()));
        };
        // The text of a long chain is built once, not once for each link.
        let mut behind = vec![(operator, &args[1])];
        let mut first = &args[0];
        while let Some((operator, [left, right])) = checked_call(first) {
            behind.push((operator, right));
            first = left;
        }
        let mut name = first.schema_name().to_string();
        for (operator, right) in behind.iter().rev() {
            write!(name, " {operator} {}", right.schema_name()).expect("BUG: memory takes text");
        }
        Ok(name)
    }

    fn signature(&self) -> &Signature {
        &self.signature
    }

    fn return_type(&self, types: &[DataType]) -> Result<DataType> {
        Ok(types[0].clone())
    }

    fn return_field_from_args(&self, args: ReturnFieldArgs) -> Result<FieldRef> {
        Ok(field_like(self.name(), args.arg_fields))
    }

    fn is_strict(&self) -> bool {
        true
    }

    fn invoke_with_args(&self, args: ScalarFunctionArgs) -> Result<ColumnarValue> {
        match (&self.operation, &*args.args) {
            (Operation::Between(operator), [left, right]) => {
                apply(left, right, |left, right| computed(*operator, left, right))
            }
            (Operation::Sign, [number]) => with_other_sign(number),
            (_, other) => exec_err!("{} of {} values", self.name(), other.len()),
        }
    }
}

fn computed(operator: Operator, left: &dyn Datum, right: &dyn Datum) -> Result<ArrayRef, ArrowError> {
    match left.get().0.data_type() {
        DataType::Float64 => floats::<Float64Type>(operator, left, right),
        DataType::Float32 => floats::<Float32Type>(operator, left, right),
        other => integers(operator, left, right).map_err(|error| out_of_range(error, other)),
    }
}

fn integers(operator: Operator, left: &dyn Datum, right: &dyn Datum) -> Result<ArrayRef, ArrowError> {
    match operator {
        Operator::Plus => numeric::add(left, right),
        Operator::Minus => numeric::sub(left, right),
        Operator::Multiply => numeric::mul(left, right),
        Operator::Divide => numeric::div(left, right),
        _ => numeric::rem(left, right),
    }
}

fn floats<T: ArrowPrimitiveType>(
    operator: Operator,
    left: &dyn Datum,
    right: &dyn Datum,
) -> Result<ArrayRef, ArrowError>
where
    T::Native: Float,
{
    let result = integers(operator, left, right)?;
    let numbers = result.as_primitive::<T>();
    // Nearly all results are finite, which one check finds.
    let may_vanish = matches!(operator, Operator::Multiply | Operator::Divide);
    let is_plain = |number: &T::Native| number.is_bounded() && !(may_vanish && number.is_nothing());
    if numbers.values().iter().all(is_plain) {
        return Ok(result);
    }
    let (left, right) = (Operand::<T>::of(left), Operand::<T>::of(right));
    let is_checked = |row: &usize| numbers.is_valid(*row) && !is_plain(&numbers.values()[*row]);
    for row in (0..numbers.len()).filter(is_checked) {
        check(operator, left.at(row), right.at(row), numbers.value(row))?;
    }
    Ok(result)
}

/// The rules of PostgreSQL's `utils/float.h`.
fn check<F: Float>(operator: Operator, left: F, right: F, result: F) -> Result<(), ArrowError> {
    let divides = operator == Operator::Divide;
    let message = if divides && right.is_nothing() && !left.is_not_a_number() {
        return Err(ArrowError::DivideByZero);
    } else if result.is_boundless() && !left.is_boundless() && (divides || !right.is_boundless()) {
        "value out of range: overflow"
    } else if result.is_nothing()
        && matches!(operator, Operator::Multiply | Operator::Divide)
        && !left.is_nothing()
        && !(if divides { right.is_boundless() } else { right.is_nothing() })
    {
        "value out of range: underflow"
    } else {
        return Ok(());
    };
    Err(ArrowError::from_external_error(Box::new(QueryError::out_of_range(message))))
}

/// The operations on numbers of both sizes.
trait Float: Copy {
    fn is_boundless(self) -> bool;
    fn is_nothing(self) -> bool;
    fn is_not_a_number(self) -> bool;
    fn is_bounded(self) -> bool;
}

macro_rules! float {
    ($type:ty) => {
        impl Float for $type {
            fn is_boundless(self) -> bool {
                self.is_infinite()
            }

            fn is_nothing(self) -> bool {
                self == 0.0
            }

            fn is_not_a_number(self) -> bool {
                self.is_nan()
            }

            fn is_bounded(self) -> bool {
                self.is_finite()
            }
        }
    };
}

float!(f64);
float!(f32);

/// A column or a constant.
struct Operand<'a, T: ArrowPrimitiveType> {
    numbers: &'a PrimitiveArray<T>,
    is_constant: bool,
}

impl<'a, T: ArrowPrimitiveType> Operand<'a, T> {
    fn of(datum: &'a dyn Datum) -> Self {
        let (array, is_constant) = datum.get();
        Self { numbers: array.as_primitive(), is_constant }
    }

    fn at(&self, row: usize) -> T::Native {
        self.numbers.value(if self.is_constant { 0 } else { row })
    }
}

fn with_other_sign(number: &ColumnarValue) -> Result<ColumnarValue> {
    let data_type = number.data_type();
    let array = number.to_array(1)?;
    let negated = match &data_type {
        DataType::Int16 => negated::<Int16Type>(&array),
        DataType::Int32 => negated::<Int32Type>(&array),
        _ => negated::<Int64Type>(&array),
    };
    let negated = negated.map_err(|error| out_of_range(error, &data_type))?;
    Ok(match number {
        ColumnarValue::Scalar(_) => ColumnarValue::Scalar(ScalarValue::try_from_array(&negated, 0)?),
        ColumnarValue::Array(_) => ColumnarValue::Array(negated),
    })
}

fn negated<T: ArrowPrimitiveType>(array: &ArrayRef) -> Result<ArrayRef, ArrowError> {
    Ok(Arc::new(array.as_primitive::<T>().try_unary::<_, T, _>(ArrowNativeTypeOp::neg_checked)?))
}

/// Returns a result with the type of the first value, NULL where a value is NULL.
pub(super) fn field_like(name: &str, args: &[FieldRef]) -> FieldRef {
    let nullable = args.iter().any(|field| field.is_nullable());
    Arc::new(Field::new(name, args[0].data_type().clone(), nullable))
}

/// An overflow, with PostgreSQL's text.
fn out_of_range(error: ArrowError, data_type: &DataType) -> ArrowError {
    match error {
        ArrowError::ArithmeticOverflow(_) => {
            let message = format!("{} out of range", type_name(data_type));
            ArrowError::from_external_error(Box::new(QueryError::out_of_range(message)))
        }
        other => other,
    }
}

/// PostgreSQL's name of a number type.
pub(super) fn type_name(data_type: &DataType) -> &'static str {
    match data_type {
        DataType::Int8 | DataType::Int16 => "smallint",
        DataType::Int32 => "integer",
        DataType::Int64 => "bigint",
        DataType::Float32 => "real",
        DataType::Float64 => "double precision",
        _ => "numeric",
    }
}
