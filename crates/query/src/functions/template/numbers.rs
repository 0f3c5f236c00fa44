//! Writes numbers as text, as `NUM_processor` of PostgreSQL's `formatting.c` does in the locale `C`.

use super::{Case, Node, ordinal, parse};
use crate::QueryError;
use crate::error::INVALID_TEXT;

/// The digits that a double always has.
const F64_DIGITS: usize = 15;
/// The width of a Roman numeral.
const ROMAN_WIDTH: usize = 15;
/// The largest number with a Roman numeral.
const ROMAN_MAX: i128 = 3_999;

/// The fields of templates for numbers.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Key {
    Comma,
    Point,
    Digit0,
    Digit9,
    Blank,
    LocalPoint,
    Exponent,
    Fill,
    Group,
    Currency,
    Minus,
    Plus,
    Brackets,
    Roman(Case),
    SignOrPlus,
    Sign,
    Ordinal(Case),
    Shift,
    Nothing,
}

const KEYS: &[(&str, Key)] = &[
    (",", Key::Comma),
    (".", Key::Point),
    ("0", Key::Digit0),
    ("9", Key::Digit9),
    ("B", Key::Blank),
    ("C", Key::Nothing),
    ("D", Key::LocalPoint),
    ("EEEE", Key::Exponent),
    ("FM", Key::Fill),
    ("G", Key::Group),
    ("L", Key::Currency),
    ("MI", Key::Minus),
    ("PL", Key::Plus),
    ("PR", Key::Brackets),
    ("RN", Key::Roman(Case::Upper)),
    ("SG", Key::SignOrPlus),
    ("SP", Key::Nothing),
    ("S", Key::Sign),
    ("TH", Key::Ordinal(Case::Upper)),
    ("V", Key::Shift),
    ("b", Key::Blank),
    ("c", Key::Nothing),
    ("d", Key::LocalPoint),
    ("eeee", Key::Exponent),
    ("fm", Key::Fill),
    ("g", Key::Group),
    ("l", Key::Currency),
    ("mi", Key::Minus),
    ("pl", Key::Plus),
    ("pr", Key::Brackets),
    ("rn", Key::Roman(Case::Lower)),
    ("sg", Key::SignOrPlus),
    ("sp", Key::Nothing),
    ("s", Key::Sign),
    ("th", Key::Ordinal(Case::Lower)),
    ("v", Key::Shift),
];

#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(super) enum SignPlace {
    #[default]
    None,
    Before,
    Behind,
}

/// The properties of a template for a whole number.
#[derive(Debug, Clone, Default)]
pub(super) struct Shape {
    pub(super) before_point: usize,
    pub(super) behind_point: usize,
    pub(super) sign_place: SignPlace,
    /// Digits before the sign.
    before_sign: usize,
    pub(super) has_sign: bool,
    zero_start: usize,
    zero_end: usize,
    pub(super) shift: usize,
    pub(super) has_point: bool,
    pub(super) fills: bool,
    has_zero: bool,
    is_blank: bool,
    pub(super) has_minus: bool,
    pub(super) has_plus: bool,
    pub(super) has_brackets: bool,
    pub(super) is_roman: bool,
    pub(super) shifts: bool,
    pub(super) has_exponent: bool,
}

fn refused(message: &str) -> QueryError {
    QueryError::value("42601", message)
}

