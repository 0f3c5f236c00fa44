//! The history of a device as columns: each time once, and for each key a list of values as long as that of the times.
//! A value takes a sixth of the bytes that it has in the device API's lists.

use std::ops::{ControlFlow, Range};

use hub::ValueColumn;
use hub::history::{RowSink, numbers};
use model::{Timestamp, ValueRef};

use super::history_text::json;
use super::json::WireValue;
use super::pieces::Pieces;
use super::time_text::TimeText;
use crate::number::{F64_BYTES_MAX, write_f64};

/// Values for which room is made at once.
const AT_ONCE: usize = 64;
/// A comma and a number.
const NUMBER_BYTES: usize = 1 + F64_BYTES_MAX;
type TimeElement = TimeText<1, 14>;

/// Lists of which each element has a comma before it.
#[derive(Debug)]
pub(crate) struct ColumnsText {
    times: Vec<u8>,
    time: TimeElement,
    of_key: Vec<KeyText>,
    bytes_max: usize,
}

#[derive(Debug, Clone, Default)]
struct KeyText {
    values: Vec<u8>,
    /// Whether any is not null.
    any: bool,
}

impl ColumnsText {
    /// For so many keys; takes rows until the text has more than `bytes_max` bytes.
    pub(crate) fn new(keys: usize, bytes_max: usize) -> Self {
        let of_key = vec![KeyText::default(); keys];
        Self { times: Vec::new(), time: TimeElement::new(b",0000000000000"), of_key, bytes_max }
    }

    /// Whether rows were left out because the text has become too long.
    pub(crate) fn is_over(&self) -> bool {
        self.bytes() > self.bytes_max
    }

    fn bytes(&self) -> usize {
        self.times.len() + self.of_key.iter().map(|key| key.values.len()).sum::<usize>()
    }

    fn go_on(&self) -> ControlFlow<()> {
        if self.is_over() { ControlFlow::Break(()) } else { ControlFlow::Continue(()) }
    }

    /// Appends `{"ts":[<ms>,...],"values":{"<key>":[<value or null>,...],...}}`. Keys without values are left out.
    pub(crate) fn write(self, keys: &[String], out: &mut Pieces) {
        out.copy(b"{\"ts\":");
        write_list(self.times, out);
        out.copy(b",\"values\":");
        let mut opening = b"{".as_slice();
        for (key, text) in keys.iter().zip(self.of_key).filter(|(_, text)| text.any) {
            out.copy(opening);
            opening = b",";
            json(key, out.open());
            out.copy(b":");
            write_list(text.values, out);
        }
        if opening == b"{" {
            out.copy(opening);
        }
        out.copy(b"}}");
    }
}

fn write_list(mut elements: Vec<u8>, out: &mut Pieces) {
    // In place of the comma in front of the first element.
    match elements.first_mut() {
        Some(first) => *first = b'[',
        None => elements.push(b'['),
    }
    elements.push(b']');
    out.take(elements);
}

impl RowSink for ColumnsText {
    fn rows(&mut self, times: &[i64], columns: &[Vec<ValueColumn>], rows: Range<usize>) -> ControlFlow<()> {
        let time = &mut self.time;
        extend(&mut self.times, &times[rows.clone()], TimeElement::BYTES_MAX, |ts, room| {
            time.write(Timestamp::from_micros(*ts), room)
        });
        for (text, columns) in self.of_key.iter_mut().zip(columns) {
            match numbers(columns) {
                Some(numbers) => text.push_numbers(&numbers[rows.clone()]),
                None => {
                    rows.clone().for_each(|row| text.push(columns.iter().find_map(|column| column.get(row))))
                }
            }
        }
        self.go_on()
    }

    fn row(&mut self, ts: Timestamp, values: &[Option<ValueRef<'_>>]) -> ControlFlow<()> {
        let mut room = [0; TimeElement::BYTES_MAX];
        let length = self.time.write(ts, &mut room);
        self.times.extend_from_slice(&room[..length]);
        for (text, value) in self.of_key.iter_mut().zip(values) {
            text.push(*value);
        }
        self.go_on()
    }
}

impl KeyText {
    fn push(&mut self, value: Option<ValueRef<'_>>) {
        self.any |= value.is_some();
        match value {
            Some(ValueRef::F64(number)) => self.push_numbers(&[number]),
            Some(value) => {
                self.values.push(b',');
                json(&WireValue { value, strict: true }, &mut self.values);
            }
            None => self.values.extend_from_slice(b",null"),
        }
    }

