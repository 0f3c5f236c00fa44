//! Bounds functions whose result or work can be far larger than their arguments.
//!
//! `repeat('x', 1000000000)` is a few SQL bytes and makes a gigabyte for each row, which no operator accounts for. `levenshtein`
//! of two long texts takes hours and cannot be ended. So every function has a [`class`], which gives the size that its result and its
//! work can be for arguments of these sizes. A call is refused before it runs if one row exceeds a limit. It is computed in pieces
//! of the batch if the whole batch is large: the statement can end between two pieces.

mod class;
mod size;

use std::cell::Cell;
use std::sync::Arc;

use arrow_array::{Array, ArrayRef};
use arrow_schema::{DataType, FieldRef};
use datafusion::arrow::compute::concat;
use datafusion::common::{DataFusionError, Result, ScalarValue};
use datafusion::logical_expr::expr::ScalarFunction;
use datafusion::logical_expr::interval_arithmetic::Interval;
use datafusion::logical_expr::simplify::{ExprSimplifyResult, SimplifyContext};
use datafusion::logical_expr::sort_properties::{ExprProperties, SortProperties};
use datafusion::logical_expr::{
    ColumnarValue, Documentation, Expr, ReturnFieldArgs, ScalarFunctionArgs, ScalarUDF, ScalarUDFImpl,
    Signature,
};
use model::limits::{QUERY_FUNCTION_BYTES_MAX, QUERY_FUNCTION_WORK_MAX};

use crate::{QueryError, scope};
use class::{Bound, Class};
use size::{Size, Sizes};

/// Bytes of results, and steps of work, up to which a call is computed for a whole batch at once.
const PIECE_BYTES: u64 = 4 * 1024 * 1024;
const PIECE_WORK: u64 = 16 * 1024 * 1024;

/// Bytes of a constant up to which the optimiser computes it. Plans show constants in the names of columns, again for each
/// operator.
const CONSTANT_BYTES_MAX: usize = 16 * 1024;
/// Bytes that a call may make at most for the optimiser to try it.
const OPTIMIZED_BYTES_MAX: u64 = 1024 * 1024;

thread_local! {
    static OPTIMIZES: Cell<bool> = const { Cell::new(false) };
}

/// Runs the optimiser. It leaves calls with large results to be computed with the rows.
pub(crate) fn optimizing<T>(optimize: impl FnOnce() -> T) -> T {
    struct Ended(bool);
    impl Drop for Ended {
        fn drop(&mut self) {
            OPTIMIZES.set(self.0);
        }
    }
    let _ended = Ended(OPTIMIZES.replace(true));
    optimize()
}

/// Whether a call is of a function whose results grow.
pub(crate) fn is_bounded(call: &ScalarFunction) -> bool {
    call.func.inner().is::<Bounded>()
}

/// Returns the function, with a bound if it needs one; `None` if no bound is known, so that the function is not offered.
pub(super) fn bound(function: Arc<ScalarUDF>) -> Option<Arc<ScalarUDF>> {
    match class::of(function.name()) {
        Class::LeftOut => None,
        Class::Fixed => Some(function),
        Class::Grows(class) => {
            Some(Arc::new(ScalarUDF::from(Bounded { inner: function, class: Formula(class) })))
        }
    }
}

/// Whether a call still needs its bound. DataFusion's expression planners and optimizer rules call its own functions.
pub(crate) fn is_unbound(call: &ScalarFunction) -> bool {
    let function = &call.func;
    !is_bounded(call) && !matches!(class::of(function.name()), Class::Fixed)
}

#[derive(Debug, PartialEq, Eq, Hash)]
struct Bounded {
    inner: Arc<ScalarUDF>,
    class: Formula,
}

/// Functions of the same name have the same formula.
#[derive(Clone, Copy)]
struct Formula(fn(&[Size], u64) -> Bound);

impl std::fmt::Debug for Formula {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("Formula")
    }
}

