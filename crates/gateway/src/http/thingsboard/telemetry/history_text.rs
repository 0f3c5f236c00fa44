//! The history of a device as text, written value by value while the store is read.

use std::ops::ControlFlow;

use hub::history::ValueSink;
use model::{Timestamp, ValueRef};

use crate::http::tools::json::WireValue;
use crate::http::tools::pieces::Pieces;
use crate::text::{F64_BYTES_MAX, TimeText, write_f64};

/// Text for each key: `,{"ts":<ms>,"value":<value>}` for each value. Numbers have fast code of their own, because a history can
/// have a million values.
#[derive(Debug)]
pub(crate) struct HistoryText {
    strict: bool,
    of_key: Vec<Vec<u8>>,
    values: u64,
    bytes: usize,
    bytes_max: usize,
    before_value: BeforeValue,
}

impl HistoryText {
    /// A text for `keys` keys. It takes values until it has more than `bytes_max` bytes.
    pub(crate) fn new(keys: usize, strict: bool, bytes_max: usize) -> Self {
        let of_key = vec![Vec::new(); keys];
        Self {
            strict,
            of_key,
            values: 0,
            bytes: 0,
            bytes_max,
            before_value: BeforeValue::new(b",{\"ts\":0000000000000,\"value\":"),
        }
    }

    /// Whether the text has become too long and left out values.
    pub(crate) fn is_over(&self) -> bool {
        self.bytes > self.bytes_max
    }

    /// Bytes so far.
    pub(crate) fn bytes(&self) -> usize {
        self.bytes
    }

    /// Values so far.
    pub(crate) fn values(&self) -> u64 {
        self.values
    }

    /// Appends `{"<key>":[<values>],...}` for texts that have the keys one after the other. Keys without values are left
    /// out, as ThingsBoard does.
    pub(crate) fn write(texts: impl IntoIterator<Item = Self>, keys: &[String], out: &mut Pieces) {
        let mut opening = b"{".as_slice();
        let of_key = texts.into_iter().flat_map(|text| text.of_key);
        for (key, mut text) in keys.iter().zip(of_key).filter(|(_, text)| !text.is_empty()) {
            out.copy(opening);
            opening = b",";
            json(key, out.open());
            out.copy(b":");
            // The bracket replaces the comma before the first value.
            text[0] = b'[';
            text.push(b']');
            out.take(text);
        }
        if opening == b"{" {
            out.copy(opening);
        }
        out.copy(b"}");
    }
}

impl ValueSink for HistoryText {
    fn value(&mut self, key: usize, ts: Timestamp, value: ValueRef<'_>) -> ControlFlow<()> {
        if let ValueRef::F64(number) = value {
            return self.numbers(key, &[ts.micros()], &[number]);
        }
        let out = &mut self.of_key[key];
        let start = out.len();
        let mut room = [0; VALUE_BYTES];
        let length = self.before_value.write(ts, &mut room);
        out.extend_from_slice(&room[..length]);
        json(&WireValue { value, strict: self.strict }, out);
        out.push(b'}');
        self.values += 1;
        self.bytes += out.len() - start;
        if self.is_over() { ControlFlow::Break(()) } else { ControlFlow::Continue(()) }
    }

    fn numbers(&mut self, key: usize, times: &[i64], numbers: &[f64]) -> ControlFlow<()> {
        let out = &mut self.of_key[key];
        let start = out.len();
        // Most values take half of the longest text.
        out.reserve(times.len() * VALUE_BYTES / 2);
        let runs = times.chunks(NUMBERS_AT_ONCE).zip(numbers.chunks(NUMBERS_AT_ONCE));
        for (times, numbers) in runs {
            let mut length = out.len();
            out.resize(length + times.len() * VALUE_BYTES, 0);
            for (ts, number) in times.iter().zip(numbers) {
                let room = out[length..].first_chunk_mut().expect("BUG: there is room for each value");
                length += write_number(
                    &mut self.before_value,
                    Timestamp::from_micros(*ts),
                    *number,
                    self.strict,
                    room,
                );
            }
            out.truncate(length);
            if self.bytes + out.len() - start > self.bytes_max {
                break;
            }
        }
        self.values += times.len() as u64;
        self.bytes += out.len() - start;
        if self.is_over() { ControlFlow::Break(()) } else { ControlFlow::Continue(()) }
    }
}

