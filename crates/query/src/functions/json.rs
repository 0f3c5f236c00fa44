//! `json_get(text, path)`: a value inside a JSON text.

use std::borrow::Cow;
use std::collections::HashMap;
use std::sync::Arc;

use arrow_array::StringViewArray;
use arrow_array::cast::AsArray;
use arrow_schema::DataType;
use datafusion::common::{DFSchema, Result, ScalarValue};
use datafusion::logical_expr::expr::ScalarFunction;
use datafusion::logical_expr::planner::{ExprPlanner, PlannerResult, RawBinaryExpr};
use datafusion::logical_expr::{
    ColumnarValue, Expr, ScalarFunctionArgs, ScalarUDF, ScalarUDFImpl, Signature, Volatility,
};
use datafusion::sql::sqlparser::ast::BinaryOperator;
use serde_json::value::RawValue;

pub(super) fn function() -> Arc<ScalarUDF> {
    let signature = Signature::uniform(2, vec![DataType::Utf8View], Volatility::Immutable);
    Arc::new(ScalarUDF::from(JsonGet { signature }))
}

#[derive(Debug, PartialEq, Eq, Hash)]
struct JsonGet {
    signature: Signature,
}

impl ScalarUDFImpl for JsonGet {
    fn name(&self) -> &str {
        "json_get"
    }

    fn signature(&self) -> &Signature {
        &self.signature
    }

    fn return_type(&self, _types: &[DataType]) -> Result<DataType> {
        Ok(DataType::Utf8View)
    }

    fn is_strict(&self) -> bool {
        true
    }

    fn invoke_with_args(&self, args: ScalarFunctionArgs) -> Result<ColumnarValue> {
        if let [ColumnarValue::Array(texts), ColumnarValue::Scalar(path)] = &*args.args {
            let steps = path.try_as_str().flatten().map(steps);
            let texts = texts.as_string_view();
            let found: StringViewArray =
                texts.iter().map(|text| Some(find(text?, steps.as_ref()?)?.into_owned())).collect();
            return Ok(ColumnarValue::Array(Arc::new(found)));
        }
        let arrays = ColumnarValue::values_to_arrays(&args.args)?;
        let (texts, paths) = (arrays[0].as_string_view(), arrays[1].as_string_view());
        let found =
            texts.iter().zip(paths).map(|(text, path)| Some(find(text?, &steps(path?))?.into_owned()));
        let found: StringViewArray = found.collect();
        if args.args.iter().all(|arg| matches!(arg, ColumnarValue::Scalar(_))) {
            return Ok(ColumnarValue::Scalar(ScalarValue::try_from_array(&found, 0)?));
        }
        Ok(ColumnarValue::Array(Arc::new(found)))
    }
}

/// A step into a value: the name of a member, or the index of an element.
type Steps<'a> = Vec<&'a str>;

/// `$.a.b[0]`, where `$.` may be left out.
fn steps(path: &str) -> Steps<'_> {
    let path = path.strip_prefix('$').unwrap_or(path);
    path.split(['.', '['])
        .map(|step| step.strip_suffix(']').unwrap_or(step))
        .filter(|step| !step.is_empty())
        .collect()
}

/// Returns the value at a path: the text of a string, the JSON of another value; `None` for null and for a missing value.
///
/// Numbers keep their text, so no digit is lost.
fn find<'a>(text: &'a str, steps: &Steps<'_>) -> Option<Cow<'a, str>> {
    let mut value: &RawValue = serde_json::from_str(text).ok()?;
    for step in steps {
        value = match value.get().as_bytes().first()? {
            b'{' => {
                serde_json::from_str::<HashMap<Cow<'_, str>, &RawValue>>(value.get()).ok()?.remove(*step)?
            }
            b'[' => {
                let index: usize = step.parse().ok()?;
                *serde_json::from_str::<Vec<&RawValue>>(value.get()).ok()?.get(index)?
            }
            _ => return None,
        };
    }
    match value.get().as_bytes().first()? {
        b'"' => serde_json::from_str(value.get()).ok().map(Cow::Owned),
        b'n' => None,
        _ => Some(Cow::Borrowed(value.get())),
    }
}

/// Plans `document ->> 'a'` as `json_get(document, 'a')`.
#[derive(Debug)]
pub(super) struct Arrows(pub(super) Arc<ScalarUDF>);

impl ExprPlanner for Arrows {
    fn plan_binary_op(
        &self,
        expr: RawBinaryExpr,
        _schema: &DFSchema,
    ) -> Result<PlannerResult<RawBinaryExpr>> {
        if !matches!(expr.op, BinaryOperator::LongArrow) {
            return Ok(PlannerResult::Original(expr));
        }
        let call = ScalarFunction { func: Arc::clone(&self.0), args: vec![expr.left, expr.right] };
        Ok(PlannerResult::Planned(Expr::ScalarFunction(call)))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn get(text: &str, path: &str) -> Option<String> {
        find(text, &steps(path)).map(Cow::into_owned)
    }

    #[test]
    fn paths_lead_into_objects_and_arrays() {
        let text = r#"{"a":{"b":[1,{"c":"x\ny"},12345678901234567890123]},"n":null,"t":true}"#;
        assert_eq!(get(text, "$.a.b[1].c").as_deref(), Some("x\ny"));
        assert_eq!(get(text, "a.b[0]").as_deref(), Some("1"));
        assert_eq!(get(text, "a.b[2]").as_deref(), Some("12345678901234567890123"));
        assert_eq!(get(text, "a.b[1]").as_deref(), Some(r#"{"c":"x\ny"}"#));
        assert_eq!(get(text, "t").as_deref(), Some("true"));
        assert_eq!(get("[5,6]", "$[1]").as_deref(), Some("6"));
        assert_eq!(get(text, "$").as_deref(), Some(text));
    }

    #[test]
    fn missing_paths_are_null() {
        for path in ["x", "a.b[9]", "a.b.c", "n", "t.u", "a[0]"] {
            assert_eq!(get(r#"{"a":{"b":[1]},"n":null,"t":true}"#, path), None, "{path}");
        }
        assert_eq!(get("no json", "a"), None);
    }
}
