//! PostgreSQL's rules of computation, where DataFusion has others.
//!
//! Two rules look at every expression of a resolved plan: one before operands get a common type, one after. They put our functions
//! in place of operators and casts whose results differ from PostgreSQL's: sums that wrap, fractions that are cut, quotients that
//! are infinite. Expressions that the store and our operators recognise stay as they are: columns compared with constants, and
//! groups by steps of time.

mod arithmetic;
mod call;
mod casts;
mod guards;
mod in_lists;
mod literals;
mod numeric;
mod rules;
mod sort_keys;
pub(crate) mod spans;
pub(crate) mod syntax;
pub(crate) mod text;
mod window_keys;

pub(crate) use in_lists::keep_apart as keep_lists_apart;
pub(crate) use rules::analyzer;
