//! Functions of H2 and MySQL that descriptors use.

use std::cmp::Ordering;
use std::sync::Arc;

use super::arithmetic::{Arithmetic, too_large};
use super::datum::{Datum, Number};
use crate::virtual_sensors::limits::TEXT_BYTES_MAX;

/// A function of a row.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Function {
    Abs,
    Ceil,
    Floor,
    Round,
    Truncate,
    Sign,
    /// A function of one number.
    Real(Real),
    Power,
    Mod,
    Atan2,
    Greatest,
    Least,
    Coalesce,
    NullIf,
    If,
    Concat,
    Lower,
    Upper,
    Length,
    Substring,
    Trim,
    LeftTrim,
    RightTrim,
    Replace,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Real {
    Sqrt,
    Exp,
    Ln,
    Log10,
    Log2,
    Sin,
    Cos,
    Tan,
    Asin,
    Acos,
    Atan,
    Degrees,
    Radians,
}

impl Function {
    /// The function of a name, with the least and the greatest count of arguments.
    pub(crate) fn named(name: &str) -> Option<(Self, usize, usize)> {
        const MANY: usize = 64;
        Some(match name {
            "abs" => (Self::Abs, 1, 1),
            "ceil" | "ceiling" => (Self::Ceil, 1, 1),
            "floor" => (Self::Floor, 1, 1),
            "round" => (Self::Round, 1, 2),
            "truncate" | "trunc" => (Self::Truncate, 1, 2),
            "sign" => (Self::Sign, 1, 1),
            "power" | "pow" => (Self::Power, 2, 2),
            "mod" => (Self::Mod, 2, 2),
            "atan2" => (Self::Atan2, 2, 2),
            "greatest" => (Self::Greatest, 1, MANY),
            "least" => (Self::Least, 1, MANY),
            "coalesce" => (Self::Coalesce, 1, MANY),
            "ifnull" | "nvl" => (Self::Coalesce, 2, 2),
            "nullif" => (Self::NullIf, 2, 2),
            "if" | "casewhen" => (Self::If, 3, 3),
            "concat" => (Self::Concat, 1, MANY),
            "lower" | "lcase" => (Self::Lower, 1, 1),
            "upper" | "ucase" => (Self::Upper, 1, 1),
            "length" | "char_length" | "character_length" => (Self::Length, 1, 1),
            "substring" | "substr" => (Self::Substring, 2, 3),
            "trim" => (Self::Trim, 1, 1),
            "ltrim" => (Self::LeftTrim, 1, 1),
            "rtrim" => (Self::RightTrim, 1, 1),
            "replace" => (Self::Replace, 3, 3),
            _ => (Self::Real(Real::named(name)?), 1, 1),
        })
    }

    /// The value. A function of no value has none, except those that look for values.
    pub(crate) fn value(self, arguments: &[Datum]) -> Result<Datum, String> {
        match self {
            Self::Coalesce => {
                return Ok(arguments.iter().find(|datum| !datum.is_null()).cloned().unwrap_or(Datum::Null));
            }
            Self::NullIf => {
                let equal = arguments[0].compare(&arguments[1])? == Some(Ordering::Equal);
                return Ok(if equal { Datum::Null } else { arguments[0].clone() });
            }
            Self::If => {
                let chosen = if arguments[0].truth()? == Some(true) { 1 } else { 2 };
                return Ok(arguments[chosen].clone());
            }
            _ if arguments.iter().any(Datum::is_null) => return Ok(Datum::Null),
            _ => {}
        }
        match self {
            Self::Abs => match number(&arguments[0])? {
                Number::Int(number) => number.checked_abs().map(Datum::Int).ok_or_else(|| too_large("abs")),
                Number::Float(number) => Ok(Datum::Float(number.abs())),
            },
            Self::Ceil => whole(&arguments[0], f64::ceil),
            Self::Floor => whole(&arguments[0], f64::floor),
            Self::Round => places(arguments, f64::round),
            Self::Truncate => places(arguments, f64::trunc),
            Self::Sign => match number(&arguments[0])? {
                Number::Int(number) => Ok(Datum::Int(number.signum())),
                Number::Float(0.0) => Ok(Datum::Int(0)),
                Number::Float(number) => Ok(Datum::Int(if number > 0.0 { 1 } else { -1 })),
            },
            Self::Real(function) => function.value(number(&arguments[0])?.as_f64()),
            Self::Power => {
                let (base, power) = (number(&arguments[0])?.as_f64(), number(&arguments[1])?.as_f64());
                real(base.powf(power), "power")
            }
            Self::Mod => Arithmetic::Modulo.value(&arguments[0], &arguments[1]),
            Self::Atan2 => {
                let (y, x) = (number(&arguments[0])?.as_f64(), number(&arguments[1])?.as_f64());
                Ok(Datum::Float(y.atan2(x)))
            }
            Self::Greatest => extreme(arguments, Ordering::Greater),
            Self::Least => extreme(arguments, Ordering::Less),
            Self::Concat => concat(arguments),
            Self::Lower => text(&arguments[0], str::to_lowercase),
            Self::Upper => text(&arguments[0], str::to_uppercase),
            Self::Length => {
                let length = arguments[0].text().map_or(0, |text| text.chars().count());
                Ok(Datum::Int(length as i64))
            }
            Self::Substring => substring(arguments),
            Self::Trim => text(&arguments[0], |text| text.trim_matches(' ').to_owned()),
            Self::LeftTrim => text(&arguments[0], |text| text.trim_start_matches(' ').to_owned()),
            Self::RightTrim => text(&arguments[0], |text| text.trim_end_matches(' ').to_owned()),
            Self::Replace => replace(arguments),
            Self::Coalesce | Self::NullIf | Self::If => Ok(Datum::Null),
        }
    }
}

