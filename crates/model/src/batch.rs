//! A batch of rows that a store appends.
//!
//! A [`Batch`] holds rows of any number of series in flat vectors (rows, fields, keys, text), so that a session can
//! reuse one batch for millions of messages without an allocation per point. A field refers to its key by the key's
//! number in the batch, so that a store looks a key up once per batch and not once per point. A [`BatchBuilder`] adds rows and
//! can undo an incomplete message: a payload enters completely or not at all.

use crate::{SeriesId, Timestamp, ValueRef, limits};

/// Rows to append, in order. A later row of the same (series, ts) wins field by field.
#[derive(Debug, Default, Clone)]
pub struct Batch {
    rows: Vec<RowHead>,
    fields: Vec<Field>,
    /// The keys, with few duplicates: a key that is not found among the last ones gets a new number.
    keys: Vec<Span>,
    text: String,
    /// Bytes of repeated keys, which `text` holds only once.
    repeated_key_bytes: usize,
}

/// Keys with which the key of a new field is compared before it gets a new number.
const KEYS_COMPARED_MAX: usize = 32;

#[derive(Debug, Clone, Copy)]
struct RowHead {
    series: SeriesId,
    ts: Timestamp,
    fields_end: u32,
}

#[derive(Debug, Clone, Copy)]
struct Field {
    key: u32,
    value: Slot,
}

#[derive(Debug, Clone, Copy)]
struct Span {
    start: u32,
    len: u32,
}

#[derive(Debug, Clone, Copy)]
enum Slot {
    Bool(bool),
    I64(i64),
    F64(f64),
    String(Span),
    Json(Span),
}

impl Batch {
    /// An empty batch.
    pub fn new() -> Self {
        Self::default()
    }

    /// Number of rows.
    pub fn len(&self) -> usize {
        self.rows.len()
    }

    /// Whether the batch has no rows.
    pub fn is_empty(&self) -> bool {
        self.rows.is_empty()
    }

    /// Number of fields over all rows: what the metrics call points.
    pub fn points(&self) -> usize {
        self.fields.len()
    }

    /// Bytes of keys and text values. A key counts as often as it is used.
    pub fn text_bytes(&self) -> usize {
        self.text.len() + self.repeated_key_bytes
    }

    /// Number of keys; a [`FieldRef::key_number`] is below it.
    pub fn keys(&self) -> usize {
        self.keys.len()
    }

    /// Whether the batch is so large that it should be appended before more rows are added.
    pub fn is_full(&self) -> bool {
        self.rows.len() >= limits::BATCH_ROWS_MAX / 2 || self.text_bytes() >= limits::BATCH_TEXT_BYTES_MAX / 2
    }

    /// Removes all rows and keeps the memory for reuse.
    pub fn clear(&mut self) {
        self.rows.clear();
        self.fields.clear();
        self.keys.clear();
        self.text.clear();
        self.repeated_key_bytes = 0;
    }

    /// Adds rows of another batch.
    pub fn extend_from(&mut self, other: &Self, rows: std::ops::Range<usize>) {
        let mut builder = self.builder();
        for row in rows.map(|row| other.row(row)) {
            row.fields().for_each(|field| builder.field(field.key, field.value));
            builder.row(row.series(), row.ts());
        }
        builder.finish();
    }

    /// The row at `index`, which must be below [`Batch::len`].
    pub fn row(&self, index: usize) -> RowRef<'_> {
        RowRef { batch: self, index }
    }

    /// All rows in the order they were added.
    pub fn rows(&self) -> impl Iterator<Item = RowRef<'_>> {
        (0..self.rows.len()).map(|index| self.row(index))
    }

    /// The text of a key, whose number must be below [`Batch::keys`].
    pub fn key(&self, number: u32) -> &str {
        self.span(self.keys[number as usize])
    }

    /// Starts adding rows; nothing is added until [`BatchBuilder::finish`].
    pub fn builder(&mut self) -> BatchBuilder<'_> {
        BatchBuilder { mark: Mark::of(self), next_key: 0, finished: false, batch: self }
    }

    #[inline]
    fn value(&self, field: &Field) -> ValueRef<'_> {
        match field.value {
            Slot::Bool(value) => ValueRef::Bool(value),
            Slot::I64(value) => ValueRef::I64(value),
            Slot::F64(value) => ValueRef::F64(value),
            Slot::String(span) => ValueRef::String(self.span(span)),
            Slot::Json(span) => ValueRef::Json(self.span(span)),
        }
    }

    fn span(&self, span: Span) -> &str {
        &self.text[span.start as usize..(span.start + span.len) as usize]
    }
}

