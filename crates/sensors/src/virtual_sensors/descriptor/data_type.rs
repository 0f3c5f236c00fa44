//! Types of fields.

use std::fmt;

/// The type of a field, in GSN's words.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum DataType {
    /// 8 bits.
    TinyInt,
    /// 16 bits.
    SmallInt,
    /// 32 bits.
    Integer,
    /// 64 bits.
    BigInt,
    /// A number of 64 bits with a fraction.
    Double,
    /// A number of 32 bits with a fraction.
    Float,
    /// Text of at most this many characters.
    Varchar(Option<u32>),
    /// Text of at most this many characters.
    Char(u32),
    /// Bytes, with their kind, such as `image/jpeg`.
    Binary(Option<String>),
}

impl DataType {
    /// Whether values are numbers.
    pub fn is_number(&self) -> bool {
        !matches!(self, Self::Varchar(_) | Self::Char(_) | Self::Binary(_))
    }

    /// The type of a text, in any case.
    pub(crate) fn parse(text: &str) -> Option<Self> {
        let (text, kind) = match text.split_once(':') {
            Some((text, kind)) => (text.trim(), Some(kind.trim().to_owned())),
            None => (text.trim(), None),
        };
        let (name, length) = match text.split_once('(') {
            Some((name, rest)) => {
                (name.trim(), Some(rest.strip_suffix(')')?.trim().parse::<u32>().ok().filter(|n| *n > 0)?))
            }
            None => (text, None),
        };
        let name = name.to_ascii_lowercase();
        if kind.is_some() && !matches!(name.as_str(), "binary" | "blob") {
            return None;
        }
        match (name.as_str(), length) {
            ("tinyint", None) => Some(Self::TinyInt),
            ("smallint", None) => Some(Self::SmallInt),
            ("integer" | "int", None) => Some(Self::Integer),
            ("bigint", None) => Some(Self::BigInt),
            ("double" | "numeric", None) => Some(Self::Double),
            ("float", None) => Some(Self::Float),
            ("string", None) => Some(Self::Varchar(None)),
            ("varchar", Some(length)) => Some(Self::Varchar(Some(length))),
            ("char", Some(length)) => Some(Self::Char(length)),
            ("binary" | "blob", _) => Some(Self::Binary(kind)),
            _ => None,
        }
    }
}

impl fmt::Display for DataType {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::TinyInt => f.write_str("tinyint"),
            Self::SmallInt => f.write_str("smallint"),
            Self::Integer => f.write_str("integer"),
            Self::BigInt => f.write_str("bigint"),
            Self::Double => f.write_str("double"),
            Self::Float => f.write_str("float"),
            Self::Varchar(None) => f.write_str("string"),
            Self::Varchar(Some(length)) => write!(f, "varchar({length})"),
            Self::Char(length) => write!(f, "char({length})"),
            Self::Binary(None) => f.write_str("binary"),
            Self::Binary(Some(kind)) => write!(f, "binary:{kind}"),
        }
    }
}