impl Real {
    fn named(name: &str) -> Option<Self> {
        Some(match name {
            "sqrt" => Self::Sqrt,
            "exp" => Self::Exp,
            "ln" | "log" => Self::Ln,
            "log10" => Self::Log10,
            "log2" => Self::Log2,
            "sin" => Self::Sin,
            "cos" => Self::Cos,
            "tan" => Self::Tan,
            "asin" => Self::Asin,
            "acos" => Self::Acos,
            "atan" => Self::Atan,
            "degrees" => Self::Degrees,
            "radians" => Self::Radians,
            _ => return None,
        })
    }

    fn value(self, number: f64) -> Result<Datum, String> {
        let (result, name) = match self {
            Self::Sqrt => (number.sqrt(), "sqrt"),
            Self::Exp => (number.exp(), "exp"),
            Self::Ln => (number.ln(), "ln"),
            Self::Log10 => (number.log10(), "log10"),
            Self::Log2 => (number.log2(), "log2"),
            Self::Sin => (number.sin(), "sin"),
            Self::Cos => (number.cos(), "cos"),
            Self::Tan => (number.tan(), "tan"),
            Self::Asin => (number.asin(), "asin"),
            Self::Acos => (number.acos(), "acos"),
            Self::Atan => (number.atan(), "atan"),
            Self::Degrees => (number.to_degrees(), "degrees"),
            Self::Radians => (number.to_radians(), "radians"),
        };
        real(result, name)
    }
}

fn number(datum: &Datum) -> Result<Number, String> {
    datum.number()?.ok_or_else(|| "a number is missing".into())
}

/// A result that is undefined, such as the root of -1, is not a value, as in MySQL.
fn real(result: f64, name: &str) -> Result<Datum, String> {
    if result.is_nan() { Ok(Datum::Null) } else { Datum::finite(result, &format!("the result of {name}")) }
}

fn whole(datum: &Datum, round: fn(f64) -> f64) -> Result<Datum, String> {
    Ok(match number(datum)? {
        Number::Int(number) => Datum::Int(number),
        Number::Float(number) => Datum::Float(round(number)),
    })
}

/// Rounds at a count of decimal places, which may be negative.
fn places(arguments: &[Datum], round: fn(f64) -> f64) -> Result<Datum, String> {
    let places = arguments.get(1).map(number).transpose()?.map_or(0.0, Number::as_f64);
    let places = places.clamp(-308.0, 308.0) as i32;
    match number(&arguments[0])? {
        Number::Int(number) if places >= 0 => Ok(Datum::Int(number)),
        number => {
            let number = number.as_f64();
            let factor = 10_f64.powi(places.abs());
            let result =
                if places >= 0 { round(number * factor) / factor } else { round(number / factor) * factor };
            // If the product overflows, the number has no digits behind that place: rounding changes nothing.
            Ok(Datum::Float(if result.is_finite() { result } else { number }))
        }
    }
}

fn extreme(arguments: &[Datum], wanted: Ordering) -> Result<Datum, String> {
    let mut best = &arguments[0];
    for datum in &arguments[1..] {
        if datum.compare(best)? == Some(wanted) {
            best = datum;
        }
    }
    Ok(best.clone())
}

fn text(datum: &Datum, change: impl Fn(&str) -> String) -> Result<Datum, String> {
    Ok(datum.text().map_or(Datum::Null, |text| Datum::Text(change(&text).into())))
}

/// From the character that has a number, counted from 1, or from the end if it is negative.
fn substring(arguments: &[Datum]) -> Result<Datum, String> {
    let Some(text) = arguments[0].text() else { return Ok(Datum::Null) };
    let count = text.chars().count() as i64;
    let first = number(&arguments[1])?.as_f64() as i64;
    let start = if first < 0 { count.saturating_add(first).max(0) } else { (first - 1).max(0) };
    let length = match arguments.get(2) {
        Some(length) => (number(length)?.as_f64() as i64).max(0),
        None => count,
    };
    let piece: String = text.chars().skip(start as usize).take(length as usize).collect();
    Ok(Datum::Text(Arc::from(piece)))
}

fn replace(arguments: &[Datum]) -> Result<Datum, String> {
    let (Some(text), Some(old), Some(new)) = (arguments[0].text(), arguments[1].text(), arguments[2].text())
    else {
        return Ok(Datum::Null);
    };
    if old.is_empty() {
        return Ok(Datum::Text(text));
    }
    let bytes = text.len() + text.matches(&*old).count() * new.len();
    if bytes > TEXT_BYTES_MAX {
        return Err(format!("a text has more than {TEXT_BYTES_MAX} bytes (TEXT_BYTES_MAX)"));
    }
    Ok(Datum::Text(text.replace(&*old, &new).into()))
}

/// Joins texts; without one of them there is none.
pub(super) fn concat(values: &[Datum]) -> Result<Datum, String> {
    let mut joined = String::new();
    for value in values {
        let Some(text) = value.text() else { return Ok(Datum::Null) };
        joined.push_str(&text);
        if joined.len() > TEXT_BYTES_MAX {
            return Err(format!("a text has more than {TEXT_BYTES_MAX} bytes (TEXT_BYTES_MAX)"));
        }
    }
    Ok(Datum::Text(joined.into()))
}