/// Adds rows to a batch, all or none: if it is dropped without [`finish`](Self::finish), it removes the rows that it added.
#[derive(Debug)]
pub struct BatchBuilder<'a> {
    batch: &'a mut Batch,
    mark: Mark,
    /// The probable key number of the next field, because rows repeat the keys of earlier rows.
    next_key: usize,
    finished: bool,
}

/// Sizes of a batch, to which a builder can go back.
#[derive(Debug, Clone, Copy)]
struct Mark {
    rows: usize,
    fields: usize,
    keys: usize,
    text: usize,
    repeated_key_bytes: usize,
}

impl Mark {
    fn of(batch: &Batch) -> Self {
        Self {
            rows: batch.rows.len(),
            fields: batch.fields.len(),
            keys: batch.keys.len(),
            text: batch.text.len(),
            repeated_key_bytes: batch.repeated_key_bytes,
        }
    }
}

impl BatchBuilder<'_> {
    /// Adds a field to the row that the next [`row`](Self::row) call completes.
    pub fn field(&mut self, key: &str, value: ValueRef<'_>) {
        let key = self.key(key);
        let value = match value {
            ValueRef::Bool(value) => Slot::Bool(value),
            ValueRef::I64(value) => Slot::I64(value),
            ValueRef::F64(value) => Slot::F64(value),
            ValueRef::String(text) => Slot::String(self.push_text(text)),
            ValueRef::Json(text) => Slot::Json(self.push_text(text)),
        };
        self.batch.fields.push(Field { key, value });
    }

    /// Completes a row from the fields added since the last one.
    pub fn row(&mut self, series: SeriesId, ts: Timestamp) {
        let fields_end = self.batch.fields.len() as u32;
        self.batch.rows.push(RowHead { series, ts, fields_end });
    }

    /// Fields added since the last completed row.
    pub fn open_fields(&self) -> usize {
        let begin = self.batch.rows.last().map_or(0, |row| row.fields_end as usize);
        self.batch.fields.len() - begin
    }

    /// Rows added by this builder.
    pub fn rows_added(&self) -> usize {
        self.batch.rows.len() - self.mark.rows
    }

    /// Bytes of text that still fit into the batch.
    pub fn text_room_bytes(&self) -> usize {
        limits::BATCH_TEXT_BYTES_MAX.saturating_sub(self.batch.text_bytes())
    }

    /// Keeps the added rows. The fields of an incomplete row are removed.
    pub fn finish(mut self) {
        let open = self.open_fields();
        let keep = self.batch.fields.len() - open;
        self.batch.fields.truncate(keep);
        self.finished = true;
    }

    /// The number of a key, a new one if the key was not used lately.
    fn key(&mut self, key: &str) -> u32 {
        let keys = self.batch.keys.len();
        let expected = if self.next_key < keys { self.next_key } else { 0 };
        let number = match expected < keys && self.is_key(expected, key) {
            true => Some(expected),
            false => (0..keys).rev().take(KEYS_COMPARED_MAX).find(|number| self.is_key(*number, key)),
        };
        let number = match number {
            Some(number) => {
                self.batch.repeated_key_bytes += key.len();
                number
            }
            None => {
                let key = self.push_text(key);
                self.batch.keys.push(key);
                keys
            }
        };
        self.next_key = number + 1;
        number as u32
    }

    #[inline]
    fn is_key(&self, number: usize, key: &str) -> bool {
        let Span { start, len } = self.batch.keys[number];
        len as usize == key.len()
            && self.batch.text.as_bytes()[start as usize..][..key.len()] == *key.as_bytes()
    }

    fn push_text(&mut self, text: &str) -> Span {
        let start = self.batch.text.len() as u32;
        self.batch.text.push_str(text);
        Span { start, len: text.len() as u32 }
    }
}

