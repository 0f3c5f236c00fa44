//! Values that a statement takes, and what it returns, in every protocol.

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

/// What a statement did.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(crate) struct Effect {
    /// Rows that came back.
    pub(crate) rows: u64,
    /// Rows changed.
    pub(crate) affected: u64,
}

/// Rows as text.
pub(crate) type Rows = Vec<Vec<Option<String>>>;

/// A statement prepared on one connection.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Statement(pub(super) u32);
