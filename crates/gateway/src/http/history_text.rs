//! The history of a device as text, written value by value while the store is read.

use std::ops::ControlFlow;

use hub::history::Sink;
use model::{Timestamp, ValueRef};

use super::json::WireValue;

/// Text for each key: `,{"ts":<ms>,"value":<value>}` for each value. What is needed most often is written by hand,
/// because a history can have a million values.
#[derive(Debug)]
pub(crate) struct HistoryText {
    strict: bool,
    of_key: Vec<Vec<u8>>,
    bytes: usize,
    bytes_max: usize,
}

impl HistoryText {
    /// For so many keys; takes values until the text has more than `bytes_max` bytes.
    pub(crate) fn new(keys: usize, strict: bool, bytes_max: usize) -> Self {
        Self { strict, of_key: vec![Vec::new(); keys], bytes: 0, bytes_max }
    }

    /// Whether values were left out because the text has become too long.
    pub(crate) fn is_over(&self) -> bool {
        self.bytes > self.bytes_max
    }

    /// Writes `{"<key>":[<values>],...}`. Keys without values are left out, as ThingsBoard does.
    pub(crate) fn write(&self, keys: &[String], out: &mut Vec<u8>) {
        let (start, names) = (out.len(), keys.iter().map(|key| key.len() + 6).sum::<usize>());
        out.reserve(self.bytes + names + 2);
        out.push(b'{');
        for (key, text) in keys.iter().zip(&self.of_key).filter(|(_, text)| !text.is_empty()) {
            if out.len() > start + 1 {
                out.push(b',');
            }
            json(key, out);
            out.extend_from_slice(b":[");
            // Without the comma in front of the first value.
            out.extend_from_slice(&text[1..]);
            out.push(b']');
        }
        out.push(b'}');
    }
}

impl Sink for HistoryText {
    fn value(&mut self, key: usize, ts: Timestamp, value: ValueRef<'_>) -> ControlFlow<()> {
        let out = &mut self.of_key[key];
        let start = out.len();
        // Pieces of a constant length are copied without a call.
        out.extend_from_slice(b",{\"ts\":");
        millis(ts.millis(), out);
        out.extend_from_slice(b",\"value\":");
        match (value, self.strict) {
            (ValueRef::F64(number), true) => json(&number, out),
            (ValueRef::F64(number), false) => {
                out.push(b'"');
                json(&number, out);
                out.push(b'"');
            }
            (value, strict) => json(&WireValue { value, strict }, out),
        }
        out.push(b'}');
        self.bytes += out.len() - start;
        if self.is_over() { ControlFlow::Break(()) } else { ControlFlow::Continue(()) }
    }
}

/// Writes milliseconds; those of the years 2001 to 2286 have thirteen digits.
fn millis(millis: i64, out: &mut Vec<u8>) {
    if !(1_000_000_000_000..10_000_000_000_000).contains(&millis) {
        return json(&millis, out);
    }
    let mut digits = [b'0'; 13];
    let mut left = millis;
    for digit in digits.iter_mut().rev() {
        *digit += (left % 10) as u8;
        left /= 10;
    }
    out.extend_from_slice(&digits);
}

fn json(value: &(impl serde::Serialize + ?Sized), out: &mut Vec<u8>) {
    serde_json::to_writer(out, value).expect("BUG: numbers and text are JSON, and memory takes them");
}

#[cfg(test)]
mod tests {
    use super::*;

    fn text(strict: bool, bytes_max: usize, values: &[(usize, i64, ValueRef<'_>)]) -> HistoryText {
        let mut text = HistoryText::new(3, strict, bytes_max);
        for (key, ms, value) in values {
            if text.value(*key, Timestamp::from_millis(*ms).unwrap(), *value).is_break() {
                break;
            }
        }
        text
    }

    fn written(text: &HistoryText) -> String {
        let mut out = b"before".to_vec();
        text.write(&["a".to_owned(), "quote\"".to_owned(), "none".to_owned()], &mut out);
        String::from_utf8(out).unwrap()
    }

    #[test]
    fn keys_have_their_values_whatever_their_order() {
        let values = [
            (1, 5, ValueRef::String("x\"y")),
            (0, 1, ValueRef::F64(2.5)),
            (0, 2, ValueRef::F64(3.0)),
            (0, 3, ValueRef::I64(-4)),
        ];
        let (strict, loose) = (text(true, 1000, &values), text(false, 1000, &values));
        assert_eq!(
            written(&strict),
            r#"before{"a":[{"ts":1,"value":2.5},{"ts":2,"value":3.0},{"ts":3,"value":-4}],"quote\"":[{"ts":5,"value":"x\"y"}]}"#
        );
        assert_eq!(
            written(&loose),
            r#"before{"a":[{"ts":1,"value":"2.5"},{"ts":2,"value":"3.0"},{"ts":3,"value":"-4"}],"quote\"":[{"ts":5,"value":"x\"y"}]}"#
        );
        assert_eq!(written(&text(true, 1000, &[])), "before{}");
    }

    #[test]
    fn times_of_any_length_are_whole() {
        for ms in [
            0,
            -1,
            999_999_999_999,
            1_000_000_000_000,
            1_763_749_200_123,
            9_999_999_999_999,
            10_000_000_000_000,
        ] {
            let text = written(&text(true, 1000, &[(0, ms, ValueRef::Bool(true))]));
            assert_eq!(text, format!(r#"before{{"a":[{{"ts":{ms},"value":true}}]}}"#));
        }
    }

    #[test]
    fn a_text_that_is_too_long_takes_no_more() {
        let values = [(0, 1, ValueRef::I64(1)), (0, 2, ValueRef::I64(2)), (0, 3, ValueRef::I64(3))];
        let over = text(true, 21, &values);
        assert!(over.is_over());
        assert_eq!(written(&over).matches("ts").count(), 2);
        assert!(!text(true, 1000, &values).is_over());
    }
}
