//! SQL of descriptors: parsed once, compiled into expressions over rows, and computed without a database.

pub(crate) mod aggregates;
mod arithmetic;
mod calls;
pub(crate) mod compile;
pub(crate) mod datum;
pub(crate) mod exact_sum;
pub(crate) mod expr;
mod expressions;
pub(crate) mod foreign;
mod functions;
pub(crate) mod grouping;
mod like;
pub(crate) mod meter;
pub(crate) mod query;
pub(crate) mod statement;

pub use datum::{Datum, Row};
