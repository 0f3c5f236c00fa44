//! The length and the bounds of arrays. An array has one dimension, which begins at 1. An array without elements has none.

use std::sync::Arc;

use arrow_array::cast::AsArray;
use arrow_array::types::Int64Type;
use arrow_array::{Array, ArrayRef, Int64Array};
use arrow_schema::DataType;
use datafusion::common::{DataFusionError, Result};
use datafusion::logical_expr::{
    ColumnarValue, ScalarFunctionArgs, ScalarUDF, ScalarUDFImpl, Signature, Volatility,
};

use super::text::element_field;

/// A property of the dimension.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
enum Measure {
    Length,
    Lower,
    /// How many dimensions there are.
    Dimensions,
}

/// A function of an array and, except for the number of dimensions, of the number of a dimension.
#[derive(Debug, PartialEq, Eq, Hash)]
struct Measured {
    name: &'static str,
    measure: Measure,
    signature: Signature,
}

/// All functions of this file.
pub(super) fn functions() -> Vec<Arc<ScalarUDF>> {
    [
        ("array_length", Measure::Length),
        ("array_upper", Measure::Length),
        ("array_lower", Measure::Lower),
        ("array_ndims", Measure::Dimensions),
    ]
    .map(|(name, measure)| {
        let signature = Signature::user_defined(Volatility::Immutable);
        Arc::new(ScalarUDF::from(Measured { name, measure, signature }))
    })
    .into()
}

impl ScalarUDFImpl for Measured {
    fn name(&self) -> &str {
        self.name
    }

    fn signature(&self) -> &Signature {
        &self.signature
    }

    fn coerce_types(&self, types: &[DataType]) -> Result<Vec<DataType>> {
        let list = match types.first() {
            Some(DataType::Null) => DataType::List(element_field(DataType::Utf8)),
            Some(DataType::List(field) | DataType::LargeList(field) | DataType::FixedSizeList(field, _)) => {
                DataType::List(Arc::clone(field))
            }
            _ => return Err(DataFusionError::Plan(format!("{} takes an array first", self.name))),
        };
        match (self.measure, &types[1..]) {
            (Measure::Dimensions, []) => Ok(vec![list]),
            (Measure::Length | Measure::Lower, [number]) if number.is_integer() || number.is_null() => {
                Ok(vec![list, DataType::Int64])
            }
            (Measure::Dimensions, _) => Err(DataFusionError::Plan(format!("{} takes one array", self.name))),
            _ => Err(DataFusionError::Plan(format!(
                "{} takes an array and the number of a dimension, such as 1; cardinality takes an array alone",
                self.name
            ))),
        }
    }

    fn return_type(&self, _types: &[DataType]) -> Result<DataType> {
        Ok(DataType::Int64)
    }

    fn is_strict(&self) -> bool {
        true
    }

    fn invoke_with_args(&self, args: ScalarFunctionArgs) -> Result<ColumnarValue> {
        let arrays = ColumnarValue::values_to_arrays(&args.args)?;
        let measured = self.measured(&arrays[0], arrays.get(1));
        if args.args.iter().all(|arg| matches!(arg, ColumnarValue::Scalar(_))) {
            return Ok(ColumnarValue::Scalar(measured.iter().next().flatten().into()));
        }
        Ok(ColumnarValue::Array(Arc::new(measured)))
    }
}

impl Measured {
    fn measured(&self, lists: &ArrayRef, dimensions: Option<&ArrayRef>) -> Int64Array {
        let lists = lists.as_list::<i32>();
        let dimensions = dimensions.map(|dimensions| dimensions.as_primitive::<Int64Type>());
        let of_row = |row: usize| {
            let is_there = dimensions.is_none_or(|number| number.is_valid(row) && number.value(row) == 1);
            let length = lists.is_valid(row).then(|| i64::from(lists.value_length(row)))?;
            (is_there && length > 0).then_some(match self.measure {
                Measure::Length => length,
                Measure::Lower | Measure::Dimensions => 1,
            })
        };
        (0..lists.len()).map(of_row).collect()
    }
}
