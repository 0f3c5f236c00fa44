//! The functions and operators of the dialect: those of `functions`, and those that PostgreSQL's semantics, its catalog and
//! the filling of gaps bring.

use std::sync::Arc;

use datafusion::common::config::ConfigOptions;

use crate::functions::Functions;
use crate::semantics::spans::IntervalOperators;
use crate::{gapfill, postgres};

/// Makes all functions with these options.
pub(crate) fn functions(options: &ConfigOptions) -> Functions {
    let mut functions = Functions::new(options);
    functions.add_planner(Arc::new(IntervalOperators));
    gapfill::functions().into_iter().for_each(|function| functions.add_scalar(function));
    functions.add_planner(postgres::truth_planner());
    postgres::array_functions().into_iter().for_each(|function| functions.add_scalar(function));
    functions
}
