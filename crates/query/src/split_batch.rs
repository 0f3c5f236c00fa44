//! Splits a batch of the answer into batches that a door can hold.
//!
//! In a batch of views all rows can refer to the same long text. Such a batch is small in memory and large when a door writes it out.

use arrow_array::RecordBatch;
use model::limits::{QUERY_PIECE_BYTES, QUERY_ROW_BYTES_MAX};

use crate::QueryError;
use crate::value_sizes::value_bytes;

/// Splits a batch. Each piece has at most [`QUERY_PIECE_BYTES`] of text, or one row.
///
/// # Errors
/// When a row exceeds [`QUERY_ROW_BYTES_MAX`].
pub(crate) fn split_batch(batch: RecordBatch) -> Result<Vec<RecordBatch>, QueryError> {
    let texts = batch.columns().iter().filter(|column| column.data_type().primitive_width().is_none());
    let mut bytes = vec![0u64; batch.num_rows()];
    for column in texts {
        bytes.iter_mut().zip(value_bytes(column)).for_each(|(sum, bytes)| *sum = sum.saturating_add(bytes));
    }
    if bytes.iter().any(|bytes| *bytes > QUERY_ROW_BYTES_MAX) {
        return Err(QueryError::OverLimit {
            what: "a row of the answer",
            limit: format!("{QUERY_ROW_BYTES_MAX} bytes"),
            remedy: "select less in it, or shorten text with left(...)",
        });
    }
    if bytes.iter().fold(0u64, |sum, bytes| sum.saturating_add(*bytes)) <= QUERY_PIECE_BYTES {
        return Ok(vec![batch]);
    }
    let (mut pieces, mut begin, mut sum) = (Vec::new(), 0, 0);
    for (row, bytes) in bytes.iter().enumerate() {
        if row > begin && sum + bytes > QUERY_PIECE_BYTES {
            pieces.push(batch.slice(begin, row - begin));
            (begin, sum) = (row, 0);
        }
        sum += bytes;
    }
    pieces.push(batch.slice(begin, batch.num_rows() - begin));
    Ok(pieces)
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use arrow_array::{ArrayRef, StringArray};

    use super::*;

    #[test]
    fn long_rows_are_split_and_too_long_ones_are_refused() {
        let batch = |rows: &[usize]| {
            let texts = rows.iter().map(|bytes| Some("x".repeat(*bytes)));
            let column: ArrayRef = Arc::new(texts.collect::<StringArray>());
            RecordBatch::try_from_iter([("t", column)]).unwrap()
        };
        let rows = |sizes: &[usize]| {
            let pieces = split_batch(batch(sizes)).unwrap();
            pieces.iter().map(RecordBatch::num_rows).collect::<Vec<_>>()
        };
        let piece = QUERY_PIECE_BYTES as usize;
        assert_eq!(rows(&[1, 2, 3]), [3]);
        assert_eq!(rows(&[piece, 1, piece, piece / 2, piece / 2, 1]), [1, 1, 1, 2, 1]);
        let error = split_batch(batch(&[1, QUERY_ROW_BYTES_MAX as usize + 1])).unwrap_err();
        assert!(error.to_string().contains("a row of the answer"), "{error}");
    }
}
