//! A scanner of JSON text that borrows what it finds.

use std::borrow::Cow;

use super::super::limits::IGNORED_DEPTH_MAX;

/// A body that is not the JSON wanted here.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("{reason} at byte {at}")]
pub struct SyntaxError {
    /// Offset in the body, from 0; that of a body with a byte order mark begins after it.
    pub at: usize,
    /// The fault.
    pub reason: &'static str,
}

/// A position in a JSON text.
#[derive(Debug, Clone)]
pub(super) struct Scanner<'a> {
    text: &'a str,
    at: usize,
}

/// The text of a number, and its value if it is a whole number in the range of i64.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(super) struct NumberText<'a> {
    pub(super) text: &'a str,
    pub(super) integer: Option<i64>,
}

impl<'a> Scanner<'a> {
    pub(super) fn new(text: &'a str) -> Self {
        Self { text, at: 0 }
    }

    pub(super) fn at(&self) -> usize {
        self.at
    }

    pub(super) fn fault(&self, reason: &'static str) -> SyntaxError {
        SyntaxError { at: self.at, reason }
    }

    /// The text from an earlier position to this one.
    pub(super) fn since(&self, from: usize) -> &'a str {
        self.text.get(from..self.at).unwrap_or_default()
    }

    /// The next byte after white space; 0 at the end.
    pub(super) fn peek(&mut self) -> u8 {
        loop {
            match self.byte() {
                b' ' | b'\n' | b'\t' | b'\r' => self.at += 1,
                byte => return byte,
            }
        }
    }

    /// True at the end of the text; white space is skipped.
    pub(super) fn is_at_end(&mut self) -> bool {
        self.peek() == 0 && self.at >= self.text.len()
    }

    /// Takes a byte if it is the next one after white space.
    pub(super) fn take(&mut self, byte: u8) -> bool {
        let is_next = self.peek() == byte;
        self.at += usize::from(is_next);
        is_next
    }

    pub(super) fn must(&mut self, byte: u8, reason: &'static str) -> Result<(), SyntaxError> {
        if self.take(byte) { Ok(()) } else { Err(self.fault(reason)) }
    }

    /// Takes a word such as `null`.
    pub(super) fn take_word(&mut self, word: &str) -> bool {
        let is_next = self.rest().starts_with(word.as_bytes());
        if is_next {
            self.at += word.len();
        }
        is_next
    }

    /// Takes a string, which begins at this position.
    pub(super) fn string(&mut self) -> Result<Cow<'a, str>, SyntaxError> {
        self.must(b'"', "a string is missing")?;
        let start = self.at;
        self.at += plain_bytes(self.rest());
        if self.byte() == b'"' {
            let text = self.since(start);
            self.at += 1;
            return Ok(Cow::Borrowed(text));
        }
        self.escaped_string(start).map(Cow::Owned)
    }

    /// Takes a number, which begins at this position.
    pub(super) fn number(&mut self) -> Result<NumberText<'a>, SyntaxError> {
        let start = self.at;
        let is_negative = self.byte() == b'-';
        self.at += usize::from(is_negative);
        let first = self.at;
        let magnitude = self.digits()?;
        if self.at - first > 1 && self.text.as_bytes()[first] == b'0' {
            return Err(SyntaxError { at: first, reason: "a number begins with 0" });
        }
        let mut is_whole = true;
        if self.byte() == b'.' {
            is_whole = false;
            self.at += 1;
            self.digits()?;
        }
        if matches!(self.byte(), b'e' | b'E') {
            is_whole = false;
            self.at += 1;
            self.at += usize::from(matches!(self.byte(), b'+' | b'-'));
            self.digits()?;
        }
        let magnitude = magnitude.filter(|_| is_whole);
        let integer = magnitude
            .and_then(|m| if is_negative { 0_i64.checked_sub_unsigned(m) } else { m.try_into().ok() });
        Ok(NumberText { text: self.since(start), integer })
    }

    /// Skips a value of any kind.
    pub(super) fn skip_value(&mut self, depth: usize) -> Result<(), SyntaxError> {
        if depth > IGNORED_DEPTH_MAX {
            return Err(self.fault("the JSON is nested too deep"));
        }
        match self.peek() {
            b'"' => self.string().map(drop),
            b'-' | b'0'..=b'9' => self.number().map(drop),
            b'{' => self.skip_members(depth),
            b'[' => self.skip_elements(depth),
            b't' if self.take_word("true") => Ok(()),
            b'f' if self.take_word("false") => Ok(()),
            b'n' if self.take_word("null") => Ok(()),
            _ => Err(self.fault("a value is missing")),
        }
    }

    fn skip_members(&mut self, depth: usize) -> Result<(), SyntaxError> {
        self.at += 1;
        if self.take(b'}') {
            return Ok(());
        }
        loop {
            self.string()?;
            self.must(b':', "a colon is missing")?;
            self.skip_value(depth + 1)?;
            if !self.take(b',') {
                return self.must(b'}', "a comma or a closing brace is missing");
            }
        }
    }

    fn skip_elements(&mut self, depth: usize) -> Result<(), SyntaxError> {
        self.at += 1;
        if self.take(b']') {
            return Ok(());
        }
        loop {
            self.skip_value(depth + 1)?;
            if !self.take(b',') {
                return self.must(b']', "a comma or a closing bracket is missing");
            }
        }
    }

    /// Takes digits, at least one, and returns their value if it fits.
    fn digits(&mut self) -> Result<Option<u64>, SyntaxError> {
        let start = self.at;
        let mut value = Some(0_u64);
        while let digit @ b'0'..=b'9' = self.byte() {
            // Nineteen digits fit without a check of each.
            value = if self.at - start < 19 {
                value.map(|value| value * 10 + u64::from(digit - b'0'))
            } else {
                value.and_then(|value| value.checked_mul(10)?.checked_add(u64::from(digit - b'0')))
            };
            self.at += 1;
        }
        if self.at == start { Err(self.fault("a digit is missing")) } else { Ok(value) }
    }

    /// The rest of a string with escapes, whose plain beginning is at `start`.
    #[cold]
    fn escaped_string(&mut self, start: usize) -> Result<String, SyntaxError> {
        let mut string = self.since(start).to_owned();
        loop {
            match self.byte() {
                b'"' => {
                    self.at += 1;
                    return Ok(string);
                }
                b'\\' => string.push(self.escape()?),
                _ if self.at >= self.text.len() => return Err(self.fault("a string does not end")),
                _ => return Err(self.fault("a control character is in a string")),
            }
            let from = self.at;
            self.at += plain_bytes(self.rest());
            string.push_str(self.since(from));
        }
    }

    fn escape(&mut self) -> Result<char, SyntaxError> {
        self.at += 1;
        let kind = self.byte();
        let character = match kind {
            b'"' | b'\\' | b'/' => char::from(kind),
            b'b' => '\u{8}',
            b'f' => '\u{c}',
            b'n' => '\n',
            b'r' => '\r',
            b't' => '\t',
            b'u' => {
                self.at += 1;
                return self.escaped_character();
            }
            _ => return Err(self.fault("an escape is unknown")),
        };
        self.at += 1;
        Ok(character)
    }

    fn escaped_character(&mut self) -> Result<char, SyntaxError> {
        let first = self.hex()?;
        let code = match first {
            0xd800..=0xdbff if self.take_word("\\u") => match self.hex()? {
                second @ 0xdc00..=0xdfff => 0x10000 + ((first - 0xd800) << 10) + (second - 0xdc00),
                _ => return Err(self.fault("half of a surrogate pair is alone")),
            },
            code => code,
        };
        char::from_u32(code).ok_or(self.fault("half of a surrogate pair is alone"))
    }

    fn hex(&mut self) -> Result<u32, SyntaxError> {
        let digits =
            self.text.get(self.at..self.at + 4).filter(|text| text.bytes().all(|b| b.is_ascii_hexdigit()));
        let code = digits.and_then(|digits| u32::from_str_radix(digits, 16).ok());
        let code = code.ok_or(self.fault("an escape has no four hexadecimal digits"))?;
        self.at += 4;
        Ok(code)
    }

    fn byte(&self) -> u8 {
        self.text.as_bytes().get(self.at).copied().unwrap_or(0)
    }

    fn rest(&self) -> &'a [u8] {
        self.text.as_bytes().get(self.at..).unwrap_or_default()
    }
}

