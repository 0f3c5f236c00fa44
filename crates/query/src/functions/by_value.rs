//! Functions that are computed value by value.
//!
//! Like a function of PostgreSQL, a function has several forms, each with types of arguments and a type of the result. The form
//! that needs the fewest casts is chosen. A NULL argument gives NULL.

use std::borrow::Cow;
use std::sync::Arc;

use arrow_array::builder::{
    BooleanBuilder, Date32Builder, Float64Builder, Int64Builder, IntervalMonthDayNanoBuilder,
    StringViewBuilder, Time64MicrosecondBuilder, TimestampMicrosecondBuilder,
};
use arrow_array::cast::AsArray;
use arrow_array::types::{
    Date32Type, Decimal128Type, DurationMicrosecondType, Float64Type, Int64Type, IntervalMonthDayNanoType,
    Time64MicrosecondType, TimestampMicrosecondType,
};
use arrow_array::{Array, ArrayRef};
use arrow_schema::{DataType, IntervalUnit, TimeUnit};
use datafusion::common::{DataFusionError, Result, ScalarValue};
use datafusion::logical_expr::{
    ColumnarValue, ScalarFunctionArgs, ScalarUDF, ScalarUDFImpl, Signature, Volatility,
};

use crate::QueryError;
use crate::error::TIME_OUT_OF_RANGE;
use crate::values::intervals::{from_arrow, to_arrow};
use model::Interval;

/// The zone of all times that are not local.
const UTC: &str = "+00:00";

/// A type of arguments and results.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub(super) enum ArgumentKind {
    Bool,
    Int,
    Float,
    Decimal,
    Text,
    /// A date and a time of day without a zone.
    Local,
    /// A point in time.
    Zoned,
    Date,
    /// A time of day.
    Time,
    Interval,
}

/// A value of such a type. Times are microseconds since 1970 or since midnight, dates are days since 1970.
#[derive(Debug, Clone)]
pub(super) enum Value<'a> {
    Null,
    Bool(bool),
    Int(i64),
    Float(f64),
    Decimal(i128, i8),
    Text(Cow<'a, str>),
    Local(i64),
    Zoned(i64),
    Date(i32),
    Time(i64),
    Interval(Interval),
}

impl From<String> for Value<'_> {
    fn from(text: String) -> Self {
        Self::Text(Cow::Owned(text))
    }
}

impl Value<'_> {
    /// Returns the text of a text value.
    pub(super) fn text(&self) -> &str {
        if let Self::Text(text) = self { text } else { "" }
    }

    /// Returns the integer of an integer value.
    pub(super) fn int(&self) -> i64 {
        if let Self::Int(number) = self { *number } else { 0 }
    }

    /// Returns the number of a floating-point value.
    pub(super) fn float(&self) -> f64 {
        match self {
            Self::Float(number) => *number,
            Self::Int(number) => *number as f64,
            _ => 0.0,
        }
    }
}

