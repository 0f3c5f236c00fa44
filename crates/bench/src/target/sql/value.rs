//! Parameters and results of statements, for every protocol.

/// A value bound to a prepared statement.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Value<'a> {
    /// A 32-bit integer.
    Int(i32),
    /// Text.
    Text(&'a [u8]),
}

/// Type of a bound value.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Type {
    Int,
    Text,
}

/// The result of a statement.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(crate) struct Effect {
    /// The number of rows that were returned.
    pub(crate) rows: u64,
    /// The number of rows that were changed.
    pub(crate) affected: u64,
}

/// Rows as text.
pub(crate) type Rows = Vec<Vec<Option<String>>>;

/// The number of a statement that is prepared on one connection.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Statement(pub(super) u32);