impl Shape {
    fn add(&mut self, key: Key) -> Result<(), QueryError> {
        if self.has_exponent && key != Key::Exponent {
            return Err(refused("\"EEEE\" must be the last pattern used"));
        }
        match key {
            Key::Digit9 => {
                if self.has_brackets {
                    return Err(refused("\"9\" must be ahead of \"PR\""));
                }
                if self.shifts {
                    self.shift += 1;
                } else if self.has_point {
                    self.behind_point += 1;
                } else {
                    self.before_point += 1;
                }
            }
            Key::Digit0 => {
                if self.has_brackets {
                    return Err(refused("\"0\" must be ahead of \"PR\""));
                }
                if !self.has_zero && !self.has_point {
                    self.has_zero = true;
                    self.zero_start = self.before_point + 1;
                }
                if self.has_point {
                    self.behind_point += 1;
                } else {
                    self.before_point += 1;
                }
                self.zero_end = self.before_point + self.behind_point;
            }
            Key::Blank => self.is_blank |= self.before_point == 0 && self.behind_point == 0 && !self.has_zero,
            Key::LocalPoint | Key::Point => {
                if self.has_point {
                    return Err(refused("multiple decimal points"));
                }
                if self.shifts {
                    return Err(refused("cannot use \"V\" and decimal point together"));
                }
                self.has_point = true;
            }
            Key::Fill => self.fills = true,
            Key::Sign => {
                if self.has_sign {
                    return Err(refused("cannot use \"S\" twice"));
                }
                if self.has_plus || self.has_minus || self.has_brackets {
                    return Err(refused("cannot use \"S\" and \"PL\"/\"MI\"/\"SG\"/\"PR\" together"));
                }
                self.has_sign = true;
                if self.has_point {
                    self.sign_place = SignPlace::Behind;
                } else {
                    self.sign_place = SignPlace::Before;
                    self.before_sign = self.before_point;
                }
            }
            Key::Minus | Key::Plus | Key::SignOrPlus => {
                if self.has_sign {
                    return Err(refused("cannot use \"S\" and \"MI\"/\"PL\"/\"SG\" together"));
                }
                self.has_minus |= key != Key::Plus;
                self.has_plus |= key != Key::Minus;
            }
            Key::Brackets => {
                if self.has_sign || self.has_plus || self.has_minus {
                    return Err(refused("cannot use \"PR\" and \"S\"/\"PL\"/\"MI\"/\"SG\" together"));
                }
                self.has_brackets = true;
            }
            Key::Roman(_) => self.is_roman = true,
            Key::Shift => {
                if self.has_point {
                    return Err(refused("cannot use \"V\" and decimal point together"));
                }
                self.shifts = true;
            }
            Key::Exponent => {
                if self.has_exponent {
                    return Err(refused("cannot use \"EEEE\" twice"));
                }
                let others = self.is_blank || self.fills || self.has_sign || self.has_brackets;
                if others || self.has_minus || self.has_plus || self.is_roman || self.shifts {
                    return Err(refused("\"EEEE\" is incompatible with other formats"));
                }
                self.has_exponent = true;
            }
            Key::Comma | Key::Group | Key::Currency | Key::Ordinal(_) | Key::Nothing => {}
        }
        Ok(())
    }
}

/// The fields and the shape of a template.
pub(super) fn nodes(template: &str) -> Result<(Vec<Node<Key>>, Shape), QueryError> {
    let nodes = parse(template, KEYS, false);
    let mut shape = Shape::default();
    for node in &nodes {
        if let Node::Field(field) = node {
            shape.add(field.key)?;
        }
    }
    Ok((nodes, shape))
}

/// The number to write.
#[derive(Debug, Clone, Copy)]
pub(in crate::functions) enum Number {
    Integer(i64),
    Float(f64),
    /// Digits, and how many of them come after the point.
    Decimal(i128, i8),
}

/// Writes a number with a template.
pub(in crate::functions) fn number_text(number: Number, template: &str) -> Result<String, QueryError> {
    let (nodes, mut shape) = nodes(template)?;
    if shape.has_exponent {
        return Ok(with_exponent(number, shape.behind_point));
    }
    let (is_negative, mut digits) = if shape.is_roman {
        (false, roman(number))
    } else {
        shape.before_point += shape.shift;
        digits(number, &mut shape)
    };
    let mut blanks = 0;
    if !shape.is_roman {
        let before_point = digits.find('.').unwrap_or(digits.len());
        if before_point < shape.before_point {
            blanks = shape.before_point - before_point;
        } else if before_point > shape.before_point {
            // The number is too long. PostgreSQL shows this in place of digits.
            digits = format!("{}.{}", "#".repeat(shape.before_point), "#".repeat(shape.behind_point));
        }
    }
    Ok(Writer::new(shape, is_negative, digits, blanks).write(&nodes))
}

