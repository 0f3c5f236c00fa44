//! Writes times in milliseconds, for answers with a million of them.

use std::io::Write as _;

use model::Timestamp;

use super::number::pair;

/// Writes a time in milliseconds within a constant text: `BEFORE` bytes are before it, and the whole has `BYTES` bytes. It
/// keeps the last text, because the first digits of the next time are mostly the same.
#[derive(Debug)]
pub(crate) struct TimeText<const BEFORE: usize, const BYTES: usize> {
    text: [u8; BYTES],
    /// The digits before the last eight.
    high: u32,
}

/// Digits of times of the years 2001 to 2286.
const DIGITS: usize = 13;
const LOW_SCALE: u64 = 100_000_000;
/// Most digits of an `i64`, and its sign.
const DIGITS_MAX: usize = 20;

impl<const BEFORE: usize, const BYTES: usize> TimeText<BEFORE, BYTES> {
    /// Longest text.
    pub(crate) const BYTES_MAX: usize = BYTES - DIGITS + DIGITS_MAX;
    const LOW: usize = BEFORE + 5;
    const END: usize = BEFORE + DIGITS;

    /// `text` has thirteen zeros in place of the time.
    pub(crate) fn new(text: &[u8; BYTES]) -> Self {
        Self { text: *text, high: 0 }
    }

    /// Writes to the beginning of `room`, which has at least [`BYTES_MAX`](Self::BYTES_MAX) bytes. Returns the length.
    #[inline]
    pub(crate) fn write(&mut self, ts: Timestamp, room: &mut [u8]) -> usize {
        let millis = ts.millis();
        if !(1_000_000_000_000..10_000_000_000_000).contains(&millis) {
            return self.write_other(millis, room);
        }
        let (high, mut low) = ((millis as u64 / LOW_SCALE) as u32, (millis as u64 % LOW_SCALE) as u32);
        if high != self.high {
            self.high = high;
            self.text[BEFORE..Self::LOW].copy_from_slice(format!("{high:05}").as_bytes());
        }
        for digits in self.text[Self::LOW..Self::END].chunks_exact_mut(2).rev() {
            digits.copy_from_slice(&pair(low % 100));
            low /= 100;
        }
        // The compiler copies a constant length without a call.
        room[..BYTES].copy_from_slice(&self.text);
        BYTES
    }

    #[cold]
    fn write_other(&self, millis: i64, room: &mut [u8]) -> usize {
        let bytes = room.len();
        let mut rest = room;
        rest.write_all(&self.text[..BEFORE])
            .and_then(|()| write!(rest, "{millis}"))
            .and_then(|()| rest.write_all(&self.text[Self::END..]))
            .expect("BUG: every time fits");
        bytes - rest.len()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn times_of_any_length_are_written_between_texts() {
        let mut text = TimeText::<2, 16>::new(b"<>0000000000000/");
        for ms in [
            0,
            -1,
            999_999_999_999,
            1_000_000_000_000,
            1_763_749_200_123,
            1_763_749_200_124,
            1_763_849_200_124,
            9_999_999_999_999,
            10_000_000_000_000,
            i64::MIN / 1_000,
            i64::MAX / 1_000,
        ] {
            let mut room = [0; TimeText::<2, 16>::BYTES_MAX];
            let length = text.write(Timestamp::from_millis(ms).unwrap(), &mut room);
            assert_eq!(std::str::from_utf8(&room[..length]).unwrap(), format!("<>{ms}/"));
        }
    }
}