type Compute = fn(&[Value<'_>]) -> Result<Value<'static>, QueryError>;

/// One form of a function.
#[derive(Debug)]
pub(super) struct Form {
    pub(super) takes: &'static [ArgumentKind],
    pub(super) gives: ArgumentKind,
    pub(super) compute: Compute,
}

/// A function with its forms.
pub(super) fn function(name: &'static str, forms: &'static [Form]) -> Arc<ScalarUDF> {
    let signature = Signature::user_defined(Volatility::Immutable);
    Arc::new(ScalarUDF::from(ByValue { name, forms: Forms(forms), signature }))
}

#[derive(Debug, PartialEq, Eq, Hash)]
struct ByValue {
    name: &'static str,
    forms: Forms,
    signature: Signature,
}

/// Functions of the same name have the same forms.
#[derive(Debug)]
struct Forms(&'static [Form]);

impl PartialEq for Forms {
    fn eq(&self, other: &Self) -> bool {
        std::ptr::eq(self.0, other.0)
    }
}

impl Eq for Forms {}

impl std::hash::Hash for Forms {
    fn hash<H: std::hash::Hasher>(&self, state: &mut H) {
        self.0.as_ptr().hash(state);
    }
}

/// Returns how many steps of conversion a type is from a kind; `None` if it cannot be converted.
fn distance(from: &DataType, to: ArgumentKind) -> Option<u32> {
    Some(match (from, to) {
        (DataType::Null, _) => 1,
        (DataType::Boolean, ArgumentKind::Bool) => 0,
        (from, ArgumentKind::Int) if from.is_integer() => 0,
        (from, ArgumentKind::Decimal) if from.is_integer() => 1,
        (from, ArgumentKind::Float) if from.is_integer() => 2,
        (from, ArgumentKind::Float) if from.is_floating() => 0,
        (from, ArgumentKind::Decimal) if from.is_decimal() => 0,
        (from, ArgumentKind::Float) if from.is_decimal() => 1,
        (from, ArgumentKind::Text) if from.is_string() => 0,
        // A quoted constant can be converted to any kind.
        (from, ArgumentKind::Zoned) if from.is_string() => 10,
        (from, ArgumentKind::Local | ArgumentKind::Date | ArgumentKind::Time | ArgumentKind::Interval)
            if from.is_string() =>
        {
            11
        }
        (from, ArgumentKind::Float | ArgumentKind::Int) if from.is_string() => 12,
        (DataType::Timestamp(_, None), ArgumentKind::Local)
        | (DataType::Timestamp(_, Some(_)), ArgumentKind::Zoned) => 0,
        (DataType::Timestamp(..), ArgumentKind::Local | ArgumentKind::Zoned) => 2,
        (DataType::Date32 | DataType::Date64, ArgumentKind::Date) => 0,
        (DataType::Date32 | DataType::Date64, ArgumentKind::Zoned) => 1,
        (DataType::Date32 | DataType::Date64, ArgumentKind::Local) => 2,
        (DataType::Time32(_) | DataType::Time64(_), ArgumentKind::Time) => 0,
        (DataType::Time32(_) | DataType::Time64(_), ArgumentKind::Interval) => 1,
        (DataType::Interval(_) | DataType::Duration(_), ArgumentKind::Interval) => 0,
        _ => return None,
    })
}

/// Returns the Arrow type of a kind, for a value of another type.
fn data_type(kind: ArgumentKind, from: &DataType) -> DataType {
    match kind {
        ArgumentKind::Bool => DataType::Boolean,
        ArgumentKind::Int => DataType::Int64,
        ArgumentKind::Float => DataType::Float64,
        ArgumentKind::Decimal => match from {
            DataType::Decimal128(..) => from.clone(),
            _ => DataType::Decimal128(38, 0),
        },
        ArgumentKind::Text => DataType::Utf8View,
        ArgumentKind::Local => DataType::Timestamp(TimeUnit::Microsecond, None),
        ArgumentKind::Zoned => DataType::Timestamp(TimeUnit::Microsecond, Some(UTC.into())),
        ArgumentKind::Date => DataType::Date32,
        ArgumentKind::Time => DataType::Time64(TimeUnit::Microsecond),
        ArgumentKind::Interval => match from {
            DataType::Duration(_) => DataType::Duration(TimeUnit::Microsecond),
            DataType::Time32(_) | DataType::Time64(_) => DataType::Time64(TimeUnit::Microsecond),
            _ => DataType::Interval(IntervalUnit::MonthDayNano),
        },
    }
}

impl ByValue {
    fn form(&self, types: &[DataType]) -> Result<&'static Form> {
        let distance = |form: &&Form| {
            if form.takes.len() != types.len() {
                return None;
            }
            types.iter().zip(form.takes).map(|(from, to)| distance(from, *to)).sum::<Option<u32>>()
        };
        let nearest = self.forms.0.iter().filter_map(|form| Some((distance(&form)?, form)));
        nearest.min_by_key(|(distance, _)| *distance).map(|(_, form)| form).ok_or_else(|| {
            let types: Vec<_> = types.iter().map(ToString::to_string).collect();
            DataFusionError::Plan(format!("function {}({}) does not exist", self.name, types.join(", ")))
        })
    }
}

impl ScalarUDFImpl for ByValue {
    fn name(&self) -> &str {
        self.name
    }

    fn signature(&self) -> &Signature {
        &self.signature
    }

    fn coerce_types(&self, types: &[DataType]) -> Result<Vec<DataType>> {
        let form = self.form(types)?;
        Ok(types.iter().zip(form.takes).map(|(from, to)| data_type(*to, from)).collect())
    }

    fn return_type(&self, types: &[DataType]) -> Result<DataType> {
        Ok(data_type(self.form(types)?.gives, &DataType::Null))
    }

    fn is_strict(&self) -> bool {
        true
    }

    fn invoke_with_args(&self, args: ScalarFunctionArgs) -> Result<ColumnarValue> {
        let types: Vec<_> = args.arg_fields.iter().map(|field| field.data_type().clone()).collect();
        let form = self.form(&types)?;
        let are_constant = args.args.iter().all(|arg| matches!(arg, ColumnarValue::Scalar(_)));
        let rows = if are_constant { 1 } else { args.number_rows };
        let columns: Vec<Column<'_>> = args.args.iter().map(Column::of).collect::<Result<_>>()?;
        let mut results = Results::new(form.gives, rows);
        let mut values = Vec::with_capacity(columns.len());
        for row in 0..rows {
            values.clear();
            values.extend(columns.iter().map(|column| column.value(row)));
            let is_null = values.iter().any(|value| matches!(value, Value::Null));
            results.add(if is_null { Value::Null } else { (form.compute)(&values)? })?;
        }
        let results = results.finish();
        if are_constant {
            return Ok(ColumnarValue::Scalar(ScalarValue::try_from_array(&results, 0)?));
        }
        Ok(ColumnarValue::Array(results))
    }
}

/// An argument: a column or a constant.
struct Column<'a> {
    array: Cow<'a, ArrayRef>,
    is_constant: bool,
}

impl<'a> Column<'a> {
    fn of(value: &'a ColumnarValue) -> Result<Self> {
        Ok(match value {
            ColumnarValue::Array(array) => Self { array: Cow::Borrowed(array), is_constant: false },
            ColumnarValue::Scalar(value) => Self { array: Cow::Owned(value.to_array()?), is_constant: true },
        })
    }

    fn value(&self, row: usize) -> Value<'_> {
        let row = if self.is_constant { 0 } else { row };
        let array = &*self.array;
        if array.is_null(row) {
            return Value::Null;
        }
        match array.data_type() {
            DataType::Boolean => Value::Bool(array.as_boolean().value(row)),
            DataType::Int64 => Value::Int(array.as_primitive::<Int64Type>().value(row)),
            DataType::Float64 => Value::Float(array.as_primitive::<Float64Type>().value(row)),
            DataType::Decimal128(_, scale) => {
                Value::Decimal(array.as_primitive::<Decimal128Type>().value(row), *scale)
            }
            DataType::Utf8View => Value::Text(Cow::Borrowed(array.as_string_view().value(row))),
            DataType::Timestamp(_, zone) => {
                let micros = array.as_primitive::<TimestampMicrosecondType>().value(row);
                if zone.is_some() { Value::Zoned(micros) } else { Value::Local(micros) }
            }
            DataType::Date32 => Value::Date(array.as_primitive::<Date32Type>().value(row)),
            DataType::Time64(_) => Value::Time(array.as_primitive::<Time64MicrosecondType>().value(row)),
            DataType::Duration(_) => {
                let micros = array.as_primitive::<DurationMicrosecondType>().value(row);
                Value::Interval(Interval::of_difference(micros))
            }
            DataType::Interval(_) => {
                Value::Interval(from_arrow(array.as_primitive::<IntervalMonthDayNanoType>().value(row)))
            }
            _ => Value::Null,
        }
    }
}