/// Returns the sign and the digits that the template has room for, rounded.
fn digits(number: Number, shape: &mut Shape) -> (bool, String) {
    let shifted = |text: String| match text.strip_prefix('-') {
        Some(digits) => (true, digits.to_owned()),
        None => (false, text),
    };
    match number {
        Number::Float(number) => {
            let number = number * 10_f64.powi(shape.shift as i32);
            if !number.is_finite() {
                let name = if number.is_nan() { "nan" } else { "inf" };
                return (number < 0.0, name.into());
            }
            let before_point = format!("{:.0}", number.abs()).len();
            if before_point >= F64_DIGITS {
                shape.behind_point = 0;
            } else if before_point + shape.behind_point > F64_DIGITS {
                shape.behind_point = F64_DIGITS - before_point;
            }
            shifted(format!("{number:.*}", shape.behind_point))
        }
        Number::Integer(number) => decimal(i128::from(number), 0, shape),
        Number::Decimal(number, scale) => decimal(number, scale, shape),
    }
}

fn decimal(number: i128, scale: i8, shape: &Shape) -> (bool, String) {
    let is_negative = number < 0;
    let text = number.unsigned_abs().to_string();
    let scale = usize::from(scale.unsigned_abs()) * usize::from(scale > 0);
    let places = shape.behind_point + shape.shift;
    let mut digits = format!("{text:0>width$}", width = scale + 1);
    // Takes as many digits after the point as there is room for.
    if places >= scale {
        digits.push_str(&"0".repeat(places - scale));
    } else {
        let cut = digits.split_off(digits.len() - (scale - places));
        if cut.as_bytes()[0] >= b'5' {
            let rounded = digits.parse::<u128>().unwrap_or(0) + 1;
            digits = format!("{rounded:0>width$}", width = digits.len());
        }
    }
    let at = digits.len() - shape.behind_point;
    let whole = digits[..at].trim_start_matches('0');
    let whole = if whole.is_empty() { "0" } else { whole };
    let is_zero = digits.bytes().all(|digit| digit == b'0');
    let text = if shape.behind_point > 0 { format!("{whole}.{}", &digits[at..]) } else { whole.to_owned() };
    (is_negative && !is_zero, text)
}

fn with_exponent(number: Number, places: usize) -> String {
    let number = match number {
        Number::Integer(number) => return decimal_with_exponent(number.into(), 0, places),
        Number::Decimal(number, scale) => return decimal_with_exponent(number, scale, places),
        Number::Float(number) => number,
    };
    if !number.is_finite() {
        return format!(" {}.{}", "#", "#".repeat(places + 4));
    }
    let text = format!("{number:.places$e}");
    let (mantissa, exponent) = text.split_once('e').expect("BUG: the number has an exponent");
    let exponent: i32 = exponent.parse().expect("BUG: exponents are numbers");
    let blank = if mantissa.starts_with('-') { "" } else { " " };
    let sign = if exponent < 0 { '-' } else { '+' };
    format!("{blank}{mantissa}e{sign}{:02}", exponent.abs())
}

/// Rounds halves away from zero, as PostgreSQL does for numeric values.
fn decimal_with_exponent(number: i128, scale: i8, places: usize) -> String {
    let text = number.unsigned_abs().to_string();
    let mut exponent = text.len() as i32 - 1 - i32::from(scale);
    let mut digits = format!("{text:0<width$}", width = places + 2);
    let rounds_up = digits.as_bytes()[places + 1] >= b'5';
    digits.truncate(places + 1);
    if rounds_up {
        let rounded = digits.parse::<u128>().unwrap_or(0) + 1;
        let longer = format!("{rounded:0>width$}", width = digits.len());
        exponent += (longer.len() - digits.len()) as i32;
        digits = longer[..places + 1].to_owned();
    }
    if number == 0 {
        exponent = 0;
    }
    let (first, others) = digits.split_at(1);
    let point = if places > 0 { "." } else { "" };
    let (blank, sign) = (if number < 0 { '-' } else { ' ' }, if exponent < 0 { '-' } else { '+' });
    format!("{blank}{first}{point}{others}e{sign}{:02}", exponent.abs())
}

