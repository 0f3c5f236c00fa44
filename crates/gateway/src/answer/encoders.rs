//! The encoder of each format.

use arrow_schema::SchemaRef;

use super::arrow::ArrowEncoder;
use super::csv::CsvEncoder;
use super::encoder::{EncodeError, Encoder};
use super::format::Format;
use super::json::JsonEncoder;
use super::parquet::ParquetEncoder;

impl Format {
    /// The encoder for rows of this schema. Fails if the format cannot express one of the types.
    pub fn encoder(self, schema: &SchemaRef) -> Result<Box<dyn Encoder>, EncodeError> {
        Ok(match self {
            Self::Json => Box::new(JsonEncoder::new(schema)),
            Self::Csv => Box::new(CsvEncoder::new(schema)),
            Self::Arrow => Box::new(ArrowEncoder::new(schema)?),
            Self::Parquet => Box::new(ParquetEncoder::new(schema)?),
        })
    }
}
