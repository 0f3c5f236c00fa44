//! Arrays as PostgreSQL's clients write and read them: their text, and comparisons with their elements.
//!
//! The planner would take `'{a,b}'::text[]` for an array of the one text `{a,b}`, and answers comparisons with ANY and ALL by the
//! smallest and the largest element. So ANY and ALL become functions of ours in the statement ([`name_comparisons`]), and once types
//! are known, texts become the arrays that they mean and comparisons with known elements become IN, which the store understands
//! ([`settle`]).

mod casts;
mod compare;
mod measures;
mod sets;
mod settle;
mod statement;
mod text;

pub(crate) use compare::{compares_with_array, function};
pub(crate) use sets::{CONTAINS, OVERLAPS};
pub(crate) use settle::{parameter_places, settle};
pub(crate) use statement::name_comparisons;
pub(crate) use text::read;

/// Functions that take the place of the library's.
pub(crate) fn functions() -> Vec<std::sync::Arc<datafusion::logical_expr::ScalarUDF>> {
    let mut functions = measures::functions();
    functions.extend(sets::functions());
    functions
}
