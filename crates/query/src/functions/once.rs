//! Guards the value of a subquery, which DataFusion copies for each row of a batch.

use std::sync::{Arc, LazyLock};

use arrow_schema::{DataType, FieldRef};
use datafusion::common::Result;
use datafusion::logical_expr::{
    ColumnarValue, ReturnFieldArgs, ScalarFunctionArgs, ScalarUDF, ScalarUDFImpl, Signature, Volatility,
};
use model::limits::QUERY_REPEATED_BYTES_MAX;

use crate::QueryError;

pub(crate) const NAME: &str = "once";

/// The function returns its argument. It fails if the argument, copied for each row of the batch, exceeds the limit.
pub(crate) fn function() -> Arc<ScalarUDF> {
    static FUNCTION: LazyLock<Arc<ScalarUDF>> = LazyLock::new(|| {
        Arc::new(ScalarUDF::from(Once { signature: Signature::any(1, Volatility::Immutable) }))
    });
    Arc::clone(&FUNCTION)
}

#[derive(Debug, PartialEq, Eq, Hash)]
struct Once {
    signature: Signature,
}

impl ScalarUDFImpl for Once {
    fn name(&self) -> &str {
        NAME
    }

    fn signature(&self) -> &Signature {
        &self.signature
    }

    fn return_type(&self, types: &[DataType]) -> Result<DataType> {
        Ok(types[0].clone())
    }

    fn return_field_from_args(&self, args: ReturnFieldArgs) -> Result<FieldRef> {
        Ok(Arc::clone(&args.arg_fields[0]))
    }

    fn invoke_with_args(&self, args: ScalarFunctionArgs) -> Result<ColumnarValue> {
        let rows = args.number_rows;
        let value = args.args.into_iter().next().expect("BUG: its signature has one argument");
        if let ColumnarValue::Scalar(value) = &value
            && value.size().saturating_mul(rows) > QUERY_REPEATED_BYTES_MAX
        {
            return Err(QueryError::OverLimit {
                what: "the value of a subquery times the rows that it is given in",
                limit: format!("{QUERY_REPEATED_BYTES_MAX} bytes"),
                remedy: "select it by itself",
            }
            .into());
        }
        Ok(value)
    }
}
