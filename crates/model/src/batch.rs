//! Rows on their way into a store.
//!
//! A [`Batch`] holds rows of any number of series in three flat vectors (rows, fields, text), so that a session can
//! reuse one batch for millions of messages without an allocation per point. It is written through a
//! [`BatchBuilder`], which can take back a half-built message: a payload enters whole or not at all.

use crate::{SeriesId, Timestamp, ValueRef, limits};

/// Rows to append, in order. A later row of the same (series, ts) wins field by field.
#[derive(Debug, Default, Clone)]
pub struct Batch {
    rows: Vec<RowHead>,
    fields: Vec<Field>,
    text: String,
}

#[derive(Debug, Clone, Copy)]
struct RowHead {
    series: SeriesId,
    ts: Timestamp,
    fields_end: u32,
}

#[derive(Debug, Clone, Copy)]
struct Field {
    key: Span,
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

    /// Whether there is no row.
    pub fn is_empty(&self) -> bool {
        self.rows.is_empty()
    }

    /// Number of fields over all rows: what the metrics call points.
    pub fn points(&self) -> usize {
        self.fields.len()
    }

    /// Bytes of keys and text values.
    pub fn text_bytes(&self) -> usize {
        self.text.len()
    }

    /// Whether the batch has reached a size at which it should be appended before more is added.
    pub fn is_full(&self) -> bool {
        self.rows.len() >= limits::BATCH_ROWS_MAX / 2 || self.text.len() >= limits::BATCH_TEXT_BYTES_MAX / 2
    }

    /// Removes all rows and keeps the memory for reuse.
    pub fn clear(&mut self) {
        self.rows.clear();
        self.fields.clear();
        self.text.clear();
    }

    /// The row at `index`, which must be below [`Batch::len`].
    pub fn row(&self, index: usize) -> RowRef<'_> {
        RowRef { batch: self, index }
    }

    /// All rows in the order they were added.
    pub fn rows(&self) -> impl Iterator<Item = RowRef<'_>> {
        (0..self.rows.len()).map(|index| self.row(index))
    }

    /// Starts adding rows; nothing is added until [`BatchBuilder::finish`].
    pub fn builder(&mut self) -> BatchBuilder<'_> {
        BatchBuilder {
            mark: (self.rows.len(), self.fields.len(), self.text.len()),
            finished: false,
            batch: self,
        }
    }

    fn span(&self, span: Span) -> &str {
        &self.text[span.start as usize..(span.start + span.len) as usize]
    }
}

/// Adds rows to a batch, all or none: dropped without [`finish`](Self::finish) it removes what it added.
#[derive(Debug)]
pub struct BatchBuilder<'a> {
    batch: &'a mut Batch,
    mark: (usize, usize, usize),
    finished: bool,
}

impl BatchBuilder<'_> {
    /// Adds a field to the row that the next [`row`](Self::row) call completes.
    pub fn field(&mut self, key: &str, value: ValueRef<'_>) {
        let key = self.push_text(key);
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
        self.batch.rows.len() - self.mark.0
    }

    /// Rows after the current batch's end may hold at most this many more bytes of text.
    pub fn text_room_bytes(&self) -> usize {
        limits::BATCH_TEXT_BYTES_MAX.saturating_sub(self.batch.text.len())
    }

    /// Keeps what was added. Fields of a row that was never completed are dropped.
    pub fn finish(mut self) {
        let open = self.open_fields();
        let keep = self.batch.fields.len() - open;
        self.batch.fields.truncate(keep);
        self.finished = true;
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
            self.batch.rows.truncate(self.mark.0);
            self.batch.fields.truncate(self.mark.1);
            self.batch.text.truncate(self.mark.2);
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

    /// The row's fields in the order they were added. A repeated key means the last one wins.
    pub fn fields(&self) -> impl ExactSizeIterator<Item = FieldRef<'a>> + use<'a> {
        let begin = match self.index {
            0 => 0,
            index => self.batch.rows[index - 1].fields_end as usize,
        };
        let end = self.batch.rows[self.index].fields_end as usize;
        let batch = self.batch;
        batch.fields[begin..end].iter().map(move |field| FieldRef {
            key: batch.span(field.key),
            value: match field.value {
                Slot::Bool(value) => ValueRef::Bool(value),
                Slot::I64(value) => ValueRef::I64(value),
                Slot::F64(value) => ValueRef::F64(value),
                Slot::String(span) => ValueRef::String(batch.span(span)),
                Slot::Json(span) => ValueRef::Json(batch.span(span)),
            },
        })
    }
}

/// A key and its value.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct FieldRef<'a> {
    /// The name under which the value was reported.
    pub key: &'a str,
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
