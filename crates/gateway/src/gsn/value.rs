//! Values of a field, and their text in GSN's answers.

use arrow_array::cast::AsArray;
use arrow_array::types::{Float64Type, Int64Type};
use arrow_array::{Array, BooleanArray, Float64Array, Int64Array, RecordBatch, StringViewArray};
use arrow_schema::DataType as ArrowType;

use super::java_number::{write_double, write_float, write_integer};

#[derive(Debug, Clone, Copy, PartialEq)]
pub(super) enum Value<'a> {
    F64(f64),
    I64(i64),
    Bool(bool),
    Text(&'a str),
}

impl Value<'_> {
    /// The number of a number or a boolean.
    pub(super) fn number(self) -> Option<f64> {
        match self {
            Self::F64(number) => Some(number),
            Self::I64(number) => Some(number as f64),
            Self::Bool(value) => Some(f64::from(u8::from(value))),
            Self::Text(_) => None,
        }
    }
}

/// How the values of a field are written.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum ValueKind {
    Integer,
    Double,
    Float,
    Text,
}

impl ValueKind {
    /// Appends a value as GSN's Java code does.
    pub(super) fn write(self, value: Value<'_>, out: &mut Vec<u8>) {
        match (self, value) {
            (Self::Integer, Value::F64(number)) if number.is_finite() => write_integer(number as i64, out),
            (Self::Double, Value::I64(number)) => write_double(number as f64, out),
            (Self::Float, Value::I64(number)) => write_float(number as f64, out),
            (Self::Float, Value::F64(number)) => write_float(number, out),
            (_, Value::F64(number)) => write_double(number, out),
            (_, Value::I64(number)) => write_integer(number, out),
            (_, Value::Bool(value)) => out.extend_from_slice(if value { b"true" } else { b"false" }),
            (_, Value::Text(text)) => out.extend_from_slice(text.as_bytes()),
        }
    }
}

/// The columns of a batch that have the values of one field: of each type that was written under its name.
#[derive(Debug)]
pub(super) struct FieldArrays<'a>(Vec<Values<'a>>);

#[derive(Debug)]
enum Values<'a> {
    F64(&'a Float64Array),
    I64(&'a Int64Array),
    Bool(&'a BooleanArray),
    Text(&'a StringViewArray),
}

impl<'a> Values<'a> {
    #[inline]
    fn get(&self, row: usize) -> Option<Value<'a>> {
        match *self {
            Values::F64(array) => array.is_valid(row).then(|| Value::F64(array.value(row))),
            Values::I64(array) => array.is_valid(row).then(|| Value::I64(array.value(row))),
            Values::Bool(array) => array.is_valid(row).then(|| Value::Bool(array.value(row))),
            Values::Text(array) => array.is_valid(row).then(|| Value::Text(array.value(row))),
        }
    }
}

impl<'a> FieldArrays<'a> {
    /// The columns with these numbers. A value of a field is in the first one that has any in the row.
    pub(super) fn of(batch: &'a RecordBatch, columns: impl Iterator<Item = usize>) -> Self {
        let of = |column: usize| -> Option<Values<'a>> {
            let array = batch.column(column);
            match array.data_type() {
                ArrowType::Float64 => Some(Values::F64(array.as_primitive::<Float64Type>())),
                ArrowType::Int64 => Some(Values::I64(array.as_primitive::<Int64Type>())),
                ArrowType::Boolean => Some(Values::Bool(array.as_boolean())),
                ArrowType::Utf8View => Some(Values::Text(array.as_string_view())),
                _ => None,
            }
        };
        Self(columns.filter_map(of).collect())
    }

    /// The value of a row.
    #[inline]
    pub(super) fn get(&self, row: usize) -> Option<Value<'a>> {
        match self.0.as_slice() {
            // Nearly every field has values of one type.
            [values] => values.get(row),
            all => all.iter().find_map(|values| values.get(row)),
        }
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use arrow_array::ArrayRef;

    use super::*;

    fn text(kind: ValueKind, value: Value<'_>) -> String {
        let mut out = Vec::new();
        kind.write(value, &mut out);
        String::from_utf8(out).unwrap()
    }

    #[test]
    fn the_type_of_a_field_decides_the_text() {
        for (kind, value, expected) in [
            (ValueKind::Integer, Value::F64(20.0), "20"),
            (ValueKind::Integer, Value::I64(i64::MAX), "9223372036854775807"),
            (ValueKind::Integer, Value::F64(f64::NAN), "NaN"),
            (ValueKind::Double, Value::I64(20), "20.0"),
            (ValueKind::Double, Value::F64(20.25), "20.25"),
            (ValueKind::Float, Value::F64(f64::from(0.1_f32)), "0.1"),
            (ValueKind::Text, Value::Text("a,b"), "a,b"),
            (ValueKind::Text, Value::F64(1.5), "1.5"),
            (ValueKind::Double, Value::Bool(true), "true"),
        ] {
            assert_eq!(text(kind, value), expected);
        }
    }

    #[test]
    fn the_first_column_with_a_value_counts() {
        let numbers: ArrayRef = Arc::new(Float64Array::from(vec![Some(1.5), None, None]));
        let texts: ArrayRef = Arc::new(StringViewArray::from(vec![Some("x"), Some("y"), None]));
        let batch =
            RecordBatch::try_from_iter_with_nullable([("n", numbers, true), ("t", texts, true)]).unwrap();
        let arrays = FieldArrays::of(&batch, [0, 1].into_iter());
        assert_eq!(
            [arrays.get(0), arrays.get(1), arrays.get(2)],
            [Some(Value::F64(1.5)), Some(Value::Text("y")), None]
        );
    }
}
