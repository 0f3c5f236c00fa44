//! The block format of snappy, whose first bytes are the unpacked length.

use super::error::PrometheusError;

/// Unpacks a block. Checks the length that it names before it allocates memory.
pub fn unpack(block: &[u8], limit: usize) -> Result<Vec<u8>, PrometheusError> {
    let fault = |error: snap::Error| PrometheusError::Snappy(error.to_string());
    let bytes = snap::raw::decompress_len(block).map_err(fault)?;
    if bytes > limit {
        return Err(PrometheusError::TooLong { bytes, limit });
    }
    snap::raw::Decoder::new().decompress_vec(block).map_err(fault)
}

/// Packs bytes into a block.
///
/// # Errors
/// There are more than 4 GiB.
pub fn pack(bytes: &[u8]) -> Result<Vec<u8>, PrometheusError> {
    snap::raw::Encoder::new().compress_vec(bytes).map_err(|error| PrometheusError::Snappy(error.to_string()))
}
