//! Values of rows, and how SQL compares and converts them.

use std::cmp::Ordering;
use std::fmt;
use std::mem;
use std::sync::Arc;

use model::ValueRef;

/// A value of a row.
#[derive(Debug, Clone, PartialEq)]
pub enum Datum {
    /// No value.
    Null,
    /// `true` or `false`.
    Bool(bool),
    /// A whole number.
    Int(i64),
    /// A number with a fraction, always finite.
    Float(f64),
    Text(Arc<str>),
}

/// Values of one row.
pub type Row = Arc<[Datum]>;

impl Datum {
    /// A number that must be finite.
    pub(crate) fn finite(number: f64, of: &str) -> Result<Self, String> {
        if number.is_finite() {
            return Ok(Self::Float(number));
        }
        Err(format!("{of} is not a finite number"))
    }

    /// Whether this is not a value.
    pub fn is_null(&self) -> bool {
        matches!(self, Self::Null)
    }

    /// The truth of a condition; no value is neither true nor false.
    pub(crate) fn truth(&self) -> Result<Option<bool>, String> {
        match self {
            Self::Null => Ok(None),
            Self::Bool(flag) => Ok(Some(*flag)),
            Self::Int(number) => Ok(Some(*number != 0)),
            Self::Float(number) => Ok(Some(*number != 0.0)),
            Self::Text(text) if text.eq_ignore_ascii_case("true") => Ok(Some(true)),
            Self::Text(text) if text.eq_ignore_ascii_case("false") => Ok(Some(false)),
            Self::Text(text) => Err(format!("{text:?} is not a condition")),
        }
    }

    /// The number in this value: text is read as one, as H2 and MySQL do.
    pub(crate) fn number(&self) -> Result<Option<Number>, String> {
        match self {
            Self::Null => Ok(None),
            Self::Bool(flag) => Ok(Some(Number::Int(i64::from(*flag)))),
            Self::Int(number) => Ok(Some(Number::Int(*number))),
            Self::Float(number) => Ok(Some(Number::Float(*number))),
            Self::Text(text) => {
                Number::parse(text).map(Some).ok_or_else(|| format!("{text:?} is not a number"))
            }
        }
    }

    /// Compares as SQL does. Nothing compares with no value.
    pub(crate) fn compare(&self, other: &Self) -> Result<Option<Ordering>, String> {
        if let (Self::Text(left), Self::Text(right)) = (self, other) {
            return Ok(Some(left.cmp(right)));
        }
        let (Some(left), Some(right)) = (self.number()?, other.number()?) else { return Ok(None) };
        Ok(Some(left.compare(right)))
    }

    /// The order of `ORDER BY`, of groups and of `min` and `max`: no value, numbers, text.
    pub(crate) fn total_cmp(&self, other: &Self) -> Ordering {
        let rank = |datum: &Self| match datum {
            Self::Null => 0,
            Self::Bool(_) | Self::Int(_) | Self::Float(_) => 1,
            Self::Text(_) => 2,
        };
        match (self, other) {
            (Self::Text(left), Self::Text(right)) => left.cmp(right),
            (left, right) => match (left.number(), right.number()) {
                (Ok(Some(a)), Ok(Some(b))) if rank(left) == 1 && rank(right) == 1 => a.compare(b),
                _ => rank(left).cmp(&rank(right)),
            },
        }
    }

    /// The value as text; no value has none.
    pub(crate) fn text(&self) -> Option<Arc<str>> {
        match self {
            Self::Null => None,
            Self::Text(text) => Some(text.clone()),
            other => Some(other.to_string().into()),
        }
    }

    /// Bytes that the value holds.
    pub(crate) fn bytes(&self) -> usize {
        mem::size_of::<Self>() + if let Self::Text(text) = self { text.len() } else { 0 }
    }
}

/// Bytes that a row holds, with what an allocation costs.
pub(crate) fn row_bytes(row: &[Datum]) -> usize {
    const ALLOCATION: usize = 32;
    ALLOCATION + row.iter().map(Datum::bytes).sum::<usize>()
}

impl fmt::Display for Datum {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Null => Ok(()),
            Self::Bool(flag) => write!(f, "{flag}"),
            Self::Int(number) => write!(f, "{number}"),
            Self::Float(number) => write!(f, "{number:?}"),
            Self::Text(text) => f.write_str(text),
        }
    }
}

impl From<ValueRef<'_>> for Datum {
    fn from(value: ValueRef<'_>) -> Self {
        match value {
            ValueRef::Bool(flag) => Self::Bool(flag),
            ValueRef::I64(number) => Self::Int(number),
            ValueRef::F64(number) => Self::Float(number),
            ValueRef::String(text) | ValueRef::Json(text) => Self::Text(text.into()),
        }
    }
}

/// A number of either kind.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) enum Number {
    Int(i64),
    Float(f64),
}

impl Number {
    pub(crate) fn parse(text: &str) -> Option<Self> {
        let text = text.trim();
        if let Ok(number) = text.parse::<i64>() {
            return Some(Self::Int(number));
        }
        text.parse::<f64>().ok().filter(|number| number.is_finite()).map(Self::Float)
    }

    pub(crate) fn as_f64(self) -> f64 {
        match self {
            Self::Int(number) => number as f64,
            Self::Float(number) => number,
        }
    }

    fn compare(self, other: Self) -> Ordering {
        match (self, other) {
            (Self::Int(left), Self::Int(right)) => left.cmp(&right),
            (Self::Float(left), Self::Float(right)) => left.partial_cmp(&right).unwrap_or(Ordering::Equal),
            (Self::Int(left), Self::Float(right)) => compare_mixed(left, right),
            (Self::Float(left), Self::Int(right)) => compare_mixed(right, left).reverse(),
        }
    }
}

/// Compares without rounding the integer.
fn compare_mixed(int: i64, float: f64) -> Ordering {
    const TWO_63: f64 = 9_223_372_036_854_775_808.0;
    if float >= TWO_63 {
        return Ordering::Less;
    }
    if float < -TWO_63 {
        return Ordering::Greater;
    }
    let whole = float.floor();
    match int.cmp(&(whole as i64)) {
        Ordering::Equal if float > whole => Ordering::Less,
        order => order,
    }
}

/// A value in the order of [`Datum::total_cmp`], for maps.
#[derive(Debug, Clone)]
pub(crate) struct Key(pub(crate) Datum);

impl PartialEq for Key {
    fn eq(&self, other: &Self) -> bool {
        self.cmp(other) == Ordering::Equal
    }
}

impl Eq for Key {}

impl PartialOrd for Key {
    fn partial_cmp(&self, other: &Self) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

impl Ord for Key {
    fn cmp(&self, other: &Self) -> Ordering {
        self.0.total_cmp(&other.0)
    }
}
