//! Writes RESP.

/// Appends the header of an array with this many elements.
pub fn array(out: &mut Vec<u8>, elements: usize) {
    header(out, b'*', elements);
}

/// Appends a bulk string.
pub fn bulk(out: &mut Vec<u8>, text: &[u8]) {
    header(out, b'$', text.len());
    out.extend_from_slice(text);
    out.extend_from_slice(b"\r\n");
}

/// Appends the header of a bulk string with this many bytes. The bytes and CR LF follow.
pub fn bulk_header(out: &mut Vec<u8>, bytes: usize) {
    header(out, b'$', bytes);
}

/// Appends a whole command.
pub fn command(out: &mut Vec<u8>, words: &[&[u8]]) {
    array(out, words.len());
    words.iter().for_each(|word| bulk(out, word));
}

/// Appends a number in decimal digits.
pub fn decimal(out: &mut Vec<u8>, number: u64) {
    let mut digits = [0_u8; 20];
    let at = digits_of(number, &mut digits);
    out.extend_from_slice(&digits[at..]);
}

/// Number of decimal digits.
pub fn decimal_digits(number: u64) -> usize {
    number.checked_ilog10().map_or(1, |log| log as usize + 1)
}

fn header(out: &mut Vec<u8>, kind: u8, count: usize) {
    let mut line = [0_u8; 24];
    let mut digits = [0_u8; 20];
    let at = digits_of(count as u64, &mut digits);
    let length = digits.len() - at;
    line[0] = kind;
    line[1..=length].copy_from_slice(&digits[at..]);
    line[length + 1..length + 3].copy_from_slice(b"\r\n");
    out.extend_from_slice(&line[..length + 3]);
}

/// Writes the digits to the end of `place` and returns where they begin.
fn digits_of(mut number: u64, place: &mut [u8; 20]) -> usize {
    let mut at = place.len();
    loop {
        at -= 1;
        place[at] = b'0' + (number % 10) as u8;
        number /= 10;
        if number == 0 {
            return at;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn commands_are_arrays_of_bulk_strings() {
        let mut out = Vec::new();
        command(&mut out, &[b"SET", b"key-1", b""]);
        assert_eq!(out, b"*3\r\n$3\r\nSET\r\n$5\r\nkey-1\r\n$0\r\n\r\n");
    }

    #[test]
    fn numbers_are_written_in_decimal() {
        for number in [0, 1, 9, 10, 99, 100, 12_345, u64::from(u32::MAX), u64::MAX - 1, u64::MAX] {
            let mut out = Vec::new();
            decimal(&mut out, number);
            assert_eq!(out, number.to_string().as_bytes());
            assert_eq!(decimal_digits(number), out.len());
        }
    }
}