/// Numbers for which room is made at once.
const NUMBERS_AT_ONCE: usize = 64;
/// The text before a value.
type BeforeValue = TimeText<7, 29>;
/// Longest text of a time and a number with the text around them.
const VALUE_BYTES: usize = BeforeValue::BYTES_MAX + F64_BYTES_MAX + 3;

/// Writes a whole value and returns how many bytes it has.
#[inline]
fn write_number(
    before: &mut BeforeValue,
    ts: Timestamp,
    number: f64,
    strict: bool,
    room: &mut [u8; VALUE_BYTES],
) -> usize {
    let mut length = before.write(ts, room);
    room[length] = b'"';
    length += usize::from(!strict);
    let digits = room[length..].first_chunk_mut().expect("BUG: there is room for any number");
    length += write_f64(number, digits);
    room[length] = b'"';
    length += usize::from(!strict);
    room[length] = b'}';
    length + 1
}

pub(crate) fn json(value: &(impl serde::Serialize + ?Sized), out: &mut Vec<u8>) {
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

    fn written(text: HistoryText) -> String {
        let mut out = Pieces::default();
        out.copy(b"before");
        HistoryText::write([text], &["a".to_owned(), "quote\"".to_owned(), "none".to_owned()], &mut out);
        String::from_utf8(out.open().clone()).unwrap()
    }

    #[test]
    fn keys_in_any_order_have_their_values() {
        let values = [
            (1, 5, ValueRef::String("x\"y")),
            (0, 1, ValueRef::F64(2.5)),
            (0, 2, ValueRef::F64(3.0)),
            (0, 3, ValueRef::I64(-4)),
        ];
        let (strict, loose) = (text(true, 1000, &values), text(false, 1000, &values));
        assert_eq!(
            written(strict),
            r#"before{"a":[{"ts":1,"value":2.5},{"ts":2,"value":3.0},{"ts":3,"value":-4}],"quote\"":[{"ts":5,"value":"x\"y"}]}"#
        );
        assert_eq!(
            written(loose),
            r#"before{"a":[{"ts":1,"value":"2.5"},{"ts":2,"value":"3.0"},{"ts":3,"value":"-4"}],"quote\"":[{"ts":5,"value":"x\"y"}]}"#
        );
        assert_eq!(written(text(true, 1000, &[])), "before{}");
    }

    #[test]
    fn texts_have_keys_one_after_the_other() {
        let texts = [
            text(true, 1000, &[(0, 1, ValueRef::F64(2.5))]),
            text(true, 1000, &[(1, 5, ValueRef::I64(7)), (1, 6, ValueRef::F64(0.5))]),
        ];
        assert_eq!(texts.iter().map(HistoryText::values).collect::<Vec<_>>(), [1, 2]);
        let mut out = Pieces::default();
        HistoryText::write(texts, &["a", "b", "c", "d", "e", "f"].map(str::to_owned), &mut out);
        let expected = r#"{"a":[{"ts":1,"value":2.5}],"e":[{"ts":5,"value":7},{"ts":6,"value":0.5}]}"#;
        assert_eq!(std::str::from_utf8(out.open()), Ok(expected));
    }

    #[test]
    fn a_text_over_its_limit_accepts_no_more_values() {
        let values = [(0, 1, ValueRef::I64(1)), (0, 2, ValueRef::I64(2)), (0, 3, ValueRef::I64(3))];
        let over = text(true, 21, &values);
        assert!(over.is_over());
        assert_eq!(written(over).matches("ts").count(), 2);
        assert!(!text(true, 1000, &values).is_over());
    }
}
