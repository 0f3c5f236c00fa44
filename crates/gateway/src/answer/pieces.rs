//! An answer as a stream of pieces. Each piece is encoded after the client has taken the one before.

use std::sync::Arc;

use arrow_array::{ArrayRef, Int64Array};
use arrow_schema::{Field, Schema};
use bytes::Bytes;
use futures_util::StreamExt;
use futures_util::stream::{BoxStream, try_unfold};
use hub::sql::{Batches, DataType, RecordBatch, SqlAnswer, SqlError};

use super::encoder::{EncodeError, Encoder, Failure};
use super::format::Format;
use crate::error::ApiError;

/// The bytes of an answer. After an error the answer lacks the end of its format.
pub type Pieces = BoxStream<'static, Result<Bytes, CutOff>>;

/// A failure before the first piece.
#[derive(Debug, thiserror::Error)]
pub enum AnswerError {
    /// The query failed.
    #[error(transparent)]
    Query(#[from] SqlError),
    /// The format cannot express the rows.
    #[error(transparent)]
    Encode(#[from] EncodeError),
}

/// Cuts off an answer, so no client takes it for a complete one.
#[derive(Debug, thiserror::Error)]
#[error("the answer was cut off: {0}")]
pub struct CutOff(String);

/// Encodes an answer. Returns when the first rows are available.
///
/// A later error ends the answer: JSON has the error as last member; all other formats are cut off.
pub async fn pieces(answer: SqlAnswer, format: Format) -> Result<Pieces, AnswerError> {
    let SqlAnswer { schema, mut batches, .. } = answer;
    let mut encoder = format.encoder(&schema)?;
    let batches = match batches.next().await {
        Some(first) => {
            encoder.rows(&first?)?;
            Some(batches)
        }
        None => {
            encoder.finish()?;
            None
        }
    };
    Ok(try_unfold(Writing { encoder, batches }, Writing::next).boxed())
}

/// The answer to a DELETE: one row with the number of deleted rows.
///
/// # Errors
/// The format cannot express the row.
pub fn deleted_rows(rows: u64, format: Format) -> Result<Pieces, AnswerError> {
    let column: ArrayRef = Arc::new(Int64Array::from(vec![i64::try_from(rows).unwrap_or(i64::MAX)]));
    let field = Field::new("deleted", DataType::Int64, false);
    let batch = RecordBatch::try_new(Arc::new(Schema::new(vec![field])), vec![column]);
    let batch = batch.expect("BUG: one column of the type of its field");
    let mut encoder = format.encoder(&batch.schema())?;
    encoder.rows(&batch)?;
    encoder.finish()?;
    Ok(try_unfold(Writing { encoder, batches: None }, Writing::next).boxed())
}

struct Writing {
    encoder: Box<dyn Encoder>,
    /// `None` after the last batch.
    batches: Option<Batches>,
}

impl Writing {
    async fn next(mut self) -> Result<Option<(Bytes, Self)>, CutOff> {
        loop {
            let bytes = self.encoder.take();
            if !bytes.is_empty() {
                return Ok(Some((Bytes::from(bytes), self)));
            }
            let Some(mut batches) = self.batches.take() else { return Ok(None) };
            let next = batches.next().await;
            let goes_on = matches!(next, Some(Ok(_)));
            self.encoder = match encode(self.encoder, next).await {
                Ok(encoder) => encoder,
                Err(cut_off) => {
                    tracing::warn!(reason = %cut_off.0, "cut off an answer");
                    // Without this pause the error would also drop pieces that are not sent yet.
                    tokio::task::yield_now().await;
                    return Err(cut_off);
                }
            };
            self.batches = goes_on.then_some(batches);
        }
    }
}

/// Encodes on a blocking thread: it takes milliseconds of a core.
async fn encode(
    mut encoder: Box<dyn Encoder>,
    next: Option<Result<RecordBatch, SqlError>>,
) -> Result<Box<dyn Encoder>, CutOff> {
    let work = move || {
        let written = match next {
            Some(Ok(batch)) => encoder.rows(&batch),
            None => encoder.finish(),
            Some(Err(error)) => {
                fail(encoder.as_mut(), &ApiError::from(error))?;
                Ok(())
            }
        };
        if let Err(error) = written {
            fail(encoder.as_mut(), &ApiError::internal(error.to_string()))?;
        }
        Ok(encoder)
    };
    tokio::task::spawn_blocking(work)
        .await
        .unwrap_or(Err(CutOff("the server failed; its log says why".into())))
}

fn fail(encoder: &mut dyn Encoder, refusal: &ApiError) -> Result<(), CutOff> {
    let failure = Failure {
        status: refusal.status.as_u16(),
        error_code: refusal.code as u16,
        message: &refusal.message,
    };
    if encoder.fail(&failure) { Ok(()) } else { Err(CutOff(refusal.message.clone())) }
}
