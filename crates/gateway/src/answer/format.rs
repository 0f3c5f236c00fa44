//! The formats of answers.

use std::fmt;
use std::str::FromStr;

/// The format of an answer.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Format {
    /// `{"columns":[...],"rows":[[...]],"row_count":n}`.
    Json,
    /// Comma-separated values with a header (RFC 4180).
    Csv,
    /// Arrow's streaming format.
    Arrow,
    /// A Parquet file.
    Parquet,
}

impl Format {
    /// All of them, the default first.
    pub const ALL: [Self; 4] = [Self::Json, Self::Csv, Self::Arrow, Self::Parquet];

    /// The name in requests.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Json => "json",
            Self::Csv => "csv",
            Self::Arrow => "arrow",
            Self::Parquet => "parquet",
        }
    }

    /// The `Content-Type`.
    pub const fn media_type(self) -> &'static str {
        match self {
            Self::Json => "application/json",
            Self::Csv => "text/csv; charset=utf-8; header=present",
            Self::Arrow => "application/vnd.apache.arrow.stream",
            Self::Parquet => "application/vnd.apache.parquet",
        }
    }
}

impl fmt::Display for Format {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

impl FromStr for Format {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let found = Self::ALL.into_iter().find(|format| format.name().eq_ignore_ascii_case(text));
        found.ok_or_else(|| format!("format is {text:?}; it must be json, csv, arrow or parquet"))
    }
}
