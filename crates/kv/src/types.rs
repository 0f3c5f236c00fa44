//! Keys and values.

/// A key.
pub type Key = bytes::Bytes;

/// A value.
pub type Value = bytes::Bytes;