impl Drop for BatchBuilder<'_> {
    fn drop(&mut self) {
        if !self.finished {
            self.batch.rows.truncate(self.mark.rows);
            self.batch.fields.truncate(self.mark.fields);
            self.batch.keys.truncate(self.mark.keys);
            self.batch.text.truncate(self.mark.text);
            self.batch.repeated_key_bytes = self.mark.repeated_key_bytes;
        }
    }
}

/// One row of a batch.
#[derive(Debug, Clone, Copy)]
pub struct RowRef<'a> {
    batch: &'a Batch,
    index: usize,
}

impl<'a> RowRef<'a> {
    /// The series the row belongs to.
    pub fn series(&self) -> SeriesId {
        self.batch.rows[self.index].series
    }

    /// The row's time.
    pub fn ts(&self) -> Timestamp {
        self.batch.rows[self.index].ts
    }

    /// The row's fields in the order they were added. If a key is repeated, the last value wins.
    pub fn fields(&self) -> impl ExactSizeIterator<Item = FieldRef<'a>> + use<'a> {
        let batch = self.batch;
        batch.fields[self.fields_begin()..self.fields_end()].iter().map(move |field| FieldRef {
            key: batch.key(field.key),
            key_number: field.key,
            value: batch.value(field),
        })
    }

    /// Key numbers and values: like [`fields`](Self::fields), without looking up the text of the keys.
    #[inline]
    pub fn numbered_fields(&self) -> impl ExactSizeIterator<Item = (u32, ValueRef<'a>)> + use<'a> {
        let batch = self.batch;
        let fields = &batch.fields[self.fields_begin()..self.fields_end()];
        fields.iter().map(move |field| (field.key, batch.value(field)))
    }

    /// Key number and value, if the row has exactly one field and that is an f64.
    #[inline]
    pub fn only_f64(&self) -> Option<(u32, f64)> {
        let begin = self.fields_begin();
        match self.batch.fields.get(begin)? {
            Field { key, value: Slot::F64(value) } if self.fields_end() == begin + 1 => Some((*key, *value)),
            _ => None,
        }
    }

    #[inline]
    fn fields_begin(&self) -> usize {
        match self.index {
            0 => 0,
            index => self.batch.rows[index - 1].fields_end as usize,
        }
    }

    #[inline]
    fn fields_end(&self) -> usize {
        self.batch.rows[self.index].fields_end as usize
    }
}

/// A key and its value.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct FieldRef<'a> {
    /// The name under which the value was reported.
    pub key: &'a str,
    /// The number of the key in the batch. Equal numbers mean equal keys; a key may have several numbers.
    pub key_number: u32,
    /// The value.
    pub value: ValueRef<'a>,
}

#[cfg(test)]
mod tests {
    use super::*;

    fn row_of(batch: &Batch, index: usize) -> Vec<(String, crate::Value)> {
        batch.row(index).fields().map(|field| (field.key.to_owned(), field.value.to_owned())).collect()
    }

    #[test]
    fn rows_keep_their_own_fields() {
        let mut batch = Batch::new();
        let mut builder = batch.builder();
        builder.field("speed", ValueRef::F64(52.5));
        builder.field("name", ValueRef::String("ä"));
        builder.row(SeriesId(1), Timestamp::from_micros(10));
        builder.field("on", ValueRef::Bool(true));
        builder.row(SeriesId(2), Timestamp::from_micros(20));
        builder.finish();
        assert_eq!((batch.len(), batch.points()), (2, 3));
        assert_eq!(row_of(&batch, 0)[1], ("name".into(), crate::Value::String("ä".into())));
        assert_eq!(row_of(&batch, 1), vec![("on".into(), crate::Value::Bool(true))]);
        assert_eq!(batch.row(1).series(), SeriesId(2));
    }

