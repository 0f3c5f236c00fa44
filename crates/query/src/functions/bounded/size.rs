//! Measures the arguments of a call.

use arrow_array::cast::AsArray;
use arrow_array::types::Int64Type;
use arrow_array::{Array, ArrayRef};
use arrow_schema::DataType;
use datafusion::arrow::compute::cast;
use datafusion::common::Result;
use datafusion::logical_expr::ColumnarValue;

use crate::value_sizes::{value_bytes, value_elements};

/// The size of an argument in one or several rows.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(super) struct Size {
    /// Bytes of all rows.
    pub(super) total: u64,
    /// Bytes of the longest row.
    pub(super) longest: u64,
    /// The largest value of whole numbers; zero if none is positive.
    pub(super) number: u64,
    /// The number of values that are not lists, in all rows.
    pub(super) elements: u64,
    /// Whether all rows have the same value.
    pub(super) is_constant: bool,
}

/// The sizes of an argument row by row.
#[derive(Debug)]
pub(super) enum Sizes {
    Constant(Size),
    Rows(Vec<Size>),
}

impl Sizes {
    pub(super) fn of(arg: &ColumnarValue) -> Result<Self> {
        Ok(match arg {
            ColumnarValue::Array(array) => Self::Rows(rows(array)?),
            ColumnarValue::Scalar(value) => {
                let size = rows(&value.to_array_of_size(1)?)?.first().copied().unwrap_or_default();
                Self::Constant(Size { is_constant: true, ..size })
            }
        })
    }

    /// Returns the sizes of one row.
    pub(super) fn row(&self, row: usize) -> Size {
        match self {
            Self::Constant(size) => *size,
            Self::Rows(sizes) => sizes.get(row).copied().unwrap_or_default(),
        }
    }

    /// Returns the sizes of all rows together.
    pub(super) fn all(&self, rows: usize) -> Size {
        match self {
            Self::Constant(size) => {
                let times = |each: u64| each.saturating_mul(rows as u64);
                Size { total: times(size.total), elements: times(size.elements), ..*size }
            }
            Self::Rows(sizes) => sizes.iter().fold(Size::default(), |all, size| Size {
                total: all.total.saturating_add(size.total),
                longest: all.longest.max(size.longest),
                number: all.number.max(size.number),
                elements: all.elements.saturating_add(size.elements),
                is_constant: false,
            }),
        }
    }
}

fn rows(array: &ArrayRef) -> Result<Vec<Size>> {
    let bytes = value_bytes(array);
    let elements = value_elements(array);
    let numbers = if array.data_type().is_integer() { Some(cast(array, &DataType::Int64)?) } else { None };
    let number = |row: usize| {
        let numbers = numbers.as_ref()?.as_primitive::<Int64Type>();
        numbers.is_valid(row).then(|| numbers.value(row)).and_then(|number| u64::try_from(number).ok())
    };
    let size = |(row, (bytes, elements)): (usize, (u64, u64))| Size {
        total: bytes,
        longest: bytes,
        number: number(row).unwrap_or(0),
        elements,
        is_constant: false,
    };
    Ok(bytes.into_iter().zip(elements).enumerate().map(size).collect())
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use arrow_array::types::Int32Type;
    use arrow_array::{Int64Array, ListArray, StringArray, StringViewArray};
    use datafusion::common::ScalarValue;

    use super::*;

    fn all(array: ArrayRef) -> Size {
        let rows = array.len();
        Sizes::of(&ColumnarValue::Array(array)).unwrap().all(rows)
    }

    #[test]
    fn text_numbers_and_lists_are_measured() {
        let text: ArrayRef = Arc::new(StringArray::from(vec![Some("abc"), None, Some("x")]));
        let views: ArrayRef = Arc::new(StringViewArray::from(vec![Some("abc"), None, Some("x")]));
        for array in [text.slice(0, 3), views] {
            let Size { total, longest, elements, .. } = all(array);
            assert_eq!((total, longest, elements), (4, 3, 3));
        }
        assert_eq!(all(text.slice(2, 1)).total, 1);
        assert_eq!(all(Arc::new(Int64Array::from(vec![Some(-5), None, Some(7)]))).number, 7);
        let lists = ListArray::from_iter_primitive::<Int32Type, _, _>([
            Some(vec![Some(1), Some(2)]),
            None,
            Some(vec![Some(3)]),
        ]);
        let lists: ArrayRef = Arc::new(lists);
        let sliced = all(lists.slice(2, 1));
        assert_eq!((all(lists).elements, sliced.elements, sliced.total), (3, 1, 12));
        let constant = Sizes::of(&ColumnarValue::Scalar(ScalarValue::from("four"))).unwrap();
        assert_eq!((constant.all(5).total, constant.all(5).longest, constant.row(3).total), (20, 4, 4));
    }
}
