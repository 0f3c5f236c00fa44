//! Keeps a cast in the name of an expression.
//!
//! DataFusion leaves casts out of names, so that `max(n)` and `max(n::text)` would be two columns with one name.

use std::sync::Arc;

use arrow_schema::{DataType, FieldRef};
use datafusion::common::Result;
use datafusion::logical_expr::{
    ColumnarValue, Expr, ReturnFieldArgs, ScalarFunctionArgs, ScalarUDF, ScalarUDFImpl, Signature, Volatility,
};

/// The name of the function, which statements cannot write.
pub(crate) const NAME: &str = "kept\u{1}cast";

/// The function returns its argument.
pub(super) fn function() -> Arc<ScalarUDF> {
    Arc::new(ScalarUDF::from(KeptCast { signature: Signature::any(1, Volatility::Immutable) }))
}

#[derive(Debug, PartialEq, Eq, Hash)]
struct KeptCast {
    signature: Signature,
}

impl ScalarUDFImpl for KeptCast {
    fn name(&self) -> &str {
        NAME
    }

    fn schema_name(&self, args: &[Expr]) -> Result<String> {
        let cast = &args[0];
        Ok(match cast {
            Expr::Cast(inner) => format!("{} as {}", cast.schema_name(), inner.field.data_type()),
            // The analyzer has put a function in place of the cast.
            Expr::ScalarFunction(inner) => format!("{} by {}", cast.schema_name(), inner.func.name()),
            other => other.schema_name().to_string(),
        })
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
        Ok(args.args.into_iter().next().expect("BUG: its signature has one argument"))
    }
}
