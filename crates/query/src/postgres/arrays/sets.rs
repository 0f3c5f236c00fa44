//! `@>` and `&&` of arrays: whether one contains all elements of the other, and whether they share an element. NULL equals no
//! element.

use std::sync::Arc;

use arrow_array::cast::AsArray;
use arrow_array::{Array, BooleanArray, ListArray};
use arrow_schema::{DataType, SortOptions};
use datafusion::arrow::array::make_comparator;
use datafusion::common::{DataFusionError, Result};
use datafusion::logical_expr::type_coercion::binary::comparison_coercion;
use datafusion::logical_expr::{
    ColumnarValue, ScalarFunctionArgs, ScalarUDF, ScalarUDFImpl, Signature, Volatility,
};

use super::compare::Quantifier;
use super::text::element_field;

/// The function of `@>`: the first array has all elements of the second.
pub(crate) const CONTAINS: &str = "array_contains_all";
/// The function of `&&`: the arrays have an element in common.
pub(crate) const OVERLAPS: &str = "array_overlaps";

/// Tests whether the first array has all elements, or any element, of the second.
#[derive(Debug, PartialEq, Eq, Hash)]
struct Contains {
    quantifier: Quantifier,
    signature: Signature,
}

/// The functions of this file.
pub(super) fn functions() -> [Arc<ScalarUDF>; 2] {
    [Quantifier::All, Quantifier::Any].map(|quantifier| {
        let signature = Signature::user_defined(Volatility::Immutable);
        Arc::new(ScalarUDF::from(Contains { quantifier, signature }))
    })
}

impl ScalarUDFImpl for Contains {
    fn name(&self) -> &str {
        match self.quantifier {
            Quantifier::All => CONTAINS,
            Quantifier::Any => OVERLAPS,
        }
    }

    fn signature(&self) -> &Signature {
        &self.signature
    }

    fn coerce_types(&self, types: &[DataType]) -> Result<Vec<DataType>> {
        let elements: Vec<_> = types.iter().map(element).collect::<Option<_>>().unwrap_or_default();
        let common = match elements.as_slice() {
            [left, right] => comparison_coercion(left, right),
            _ => None,
        };
        let common = common.map(|common| if common.is_null() { DataType::Utf8 } else { common });
        let list = common.map(|common| DataType::List(element_field(common))).ok_or_else(|| {
            let types: Vec<_> = types.iter().map(ToString::to_string).collect();
            let message = format!("the operator for {} takes two arrays of one type", types.join(", "));
            DataFusionError::Plan(message)
        })?;
        Ok(vec![list.clone(), list])
    }

    fn return_type(&self, _types: &[DataType]) -> Result<DataType> {
        Ok(DataType::Boolean)
    }

    fn is_strict(&self) -> bool {
        true
    }

    fn invoke_with_args(&self, args: ScalarFunctionArgs) -> Result<ColumnarValue> {
        let arrays = ColumnarValue::values_to_arrays(&args.args)?;
        let found = self.each(arrays[0].as_list(), arrays[1].as_list())?;
        if args.args.iter().all(|arg| matches!(arg, ColumnarValue::Scalar(_))) {
            return Ok(ColumnarValue::Scalar(found.iter().next().flatten().into()));
        }
        Ok(ColumnarValue::Array(Arc::new(found)))
    }
}

/// Returns the type of the elements; for NULL it is NULL.
fn element(data_type: &DataType) -> Option<DataType> {
    match data_type {
        DataType::List(field) | DataType::LargeList(field) | DataType::FixedSizeList(field, _) => {
            Some(field.data_type().clone())
        }
        DataType::Null => Some(DataType::Null),
        // The argument is the text of an array.
        text if text.is_string() => Some(DataType::Null),
        _ => None,
    }
}

impl Contains {
    fn each(&self, left: &ListArray, right: &ListArray) -> Result<BooleanArray> {
        let (values, wanted) = (left.values(), right.values());
        let compare = make_comparator(values, wanted, SortOptions::default())?;
        let is_in = |row: usize, element: usize| {
            wanted.is_valid(element)
                && range(left, row).any(|own| values.is_valid(own) && compare(own, element).is_eq())
        };
        let of_row = |row: usize| {
            let mut elements = range(right, row);
            let found = match self.quantifier {
                Quantifier::All => elements.all(|element| is_in(row, element)),
                Quantifier::Any => elements.any(|element| is_in(row, element)),
            };
            (left.is_valid(row) && right.is_valid(row)).then_some(found)
        };
        Ok((0..left.len()).map(of_row).collect())
    }
}

/// Returns the positions of a row's elements among all values.
fn range(lists: &ListArray, row: usize) -> std::ops::Range<usize> {
    let offsets = lists.value_offsets();
    offsets[row] as usize..offsets[row + 1] as usize
}
