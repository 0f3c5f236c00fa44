//! Bounds of Protobuf schemas.

/// Longest schema in bytes. All schemas of a profile are in its data, which has a bound of its own.
pub const SCHEMA_BYTES_MAX: usize = 64 * 1024;
/// Opening brackets of a schema: each message, enumeration, map and list of options has one. The parser calls itself for them.
pub const SCHEMA_BRACKETS_MAX: usize = 512;
