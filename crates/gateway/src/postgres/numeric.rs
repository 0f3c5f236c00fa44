//! Writes numeric values in PostgreSQL's forms.

use std::fmt::Write as _;

use bytes::{BufMut, BytesMut};

/// The base of the digits in the binary form.
const BASE: u128 = 10_000;
/// Decimal digits per digit.
const DIGIT_PLACES: u8 = 4;
const POSITIVE: u16 = 0;
const NEGATIVE: u16 = 0x4000;

/// Appends `number / 10^scale` in decimal, with `scale` digits after the point.
pub(super) fn write_text(number: i128, scale: u8, out: &mut BytesMut) {
    let places = usize::from(scale);
    let digits = format!("{:0>width$}", number.unsigned_abs(), width = places + 1);
    let (whole, fraction) = digits.split_at(digits.len() - places);
    let sign = if number < 0 { "-" } else { "" };
    let point = if places > 0 { "." } else { "" };
    write!(out, "{sign}{whole}{point}{fraction}").expect("BUG: memory takes text");
}

/// Appends the binary form: how many digits to the base of 10,000, the weight of the first, the sign, the scale, the digits.
pub(super) fn write_binary(number: i128, scale: u8, out: &mut BytesMut) {
    // Digits are aligned at the point, so the last one may need trailing zeros.
    let missing = (DIGIT_PLACES - scale % DIGIT_PLACES) % DIGIT_PLACES;
    let number_abs = number.unsigned_abs();
    // The lowest digit has the missing places; all others are whole.
    let unit = 10_u128.pow((DIGIT_PLACES - missing).into());
    let mut digits = vec![(number_abs % unit * 10_u128.pow(missing.into())) as u16];
    let mut rest = number_abs / unit;
    while rest > 0 {
        digits.push((rest % BASE) as u16);
        rest /= BASE;
    }
    let behind_point = i16::from(scale.div_ceil(DIGIT_PLACES));
    // Fewer than 40 digits.
    let mut weight = digits.len() as i16 - 1 - behind_point;
    while digits.last() == Some(&0) {
        digits.pop();
        weight -= 1;
    }
    digits.reverse();
    while digits.last() == Some(&0) {
        digits.pop();
    }
    out.put_u16(digits.len() as u16);
    out.put_i16(if digits.is_empty() { 0 } else { weight });
    out.put_u16(if number < 0 { NEGATIVE } else { POSITIVE });
    out.put_u16(scale.into());
    digits.into_iter().for_each(|digit| out.put_u16(digit));
}

#[cfg(test)]
mod tests {
    use super::*;

    fn written(write: fn(i128, u8, &mut BytesMut), number: i128, scale: u8) -> Vec<u8> {
        let mut out = BytesMut::new();
        write(number, scale, &mut out);
        out.to_vec()
    }

    #[test]
    fn text_has_all_digits_behind_the_point() {
        for (number, scale, text) in [
            (0, 0, "0"),
            (0, 2, "0.00"),
            (-5, 1, "-0.5"),
            (1_250, 2, "12.50"),
            (90_000_000_000_000_000_000, 0, "90000000000000000000"),
            (-(10_i128.pow(38) - 1), 0, "-99999999999999999999999999999999999999"),
        ] {
            assert_eq!(written(write_text, number, scale), text.as_bytes());
        }
    }

    /// Made by PostgreSQL 15: `SELECT encode(numeric_send(x), 'hex')`.
    #[test]
    fn binary_numbers_equal_those_of_postgresql() {
        for (number, scale, hex) in [
            (0, 0, "0000000000000000"),
            (1_250, 2, "0002000000000002000c1388"),
            (-50_000, 0, "00010001400000000005"),
            (1, 4, "0001ffff000000040001"),
            (90_000_000_000_000_000_000, 0, "00010004000000002328"),
            (123_456_789, 5, "000300000000000504d2162e2328"),
        ] {
            let bytes: String =
                written(write_binary, number, scale).iter().map(|b| format!("{b:02x}")).collect();
            assert_eq!(bytes, hex, "{number} {scale}");
        }
    }
}
