//! Numbers among the values of a key: integers, floats, and integers beyond 64 bits.

use std::cmp::Ordering;

use model::ValueRef;

/// A number. The order is the numeric order, whatever the type.
#[derive(Debug, Clone, Copy)]
pub(super) enum Number<'a> {
    I64(i64),
    F64(f64),
    /// An integer beyond 64 bits, as a JSON document. Its first digit is not 0.
    Large {
        is_negative: bool,
        digits: &'a str,
        nearest: f64,
    },
}

/// 2^63, the least positive number above all i64.
const BEYOND_I64: f64 = 9_223_372_036_854_775_808.0;

impl<'a> Number<'a> {
    /// The number of a numeric value. `None` for other types, for a document that contains a number beside other content, and
    /// for a number beyond the range of an f64 (1e400).
    pub(super) fn of(value: ValueRef<'a>) -> Option<Self> {
        match value {
            ValueRef::I64(number) => Some(Self::I64(number)),
            ValueRef::F64(number) => Some(Self::F64(number)),
            ValueRef::Json(text) => Self::of_document(text),
            ValueRef::Bool(_) | ValueRef::String(_) => None,
        }
    }

    fn of_document(text: &'a str) -> Option<Self> {
        let digits = text.strip_prefix('-').unwrap_or(text);
        // Rust also parses words such as `inf` as numbers; JSON does not.
        if !digits.starts_with(|first: char| first.is_ascii_digit()) {
            return None;
        }
        if let Ok(number) = text.parse() {
            return Some(Self::I64(number));
        }
        let nearest = text.parse().ok().filter(|number: &f64| number.is_finite())?;
        let is_whole = digits.bytes().all(|byte| byte.is_ascii_digit()) && !digits.starts_with('0');
        let is_negative = digits.len() < text.len();
        Some(if is_whole { Self::Large { is_negative, digits, nearest } } else { Self::F64(nearest) })
    }

    /// The nearest f64.
    pub(super) fn to_f64(self) -> f64 {
        match self {
            Self::I64(number) => number as f64,
            Self::F64(nearest) | Self::Large { nearest, .. } => nearest,
        }
    }

    /// Compares without rounding.
    pub(super) fn compare(self, other: Self) -> Ordering {
        match (self, other) {
            (Self::I64(one), Self::I64(other)) => one.cmp(&other),
            (Self::F64(one), Self::F64(other)) => one.partial_cmp(&other).unwrap_or(Ordering::Equal),
            (Self::I64(one), Self::F64(other)) => integer_to_float(one, other),
            (Self::F64(one), Self::I64(other)) => integer_to_float(other, one).reverse(),
            (Self::Large { is_negative, digits, .. }, other) => large_to(is_negative, digits, other),
            (one, Self::Large { is_negative, digits, .. }) => large_to(is_negative, digits, one).reverse(),
        }
    }
}

fn integer_to_float(integer: i64, float: f64) -> Ordering {
    if float >= BEYOND_I64 {
        return Ordering::Less;
    }
    if float < -BEYOND_I64 {
        return Ordering::Greater;
    }
    let by_fraction = || 0.0_f64.partial_cmp(&float.fract()).unwrap_or(Ordering::Equal);
    integer.cmp(&(float.trunc() as i64)).then_with(by_fraction)
}

fn large_to(is_negative: bool, digits: &str, other: Number<'_>) -> Ordering {
    let by_sign = if is_negative { Ordering::Less } else { Ordering::Greater };
    let by_digits = |other: &str| {
        let by_size = digits.len().cmp(&other.len()).then_with(|| digits.cmp(other));
        if is_negative { by_size.reverse() } else { by_size }
    };
    match other {
        Number::I64(_) => by_sign,
        Number::Large { is_negative: of_other, digits: other, .. } if of_other == is_negative => {
            by_digits(other)
        }
        Number::Large { .. } => by_sign,
        // A float of this size is whole, and the text has all its digits.
        Number::F64(other) if other.abs() >= BEYOND_I64 && (other < 0.0) == is_negative => {
            by_digits(&format!("{:.0}", other.abs()))
        }
        Number::F64(_) => by_sign,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// In ascending order, each less than the next.
    const ASCENDING: [ValueRef<'static>; 17] = [
        ValueRef::Json("-100000000000000000000"),
        ValueRef::Json("-18446744073709551617"),
        ValueRef::F64(-18_446_744_073_709_551_616.0),
        ValueRef::Json("-18446744073709551615"),
        ValueRef::F64(-BEYOND_I64),
        ValueRef::I64(i64::MIN + 1),
        ValueRef::F64(-0.5),
        ValueRef::I64(0),
        ValueRef::F64(0.5),
        ValueRef::Json("1"),
        ValueRef::F64(9_007_199_254_740_992.0),
        ValueRef::I64(9_007_199_254_740_993),
        ValueRef::I64(i64::MAX),
        ValueRef::F64(BEYOND_I64),
        ValueRef::Json("9223372036854775809"),
        ValueRef::Json("18446744073709551617"),
        ValueRef::F64(1e300),
    ];

    #[test]
    fn numbers_of_all_kinds_have_one_order() {
        for (at, one) in ASCENDING.into_iter().enumerate() {
            for (other_at, other) in ASCENDING.into_iter().enumerate() {
                let compared = Number::of(one).unwrap().compare(Number::of(other).unwrap());
                assert_eq!(compared, at.cmp(&other_at), "{one:?} {other:?}");
            }
        }
    }

    #[test]
    fn texts_like_inf_are_no_numbers() {
        for text in ["[1]", "{\"a\":1}", "\"1\"", "true", "null", "1e400", "-inf", "nan", "-", ""] {
            assert!(Number::of(ValueRef::Json(text)).is_none(), "{text}");
        }
        for value in [ValueRef::String("1"), ValueRef::Bool(true)] {
            assert!(Number::of(value).is_none(), "{value:?}");
        }
        let read = |text| Number::of(ValueRef::Json(text)).map(Number::to_f64);
        assert_eq!(read("-18446744073709551616"), Some(-18_446_744_073_709_551_616.0));
        assert_eq!((read("2.5"), read("1e3")), (Some(2.5), Some(1000.0)));
        assert_eq!(read(&"9".repeat(400)), None);
    }
}
