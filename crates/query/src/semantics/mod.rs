//! How PostgreSQL computes, where the library computes otherwise.
//!
//! Two rules look at every expression of a resolved plan: one before the types of operands are made equal, one after. They put our
//! functions in place of operators and conversions whose result would be another one than PostgreSQL's: sums that wrap,
//! fractions that are cut, quotients that are infinite. What the store and our operators recognise, columns compared with
//! constants and groups by steps of time, is left as it is.

mod arithmetic;
mod casts;
mod guards;
mod in_lists;
pub(crate) mod intervals;
mod literals;
mod numeric;
pub(crate) mod patterns;
mod rules;
pub(crate) mod spans;
pub(crate) mod syntax;
pub(crate) mod text;

pub(crate) use in_lists::keep_apart as keep_lists_apart;
pub(crate) use rules::analyzer;
