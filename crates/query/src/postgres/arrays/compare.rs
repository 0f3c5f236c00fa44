//! `x = ANY (array)`, `x <> ALL (array)` and similar, with PostgreSQL's rules for NULL: an element that decides the comparison ends
//! it, and an element that is NULL leaves it open.

use std::sync::Arc;

use arrow_array::cast::AsArray;
use arrow_array::{Array, ArrayRef, BooleanArray, ListArray, RecordBatch, UInt32Array};
use arrow_schema::{DataType, Field, Schema};
use datafusion::arrow::compute::{and_kleene, or_kleene, take};
use datafusion::common::{DataFusionError, Result, ScalarValue};
use datafusion::logical_expr::type_coercion::binary::comparison_coercion;
use datafusion::logical_expr::{
    ColumnarValue, Expr, Operator, ScalarFunctionArgs, ScalarUDF, ScalarUDFImpl, Signature, Volatility,
};
use datafusion::physical_expr::PhysicalExpr;
use datafusion::physical_expr::expressions::{Column, InListExpr};
use datafusion::physical_expr_common::datum::apply_cmp;
use datafusion::sql::sqlparser::ast::BinaryOperator;

use super::text::element_field;
use crate::scope;

/// The comparison operators in PostgreSQL's syntax.
const OPERATORS: [(&str, Operator); 10] = [
    ("=", Operator::Eq),
    ("<>", Operator::NotEq),
    ("<", Operator::Lt),
    ("<=", Operator::LtEq),
    (">", Operator::Gt),
    (">=", Operator::GtEq),
    ("~~", Operator::LikeMatch),
    ("!~~", Operator::NotLikeMatch),
    ("~~*", Operator::ILikeMatch),
    ("!~~*", Operator::NotILikeMatch),
];

/// From this number of elements on a hash table of them is faster than a comparison with each element.
const HASHED_ELEMENTS_MIN: usize = 16;

/// The suffix of the name of a comparison with rows.
const OF_ROWS: &str = " (SELECT)";

/// Whether one element is enough.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub(super) enum Quantifier {
    Any,
    All,
}

/// A comparison with the elements of an array.
#[derive(Debug, PartialEq, Eq, Hash)]
pub(super) struct Compare {
    pub(super) operator: Operator,
    pub(super) quantifier: Quantifier,
    /// Whether the elements are the rows of a subquery. Such an array is never NULL as a whole.
    is_of_rows: bool,
    name: String,
    signature: Signature,
}

/// Returns the name of the function for a comparison with an array, or with the array of a subquery's rows; `None` if there is
/// none.
pub(super) fn name(operator: &BinaryOperator, quantifier: Quantifier, is_of_rows: bool) -> Option<String> {
    let operator = match operator {
        BinaryOperator::Eq => Operator::Eq,
        BinaryOperator::NotEq => Operator::NotEq,
        BinaryOperator::Lt => Operator::Lt,
        BinaryOperator::LtEq => Operator::LtEq,
        BinaryOperator::Gt => Operator::Gt,
        BinaryOperator::GtEq => Operator::GtEq,
        BinaryOperator::PGLikeMatch => Operator::LikeMatch,
        BinaryOperator::PGNotLikeMatch => Operator::NotLikeMatch,
        BinaryOperator::PGILikeMatch => Operator::ILikeMatch,
        BinaryOperator::PGNotILikeMatch => Operator::NotILikeMatch,
        _ => return None,
    };
    let word = if quantifier == Quantifier::Any { "ANY" } else { "ALL" };
    let of_rows = if is_of_rows { OF_ROWS } else { "" };
    let known = OPERATORS.iter().find(|(_, known)| *known == operator);
    known.map(|(symbol, _)| format!("{symbol} {word}{of_rows}"))
}

/// Returns the function with this name.
pub(crate) fn function(name: &str) -> Option<Arc<ScalarUDF>> {
    let (symbol, word) = name.split_once(' ')?;
    let operator = OPERATORS.iter().find(|(known, _)| *known == symbol)?.1;
    let quantifier = match word.strip_suffix(OF_ROWS).unwrap_or(word) {
        "ANY" => Quantifier::Any,
        "ALL" => Quantifier::All,
        _ => return None,
    };
    let signature = Signature::user_defined(Volatility::Immutable);
    let is_of_rows = word.ends_with(OF_ROWS);
    let compare = Compare { operator, quantifier, is_of_rows, name: name.to_owned(), signature };
    Some(Arc::new(ScalarUDF::from(compare)))
}

