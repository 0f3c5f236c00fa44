//! Values of rows as values of scripts, and back.

use rhai::{Dynamic, ImmutableString};

use crate::virtual_sensors::sql::Datum;

/// A value for a script. No value is `()`.
pub(super) fn dynamic(datum: &Datum) -> Dynamic {
    match datum {
        Datum::Null => Dynamic::UNIT,
        Datum::Bool(flag) => (*flag).into(),
        Datum::Int(number) => (*number).into(),
        Datum::Float(number) => (*number).into(),
        Datum::Text(text) => ImmutableString::from(&**text).into(),
    }
}

/// A value of a script for a row.
///
/// # Errors
/// The value is not a finite number, or of a type that a row does not have.
pub(super) fn datum(value: &Dynamic) -> Result<Datum, String> {
    if value.is_unit() {
        return Ok(Datum::Null);
    }
    if let Ok(flag) = value.as_bool() {
        return Ok(Datum::Bool(flag));
    }
    if let Ok(number) = value.as_int() {
        return Ok(Datum::Int(number));
    }
    if let Ok(number) = value.as_float() {
        return Datum::finite(number, "the number");
    }
    if let Ok(c) = value.as_char() {
        return Ok(Datum::Text(c.to_string().into()));
    }
    match value.read_lock::<ImmutableString>() {
        Some(text) => Ok(Datum::Text(text.as_str().into())),
        None => Err(format!("a value of the type {} cannot be in a row", value.type_name())),
    }
}
