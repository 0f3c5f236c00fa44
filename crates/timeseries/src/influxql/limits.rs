//! Limits of InfluxQL.

/// Longest text of a query, in bytes.
pub const QUERY_BYTES_MAX: usize = 1024 * 1024;
/// Most statements in one query.
pub const STATEMENTS_MAX: usize = 1_000;
/// Deepest nesting of parentheses, calls and subqueries.
pub const NESTING_MAX: usize = 64;
/// Longest chain of operators in one expression, such as the conditions of a WHERE clause.
pub const OPERATORS_MAX: usize = 1_000;
/// Largest compiled size of a regular expression, in bytes.
pub const REGEX_BYTES_MAX: usize = 1024 * 1024;