/// Bytes before the first quote, backslash or control character.
///
/// It looks at eight bytes at a time: a subtraction borrows into the highest bit of a byte that is zero (or less than a bound).
/// The lowest byte that is marked is right, those above it may be marked by its borrow.
fn plain_bytes(bytes: &[u8]) -> usize {
    const ONES: u64 = u64::MAX / 255;
    const HIGH: u64 = ONES * 0x80;
    let (words, rest) = bytes.as_chunks::<8>();
    for (index, word) in words.iter().enumerate() {
        let word = u64::from_le_bytes(*word);
        let zero_in = |word: u64| word.wrapping_sub(ONES) & !word;
        let is_control = word.wrapping_sub(ONES * 0x20) & !word;
        let marked = (zero_in(word ^ (ONES * u64::from(b'"')))
            | zero_in(word ^ (ONES * u64::from(b'\\')))
            | is_control)
            & HIGH;
        if marked != 0 {
            return index * 8 + marked.trailing_zeros() as usize / 8;
        }
    }
    let is_plain = |byte: &&u8| !matches!(**byte, b'"' | b'\\' | 0..0x20);
    bytes.len() - rest.len() + rest.iter().take_while(is_plain).count()
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    proptest! {
        #[test]
        fn the_plain_beginning_is_found_in_words_as_byte_by_byte(bytes in prop::collection::vec(any::<u8>(), 0..40)) {
            let expected = bytes.iter().take_while(|byte| !matches!(**byte, b'"' | b'\\' | 0..0x20)).count();
            prop_assert_eq!(plain_bytes(&bytes), expected);
        }

        #[test]
        fn strings_are_those_of_serde_json(text in any::<String>()) {
            let json = serde_json::to_string(&text).expect("a string");
            prop_assert_eq!(Scanner::new(&json).string().expect("valid"), text);
        }
    }

    #[test]
    fn integers_are_exact_up_to_their_range() {
        let integer = |text| Scanner::new(text).number().map(|number| number.integer);
        assert_eq!(integer("9223372036854775807"), Ok(Some(i64::MAX)));
        assert_eq!(integer("-9223372036854775808"), Ok(Some(i64::MIN)));
        assert_eq!(integer("9223372036854775808"), Ok(None));
        assert_eq!(integer("-9223372036854775809"), Ok(None));
        assert_eq!(integer("99999999999999999999999"), Ok(None));
        assert_eq!(integer("1.0"), Ok(None));
        assert_eq!(integer("01").unwrap_err().reason, "a number begins with 0");
        assert_eq!(integer("-").unwrap_err().reason, "a digit is missing");
    }

    #[test]
    fn ignored_values_have_a_limited_depth() {
        let nested = |depth: usize| "[".repeat(depth) + &"]".repeat(depth);
        assert_eq!(Scanner::new(&nested(IGNORED_DEPTH_MAX)).skip_value(0), Ok(()));
        let error = Scanner::new(&nested(100_000)).skip_value(0).unwrap_err();
        assert_eq!(error.reason, "the JSON is nested too deep");
    }
}
