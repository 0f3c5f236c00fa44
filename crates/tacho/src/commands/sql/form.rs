//! The forms in which the command prints an answer.

use clap::ValueEnum;
use gateway::answer::Format;

/// Forms of an answer.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(super) enum Form {
    /// A table for people
    Table,
    /// Comma-separated values with a header
    Csv,
    /// Columns, then rows as arrays
    Json,
    /// Arrow's streaming format
    Arrow,
    /// A Parquet file
    Parquet,
}

impl Form {
    /// The format of the query's answer. A table is laid out from JSON.
    pub(super) fn format(self) -> Format {
        match self {
            Self::Table | Self::Json => Format::Json,
            Self::Csv => Format::Csv,
            Self::Arrow => Format::Arrow,
            Self::Parquet => Format::Parquet,
        }
    }

    /// Whether the form is for programs only.
    pub(super) fn is_binary(self) -> bool {
        matches!(self, Self::Arrow | Self::Parquet)
    }
}