/// Collects results.
enum Results {
    Bool(BooleanBuilder),
    Int(Int64Builder),
    Float(Float64Builder),
    Text(StringViewBuilder),
    Time(TimestampMicrosecondBuilder, DataType),
    Date(Date32Builder),
    TimeOfDay(Time64MicrosecondBuilder),
    Interval(IntervalMonthDayNanoBuilder),
}

impl Results {
    fn new(kind: ArgumentKind, rows: usize) -> Self {
        match kind {
            ArgumentKind::Bool => Self::Bool(BooleanBuilder::with_capacity(rows)),
            ArgumentKind::Int => Self::Int(Int64Builder::with_capacity(rows)),
            ArgumentKind::Float | ArgumentKind::Decimal => Self::Float(Float64Builder::with_capacity(rows)),
            ArgumentKind::Text => Self::Text(StringViewBuilder::with_capacity(rows)),
            ArgumentKind::Local | ArgumentKind::Zoned => {
                Self::Time(TimestampMicrosecondBuilder::with_capacity(rows), data_type(kind, &DataType::Null))
            }
            ArgumentKind::Date => Self::Date(Date32Builder::with_capacity(rows)),
            ArgumentKind::Time => Self::TimeOfDay(Time64MicrosecondBuilder::with_capacity(rows)),
            ArgumentKind::Interval => Self::Interval(IntervalMonthDayNanoBuilder::with_capacity(rows)),
        }
    }