fn roman(number: Number) -> String {
    let number = match number {
        Number::Integer(number) => i128::from(number),
        Number::Float(number) => number.round_ties_even() as i128,
        Number::Decimal(number, scale) => (number as f64 / 10_f64.powi(i32::from(scale))).round() as i128,
    };
    if !(1..=ROMAN_MAX).contains(&number) {
        return "#".repeat(ROMAN_WIDTH);
    }
    const DIGITS: [(&str, i128); 13] = [
        ("M", 1_000),
        ("CM", 900),
        ("D", 500),
        ("CD", 400),
        ("C", 100),
        ("XC", 90),
        ("L", 50),
        ("XL", 40),
        ("X", 10),
        ("IX", 9),
        ("V", 5),
        ("IV", 4),
        ("I", 1),
    ];
    let (mut text, mut left) = (String::new(), number);
    for (digit, value) in DIGITS {
        while left >= value {
            text.push_str(digit);
            left -= value;
        }
    }
    text
}

/// The state of `NUM_processor`.
struct Writer {
    shape: Shape,
    is_negative: bool,
    number: Vec<u8>,
    /// The next digit.
    at: usize,
    /// The last digit that is not a trailing zero, where such zeros are left out.
    last_relevant: Option<usize>,
    /// Blanks before the digits.
    blanks: usize,
    sign_is_written: bool,
    /// The number of digit positions that have been passed.
    passed: usize,
    count: i64,
    wrote_digit: bool,
    zero_start: usize,
    out: String,
}

impl Writer {
    fn new(mut shape: Shape, is_negative: bool, number: String, blanks: usize) -> Self {
        let zero_start = shape.zero_start.saturating_sub(1);
        let number = number.into_bytes();
        if shape.is_roman {
            shape = Shape { is_roman: true, fills: shape.fills, ..Shape::default() };
        }
        let sign_is_written = if shape.has_plus || shape.has_minus {
            !shape.has_plus || shape.has_minus
        } else {
            if !is_negative && shape.fills {
                shape.has_brackets = false;
            }
            let is_written = !is_negative && shape.fills && !shape.has_sign;
            if shape.sign_place == SignPlace::Before && shape.before_point == shape.before_sign {
                shape.sign_place = SignPlace::Behind;
            }
            is_written
        };
        let mut count = (shape.behind_point + shape.before_point) as i64 - 1;
        let mut last_relevant = None;
        if shape.fills && shape.has_point {
            last_relevant = number.iter().position(|c| *c == b'.').map(|point| {
                let last = number.iter().rposition(|c| *c != b'0').unwrap_or(point);
                last.max(point)
            });
            if let Some(last) = &mut last_relevant
                && shape.zero_end > blanks
            {
                *last = (*last).max((number.len() - 1).min(shape.zero_end - blanks));
            }
        }
        if !sign_is_written && blanks == 0 {
            count += 1;
        }
        Self {
            shape,
            is_negative,
            number,
            at: 0,
            last_relevant,
            blanks,
            sign_is_written,
            passed: 0,
            count,
            wrote_digit: false,
            zero_start,
            out: String::new(),
        }
    }

    fn write(mut self, nodes: &[Node<Key>]) -> String {
        for node in nodes {
            match node {
                Node::Text(c) | Node::Separator(c) => self.out.push(*c),
                Node::Field(field) => self.field(field.key),
            }
        }
        self.out
    }

    fn sign(&self) -> char {
        if self.is_negative { '-' } else { '+' }
    }