impl PartialEq for Formula {
    fn eq(&self, _: &Self) -> bool {
        true
    }
}

impl Eq for Formula {}

impl std::hash::Hash for Formula {
    fn hash<H: std::hash::Hasher>(&self, _: &mut H) {}
}

impl Bound {
    fn is_small(self) -> bool {
        self.bytes <= PIECE_BYTES && self.work <= PIECE_WORK
    }

    /// Whether one row may be computed.
    fn check_row(self) -> Result<(), QueryError> {
        let over = |what, limit: u64, unit: &str| {
            Err(QueryError::OverLimit {
                what,
                limit: format!("{limit} {unit}"),
                remedy: "compute with shorter text or lists",
            })
        };
        if self.bytes > QUERY_FUNCTION_BYTES_MAX {
            return over("what a function could make for one row", QUERY_FUNCTION_BYTES_MAX, "bytes");
        }
        if self.work > QUERY_FUNCTION_WORK_MAX {
            return over("the work of a function for one row", QUERY_FUNCTION_WORK_MAX, "steps");
        }
        Ok(())
    }
}

impl Bounded {
    /// Constant arguments are computed once, however many rows there are.
    fn constant(&self, mut args: ScalarFunctionArgs, bound: Bound) -> Result<ColumnarValue> {
        bound.check_row()?;
        if OPTIMIZES.get() && bound.bytes > OPTIMIZED_BYTES_MAX {
            return Err(left_for_later());
        }
        scope::check(bytes(bound))?;
        args.number_rows = 1;
        let value = match self.inner.invoke_with_args(args)? {
            ColumnarValue::Array(array) if array.len() == 1 => {
                ColumnarValue::Scalar(ScalarValue::try_from_array(&array, 0)?)
            }
            value => value,
        };
        match &value {
            ColumnarValue::Scalar(scalar) if OPTIMIZES.get() && scalar.size() > CONSTANT_BYTES_MAX => {
                Err(left_for_later())
            }
            _ => Ok(value),
        }
    }

    fn in_pieces(&self, args: &ScalarFunctionArgs) -> Result<ColumnarValue> {
        let sizes: Vec<_> = args.args.iter().map(Sizes::of).collect::<Result<_>>()?;
        let bound_of = |row: usize| {
            let sizes: Vec<_> = sizes.iter().map(|sizes| sizes.row(row)).collect();
            (self.class.0)(&sizes, 1)
        };
        let mut pieces: Vec<ArrayRef> = Vec::new();
        let mut begin = 0;
        while begin < args.number_rows {
            let mut bound = bound_of(begin);
            bound.check_row()?;
            let mut end = begin + 1;
            while end < args.number_rows {
                let with_next = bound + bound_of(end);
                if !with_next.is_small() {
                    break;
                }
                (bound, end) = (with_next, end + 1);
            }
            scope::check(bytes(bound))?;
            let piece = self.inner.invoke_with_args(slice(args, begin, end - begin))?;
            pieces.push(piece.into_array(end - begin)?);
            begin = end;
        }
        if let [piece] = pieces.as_slice() {
            return Ok(ColumnarValue::Array(Arc::clone(piece)));
        }
        scope::check(pieces.iter().map(|piece| piece.get_array_memory_size()).sum())?;
        let pieces: Vec<&dyn Array> = pieces.iter().map(|piece| &**piece).collect();
        Ok(ColumnarValue::Array(concat(&pieces)?))
    }
}

/// The optimiser leaves a call that fails to be computed with the rows, so no one sees this error.
fn left_for_later() -> DataFusionError {
    DataFusionError::Plan("a constant is too long to be computed by the optimiser".into())
}

fn bytes(bound: Bound) -> usize {
    usize::try_from(bound.bytes).unwrap_or(usize::MAX)
}

