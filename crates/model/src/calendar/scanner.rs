//! A reader of bytes from left to right.

/// Digits of a fraction of a second. More digits are not read.
const FRACTION_DIGITS: usize = 9;

/// The bytes of a text that are not read yet. A method that fails may have moved on.
#[derive(Debug, Clone, Copy)]
pub(super) struct Scanner<'a>(pub(super) &'a [u8]);

impl<'a> Scanner<'a> {
    pub(super) fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    pub(super) fn peek(&self) -> Option<u8> {
        self.0.first().copied()
    }

    /// Reads a byte for which the condition holds.
    pub(super) fn eat_if(&mut self, condition: impl Fn(u8) -> bool) -> Option<u8> {
        let byte = self.peek().filter(|byte| condition(*byte))?;
        self.0 = &self.0[1..];
        Some(byte)
    }

    /// Reads this byte, if it is the next one.
    pub(super) fn eat(&mut self, expected: u8) -> bool {
        self.eat_if(|byte| byte == expected).is_some()
    }

    /// Reads all bytes for which the condition holds.
    pub(super) fn skip(&mut self, condition: impl Fn(u8) -> bool) {
        while self.eat_if(&condition).is_some() {}
    }

    /// Reads `+` as `false` or `-` as `true`.
    pub(super) fn sign(&mut self) -> Option<bool> {
        self.eat_if(|byte| matches!(byte, b'+' | b'-')).map(|byte| byte == b'-')
    }

    /// Reads a number of at least one and at most `digits_max` digits.
    pub(super) fn number(&mut self, digits_max: usize) -> Option<u64> {
        let (digits, rest) = self.0.split_at(self.digits(digits_max));
        self.0 = rest;
        let first = digits.first()?;
        digits[1..].iter().try_fold(u64::from(first - b'0'), |number, digit| {
            number.checked_mul(10)?.checked_add(u64::from(digit - b'0'))
        })
    }

    /// Reads a number of exactly this many digits.
    pub(super) fn fixed(&mut self, digits: usize) -> Option<u64> {
        if self.digits(digits) == digits { self.number(digits) } else { None }
    }

    /// Reads a number of two digits between the bounds.
    pub(super) fn two(&mut self, min: u32, max: u32) -> Option<u32> {
        let number = u32::try_from(self.fixed(2)?).ok()?;
        (min..=max).contains(&number).then_some(number)
    }

    /// Whether two digits follow.
    pub(super) fn has_two_digits(&self) -> bool {
        self.digits(2) == 2
    }

    /// Reads one to nine digits after a decimal point, as billionths.
    pub(super) fn billionths(&mut self) -> Option<u32> {
        let digits = self.digits(FRACTION_DIGITS);
        let number = u32::try_from(self.number(FRACTION_DIGITS)?).ok()?;
        Some(number * 10_u32.pow((FRACTION_DIGITS - digits) as u32))
    }

    /// Reads a decimal point or comma with one to nine digits, as billionths. The outer `None` is a point without digits.
    pub(super) fn fraction(&mut self) -> Option<Option<u32>> {
        if self.eat_if(|byte| matches!(byte, b'.' | b',')).is_none() {
            return Some(None);
        }
        self.billionths().map(Some)
    }

    /// Reads one of these names in letters of any case, or the first letters of one. Returns its index.
    pub(super) fn name(&mut self, names: &[&str], letters_max: usize) -> Option<usize> {
        let letters = |name: &str| name.len().min(letters_max);
        let index = names.iter().position(|name| {
            let letters = letters(name);
            self.0.get(..letters).is_some_and(|text| text.eq_ignore_ascii_case(&name.as_bytes()[..letters]))
        })?;
        self.0 = &self.0[letters(names[index])..];
        Some(index)
    }

    /// The number of digits that follow, at most `max`.
    fn digits(&self, max: usize) -> usize {
        self.0.iter().take(max).take_while(|byte| byte.is_ascii_digit()).count()
    }
}
