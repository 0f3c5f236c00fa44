//! Measures the values of a column one by one.

use arrow_array::cast::AsArray;
use arrow_array::{Array, ArrayRef, OffsetSizeTrait};
use arrow_buffer::OffsetBuffer;
use arrow_schema::DataType;

/// Returns the bytes of each value. Each element of a list counts eight bytes of overhead.
pub(crate) fn value_bytes(array: &ArrayRef) -> Vec<u64> {
    let len = array.len();
    match array.data_type() {
        DataType::Utf8 => lengths(array.as_string::<i32>().offsets()),
        DataType::LargeUtf8 => lengths(array.as_string::<i64>().offsets()),
        DataType::Binary => lengths(array.as_binary::<i32>().offsets()),
        DataType::LargeBinary => lengths(array.as_binary::<i64>().offsets()),
        DataType::Utf8View => array.as_string_view().lengths().map(u64::from).collect(),
        DataType::BinaryView => array.as_binary_view().lengths().map(u64::from).collect(),
        DataType::Struct(_) => {
            let mut sums = vec![0u64; len];
            for column in array.as_struct().columns() {
                sums.iter_mut().zip(value_bytes(column)).for_each(|(sum, bytes)| *sum += bytes);
            }
            sums
        }
        DataType::Dictionary(..) => {
            let dictionary = array.as_any_dictionary();
            let values = value_bytes(dictionary.values());
            if values.is_empty() {
                return vec![0; len];
            }
            dictionary
                .normalized_keys()
                .into_iter()
                .map(|key| values.get(key).copied().unwrap_or(0))
                .collect()
        }
        other => match children(array) {
            Some((children, bounds)) => {
                let each = value_bytes(&children).into_iter().map(|bytes| bytes + 8);
                sums(each, &bounds)
            }
            None => vec![other.primitive_width().unwrap_or(16) as u64; len],
        },
    }
}

/// Returns how many values that are not lists each value contains.
pub(crate) fn value_elements(array: &ArrayRef) -> Vec<u64> {
    match children(array) {
        Some((children, bounds)) => sums(value_elements(&children).into_iter(), &bounds),
        None => vec![1; array.len()],
    }
}

/// Returns the values in lists, and the offsets of each list.
fn children(array: &ArrayRef) -> Option<(ArrayRef, Vec<(usize, usize)>)> {
    let (children, mut bounds) = all_children(array)?;
    // A slice of lists still has the values of the whole array.
    let begin = bounds.iter().map(|(begin, _)| *begin).min().unwrap_or(0);
    let end = bounds.iter().map(|(_, end)| *end).max().unwrap_or(0);
    bounds.iter_mut().for_each(|bounds| *bounds = (bounds.0 - begin, bounds.1 - begin));
    Some((children.slice(begin, end - begin), bounds))
}

fn all_children(array: &ArrayRef) -> Option<(ArrayRef, Vec<(usize, usize)>)> {
    fn of_offsets<O: OffsetSizeTrait>(offsets: &OffsetBuffer<O>) -> Vec<(usize, usize)> {
        offsets.windows(2).map(|pair| (pair[0].as_usize(), pair[1].as_usize())).collect()
    }
    Some(match array.data_type() {
        DataType::List(_) => {
            let list = array.as_list::<i32>();
            (list.values().clone(), of_offsets(list.offsets()))
        }
        DataType::LargeList(_) => {
            let list = array.as_list::<i64>();
            (list.values().clone(), of_offsets(list.offsets()))
        }
        DataType::Map(..) => {
            let map = array.as_map();
            let entries: ArrayRef = std::sync::Arc::new(map.entries().clone());
            (entries, of_offsets(map.offsets()))
        }
        DataType::FixedSizeList(_, each) => {
            let each = usize::try_from(*each).unwrap_or(0);
            let list = array.as_fixed_size_list();
            (list.values().clone(), (0..array.len()).map(|row| (row * each, (row + 1) * each)).collect())
        }
        _ => return None,
    })
}

fn lengths<O: OffsetSizeTrait>(offsets: &OffsetBuffer<O>) -> Vec<u64> {
    offsets.windows(2).map(|pair| (pair[1].as_usize() - pair[0].as_usize()) as u64).collect()
}

fn sums(each: impl Iterator<Item = u64>, bounds: &[(usize, usize)]) -> Vec<u64> {
    let mut sum = 0u64;
    let mut until = vec![0];
    until.extend(each.map(|one| {
        sum += one;
        sum
    }));
    let at = |index: usize| until.get(index).copied().unwrap_or(sum);
    bounds.iter().map(|(begin, end)| at(*end).saturating_sub(at(*begin))).collect()
}