    fn field(&mut self, key: Key) {
        match key {
            Key::Digit9 | Key::Digit0 | Key::Point | Key::LocalPoint => self.digit_or_point(key),
            Key::Comma | Key::Group if self.wrote_digit => self.out.push(','),
            Key::Comma | Key::Group | Key::Minus | Key::Plus if self.shape.fills && !self.is_shown(key) => {}
            Key::Comma | Key::Group => self.out.push(' '),
            Key::Currency => self.out.push(' '),
            Key::Minus => self.out.push(if self.is_negative { '-' } else { ' ' }),
            Key::Plus => self.out.push(if self.is_negative { ' ' } else { '+' }),
            Key::SignOrPlus => self.out.push(self.sign()),
            Key::Roman(case) => {
                let text = String::from_utf8_lossy(&self.number).into_owned();
                let text = case.of(&text);
                let width = if self.shape.fills { 0 } else { ROMAN_WIDTH };
                self.out.push_str(&format!("{text:>width$}"));
            }
            Key::Ordinal(case) => {
                let is_left_out = self.shape.is_roman || self.number.first() == Some(&b'#');
                if !is_left_out && !self.is_negative && !self.shape.has_point {
                    let digits = String::from_utf8_lossy(&self.number).into_owned();
                    self.out.push_str(ordinal(&digits, case));
                }
            }
            _ => {}
        }
    }

    /// Whether the sign is visible.
    fn is_shown(&self, key: Key) -> bool {
        match key {
            Key::Minus => self.is_negative,
            Key::Plus => !self.is_negative,
            _ => false,
        }
    }

    /// Whether the zero before the point is left out: `0.1` with `9.9`.
    fn leaves_zero_out(&self) -> bool {
        !self.shape.has_zero
            && self.at == 0
            && self.number.first() == Some(&b'0')
            && self.shape.behind_point != 0
    }

    fn ends_at_point(&self) -> bool {
        self.last_relevant.is_some_and(|last| self.number.get(last) == Some(&b'.'))
    }

    /// A position for a digit or the point.
    fn digit_or_point(&mut self, key: Key) {
        if self.shape.is_roman {
            return;
        }
        self.wrote_digit = false;
        let is_padding = self.passed < self.blanks;
        let begins_zeros = self.shape.has_zero && self.zero_start == self.passed;
        if !self.sign_is_written
            && (!is_padding || begins_zeros)
            && (!self.leaves_zero_out() || self.ends_at_point())
        {
            self.write_sign();
        }
        if is_padding && (!self.shape.has_zero || self.zero_start > self.passed) {
            if !self.shape.fills {
                self.out.push(' ');
            }
        } else if is_padding {
            self.out.push('0');
            self.wrote_digit = true;
        } else {
            self.write_digit(key);
        }
        let mut end = self.count + i64::from(self.blanks > 0) + i64::from(self.shape.has_point);
        if self.last_relevant == Some(self.at) {
            end = self.passed as i64;
        }
        if self.passed as i64 + 1 == end {
            if self.sign_is_written && self.shape.has_brackets {
                self.out.push(if self.is_negative { '>' } else { ' ' });
            } else if self.shape.has_sign && self.shape.sign_place == SignPlace::Behind {
                self.out.push(self.sign());
            }
        }
        self.passed += 1;
    }

    fn write_sign(&mut self) {
        if self.shape.has_sign {
            if self.shape.sign_place == SignPlace::Before {
                self.out.push(self.sign());
                self.sign_is_written = true;
            }
            return;
        }
        if self.shape.has_brackets {
            self.out.push(if self.is_negative { '<' } else { ' ' });
        } else if self.is_negative {
            self.out.push('-');
        } else if !self.shape.fills {
            self.out.push(' ');
        }
        self.sign_is_written = true;
    }

    fn write_point(&mut self) {
        if !self.ends_at_point() || self.shape.fills {
            self.out.push('.');
        }
    }

    fn write_digit(&mut self, key: Key) {
        match self.number.get(self.at) {
            Some(b'.') => self.write_point(),
            _ if self.last_relevant.is_some_and(|last| self.at > last) && key != Key::Digit0 => {}
            _ if self.leaves_zero_out() => {
                if !self.shape.fills {
                    self.out.push(' ');
                } else if self.ends_at_point() {
                    self.out.push('0');
                }
            }
            Some(digit) => {
                self.out.push(char::from(*digit));
                self.wrote_digit = true;
            }
            None => {}
        }
        if self.at < self.number.len() {
            self.at += 1;
        }
    }
}

/// The error for text that is not a number.
pub(super) fn no_number(text: &str) -> QueryError {
    QueryError::value(INVALID_TEXT, format!("invalid input syntax for type numeric: \"{text}\""))
}
