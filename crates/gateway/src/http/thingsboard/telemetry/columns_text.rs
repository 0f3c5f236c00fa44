//! The history of a device as columns: each time once, and for each key a list of values as long as that of the times.
//! A value takes a sixth of the bytes that it has in the device API's lists.

use std::convert::Infallible;
use std::ops::{ControlFlow, Range};

use hub::ValueColumn;
use hub::history::{RowSink, numbers};
use model::{Timestamp, ValueRef};
use parking_lot::Mutex;

use super::history_text::json;
use crate::blocking::WorkerSet;
use crate::error::ApiError;
use crate::http::tools::json::{WireValue, too_long};
use crate::http::tools::pieces::Pieces;
use crate::text::{F64_BYTES_MAX, TimeText, write_f64};

/// Values for which memory is reserved at once.
const AT_ONCE: usize = 64;
/// Values that wait to be written, so all threads have work.
const VALUES_WAITING_MAX: usize = 256 * 1024;
/// A comma and a number.
const NUMBER_BYTES: usize = 1 + F64_BYTES_MAX;
type TimeElement = TimeText<1, 14>;

/// Lists of which each element has a comma before it.
#[derive(Debug)]
pub(crate) struct ColumnsText<'a> {
    times: Vec<u8>,
    time: TimeElement,
    of_key: Vec<KeyText>,
    bytes_max: usize,
    workers: &'a WorkerSet,
    /// Rows that are not written yet, and the number of their values.
    blocks: Vec<Block>,
    waiting: usize,
}

#[derive(Debug, Clone, Default)]
struct KeyText {
    values: Vec<u8>,
    /// Whether any is not null.
    any: bool,
}

/// Rows as they were read; their arrays are shared with the store.
#[derive(Debug)]
struct Block {
    times: Vec<i64>,
    columns: Vec<Vec<ValueColumn>>,
    rows: Range<usize>,
}

impl<'a> ColumnsText<'a> {
    /// A text for `keys` keys. It takes rows until it has more than about `bytes_max` bytes. The workers write it.
    pub(crate) fn new(keys: usize, bytes_max: usize, workers: &'a WorkerSet) -> Self {
        let of_key = vec![KeyText::default(); keys];
        let time = TimeElement::new(b",0000000000000");
        Self { times: Vec::new(), time, of_key, bytes_max, workers, blocks: Vec::new(), waiting: 0 }
    }

    /// Whether the text has become too long and left out rows.
    fn is_over(&self) -> bool {
        self.bytes() > self.bytes_max
    }

    fn bytes(&self) -> usize {
        self.times.len() + self.of_key.iter().map(|key| key.values.len()).sum::<usize>()
    }

    fn go_on(&self) -> ControlFlow<()> {
        if self.is_over() { ControlFlow::Break(()) } else { ControlFlow::Continue(()) }
    }

    /// Appends `{"ts":[<ms>,...],"values":{"<key>":[<value or null>,...],...}}`. Keys without values are left out.
    pub(crate) fn write(mut self, keys: &[String], out: &mut Pieces) -> Result<(), ApiError> {
        self.write_blocks();
        if self.is_over() {
            return Err(too_long());
        }
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
        Ok(())
    }

    /// Writes the waiting rows: each worker writes some of the keys.
    fn write_blocks(&mut self) {
        if self.blocks.is_empty() {
            return;
        }
        for block in &self.blocks {
            let time = &mut self.time;
            extend(&mut self.times, &block.times, TimeElement::BYTES_MAX, |ts, room| {
                time.write(Timestamp::from_micros(*ts), room)
            });
        }
        let blocks = &self.blocks;
        let write = |first: usize, texts: &mut [KeyText]| {
            for (key, text) in texts.iter_mut().enumerate() {
                blocks.iter().for_each(|block| text.push_rows(&block.columns[first + key], &block.rows));
            }
        };
        let threads = self.workers.threads_for(self.waiting);
        let keys_each = self.of_key.len().div_ceil(threads).max(1);
        let pieces: Vec<_> = self.of_key.chunks_mut(keys_each).map(Mutex::new).collect();
        let written = self.workers.run(pieces.len(), |piece| {
            write(piece * keys_each, &mut pieces[piece].lock());
            Ok::<_, Infallible>(())
        });
        written.unwrap_or_else(|never| match never {});
        self.blocks.clear();
        self.waiting = 0;
    }
}

fn write_list(mut elements: Vec<u8>, out: &mut Pieces) {
    // The bracket replaces the comma before the first element.
    match elements.first_mut() {
        Some(first) => *first = b'[',
        None => elements.push(b'['),
    }
    elements.push(b']');
    out.take(elements);
}

