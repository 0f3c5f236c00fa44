//! `~`, `~*`, `!~` and `!~*`: whether a text matches a regular expression of the library.
//!
//! The library's operator keeps the compiled expression of each row of a batch, and nobody can end it.

use std::sync::{Arc, LazyLock};

use arrow_array::BooleanArray;
use arrow_schema::DataType;
use datafusion::common::{Result, ScalarValue};
use datafusion::logical_expr::{
    ColumnarValue, Expr, Operator, ScalarFunctionArgs, ScalarUDF, ScalarUDFImpl, Signature, Volatility,
};

use super::bounded;
use super::regex::BoundedRegex;
use super::text_concat::Texts;

/// The function in place of an operator; `None` if it is none of these.
pub(crate) fn function(operator: Operator) -> Option<Arc<ScalarUDF>> {
    static ALL: LazyLock<[(Operator, Arc<ScalarUDF>); 4]> = LazyLock::new(|| {
        [
            (Operator::RegexMatch, "~"),
            (Operator::RegexIMatch, "~*"),
            (Operator::RegexNotMatch, "!~"),
            (Operator::RegexNotIMatch, "!~*"),
        ]
        .map(|(operator, name)| {
            let signature = Signature::any(2, Volatility::Immutable);
            let function = Arc::new(ScalarUDF::from(RegexMatch { name, signature }));
            (operator, bounded::bound(function).expect("BUG: it has a class"))
        })
    });
    ALL.iter().find(|(of, _)| *of == operator).map(|(_, function)| Arc::clone(function))
}

#[derive(Debug, PartialEq, Eq, Hash)]
struct RegexMatch {
    name: &'static str,
    signature: Signature,
}

impl RegexMatch {
    fn matches(&self, text: Option<&str>, pattern: Option<&str>) -> Result<Option<bool>> {
        let (Some(text), Some(pattern)) = (text, pattern) else { return Ok(None) };
        let regex = BoundedRegex::of_library(pattern, self.name.ends_with('*'))?;
        Ok(Some(regex.for_text(text)?.is_match(text) != self.name.starts_with('!')))
    }
}

impl ScalarUDFImpl for RegexMatch {
    fn name(&self) -> &str {
        self.name
    }

    /// That of the operator: columns keep their names.
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
