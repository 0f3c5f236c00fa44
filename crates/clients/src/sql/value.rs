//! Parameters and results of statements, for every protocol.

/// A value bound to a prepared statement.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Value<'a> {
    /// A 32-bit integer.
    Int(i32),
    /// Text.
    Text(&'a [u8]),
}

/// Type of a bound value.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Type {
    /// A 32-bit integer.
    Int,
    /// Text.
    Text,
}

/// The result of a statement.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Effect {
    /// The number of rows that were returned.
    pub rows: u64,
    /// The number of rows that were changed.
    pub affected: u64,
}

/// Rows as text.
pub type Rows = Vec<Vec<Option<String>>>;

/// The number of a statement that is prepared on one connection.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Statement(pub(super) u32);
