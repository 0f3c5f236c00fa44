//! Values of settings, facts and expressions.

use std::fmt;

use serde::{Deserialize, Serialize, Serializer};

#[derive(Debug, Clone, PartialEq, Deserialize)]
#[serde(untagged)]
pub enum Value {
    /// True or false.
    Boolean(bool),
    /// A number in the unit of its name.
    Number(f64),
    /// A text, such as a choice between modes.
    Text(String),
}

/// The kind of a value.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ValueKind {
    /// True or false.
    Boolean,
    Number,
    Text,
}

/// Whole numbers up to this size are exact in a float.
const EXACT_MAX: f64 = 9_007_199_254_740_992.0;

impl Value {
    /// The kind of this value.
    pub fn kind(&self) -> ValueKind {
        match self {
            Self::Boolean(_) => ValueKind::Boolean,
            Self::Number(_) => ValueKind::Number,
            Self::Text(_) => ValueKind::Text,
        }
    }

    /// The number as an integer, if it is whole and exact.
    pub(crate) fn whole(number: f64) -> Option<i64> {
        // The comparison makes the cast exact.
        (number.fract() == 0.0 && number.abs() <= EXACT_MAX).then_some(number as i64)
    }
}

impl fmt::Display for Value {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Boolean(value) => value.fmt(f),
            Self::Number(value) => value.fmt(f),
            Self::Text(value) => value.fmt(f),
        }
    }
}

impl Serialize for Value {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        match self {
            Self::Boolean(value) => serializer.serialize_bool(*value),
            Self::Number(value) => match Self::whole(*value) {
                Some(whole) => serializer.serialize_i64(whole),
                None => serializer.serialize_f64(*value),
            },
            Self::Text(value) => serializer.serialize_str(value),
        }
    }
}

impl fmt::Display for ValueKind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Boolean => "true or false",
            Self::Number => "a number",
            Self::Text => "a text",
        })
    }
}

impl From<bool> for Value {
    fn from(value: bool) -> Self {
        Self::Boolean(value)
    }
}

impl From<f64> for Value {
    fn from(value: f64) -> Self {
        Self::Number(value)
    }
}

impl From<&str> for Value {
    fn from(value: &str) -> Self {
        Self::Text(value.to_owned())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn whole_numbers_are_written_without_a_fraction() {
        let json = |value: f64| serde_json::to_string(&Value::from(value)).unwrap();
        assert_eq!([4096.0, 0.5, -1.0].map(json), ["4096", "0.5", "-1"]);
        assert_eq!(json(9.3e18), "9.3e+18");
        assert_eq!(Value::from(4096.0).to_string(), "4096");
    }
}
