//! Certificates and keys of encrypted connections.

use std::fs::File;
use std::io::{self, Read as _};

use crate::limits::PEM_BYTES_MAX;

/// The text of a PEM file.
///
/// # Errors
/// The file cannot be read, or is larger than [`PEM_BYTES_MAX`].
pub(crate) fn read_pem(path: &str) -> Result<Vec<u8>, String> {
    let failed = |error: io::Error| format!("cannot read {path}: {error}");
    let mut text = Vec::new();
    let file = File::open(path).map_err(failed)?;
    file.take(PEM_BYTES_MAX + 1).read_to_end(&mut text).map_err(failed)?;
    if text.len() as u64 > PEM_BYTES_MAX {
        return Err(format!("{path} has more than {PEM_BYTES_MAX} bytes (PEM_BYTES_MAX)"));
    }
    Ok(text)
}