/// Returns the comparison of a call, and its arguments.
pub(super) fn of(expr: &Expr) -> Option<(&Compare, &[Expr])> {
    let Expr::ScalarFunction(call) = expr else { return None };
    Some((call.func.inner().downcast_ref::<Compare>()?, &call.args))
}

fn is_text(data_type: &DataType) -> bool {
    matches!(data_type, DataType::Utf8 | DataType::Utf8View | DataType::LargeUtf8)
}

impl Compare {
    fn is_like(&self) -> bool {
        matches!(
            self.operator,
            Operator::LikeMatch | Operator::NotLikeMatch | Operator::ILikeMatch | Operator::NotILikeMatch
        )
    }

    fn element(&self, left: &DataType, right: &DataType) -> Result<DataType> {
        let element = match right {
            DataType::List(field) | DataType::LargeList(field) | DataType::FixedSizeList(field, _) => {
                field.data_type().clone()
            }
            // The argument is NULL, or the text of an array.
            DataType::Null => left.clone(),
            text if is_text(text) => left.clone(),
            other => {
                let message = format!("op {} (array) requires array on right side, not {other}", self.name);
                return Err(DataFusionError::Plan(message));
            }
        };
        if matches!(element, DataType::List(_) | DataType::LargeList(_) | DataType::FixedSizeList(..)) {
            return Err(DataFusionError::NotImplemented(format!("{} of arrays of arrays", self.name)));
        }
        let mixes = |one: &DataType, other: &DataType| {
            is_text(one) && (other.is_numeric() || *other == DataType::Boolean)
        };
        let common = if self.is_like() {
            (is_text(left) || left.is_null()).then_some(DataType::Utf8)
        } else if mixes(left, &element) || mixes(&element, left) {
            None
        } else {
            comparison_coercion(left, &element)
        };
        common.map(|common| if common.is_null() { DataType::Utf8 } else { common }).ok_or_else(|| {
            let message =
                format!("operator does not exist: {left} {} of {element}; cast one of them", self.name);
            DataFusionError::Plan(message)
        })
    }

    /// Returns the result of the comparisons with all elements.
    fn fold(&self, one: &BooleanArray, other: &BooleanArray) -> Result<BooleanArray> {
        Ok(match self.quantifier {
            Quantifier::Any => or_kleene(one, other)?,
            Quantifier::All => and_kleene(one, other)?,
        })
    }

    fn of_nothing(&self) -> bool {
        self.quantifier == Quantifier::All
    }

    /// Returns the result for NULL in place of an array. An aggregate of no rows is NULL.
    fn of_null(&self) -> Option<bool> {
        self.is_of_rows.then(|| self.of_nothing())
    }

    /// Whether the comparison tests for being in the array (`Some(false)`) or for not being in it (`Some(true)`).
    pub(super) fn membership(&self) -> Option<bool> {
        match (self.quantifier, self.operator) {
            (Quantifier::Any, Operator::Eq) => Some(false),
            (Quantifier::All, Operator::NotEq) => Some(true),
            _ => None,
        }
    }

    /// Compares with one array for all rows.
    fn with_one(&self, left: &ColumnarValue, list: &ArrayRef, rows: usize) -> Result<ColumnarValue> {
        if let (Some(negated), ColumnarValue::Array(left)) = (self.membership(), left)
            && list.len() >= HASHED_ELEMENTS_MIN
            // Positive and negative zero are equal.
            && !list.data_type().is_floating()
        {
            return hashed(left, list, negated);
        }
        let mut folded = BooleanArray::from(vec![self.of_nothing(); rows]);
        for index in 0..list.len() {
            scope::check(0)?;
            let element = ColumnarValue::Scalar(ScalarValue::try_from_array(list, index)?);
            let compared = apply_cmp(self.operator, left, &element)?.into_array(rows)?;
            folded = self.fold(&folded, compared.as_boolean())?;
        }
        match left {
            ColumnarValue::Scalar(_) => Ok(ColumnarValue::Scalar(ScalarValue::try_from_array(&folded, 0)?)),
            ColumnarValue::Array(_) => Ok(ColumnarValue::Array(Arc::new(folded))),
        }
    }