impl RowSink for ColumnsText<'_> {
    fn rows(&mut self, times: &[i64], columns: &[Vec<ValueColumn>], rows: Range<usize>) -> ControlFlow<()> {
        self.waiting += rows.len() * columns.len();
        self.blocks.push(Block { times: times[rows.clone()].to_vec(), columns: columns.to_vec(), rows });
        if self.waiting >= VALUES_WAITING_MAX {
            self.write_blocks();
        }
        self.go_on()
    }

    fn row(&mut self, ts: Timestamp, values: &[Option<ValueRef<'_>>]) -> ControlFlow<()> {
        self.write_blocks();
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
    fn push_rows(&mut self, columns: &[ValueColumn], rows: &Range<usize>) {
        match numbers(columns) {
            Some(numbers) => self.push_numbers(&numbers[rows.clone()]),
            None => rows.clone().for_each(|row| self.push(columns.iter().find_map(|column| column.get(row)))),
        }
    }

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

/// Appends the text of each element. `write` gets a buffer of `bytes_max` bytes and returns the length.
#[inline]
fn extend<T>(
    out: &mut Vec<u8>,
    elements: &[T],
    bytes_max: usize,
    mut write: impl FnMut(&T, &mut [u8]) -> usize,
) {
    // Most elements take a third of the longest text.
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
    use crate::blocking::BlockingPool;

    const ALONE: &WorkerSet = &WorkerSet::single();

    fn written(text: ColumnsText<'_>) -> String {
        let mut out = Pieces::default();
        text.write(&["a".to_owned(), "quote\"".to_owned(), "none".to_owned()], &mut out).unwrap();
        String::from_utf8(out.open().clone()).unwrap()
    }

    fn row(text: &mut ColumnsText<'_>, ms: i64, values: [Option<ValueRef<'_>>; 3]) -> ControlFlow<()> {
        text.row(Timestamp::from_millis(ms).unwrap(), &values)
    }

    #[test]
    fn each_list_has_an_element_for_each_time() {
        let mut text = ColumnsText::new(3, 1_000, ALONE);
        let _ = row(&mut text, 1_763_749_200_123, [Some(ValueRef::F64(2.5)), None, None]);
        let _ = row(&mut text, 5, [None, Some(ValueRef::String("x\"y")), None]);
        let _ = row(&mut text, -7, [Some(ValueRef::Bool(true)), Some(ValueRef::Json("{\"k\":[1]}")), None]);
        assert_eq!(
            written(text),
            r#"{"ts":[1763749200123,5,-7],"values":{"a":[2.5,null,true],"quote\"":[null,"x\"y",{"k":[1]}]}}"#
        );
        assert_eq!(written(ColumnsText::new(3, 1_000, ALONE)), r#"{"ts":[],"values":{}}"#);
    }

    #[test]
    fn blocks_are_written_as_their_rows_are() {
        let numbers = ValueColumn::F64((0..200).map(|n| f64::from(n) / 4.0).collect());
        let some = ValueColumn::I64((0..200).map(|n| (n % 3 == 0).then_some(n)).collect());
        let columns = [vec![numbers], vec![some], vec![]];
        let times: Vec<i64> = (0..200).map(|n| 1_763_749_200_000_000 + n * 1_000_000).collect();
        let (mut blocks, mut rows) =
            (ColumnsText::new(3, 100_000, ALONE), ColumnsText::new(3, 100_000, ALONE));
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
    fn a_text_over_its_limit_accepts_no_more_values() {
        let mut text = ColumnsText::new(3, 40, ALONE);
        let one = [Some(ValueRef::F64(1.0)), None, None];
        assert!(row(&mut text, 1, one).is_continue());
        assert!(row(&mut text, 2, one).is_continue());
        assert!(row(&mut text, 3, one).is_break());
        let refused = text.write(&[], &mut Pieces::default()).unwrap_err();
        assert!(refused.message.contains("longer than"), "{}", refused.message);
    }

    #[test]
    fn rows_are_buffered_until_there_are_many() {
        let keys: Vec<String> = (0..10).map(|key| key.to_string()).collect();
        let columns: Vec<_> = (0..10)
            .map(|key| vec![ValueColumn::F64((0..1_000).map(|n| f64::from(n + key)).collect())])
            .collect();
        let times: Vec<i64> = (0..1_000).map(|n| n * 1_000_000).collect();
        let text = |waiting_max: usize, workers: &WorkerSet| {
            let mut text = ColumnsText::new(10, 10_000_000, workers);
            for _ in 0..40 {
                assert!(text.rows(&times, &columns, 0..1_000).is_continue());
                assert!(text.waiting < VALUES_WAITING_MAX);
                if text.waiting >= waiting_max {
                    text.write_blocks();
                }
            }
            let mut out = Pieces::default();
            text.write(&keys, &mut out).unwrap();
            out.to_vec()
        };
        let at_once = text(0, ALONE);
        assert!(text(usize::MAX, ALONE) == at_once);
        assert!(text(usize::MAX, &BlockingPool::new("reads", 4, 1).worker_set()) == at_once);
    }
}