fn slice(args: &ScalarFunctionArgs, begin: usize, rows: usize) -> ScalarFunctionArgs {
    let sliced = |arg: &ColumnarValue| match arg {
        ColumnarValue::Array(array) => ColumnarValue::Array(array.slice(begin, rows)),
        ColumnarValue::Scalar(value) => ColumnarValue::Scalar(value.clone()),
    };
    ScalarFunctionArgs { args: args.args.iter().map(sliced).collect(), number_rows: rows, ..args.clone() }
}

/// Behaves like the function that it bounds, apart from the limits.
impl ScalarUDFImpl for Bounded {
    fn name(&self) -> &str {
        self.inner.name()
    }

    fn aliases(&self) -> &[String] {
        self.inner.aliases()
    }

    fn schema_name(&self, args: &[Expr]) -> Result<String> {
        self.inner.schema_name(args)
    }

    fn signature(&self) -> &Signature {
        self.inner.signature()
    }

    fn coerce_types(&self, types: &[DataType]) -> Result<Vec<DataType>> {
        self.inner.coerce_types(types)
    }

    fn return_type(&self, types: &[DataType]) -> Result<DataType> {
        self.inner.return_type(types)
    }

    fn return_field_from_args(&self, args: ReturnFieldArgs) -> Result<FieldRef> {
        self.inner.return_field_from_args(args)
    }

    fn is_strict(&self) -> bool {
        self.inner.is_strict()
    }

    fn simplify(&self, args: Vec<Expr>, info: &SimplifyContext) -> Result<ExprSimplifyResult> {
        self.inner.simplify(args, info)
    }

    fn short_circuits(&self) -> bool {
        self.inner.short_circuits()
    }

    fn conditional_arguments<'a>(&self, args: &'a [Expr]) -> Option<(Vec<&'a Expr>, Vec<&'a Expr>)> {
        self.inner.conditional_arguments(args)
    }

    fn evaluate_bounds(&self, inputs: &[&Interval]) -> Result<Interval> {
        self.inner.evaluate_bounds(inputs)
    }

    fn output_ordering(&self, inputs: &[ExprProperties]) -> Result<SortProperties> {
        self.inner.output_ordering(inputs)
    }

    fn documentation(&self) -> Option<&Documentation> {
        self.inner.documentation()
    }

    fn invoke_with_args(&self, args: ScalarFunctionArgs) -> Result<ColumnarValue> {
        let are_constant = args.args.iter().all(|arg| matches!(arg, ColumnarValue::Scalar(_)));
        let rows = if are_constant { 1 } else { args.number_rows };
        let sizes: Vec<_> =
            args.args.iter().map(|arg| Ok(Sizes::of(arg)?.all(rows))).collect::<Result<_>>()?;
        let bound = (self.class.0)(&sizes, rows as u64);
        if are_constant {
            return self.constant(args, bound);
        }
        if !bound.is_small() {
            return self.in_pieces(&args);
        }
        scope::check(bytes(bound))?;
        self.inner.invoke_with_args(args)
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use datafusion::common::config::ConfigOptions;

    use super::*;
    use crate::dialect;

    /// A function of a newer DataFusion is left out until its class is written.
    #[test]
    fn every_function_has_a_class_and_every_class_a_function() {
        let known: BTreeSet<_> = class::names().collect();
        let ours = dialect::functions(&ConfigOptions::default());
        let operators = ["||", "~", "~*", "!~", "!~*", "~~", "~~*", "!~~", "!~~*"].map(str::to_owned);
        let all: BTreeSet<_> = ours.offered.into_iter().chain(operators).collect();
        let unknown: Vec<_> = all.iter().filter(|name| !known.contains(name.as_str())).collect();
        assert!(unknown.is_empty(), "without a class: {unknown:?}");
        let gone: Vec<_> = known.iter().filter(|name| !all.contains(**name)).collect();
        assert!(gone.is_empty(), "there is no such function: {gone:?}");
    }
}
