//! Writes a request, for load and tests: each series is started, gets its labels and samples, and is ended.

use super::proto::{push_varint, varint_bytes};

/// Starts a series and returns its mark for [`end_series`].
pub fn start_series(out: &mut Vec<u8>) -> usize {
    out.push(0x0a);
    out.len()
}

/// Adds a label to the series that was started. Labels are before samples, sorted by name.
pub fn push_label(out: &mut Vec<u8>, name: &str, value: &str) {
    let of = |text: &str| 1 + varint_bytes(text.len() as u64) + text.len();
    out.push(0x0a);
    push_varint(out, (of(name) + of(value)) as u64);
    for (key, text) in [(0x0a, name), (0x12, value)] {
        out.push(key);
        push_varint(out, text.len() as u64);
        out.extend_from_slice(text.as_bytes());
    }
}

/// Adds a sample to the series that was started.
pub fn push_sample(out: &mut Vec<u8>, value: f64, ms: i64) {
    let time = ms.cast_unsigned();
    out.push(0x12);
    push_varint(out, (1 + 8 + 1 + varint_bytes(time)) as u64);
    out.push(0x09);
    out.extend_from_slice(&value.to_le_bytes());
    out.push(0x10);
    push_varint(out, time);
}

/// Ends a series: puts its length before it.
pub fn end_series(out: &mut Vec<u8>, mark: usize) {
    let length = out.len() - mark;
    push_varint(out, length as u64);
    let prefix = out.len() - mark - length;
    out[mark..].rotate_right(prefix);
}
