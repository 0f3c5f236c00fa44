//! Writes JSON numbers, for answers with a million of them. The text is that of `serde_json`. For numbers with few digits,
//! such as measured values, this code is several times faster.

/// Longest text of an `f64`, such as -2.2250738585072014e-308.
pub(crate) const F64_BYTES_MAX: usize = 24;
/// From this number on the library writes the text: it has an exponent or many digits.
const POSITIVE_MAX: f64 = 1e9;
/// Below this number the library writes the text: it may have an exponent.
const POSITIVE_MIN: f64 = 1e-3;

/// Two digits for each number below a hundred.
const PAIRS: [[u8; 2]; 100] = pairs();

const fn pairs() -> [[u8; 2]; 100] {
    let mut pairs = [[0; 2]; 100];
    let mut number = 0;
    while number < 100 {
        pairs[number] = [b'0' + (number / 10) as u8, b'0' + (number % 10) as u8];
        number += 1;
    }
    pairs
}

/// Writes a number as JSON and returns the length; `null` for NaN and infinity.
#[inline]
pub(crate) fn write_f64(number: f64, room: &mut [u8; F64_BYTES_MAX]) -> usize {
    write_few_digits(number, room).unwrap_or_else(|| write_any(number, room))
}

/// Like [`write_f64`], if the number has few digits; else `None`.
#[inline]
pub(crate) fn write_few_digits(number: f64, room: &mut [u8; F64_BYTES_MAX]) -> Option<usize> {
    // Most values have three decimals at most; positions have six.
    write_decimal::<3>(number, room).or_else(|| write_decimal::<6>(number, room))
}

fn write_any(number: f64, room: &mut [u8; F64_BYTES_MAX]) -> usize {
    let mut rest = room.as_mut_slice();
    serde_json::to_writer(&mut rest, &number).expect("BUG: every number fits");
    F64_BYTES_MAX - rest.len()
}

/// Writes the number if it is a decimal fraction with at most `DECIMALS` decimals and few digits before them.
///
/// An integer below 2^53 that is divided by a power of ten below 10^22 gives the `f64` nearest to that fraction, as
/// reading its text does (W. Clinger, "How to read floating point numbers accurately", 1990). With fifteen digits at
/// most, no shorter text means the same `f64`.
#[inline]
fn write_decimal<const DECIMALS: usize>(number: f64, room: &mut [u8; F64_BYTES_MAX]) -> Option<usize> {
    let scale = const { 10_u64.pow(DECIMALS as u32) };
    let positive = number.abs();
    let is_small = (POSITIVE_MIN..POSITIVE_MAX).contains(&positive) || number.to_bits() == 0;
    let scaled = (positive * scale as f64 + 0.5) as u64;
    if !is_small || scaled as f64 / scale as f64 != positive {
        return None;
    }
    room[0] = b'-';
    let mut length = usize::from(number < 0.0);
    length += write_digits((scaled / scale) as u32, &mut room[length..]);
    room[length] = b'.';
    length += 1;
    let mut fraction = scaled % scale;
    for decimal in (0..DECIMALS).rev() {
        room[length + decimal] = b'0' + (fraction % 10) as u8;
        fraction /= 10;
    }
    // Trailing zeros are omitted, but at least one decimal remains.
    let zeros = room[length + 1..length + DECIMALS].iter().rev().take_while(|digit| **digit == b'0').count();
    Some(length + DECIMALS - zeros)
}

/// Longest text of an `i64`, that of the smallest.
pub(crate) const I64_BYTES_MAX: usize = 20;

/// Writes an integer and returns the length.
#[inline]
pub(crate) fn write_i64(number: i64, room: &mut [u8; I64_BYTES_MAX]) -> usize {
    let mut rest = number.unsigned_abs();
    let mut at = I64_BYTES_MAX;
    while rest >= 100 {
        at -= 2;
        room[at..at + 2].copy_from_slice(&pair((rest % 100) as u32));
        rest /= 100;
    }
    let digits = pair(rest as u32);
    if rest >= 10 {
        at -= 1;
        room[at] = digits[1];
        at -= 1;
        room[at] = digits[0];
    } else {
        at -= 1;
        room[at] = digits[1];
    }
    if number < 0 {
        at -= 1;
        room[at] = b'-';
    }
    room.copy_within(at.., 0);
    I64_BYTES_MAX - at
}

/// Writes an integer and returns the number of digits.
#[inline]
fn write_digits(mut number: u32, room: &mut [u8]) -> usize {
    let length = number.checked_ilog10().map_or(1, |digits| digits as usize + 1);
    let mut at = length;
    while at >= 2 {
        at -= 2;
        room[at..at + 2].copy_from_slice(&pair(number % 100));
        number /= 100;
    }
    if at == 1 {
        room[0] = b'0' + number as u8;
    }
    length
}

/// The digits of a number below a hundred.
#[inline]
pub(crate) fn pair(number: u32) -> [u8; 2] {
    PAIRS[number as usize]
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn text(number: f64) -> String {
        let mut room = [0; F64_BYTES_MAX];
        let length = write_f64(number, &mut room);
        String::from_utf8(room[..length].to_vec()).unwrap()
    }

    fn same(number: f64) {
        assert_eq!(text(number), serde_json::to_string(&number).unwrap());
        assert_eq!(text(-number), serde_json::to_string(&-number).unwrap());
    }

    #[test]
    fn numbers_of_all_sizes_equal_those_of_the_library() {
        for number in [
            0.0,
            0.001,
            0.0009,
            1e-5,
            0.5,
            1.0,
            9.0,
            10.0,
            12.0,
            99.0,
            100.0,
            0.1,
            0.12,
            0.123,
            0.1234,
            0.000_001,
            52.520_008,
            13.404_954,
            0.999_999,
            99.999,
            100.001,
            999_999_999.0,
            999_999_999.999,
            999_999_999.999_999,
            1e9,
            1e15,
            1e16,
            1e300,
            f64::MIN_POSITIVE,
            f64::MAX,
            f64::NAN,
            f64::INFINITY,
            0.1 + 0.2,
            1.0 / 3.0,
        ] {
            same(number);
        }
    }

    proptest! {
        #![proptest_config(ProptestConfig { cases: 4_000, ..ProptestConfig::default() })]

        #[test]
        fn decimals_equal_those_of_the_library(whole in 0..2_000_000_000_u64, decimals in 0..9_u32, bits in any::<u64>()) {
            for whole in [whole, whole % 1_000_000, whole % 1_000] {
                let scale = 10_f64.powi(decimals as i32);
                let number = whole as f64 / scale;
                same(number);
                // Its neighbours have many digits.
                same(number.next_up());
                same(number.next_down());
            }
            same(f64::from_bits(bits));
        }
    }
}
