//! Field values and their types.

use std::fmt;

/// The type of a column. The first type under a name has the column of that name; other types have columns `name:type`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
#[repr(u8)]
pub enum FieldType {
    /// `true` or `false`.
    Bool = 1,
    /// 64-bit signed integer.
    I64 = 2,
    /// 64-bit IEEE 754 number, always finite.
    F64 = 3,
    /// UTF-8 text.
    String = 4,
    /// A JSON document as text; also a number that neither `i64` nor `f64` can hold exactly.
    Json = 5,
}

impl FieldType {
    /// All types, in the order of their codes.
    pub const ALL: [Self; 5] = [Self::Bool, Self::I64, Self::F64, Self::String, Self::Json];

    /// The name used in sibling column names, such as `speed:string`.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Bool => "bool",
            Self::I64 => "i64",
            Self::F64 => "f64",
            Self::String => "string",
            Self::Json => "json",
        }
    }

    /// The one-byte code used in files.
    pub const fn code(self) -> u8 {
        self as u8
    }

    /// The type with a code from a file.
    pub fn from_code(code: u8) -> Option<Self> {
        Self::ALL.into_iter().find(|field_type| field_type.code() == code)
    }
}

impl fmt::Display for FieldType {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

/// A value that owns its text.
#[derive(Debug, Clone, PartialEq)]
pub enum Value {
    /// See [`FieldType::Bool`].
    Bool(bool),
    /// See [`FieldType::I64`].
    I64(i64),
    /// See [`FieldType::F64`].
    F64(f64),
    /// See [`FieldType::String`].
    String(String),
    /// See [`FieldType::Json`].
    Json(String),
}

impl Value {
    /// The same value, borrowing its text.
    pub fn as_ref(&self) -> ValueRef<'_> {
        match self {
            Self::Bool(value) => ValueRef::Bool(*value),
            Self::I64(value) => ValueRef::I64(*value),
            Self::F64(value) => ValueRef::F64(*value),
            Self::String(text) => ValueRef::String(text),
            Self::Json(text) => ValueRef::Json(text),
        }
    }

    /// The type of this value.
    pub fn field_type(&self) -> FieldType {
        self.as_ref().field_type()
    }
}

/// A value that borrows its text. Batches contain values of this type.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum ValueRef<'a> {
    /// See [`FieldType::Bool`].
    Bool(bool),
    /// See [`FieldType::I64`].
    I64(i64),
    /// See [`FieldType::F64`].
    F64(f64),
    /// See [`FieldType::String`].
    String(&'a str),
    /// See [`FieldType::Json`].
    Json(&'a str),
}

impl ValueRef<'_> {
    /// The type of this value.
    pub const fn field_type(&self) -> FieldType {
        match self {
            Self::Bool(_) => FieldType::Bool,
            Self::I64(_) => FieldType::I64,
            Self::F64(_) => FieldType::F64,
            Self::String(_) => FieldType::String,
            Self::Json(_) => FieldType::Json,
        }
    }

    /// A copy that owns its text.
    pub fn to_owned(&self) -> Value {
        match *self {
            Self::Bool(value) => Value::Bool(value),
            Self::I64(value) => Value::I64(value),
            Self::F64(value) => Value::F64(value),
            Self::String(text) => Value::String(text.to_owned()),
            Self::Json(text) => Value::Json(text.to_owned()),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn codes_and_names_are_distinct_and_round_trip() {
        for field_type in FieldType::ALL {
            assert_eq!(FieldType::from_code(field_type.code()), Some(field_type));
        }
        assert_eq!(FieldType::from_code(0), None);
        assert_eq!(FieldType::from_code(6), None);
    }

    #[test]
    fn borrowing_and_owning_keep_the_value() {
        let value = Value::String("münchen".into());
        assert_eq!(value.as_ref().to_owned(), value);
        assert_eq!(value.field_type(), FieldType::String);
    }
}