    fn push_numbers(&mut self, numbers: &[f64]) {
        self.any |= !numbers.is_empty();
        extend(&mut self.values, numbers, NUMBER_BYTES, |number, room| {
            room[0] = b',';
            let digits = room[1..].first_chunk_mut().expect("BUG: there is room for any number");
            1 + write_f64(*number, digits)
        });
    }
}

/// Appends what `write` makes of each element: it gets room for `bytes_max` bytes and returns how many it wrote.
#[inline]
fn extend<T>(
    out: &mut Vec<u8>,
    elements: &[T],
    bytes_max: usize,
    mut write: impl FnMut(&T, &mut [u8]) -> usize,
) {
    // A third of the room is what most elements take.
    out.reserve(elements.len() * bytes_max / 3);
    for elements in elements.chunks(AT_ONCE) {
        let mut length = out.len();
        out.resize(length + elements.len() * bytes_max, 0);
        for element in elements {
            length += write(element, &mut out[length..length + bytes_max]);
        }
        out.truncate(length);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn written(text: ColumnsText) -> String {
        let mut out = Pieces::default();
        text.write(&["a".to_owned(), "quote\"".to_owned(), "none".to_owned()], &mut out);
        String::from_utf8(out.open().clone()).unwrap()
    }

    fn row(text: &mut ColumnsText, ms: i64, values: [Option<ValueRef<'_>>; 3]) -> ControlFlow<()> {
        text.row(Timestamp::from_millis(ms).unwrap(), &values)
    }

    #[test]
    fn each_list_has_an_element_for_each_time() {
        let mut text = ColumnsText::new(3, 1_000);
        let _ = row(&mut text, 1_763_749_200_123, [Some(ValueRef::F64(2.5)), None, None]);
        let _ = row(&mut text, 5, [None, Some(ValueRef::String("x\"y")), None]);
        let _ = row(&mut text, -7, [Some(ValueRef::Bool(true)), Some(ValueRef::Json("{\"k\":[1]}")), None]);
        assert_eq!(
            written(text),
            r#"{"ts":[1763749200123,5,-7],"values":{"a":[2.5,null,true],"quote\"":[null,"x\"y",{"k":[1]}]}}"#
        );
        assert_eq!(written(ColumnsText::new(3, 1_000)), r#"{"ts":[],"values":{}}"#);
    }

    #[test]
    fn blocks_are_written_as_their_rows_are() {
        let numbers = ValueColumn::F64((0..200).map(|n| f64::from(n) / 4.0).collect());
        let some = ValueColumn::I64((0..200).map(|n| (n % 3 == 0).then_some(n)).collect());
        let columns = [vec![numbers], vec![some], vec![]];
        let times: Vec<i64> = (0..200).map(|n| 1_763_749_200_000_000 + n * 1_000_000).collect();
        let (mut blocks, mut rows) = (ColumnsText::new(3, 100_000), ColumnsText::new(3, 100_000));
        for range in [3..70, 70..71, 100..200] {
            assert!(blocks.rows(&times, &columns, range.clone()).is_continue());
            for n in range {
                let values = [columns[0][0].get(n), columns[1][0].get(n), None];
                assert!(rows.row(Timestamp::from_micros(times[n]), &values).is_continue());
            }
        }
        let text = written(blocks);
        assert_eq!(text, written(rows));
        assert_eq!(text.matches(',').count(), 3 * 167 + 2, "{text}");
    }

    #[test]
    fn a_text_that_is_too_long_takes_no_more() {
        let mut text = ColumnsText::new(3, 40);
        let one = [Some(ValueRef::F64(1.0)), None, None];
        assert!(row(&mut text, 1, one).is_continue());
        assert!(row(&mut text, 2, one).is_continue());
        assert!(row(&mut text, 3, one).is_break());
        assert!(text.is_over());
    }
}
