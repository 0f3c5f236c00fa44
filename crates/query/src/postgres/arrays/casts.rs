//! Casts between texts and arrays whose values are known only when the query runs.

use std::sync::Arc;

use arrow_array::cast::AsArray;
use arrow_schema::{DataType, FieldRef};
use datafusion::common::{DataFusionError, Result, ScalarValue};
use datafusion::logical_expr::expr::ScalarFunction;
use datafusion::logical_expr::{
    ColumnarValue, Expr, ScalarFunctionArgs, ScalarUDF, ScalarUDFImpl, Signature, Volatility,
};

use super::text::{element_field, read_all, write_all};

/// Converts texts to arrays.
pub(super) fn from_text(text: Expr, element: &FieldRef) -> Expr {
    let signature = Signature::any(1, Volatility::Immutable);
    call(ScalarUDF::from(FromText { element: Arc::clone(element), signature }), text)
}

/// Converts arrays to texts.
pub(super) fn to_text(array: Expr) -> Expr {
    call(ScalarUDF::from(ToText { signature: Signature::any(1, Volatility::Immutable) }), array)
}

fn call(function: ScalarUDF, argument: Expr) -> Expr {
    Expr::ScalarFunction(ScalarFunction { func: Arc::new(function), args: vec![argument] })
}

#[derive(Debug, PartialEq, Eq, Hash)]
struct FromText {
    element: FieldRef,
    signature: Signature,
}

impl ScalarUDFImpl for FromText {
    fn name(&self) -> &str {
        "array_in"
    }

    fn signature(&self) -> &Signature {
        &self.signature
    }

    fn return_type(&self, _types: &[DataType]) -> Result<DataType> {
        Ok(DataType::List(Arc::clone(&self.element)))
    }

    fn invoke_with_args(&self, args: ScalarFunctionArgs) -> Result<ColumnarValue> {
        value_by_value(&args, |texts| read_all(texts, &self.element))
    }
}

#[derive(Debug, PartialEq, Eq, Hash)]
struct ToText {
    signature: Signature,
}

impl ScalarUDFImpl for ToText {
    fn name(&self) -> &str {
        "array_out"
    }

    fn signature(&self) -> &Signature {
        &self.signature
    }

    fn return_type(&self, _types: &[DataType]) -> Result<DataType> {
        Ok(DataType::Utf8)
    }

    fn invoke_with_args(&self, args: ScalarFunctionArgs) -> Result<ColumnarValue> {
        value_by_value(&args, |lists| {
            let DataType::List(field) = lists.data_type() else {
                return Err(DataFusionError::NotImplemented(format!("{} as text", lists.data_type())));
            };
            let plain = DataType::List(element_field(field.data_type().clone()));
            let lists = datafusion::arrow::compute::cast(lists, &plain)?;
            write_all(lists.as_list())
        })
    }
}

fn value_by_value(
    args: &ScalarFunctionArgs,
    compute: impl Fn(&arrow_array::ArrayRef) -> Result<arrow_array::ArrayRef>,
) -> Result<ColumnarValue> {
    match args.args.first() {
        Some(ColumnarValue::Array(array)) => compute(array).map(ColumnarValue::Array),
        Some(ColumnarValue::Scalar(value)) => {
            let computed = compute(&value.to_array()?)?;
            ScalarValue::try_from_array(&computed, 0).map(ColumnarValue::Scalar)
        }
        None => Err(DataFusionError::Internal("one argument was checked".into())),
    }
}
