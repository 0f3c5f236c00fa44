//! Reads text as numbers, as `NUM_processor` of PostgreSQL's `formatting.c` does in the locale `C`.

use super::Node;
use super::numbers::{Key, Shape, SignPlace, no_number, nodes};
use crate::QueryError;

/// The text, and the number that has been read so far.
struct Reader<'a> {
    text: &'a [u8],
    at: usize,
    sign: Option<u8>,
    digits: String,
    before_point: usize,
    behind_point: usize,
    has_point: bool,
    shape: &'a Shape,
}

/// Reads a text with a template.
pub(in crate::functions) fn read_number(text: &str, template: &str) -> Result<f64, QueryError> {
    let (nodes, shape) = nodes(template)?;
    if shape.has_exponent || shape.is_roman {
        let name = if shape.is_roman { "RN" } else { "EEEE" };
        return Err(QueryError::unsupported(format!("\"{name}\" in to_number")));
    }
    let mut reader = Reader {
        text: text.as_bytes(),
        at: 0,
        sign: None,
        digits: String::new(),
        before_point: 0,
        behind_point: 0,
        has_point: false,
        shape: &shape,
    };
    for node in &nodes {
        if reader.is_over() {
            break;
        }
        match node {
            Node::Text(_) | Node::Separator(_) => reader.skip_char(),
            Node::Field(field) => reader.field(field.key),
        }
    }
    let sign = if reader.sign == Some(b'-') { "-" } else { "" };
    let digits = reader.digits.trim_end_matches('.');
    let number: f64 = format!("{sign}{digits}").parse().map_err(|_| no_number(text))?;
    Ok(number / 10_f64.powi(shape.shift as i32))
}

impl Reader<'_> {
    fn is_over(&self) -> bool {
        self.at >= self.text.len()
    }

    fn next(&self) -> Option<u8> {
        self.text.get(self.at).copied()
    }

    fn skip_char(&mut self) {
        self.at += 1;
        while self.next().is_some_and(|byte| byte & 0xc0 == 0x80) {
            self.at += 1;
        }
    }

    /// Skips characters that are not part of a number.
    fn skip_others(&mut self, count: usize) {
        for _ in 0..count {
            match self.next() {
                Some(byte) if !byte.is_ascii_digit() && !b".,+-".contains(&byte) => self.skip_char(),
                _ => break,
            }
        }
    }

    fn field(&mut self, key: Key) {
        match key {
            Key::Digit9 | Key::Digit0 | Key::Point | Key::LocalPoint => {
                self.digit_or_point(key);
                self.at += 1;
            }
            Key::Comma | Key::Group => self.skip_comma(),
            Key::Currency => self.skip_others(1),
            Key::Ordinal(_) => self.skip_ordinal(),
            Key::Minus | Key::Plus | Key::SignOrPlus => {
                let wanted: &[u8] = match key {
                    Key::Minus => b"-",
                    Key::Plus => b"+",
                    _ => b"+-",
                };
                match self.next() {
                    Some(sign) if wanted.contains(&sign) => {
                        self.sign = Some(sign);
                        self.at += 1;
                    }
                    _ => self.skip_others(1),
                }
            }
            _ => {}
        }
    }

    /// A position for a digit or the point. The caller skips the last character that was looked at.
    fn digit_or_point(&mut self, key: Key) {
        if self.next() == Some(b' ') {
            self.at += 1;
        }
        let Some(mut next) = self.next() else { return };
        let count = self.before_point + self.behind_point;
        if self.sign.is_none() && matches!(key, Key::Digit0 | Key::Digit9) && count == 0 {
            let is_before = self.shape.has_sign && self.shape.sign_place == SignPlace::Before;
            match next {
                b'-' | b'+' if is_before => self.take_sign(next),
                _ if is_before => {}
                b'-' | b'+' => self.take_sign(next),
                b'<' if self.shape.has_brackets => self.take_sign(b'-'),
                _ => {}
            }
            match self.next() {
                Some(byte) => next = byte,
                None => return,
            }
        }
        let mut is_read = false;
        if next.is_ascii_digit() {
            if self.has_point && self.behind_point == self.shape.behind_point {
                return;
            }
            self.digits.push(char::from(next));
            if self.has_point {
                self.behind_point += 1;
            } else {
                self.before_point += 1;
            }
            is_read = true;
        } else if self.shape.has_point && !self.has_point && next == b'.' {
            self.digits.push('.');
            self.has_point = true;
            is_read = true;
        }
        if self.sign.is_some() || self.before_point + self.behind_point == 0 {
            return;
        }
        if self.shape.has_sign && is_read {
            let follows = self.text.get(self.at + 1).copied();
            if let Some(sign @ (b'-' | b'+')) = follows {
                self.sign = Some(sign);
                self.at += 1;
            }
        } else if !is_read
            && !self.shape.has_sign
            && !self.shape.has_plus
            && !self.shape.has_minus
            && matches!(next, b'-' | b'+')
        {
            self.sign = Some(next);
        }
    }

    fn skip_comma(&mut self) {
        if !self.shape.fills && self.next() == Some(b',') {
            self.at += 1;
        }
    }

    fn skip_ordinal(&mut self) {
        if !self.shape.has_point && self.sign != Some(b'-') {
            self.skip_others(2);
        }
    }

    fn take_sign(&mut self, sign: u8) {
        self.sign = Some(sign);
        self.at += 1;
    }
}
