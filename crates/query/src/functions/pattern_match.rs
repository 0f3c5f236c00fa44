//! `~`, LIKE and related operators: whether a text matches a pattern.
//!
//! DataFusion's operators keep the compiled pattern of each row of a batch, and they cannot be ended.

use std::sync::{Arc, LazyLock};

use arrow_array::BooleanArray;
use arrow_schema::DataType;
use datafusion::common::{Result, ScalarValue};
use datafusion::logical_expr::expr::Like;
use datafusion::logical_expr::{
    ColumnarValue, Expr, Operator, ScalarFunctionArgs, ScalarUDF, ScalarUDFImpl, Signature, Volatility,
};

use super::bounded;
use super::text_concat::Texts;
use crate::values::regex::BoundedRegex;

/// The functions, by the operator that they replace.
static ALL: LazyLock<[(Operator, Arc<ScalarUDF>); 8]> = LazyLock::new(|| {
    [
        (Operator::RegexMatch, "~"),
        (Operator::RegexIMatch, "~*"),
        (Operator::RegexNotMatch, "!~"),
        (Operator::RegexNotIMatch, "!~*"),
        (Operator::LikeMatch, "~~"),
        (Operator::ILikeMatch, "~~*"),
        (Operator::NotLikeMatch, "!~~"),
        (Operator::NotILikeMatch, "!~~*"),
    ]
    .map(|(operator, name)| {
        let signature = Signature::any(2, Volatility::Immutable);
        let function = Arc::new(ScalarUDF::from(PatternMatch { name, signature }));
        (operator, bounded::bound(function).expect("BUG: it has a class"))
    })
});

/// Returns the function that replaces an operator; `None` if it is another operator.
pub(crate) fn operator(operator: Operator) -> Option<Arc<ScalarUDF>> {
    ALL.iter().find(|(of, _)| *of == operator).map(|(_, function)| Arc::clone(function))
}

/// Returns the function that replaces LIKE; `None` where DataFusion compares only the ends of texts or searches for a text.
pub(crate) fn like(like: &Like) -> Option<Arc<ScalarUDF>> {
    let is_plain = |pattern: &str| !pattern.trim_matches('%').contains(['%', '_', '\\']);
    let constant = match &*like.pattern {
        Expr::Literal(value, _) => value.try_as_str().flatten(),
        _ => None,
    };
    if !like.case_insensitive && constant.is_some_and(is_plain) {
        return None;
    }
    operator(match (like.case_insensitive, like.negated) {
        (false, false) => Operator::LikeMatch,
        (true, false) => Operator::ILikeMatch,
        (false, true) => Operator::NotLikeMatch,
        (true, true) => Operator::NotILikeMatch,
    })
}

#[derive(Debug, PartialEq, Eq, Hash)]
struct PatternMatch {
    name: &'static str,
    signature: Signature,
}

impl PatternMatch {
    fn matches(&self, text: Option<&str>, pattern: Option<&str>) -> Result<Option<bool>> {
        let (Some(text), Some(pattern)) = (text, pattern) else { return Ok(None) };
        let is_insensitive = self.name.ends_with('*');
        let regex = if self.name.contains("~~") {
            BoundedRegex::of_like(pattern, is_insensitive)?
        } else {
            BoundedRegex::of_library(pattern, is_insensitive)?
        };
        Ok(Some(regex.is_match(text)? != self.name.starts_with('!')))
    }
}

impl ScalarUDFImpl for PatternMatch {
    fn name(&self) -> &str {
        self.name
    }

    /// The name of the operator, so that columns keep their names.
    fn schema_name(&self, args: &[Expr]) -> Result<String> {
        Ok(format!("{} {} {}", args[0].schema_name(), self.name, args[1].schema_name()))
    }

    fn signature(&self) -> &Signature {
        &self.signature
    }

    fn return_type(&self, _: &[DataType]) -> Result<DataType> {
        Ok(DataType::Boolean)
    }

    fn is_strict(&self) -> bool {
        true
    }

    fn invoke_with_args(&self, args: ScalarFunctionArgs) -> Result<ColumnarValue> {
        let are_constant = args.args.iter().all(|arg| matches!(arg, ColumnarValue::Scalar(_)));
        let rows = if are_constant { 1 } else { args.number_rows };
        let (texts, patterns) = (Texts::of(&args.args[0])?, Texts::of(&args.args[1])?);
        let matches = (0..rows).map(|row| self.matches(texts.at(row), patterns.at(row)));
        let matches: BooleanArray = matches.collect::<Result<_>>()?;
        if are_constant {
            return Ok(ColumnarValue::Scalar(ScalarValue::try_from_array(&matches, 0)?));
        }
        Ok(ColumnarValue::Array(Arc::new(matches)))
    }
}