    /// Compares with a separate array for each row.
    fn with_each(&self, left: &ArrayRef, lists: &ListArray) -> Result<ArrayRef> {
        let offsets = lists.value_offsets();
        let row_of = |row: usize| {
            let count = if lists.is_null(row) { 0 } else { offsets[row + 1] - offsets[row] };
            std::iter::repeat_n(row as u32, count as usize)
        };
        let rows = UInt32Array::from_iter_values((0..lists.len()).flat_map(row_of));
        let positions = UInt32Array::from_iter_values((0..lists.len()).flat_map(|row| {
            let range = if lists.is_null(row) { 0..0 } else { offsets[row]..offsets[row + 1] };
            range.map(|position| position as u32)
        }));
        let left = ColumnarValue::Array(take(left, &rows, None)?);
        let elements = ColumnarValue::Array(take(lists.values(), &positions, None)?);
        let compared = apply_cmp(self.operator, &left, &elements)?.into_array(rows.len())?;
        let mut compared = compared.as_boolean().iter();
        let decides = !self.of_nothing();
        let folded = (0..lists.len()).map(|row| {
            if lists.is_null(row) {
                return self.of_null();
            }
            let (mut is_open, mut is_decided) = (false, false);
            for value in compared.by_ref().take((offsets[row + 1] - offsets[row]) as usize) {
                is_open |= value.is_none();
                is_decided |= value == Some(decides);
            }
            if is_decided {
                Some(decides)
            } else if is_open {
                None
            } else {
                Some(!decides)
            }
        });
        Ok(Arc::new(folded.collect::<BooleanArray>()))
    }
}

/// Whether a function compares a value with the elements of an array. One array for all rows is not copied for each row.
pub(crate) fn compares_with_array(function: &ScalarUDF) -> bool {
    function.inner().is::<Compare>()
}

/// Tests whether values are in an array with a hash table of its elements.
fn hashed(values: &ArrayRef, list: &ArrayRef, negated: bool) -> Result<ColumnarValue> {
    let schema = Arc::new(Schema::new(vec![Field::new("value", values.data_type().clone(), true)]));
    let batch = RecordBatch::try_new(Arc::clone(&schema), vec![Arc::clone(values)])?;
    let value = Arc::new(Column::new("value", 0));
    InListExpr::try_new_from_array(value, Arc::clone(list), negated, &schema)?.evaluate(&batch)
}

impl ScalarUDFImpl for Compare {
    fn name(&self) -> &str {
        &self.name
    }

    fn signature(&self) -> &Signature {
        &self.signature
    }

    fn coerce_types(&self, types: &[DataType]) -> Result<Vec<DataType>> {
        let [left, right] = types else {
            return Err(DataFusionError::Plan(format!("{} takes a value and an array", self.name)));
        };
        let common = self.element(left, right)?;
        Ok(vec![common.clone(), DataType::List(element_field(common))])
    }

    fn return_type(&self, _types: &[DataType]) -> Result<DataType> {
        Ok(DataType::Boolean)
    }

    fn invoke_with_args(&self, args: ScalarFunctionArgs) -> Result<ColumnarValue> {
        let rows = args.number_rows;
        let [left, right] = &*args.args else {
            return Err(DataFusionError::Internal("two arguments were checked".into()));
        };
        match right {
            ColumnarValue::Scalar(ScalarValue::List(list)) if list.is_null(0) => {
                Ok(ColumnarValue::Scalar(ScalarValue::Boolean(self.of_null())))
            }
            ColumnarValue::Scalar(ScalarValue::List(list)) => {
                let rows = if matches!(left, ColumnarValue::Scalar(_)) { 1 } else { rows };
                self.with_one(left, &list.value(0), rows)
            }
            right => {
                let (left, lists) = (left.to_array(rows)?, right.to_array(rows)?);
                Ok(ColumnarValue::Array(self.with_each(&left, lists.as_list())?))
            }
        }
    }
}
