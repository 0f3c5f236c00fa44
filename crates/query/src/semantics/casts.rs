//! Casts between types as PostgreSQL does them.
//!
//! A number is rounded to an integer. A text may have blanks around a number. The text of a value is the one that PostgreSQL
//! writes.

use std::borrow::Cow;
use std::sync::Arc;

use arrow_array::cast::AsArray;
use arrow_array::types::{
    ArrowPrimitiveType, Decimal128Type, Float32Type, Float64Type, Int8Type, Int16Type, Int32Type, Int64Type,
};
use arrow_array::{Array, ArrayRef, PrimitiveArray, StringArray};
use arrow_schema::{ArrowError, DataType, Field, FieldRef};
use datafusion::arrow::compute::{CastOptions, cast, cast_with_options};
use datafusion::common::tree_node::Transformed;
use datafusion::common::{Result, ScalarValue};
use datafusion::logical_expr::expr::Cast;
use datafusion::logical_expr::{
    ColumnarValue, Expr, ReturnFieldArgs, ScalarFunctionArgs, ScalarUDF, ScalarUDFImpl, Signature,
    Volatility, lit,
};

use super::arithmetic::type_name;
use super::{literals, text};
use crate::QueryError;
use crate::error::INVALID_TEXT;

/// Returns the function that replaces a cast; `None` if DataFusion's cast is right.
pub(super) fn function(from: &DataType, to: &DataType) -> Option<Arc<ScalarUDF>> {
    let is_known = match (from, to) {
        (from, to) if to.is_string() => text::differs(from),
        (from, to) if to.is_signed_integer() => from.is_floating() || from.is_decimal() || from.is_string(),
        (DataType::Float64, DataType::Float32) => true,
        (from, DataType::Float32 | DataType::Float64) => from.is_string(),
        // DataFusion takes the time of day for sorted where the times are.
        (DataType::Timestamp(..), DataType::Time32(_) | DataType::Time64(_)) => true,
        // A condition beside it may check the text.
        (from, to) if from.is_string() => to.is_temporal() || *to == DataType::Boolean,
        _ => false,
    };
    is_known.then(|| {
        let signature = Signature::any(1, Volatility::Immutable);
        Arc::new(ScalarUDF::from(Converted { to: to.clone(), reads_text: from.is_string(), signature }))
    })
}

/// Converts a constant text to a time or an interval. The text is first rewritten to a form that DataFusion reads as PostgreSQL does.
pub(super) fn of_constant(mut cast: Cast) -> Transformed<Expr> {
    let text = match &*cast.expr {
        Expr::Literal(value, _) => {
            value.try_as_str().flatten().and_then(|text| rewritten(text, cast.field.data_type()))
        }
        _ => None,
    };
    let Some(text) = text else { return Transformed::no(Expr::Cast(cast)) };
    cast.expr = Box::new(lit(text));
    Transformed::yes(Expr::Cast(cast))
}

/// Returns the text of a value as DataFusion reads it; `None` if it needs no change.
fn rewritten(text: &str, to: &DataType) -> Option<String> {
    match to {
        DataType::Timestamp(_, zone) => literals::time(text, zone.is_some()),
        DataType::Interval(_) => literals::interval(text),
        _ => None,
    }
}

/// Whether a call reads a value from text, which a condition beside it may check.
pub(super) fn reads_text(function: &ScalarUDF) -> bool {
    function.inner().downcast_ref::<Converted>().is_some_and(|converted| converted.reads_text)
}

#[derive(Debug, PartialEq, Eq, Hash)]
struct Converted {
    to: DataType,
    reads_text: bool,
    signature: Signature,
}

impl ScalarUDFImpl for Converted {
    fn name(&self) -> &str {
        match &self.to {
            DataType::Int8 | DataType::Int16 => "to_smallint",
            DataType::Int32 => "to_integer",
            DataType::Int64 => "to_bigint",
            DataType::Float32 => "to_real",
            DataType::Float64 => "to_double",
            DataType::Time32(_) | DataType::Time64(_) => "to_time",
            DataType::Timestamp(..) => "to_timestamp_of_text",
            DataType::Date32 | DataType::Date64 => "to_date_of_text",
            DataType::Interval(_) | DataType::Duration(_) => "to_interval",
            DataType::Boolean => "to_boolean",
            _ => "to_text",
        }
    }

    /// The name of the argument, as for DataFusion's casts.
    fn schema_name(&self, args: &[Expr]) -> Result<String> {
        Ok(args[0].schema_name().to_string())
    }

    fn signature(&self) -> &Signature {
        &self.signature
    }

    fn return_type(&self, _types: &[DataType]) -> Result<DataType> {
        Ok(self.to.clone())
    }

    fn return_field_from_args(&self, args: ReturnFieldArgs) -> Result<FieldRef> {
        Ok(Arc::new(Field::new(self.name(), self.to.clone(), args.arg_fields[0].is_nullable())))
    }

    fn is_strict(&self) -> bool {
        true
    }

    fn invoke_with_args(&self, args: ScalarFunctionArgs) -> Result<ColumnarValue> {
        let converted = convert(&args.args[0].to_array(1)?, &self.to)?;
        Ok(match args.args[0] {
            ColumnarValue::Scalar(_) => ColumnarValue::Scalar(ScalarValue::try_from_array(&converted, 0)?),
            ColumnarValue::Array(_) => ColumnarValue::Array(converted),
        })
    }
}

