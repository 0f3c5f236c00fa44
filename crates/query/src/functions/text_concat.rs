//! `||` of two texts, with a bounded result like other functions.

use std::fmt::Write;
use std::sync::{Arc, LazyLock};

use arrow_array::cast::AsArray;
use arrow_array::{Array, ArrayRef, StringArray, StringViewArray, builder};
use arrow_schema::DataType;
use datafusion::arrow::compute::cast;
use datafusion::common::{Result, ScalarValue};
use datafusion::logical_expr::{
    ColumnarValue, Expr, ScalarFunctionArgs, ScalarUDF, ScalarUDFImpl, Signature, Volatility,
};

use super::bounded;

pub(super) const NAME: &str = "||";

/// The function that replaces the operator.
pub(crate) fn function() -> Arc<ScalarUDF> {
    static FUNCTION: LazyLock<Arc<ScalarUDF>> = LazyLock::new(|| {
        let function =
            Arc::new(ScalarUDF::from(TextConcat { signature: Signature::any(2, Volatility::Immutable) }));
        bounded::bound(function).expect("BUG: it has a class")
    });
    Arc::clone(&FUNCTION)
}

#[derive(Debug, PartialEq, Eq, Hash)]
struct TextConcat {
    signature: Signature,
}

impl ScalarUDFImpl for TextConcat {
    fn name(&self) -> &str {
        NAME
    }

    /// The name of the operator, so that columns keep their names. The text of a long chain is built once, not once for each link.
    fn schema_name(&self, args: &[Expr]) -> Result<String> {
        let mut behind = vec![&args[1]];
        let mut first = &args[0];
        while let Expr::ScalarFunction(call) = first
            && let (NAME, [left, right]) = (call.func.name(), call.args.as_slice())
        {
            behind.push(right);
            first = left;
        }
        let mut name = first.schema_name().to_string();
        for text in behind.iter().rev() {
            write!(name, " || {}", text.schema_name()).expect("BUG: memory takes text");
        }
        Ok(name)
    }

    fn signature(&self) -> &Signature {
        &self.signature
    }

    /// DataFusion has given both arguments the same type, unless one is a constant NULL.
    fn return_type(&self, types: &[DataType]) -> Result<DataType> {
        let is_view = types.contains(&DataType::Utf8View);
        let is_large = types.contains(&DataType::LargeUtf8);
        Ok(match (is_view, is_large) {
            (true, _) => DataType::Utf8View,
            (_, true) => DataType::LargeUtf8,
            _ => DataType::Utf8,
        })
    }

    fn is_strict(&self) -> bool {
        true
    }

    fn invoke_with_args(&self, args: ScalarFunctionArgs) -> Result<ColumnarValue> {
        let are_constant = args.args.iter().all(|arg| matches!(arg, ColumnarValue::Scalar(_)));
        let rows = if are_constant { 1 } else { args.number_rows };
        let (left, right) = (Texts::of(&args.args[0])?, Texts::of(&args.args[1])?);
        let joined = joined(&left, &right, rows, args.return_type())?;
        if are_constant {
            return Ok(ColumnarValue::Scalar(ScalarValue::try_from_array(&joined, 0)?));
        }
        Ok(ColumnarValue::Array(joined))
    }
}

/// A text argument. A constant has one copy, however many rows there are.
pub(super) struct Texts {
    array: StringViewArray,
    is_constant: bool,
}

impl Texts {
    pub(super) fn of(arg: &ColumnarValue) -> Result<Self> {
        let (array, is_constant) = match arg {
            ColumnarValue::Array(array) => (cast(array, &DataType::Utf8View)?, false),
            ColumnarValue::Scalar(value) => (cast(&value.to_array_of_size(1)?, &DataType::Utf8View)?, true),
        };
        Ok(Self { array: array.as_string_view().clone(), is_constant })
    }

    /// Returns the text of a row.
    pub(super) fn at(&self, row: usize) -> Option<&str> {
        let row = if self.is_constant { 0 } else { row };
        self.array.is_valid(row).then(|| self.array.value(row))
    }
}

fn joined(left: &Texts, right: &Texts, rows: usize, data_type: &DataType) -> Result<ArrayRef> {
    let pairs = (0..rows).map(|row| left.at(row).zip(right.at(row)));
    if *data_type == DataType::Utf8View {
        let mut texts = builder::StringViewBuilder::with_capacity(rows);
        let mut text = String::new();
        for pair in pairs {
            texts.append_option(pair.map(|(first, second)| {
                text.clear();
                text.push_str(first);
                text.push_str(second);
                text.as_str()
            }));
        }
        return Ok(Arc::new(texts.finish()));
    }
    let mut texts = builder::StringBuilder::new();
    for pair in pairs {
        match pair {
            Some((first, second)) => {
                // What is written here becomes part of the next value that is appended.
                texts.write_str(first).expect("BUG: memory takes text");
                texts.append_value(second);
            }
            None => texts.append_null(),
        }
    }
    let texts: StringArray = texts.finish();
    Ok(cast(&texts, data_type)?)
}
