//! Where values and lines end.

/// Whether a value ends at `at`.
#[inline]
pub(super) fn is_end(bytes: &[u8], at: usize) -> bool {
    match bytes.get(at) {
        Some(b',' | b' ') => true,
        _ => is_line_end(bytes, at),
    }
}

/// Whether the line ends at `at`.
#[inline]
pub(super) fn is_line_end(bytes: &[u8], at: usize) -> bool {
    match bytes.get(at) {
        None | Some(b'\n') => true,
        Some(b'\r') => matches!(bytes.get(at + 1), None | Some(b'\n')),
        Some(_) => false,
    }
}

/// The offset of the first byte that is not a blank; InfluxDB counts tabs and zeros among them.
#[inline]
pub(super) fn after_blanks(bytes: &[u8], mut at: usize) -> usize {
    while matches!(bytes.get(at), Some(b' ' | b'\t' | 0)) {
        at += 1;
    }
    at
}
