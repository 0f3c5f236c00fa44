//! Functions whose result can be far larger than their arguments.
//!
//! `repeat('x', 1000000000)` is a few bytes of SQL and a gigabyte per row, made at once and accounted for by nobody. Such
//! a function is asked for the size of its result before it is called, or is left out.

use std::sync::Arc;

use arrow_array::cast::AsArray;
use arrow_array::types::Int64Type;
use arrow_schema::{DataType, FieldRef};
use datafusion::arrow::compute::{cast, max};
use datafusion::common::Result;
use datafusion::logical_expr::{
    ColumnarValue, ReturnFieldArgs, ScalarFunctionArgs, ScalarUDF, ScalarUDFImpl, Signature,
};
use model::limits::QUERY_FUNCTION_BYTES_MAX;

use crate::QueryError;

/// Functions that make a list of any length from a number. `generate_series` and `range` in a FROM clause give rows one
/// batch after the other and stay.
pub(super) const LEFT_OUT: [&str; 5] =
    ["array_dims", "array_repeat", "array_resize", "generate_series", "range"];

/// The function, with a bound if it needs one.
pub(super) fn bound(function: Arc<ScalarUDF>) -> Arc<ScalarUDF> {
    match function.name() {
        "repeat" | "lpad" | "rpad" => Arc::new(ScalarUDF::from(Bounded { inner: function })),
        _ => function,
    }
}

#[derive(Debug, PartialEq, Eq, Hash)]
struct Bounded {
    inner: Arc<ScalarUDF>,
}

/// The largest value of an argument; zero if there is none.
fn largest(args: &ScalarFunctionArgs, index: usize) -> Result<i64> {
    let array = args.args[index].to_array(1)?;
    let numbers = cast(&array, &DataType::Int64)?;
    Ok(max(numbers.as_primitive::<Int64Type>()).unwrap_or(0))
}

/// The longest text of an argument in bytes.
fn longest(args: &ScalarFunctionArgs, index: usize) -> Result<i64> {
    let array = args.args[index].to_array(1)?;
    let texts = cast(&array, &DataType::Utf8View)?;
    Ok(texts.as_string_view().iter().flatten().map(str::len).max().unwrap_or(0) as i64)
}

impl ScalarUDFImpl for Bounded {
    fn name(&self) -> &str {
        self.inner.name()
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

    fn invoke_with_args(&self, args: ScalarFunctionArgs) -> Result<ColumnarValue> {
        let each = if self.name() == "repeat" { longest(&args, 0)? } else { 1 };
        let total = each.saturating_mul(largest(&args, 1)?).saturating_mul(args.number_rows.max(1) as i64);
        if total > QUERY_FUNCTION_BYTES_MAX as i64 {
            return Err(QueryError::OverLimit {
                what: "the text that repeat, lpad or rpad would make for one batch of rows",
                limit: format!("{QUERY_FUNCTION_BYTES_MAX} bytes"),
                remedy: "ask for shorter text",
            }
            .into());
        }
        self.inner.invoke_with_args(args)
    }
}
