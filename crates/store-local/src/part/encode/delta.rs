//! DELTA_BINARY_PACKED with a choice that the format allows: the bit width of the differences.
//!
//! Exact widths are the smallest before compression. Widths of whole bytes give zstd symbols that it can count, so that
//! frequent differences take fewer bits than their range needs. The writer tries both and takes the smaller one.

use super::hybrid::width_of;
use crate::codec::{put_varint, put_zigzag};

/// Sizes of a block and of its four miniblocks. All writers of Parquet use these.
const BLOCK: usize = 128;
const MINI: usize = 32;

/// The width of the packed differences.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Widths {
    /// The smallest number of bits.
    Bits,
    /// A whole number of bytes.
    Bytes,
}

/// Appends the encoded values.
pub(crate) fn put_delta(out: &mut Vec<u8>, values: &[i64], widths: Widths) {
    put_varint(out, BLOCK as u64);
    put_varint(out, (BLOCK / MINI) as u64);
    put_varint(out, values.len() as u64);
    put_zigzag(out, values.first().copied().unwrap_or(0));
    let mut deltas = [0_i64; BLOCK];
    let mut start = 0;
    while start + 1 < values.len() {
        let count = (values.len() - 1 - start).min(BLOCK);
        let window = &values[start..=start + count];
        for (delta, pair) in deltas.iter_mut().zip(window.windows(2)) {
            *delta = pair[1].wrapping_sub(pair[0]);
        }
        put_block(out, &mut deltas[..count], widths);
        start += count;
    }
}

fn put_block(out: &mut Vec<u8>, deltas: &mut [i64], widths: Widths) {
    let least = deltas.iter().copied().min().unwrap_or(0);
    put_zigzag(out, least);
    let places = out.len();
    out.extend_from_slice(&[0; BLOCK / MINI]);
    for (index, mini) in deltas.chunks_mut(MINI).enumerate() {
        let mut all = 0;
        for delta in mini.iter_mut() {
            *delta = delta.wrapping_sub(least);
            all |= delta.cast_unsigned();
        }
        let width = width_of(all);
        let width = if widths == Widths::Bits { width } else { width.next_multiple_of(8) };
        out[places + index] = width as u8;
        let mut full = [0_u64; MINI];
        full.iter_mut().zip(mini.iter()).for_each(|(slot, delta)| *slot = delta.cast_unsigned());
        pack(out, &full, width);
    }
}

/// Packs numbers of `width` bits, lowest bits first.
fn pack(out: &mut Vec<u8>, numbers: &[u64], width: u32) {
    match width {
        0 => {}
        8 => out.extend(numbers.iter().map(|number| *number as u8)),
        16 => numbers.iter().for_each(|number| out.extend_from_slice(&(*number as u16).to_le_bytes())),
        32 => numbers.iter().for_each(|number| out.extend_from_slice(&(*number as u32).to_le_bytes())),
        64 => numbers.iter().for_each(|number| out.extend_from_slice(&number.to_le_bytes())),
        _ => {
            let (mut bits, mut held) = (0_u64, 0);
            for number in numbers {
                bits |= number << held;
                let room = u64::BITS - held;
                if width >= room {
                    out.extend_from_slice(&bits.to_le_bytes());
                    // A shift by 64 would not shift at all.
                    bits = if room == u64::BITS { 0 } else { number >> room };
                    held = width - room;
                } else {
                    held += width;
                }
            }
            out.extend_from_slice(&bits.to_le_bytes()[..held.div_ceil(8) as usize]);
        }
    }
}
