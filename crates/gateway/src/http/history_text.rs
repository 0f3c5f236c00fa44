//! The history of a device as text, written value by value while the store is read.

use std::io::Write as _;
use std::ops::ControlFlow;

use hub::history::Sink;
use model::{Timestamp, ValueRef};

use super::json::WireValue;
use super::number::{pair, write_f64};
use super::pieces::Pieces;

/// Text for each key: `,{"ts":<ms>,"value":<value>}` for each value. What is needed most often is written by hand,
/// because a history can have a million values.
#[derive(Debug)]
pub(crate) struct HistoryText {
    strict: bool,
    of_key: Vec<Vec<u8>>,
    bytes: usize,
    bytes_max: usize,
    before_value: BeforeValue,
}

impl HistoryText {
    /// For so many keys; takes values until the text has more than `bytes_max` bytes.
    pub(crate) fn new(keys: usize, strict: bool, bytes_max: usize) -> Self {
        let of_key = vec![Vec::new(); keys];
        Self { strict, of_key, bytes: 0, bytes_max, before_value: BeforeValue::new() }
    }

    /// Whether values were left out because the text has become too long.
    pub(crate) fn is_over(&self) -> bool {
        self.bytes > self.bytes_max
    }

    /// Appends `{"<key>":[<values>],...}`. Keys without values are left out, as ThingsBoard does.
    pub(crate) fn write(self, keys: &[String], out: &mut Pieces) {
        let mut opening = b"{".as_slice();
        for (key, mut text) in keys.iter().zip(self.of_key).filter(|(_, text)| !text.is_empty()) {
            out.copy(opening);
            opening = b",";
            json(key, out.open());
            out.copy(b":");
            // In place of the comma in front of the first value.
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

impl Sink for HistoryText {
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
        self.bytes += out.len() - start;
        if self.is_over() { ControlFlow::Break(()) } else { ControlFlow::Continue(()) }
    }

    fn numbers(&mut self, key: usize, times: &[i64], numbers: &[f64]) -> ControlFlow<()> {
        let out = &mut self.of_key[key];
        let start = out.len();
        // Half of the room is what most values take.
        out.reserve(times.len() * VALUE_BYTES / 2);
        let runs = times.chunks(NUMBERS_AT_ONCE).zip(numbers.chunks(NUMBERS_AT_ONCE));
        for (times, numbers) in runs {
            let mut length = out.len();
            out.resize(length + times.len() * VALUE_BYTES, 0);
            for (ts, number) in times.iter().zip(numbers) {
                let room = out[length..].first_chunk_mut().expect("BUG: there is room for each value");
                length +=
                    self.before_value.write_number(Timestamp::from_micros(*ts), *number, self.strict, room);
            }
            out.truncate(length);
            if self.bytes + out.len() - start > self.bytes_max {
                break;
            }
        }
        self.bytes += out.len() - start;
        if self.is_over() { ControlFlow::Break(()) } else { ControlFlow::Continue(()) }
    }
}

/// Numbers for which room is made at once.
const NUMBERS_AT_ONCE: usize = 64;
/// Room for a time of any length and a number with all that stands around them.
const VALUE_BYTES: usize = 64;

/// `,{"ts":<ms>,"value":` with the time of the value before, of which the first digits are mostly those of the next one.
#[derive(Debug)]
struct BeforeValue {
    text: [u8; Self::BYTES],
    /// The digits before the last eight.
    high: u32,
}

impl BeforeValue {
    /// With the thirteen digits that times of the years 2001 to 2286 have.
    const BYTES: usize = 29;
    const HIGH: usize = 7;
    const LOW: usize = Self::HIGH + 5;
    const VALUE: usize = Self::LOW + 8;
    const LOW_SCALE: u64 = 100_000_000;

    fn new() -> Self {
        Self { text: *b",{\"ts\":0000000000000,\"value\":", high: 0 }
    }

    /// Returns how many bytes it wrote.
    #[inline]
    fn write(&mut self, ts: Timestamp, room: &mut [u8; VALUE_BYTES]) -> usize {
        let millis = ts.millis();
        if !(1_000_000_000_000..10_000_000_000_000).contains(&millis) {
            return self.write_long(millis, room);
        }
        let (high, mut low) =
            ((millis as u64 / Self::LOW_SCALE) as u32, (millis as u64 % Self::LOW_SCALE) as u32);
        if high != self.high {
            self.high = high;
            self.text[Self::HIGH..Self::LOW].copy_from_slice(format!("{high:05}").as_bytes());
        }
        for digits in self.text[Self::LOW..Self::VALUE].chunks_exact_mut(2).rev() {
            digits.copy_from_slice(&pair(low % 100));
            low /= 100;
        }
        room[..Self::BYTES].copy_from_slice(&self.text);
        Self::BYTES
    }

    #[cold]
    fn write_long(&self, millis: i64, room: &mut [u8; VALUE_BYTES]) -> usize {
        let mut rest = room.as_mut_slice();
        rest.write_all(&self.text[..Self::HIGH])
            .and_then(|()| write!(rest, "{millis}"))
            .and_then(|()| rest.write_all(&self.text[Self::VALUE..]))
            .expect("BUG: every time fits");
        VALUE_BYTES - rest.len()
    }

    /// Writes a whole value and returns how many bytes it has.
    #[inline]
    fn write_number(
        &mut self,
        ts: Timestamp,
        number: f64,
        strict: bool,
        room: &mut [u8; VALUE_BYTES],
    ) -> usize {
        let mut length = self.write(ts, room);
        room[length] = b'"';
        length += usize::from(!strict);
        let digits = room[length..].first_chunk_mut().expect("BUG: there is room for any number");
        length += write_f64(number, digits);
        room[length] = b'"';
        length += usize::from(!strict);
        room[length] = b'}';
        length + 1
    }
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

    fn written(text: HistoryText) -> String {
        let mut out = Pieces::default();
        out.copy(b"before");
        text.write(&["a".to_owned(), "quote\"".to_owned(), "none".to_owned()], &mut out);
        String::from_utf8(out.open().clone()).unwrap()
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
            let text = written(text(true, 1000, &[(0, ms, ValueRef::Bool(true))]));
            assert_eq!(text, format!(r#"before{{"a":[{{"ts":{ms},"value":true}}]}}"#));
        }
    }

    #[test]
    fn a_text_that_is_too_long_takes_no_more() {
        let values = [(0, 1, ValueRef::I64(1)), (0, 2, ValueRef::I64(2)), (0, 3, ValueRef::I64(3))];
        let over = text(true, 21, &values);
        assert!(over.is_over());
        assert_eq!(written(over).matches("ts").count(), 2);
        assert!(!text(true, 1000, &values).is_over());
    }
}
