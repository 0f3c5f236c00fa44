//! Arrays as PostgreSQL's clients write and read them: their text, and comparisons with their elements.
//!
//! DataFusion would read `'{a,b}'::text[]` as an array of the one text `{a,b}`, and it computes ANY and ALL with the smallest and
//! the largest element. So [`name_comparisons`] turns ANY and ALL in a statement into calls of our functions. When types are known,
//! [`settle`] turns texts into the arrays that they mean, and comparisons with known elements into IN, which can be pushed down to
//! the store.

mod casts;
mod compare;
mod measures;
mod sets;
mod statement;
mod text;
mod typed_arrays;

pub(crate) use compare::{compares_with_array, function};
pub(crate) use sets::{CONTAINS, OVERLAPS};
pub(crate) use statement::name_comparisons;
pub(crate) use text::read;
pub(crate) use typed_arrays::{implied_parameter_types, settle};

/// Functions that replace DataFusion's.
pub(crate) fn functions() -> Vec<std::sync::Arc<datafusion::logical_expr::ScalarUDF>> {
    let mut functions = measures::functions();
    functions.extend(sets::functions());
    functions
}