    fn add(&mut self, value: Value<'_>) -> Result<(), QueryError> {
        match (self, value) {
            (Self::Bool(results), Value::Bool(value)) => results.append_value(value),
            (Self::Int(results), Value::Int(value)) => results.append_value(value),
            (Self::Float(results), Value::Float(value)) => results.append_value(value),
            (Self::Text(results), Value::Text(value)) => results.append_value(value),
            (Self::Time(results, _), Value::Local(value) | Value::Zoned(value)) => {
                results.append_value(value);
            }
            (Self::Date(results), Value::Date(value)) => results.append_value(value),
            (Self::TimeOfDay(results), Value::Time(value)) => results.append_value(value),
            (Self::Interval(results), Value::Interval(value)) => {
                results.append_value(to_arrow(value).ok_or_else(interval_out_of_range)?);
            }
            (Self::Bool(results), _) => results.append_null(),
            (Self::Int(results), _) => results.append_null(),
            (Self::Float(results), _) => results.append_null(),
            (Self::Text(results), _) => results.append_null(),
            (Self::Time(results, _), _) => results.append_null(),
            (Self::Date(results), _) => results.append_null(),
            (Self::TimeOfDay(results), _) => results.append_null(),
            (Self::Interval(results), _) => results.append_null(),
        }
        Ok(())
    }

    fn finish(self) -> ArrayRef {
        match self {
            Self::Bool(mut results) => Arc::new(results.finish()),
            Self::Int(mut results) => Arc::new(results.finish()),
            Self::Float(mut results) => Arc::new(results.finish()),
            Self::Text(mut results) => Arc::new(results.finish()),
            Self::Time(mut results, data_type) => Arc::new(results.finish().with_data_type(data_type)),
            Self::Date(mut results) => Arc::new(results.finish()),
            Self::TimeOfDay(mut results) => Arc::new(results.finish()),
            Self::Interval(mut results) => Arc::new(results.finish()),
        }
    }
}

pub(super) fn interval_out_of_range() -> QueryError {
    QueryError::value(TIME_OUT_OF_RANGE, "interval out of range")
}

pub(super) fn time_out_of_range() -> QueryError {
    QueryError::value(TIME_OUT_OF_RANGE, "timestamp out of range")
}