    #[test]
    fn rows_of_another_batch_are_added_with_all_they_have() {
        let mut from = Batch::new();
        for ts in 0..4 {
            let mut builder = from.builder();
            builder.field("n", ValueRef::I64(ts));
            builder.field("text", ValueRef::String("x"));
            builder.row(SeriesId(7), Timestamp::from_micros(ts));
            builder.finish();
        }
        let mut batch = Batch::new();
        batch.extend_from(&from, 3..4);
        batch.extend_from(&from, 1..1);
        batch.extend_from(&from, 0..2);
        assert_eq!(batch.rows().map(|row| row.ts().micros()).collect::<Vec<_>>(), [3, 0, 1]);
        assert!(batch.rows().all(|row| row.series() == SeriesId(7)));
        assert_eq!(row_of(&batch, 0), row_of(&from, 3));
    }

    #[test]
    fn a_dropped_builder_leaves_nothing() {
        let mut batch = Batch::new();
        let mut builder = batch.builder();
        builder.field("a", ValueRef::I64(1));
        builder.row(SeriesId(1), Timestamp::from_micros(1));
        builder.finish();
        {
            let mut builder = batch.builder();
            builder.field("b", ValueRef::Json("[1]"));
            builder.row(SeriesId(1), Timestamp::from_micros(2));
            builder.field("c", ValueRef::I64(3));
        }
        assert_eq!((batch.len(), batch.points(), batch.text_bytes()), (1, 1, 1));
    }

    #[test]
    fn keys_are_shared_by_rows_and_counted_as_often_as_used() {
        let mut batch = Batch::new();
        let names: Vec<String> = (0..2 * KEYS_COMPARED_MAX).map(|number| format!("key{number:02}")).collect();
        let orders: [&[usize]; 5] = [&[0, 1, 2], &[0, 1, 2], &[2, 0], &[5], &[0, 1, 2]];
        for (row, order) in orders.iter().enumerate() {
            let mut builder = batch.builder();
            order.iter().for_each(|name| builder.field(&names[*name], ValueRef::I64(row as i64)));
            builder.row(SeriesId(1), Timestamp::from_micros(row as i64));
            builder.finish();
        }
        assert_eq!((batch.keys(), batch.text_bytes()), (4, 12 * 5));
        for (row, order) in batch.rows().zip(orders) {
            assert!(row.fields().map(|field| field.key).eq(order.iter().map(|name| names[*name].as_str())));
            let numbered = row.numbered_fields().map(|(number, _)| batch.key(number));
            assert!(numbered.eq(row.fields().map(|field| field.key)));
        }

        // More keys than are compared: then a key may have two numbers, but never a wrong one.
        let mut builder = batch.builder();
        for name in names.iter().chain(names.iter().rev()) {
            builder.field(name, ValueRef::Bool(true));
        }
        builder.row(SeriesId(1), Timestamp::from_micros(9));
        builder.finish();
        let expected = names.iter().chain(names.iter().rev()).map(String::as_str);
        assert!(batch.row(5).fields().map(|field| field.key).eq(expected));
    }

    #[test]
    fn a_row_of_one_number_is_seen_as_such() {
        let mut batch = Batch::new();
        let rows: [&[ValueRef<'_>]; 5] = [
            &[ValueRef::F64(1.5)],
            &[],
            &[ValueRef::I64(1)],
            &[ValueRef::F64(1.0), ValueRef::F64(2.0)],
            &[ValueRef::F64(-2.5)],
        ];
        for values in rows {
            let mut builder = batch.builder();
            values.iter().for_each(|value| builder.field("v", *value));
            builder.row(SeriesId(1), Timestamp::from_micros(1));
            builder.finish();
        }
        let found: Vec<_> = batch.rows().map(|row| row.only_f64()).collect();
        assert_eq!(found, [Some((0, 1.5)), None, None, None, Some((0, -2.5))]);
    }

    #[test]
    fn fields_without_a_row_are_dropped_on_finish() {
        let mut batch = Batch::new();
        let mut builder = batch.builder();
        builder.field("a", ValueRef::I64(1));
        assert_eq!(builder.open_fields(), 1);
        builder.finish();
        assert!(batch.is_empty());
        assert_eq!(batch.points(), 0);
    }
}