fn convert(array: &ArrayRef, to: &DataType) -> Result<ArrayRef, ArrowError> {
    if to.is_string() {
        return cast(&text::texts(array)?, to);
    }
    match to {
        DataType::Int8 => integers::<Int8Type>(array, to),
        DataType::Int16 => integers::<Int16Type>(array, to),
        DataType::Int32 => integers::<Int32Type>(array, to),
        DataType::Int64 => integers::<Int64Type>(array, to),
        DataType::Float32 if *array.data_type() == DataType::Float64 => short_floats(array),
        DataType::Float32 => floats_of_text::<Float32Type>(array, to),
        DataType::Float64 => floats_of_text::<Float64Type>(array, to),
        _ if array.data_type().is_string() => of_texts(array, to),
        _ => cast(array, to),
    }
}

fn integers<T: ArrowPrimitiveType>(array: &ArrayRef, to: &DataType) -> Result<ArrayRef, ArrowError>
where
    T::Native: TryFrom<i128>,
{
    let out_of_range = || wrong(QueryError::out_of_range(format!("{} out of range", type_name(to))));
    let fitting = |number: i128| T::Native::try_from(number).map_err(|_| out_of_range());
    let converted: PrimitiveArray<T> = match array.data_type() {
        DataType::Decimal128(_, scale) => {
            let scale = *scale;
            let decimals = array.as_primitive::<Decimal128Type>();
            decimals.try_unary(|number| rounded(number, scale).ok_or_else(out_of_range).and_then(fitting))?
        }
        other if other.is_decimal() => {
            return integers::<T>(&cast(array, &DataType::Decimal128(38, 0))?, to);
        }
        other if other.is_floating() => {
            let numbers = cast(array, &DataType::Float64)?;
            numbers.as_primitive::<Float64Type>().try_unary(|number| {
                // A number of 2^100 or more is too large for each of the types. All others fit into an i128.
                let rounded = number.round_ties_even();
                if rounded.abs() < 2_f64.powi(100) { fitting(rounded as i128) } else { Err(out_of_range()) }
            })?
        }
        _ => {
            let texts = cast(array, &DataType::Utf8View)?;
            let read = texts.as_string_view().iter().map(|text| {
                let number = |text: &str| match text.trim_ascii().parse::<i128>() {
                    Ok(number) => T::Native::try_from(number).map_err(|_| too_large(text, to)),
                    Err(error) => Err(match error.kind() {
                        std::num::IntErrorKind::PosOverflow | std::num::IntErrorKind::NegOverflow => {
                            too_large(text, to)
                        }
                        _ => no_number(text, to),
                    }),
                };
                text.map(number).transpose()
            });
            read.collect::<Result<_, _>>()?
        }
    };
    Ok(Arc::new(converted))
}

/// Rounds halves away from zero, as PostgreSQL rounds numeric values.
fn rounded(number: i128, scale: i8) -> Option<i128> {
    let power = 10_i128.checked_pow(u32::from(scale.unsigned_abs()))?;
    if scale <= 0 {
        return number.checked_mul(power);
    }
    let (whole, rest) = (number / power, number % power);
    Some(if rest.abs() * 2 >= power { whole + number.signum() } else { whole })
}

/// Converts 8-byte numbers to 4-byte ones; fails if they are too large or too small.
fn short_floats(array: &ArrayRef) -> Result<ArrayRef, ArrowError> {
    let short = array.as_primitive::<Float64Type>().try_unary::<_, Float32Type, _>(|number| {
        let short = number as f32;
        if short.is_infinite() && number.is_finite() {
            return Err(wrong(QueryError::out_of_range("value out of range: overflow")));
        }
        if short == 0.0 && number != 0.0 {
            return Err(wrong(QueryError::out_of_range("value out of range: underflow")));
        }
        Ok(short)
    })?;
    Ok(Arc::new(short))
}

fn floats_of_text<T: ArrowPrimitiveType>(array: &ArrayRef, to: &DataType) -> Result<ArrayRef, ArrowError>
where
    T::Native: std::str::FromStr + Into<f64>,
{
    let texts = cast(array, &DataType::Utf8View)?;
    let read = texts.as_string_view().iter().map(|text| {
        let number = |text: &str| {
            let trimmed = text.trim_ascii();
            let number: T::Native = trimmed.parse().map_err(|_| no_number(text, to))?;
            let is_named = trimmed.trim_start_matches(['+', '-']).starts_with(['i', 'I', 'n', 'N']);
            let value: f64 = number.into();
            let vanished = value == 0.0
                && trimmed
                    .split(['e', 'E'])
                    .next()
                    .is_some_and(|digits| digits.contains(|c| matches!(c, '1'..='9')));
            if (value.is_infinite() && !is_named) || vanished {
                let message = format!("\"{text}\" is out of range for type {}", type_name(to));
                return Err(wrong(QueryError::out_of_range(message)));
            }
            Ok(number)
        };
        text.map(number).transpose()
    });
    Ok(Arc::new(read.collect::<Result<PrimitiveArray<T>, _>>()?))
}

/// Reads times, intervals and truth values.
fn of_texts(array: &ArrayRef, to: &DataType) -> Result<ArrayRef, ArrowError> {
    let texts = cast(array, &DataType::Utf8View)?;
    let texts: StringArray = texts
        .as_string_view()
        .iter()
        .map(|text| text.map(|text| rewritten(text, to).map_or(Cow::Borrowed(text.trim()), Cow::Owned)))
        .collect();
    cast_with_options(&texts, to, &CastOptions { safe: false, ..Default::default() })
}

fn no_number(text: &str, to: &DataType) -> ArrowError {
    let message = format!("invalid input syntax for type {}: \"{text}\"", type_name(to));
    wrong(QueryError::value(INVALID_TEXT, message))
}

fn too_large(text: &str, to: &DataType) -> ArrowError {
    wrong(QueryError::out_of_range(format!("value \"{text}\" is out of range for type {}", type_name(to))))
}

fn wrong(error: QueryError) -> ArrowError {
    ArrowError::from_external_error(Box::new(error))
}
