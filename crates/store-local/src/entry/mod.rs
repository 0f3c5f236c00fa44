//! Entries: the payloads of the log, the manifest and the series file consist of them.
//!
//! docs/format/README.md has the byte table. A definition (table, column, tag, series) always precedes its first use.

mod run;
pub(crate) mod series_set;

use model::FieldType;

pub(crate) use run::Run;

use crate::chunk::Numbers;
use crate::codec::{Malformed, Reader, put_text, put_varint, put_zigzag};
use crate::row::KeyId;

/// One entry. It borrows from the payload.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) enum Entry<'a> {
    Table {
        id: u32,
        name: &'a str,
    },
    Column {
        table: u32,
        key: KeyId,
        field_type: FieldType,
        name: &'a str,
        physical: &'a str,
    },
    Tag {
        table: u32,
        tag: u32,
        name: &'a str,
        physical: &'a str,
    },
    Series {
        id: u32,
        table: u32,
        tags: &'a [u8],
    },
    Row {
        series: u32,
        ts: i64,
        body: &'a [u8],
    },
    Run(Run<'a>),
    /// How long the store keeps the rows of a table; 0 means forever. The last entry counts. Only in the manifest.
    Ttl {
        table: u32,
        ttl_us: u64,
    },
    /// The time by which retention dropped rows last. The last entry counts. Only in the manifest.
    Retention {
        ts: i64,
    },
    /// The key's values are gone; its number and the names of its columns are not used again.
    DroppedKey {
        table: u32,
        key: KeyId,
    },
    /// Rows with smaller sequences are deleted: encoded keys (none for whole rows) and series, and a half-open range of
    /// times (tombstone/encoding.rs). It has a sequence, like a row.
    Deletion {
        table: u32,
        ts: (i64, i64),
        keys: &'a [u8],
        series: &'a [u8],
    },
    /// An encoded set of series is gone, with all rows. In the log it has a sequence, like a row.
    DroppedSeries {
        table: u32,
        series: &'a [u8],
    },
    /// The table is gone, with its series and rows; its number is not used again.
    DroppedTable {
        table: u32,
    },
}

const TABLE: u8 = 1;
const COLUMN: u8 = 2;
const TAG: u8 = 3;
const SERIES: u8 = 4;
const ROW: u8 = 5;
const RUN: u8 = 6;
const TTL: u8 = 7;
const RETENTION: u8 = 8;
const DROPPED_KEY: u8 = 9;
const DELETION: u8 = 10;
const DROPPED_SERIES: u8 = 11;
const DROPPED_TABLE: u8 = 12;

/// The smallest number of rows for which a run is shorter than single rows.
pub(crate) const RUN_ROWS_MIN: usize = 2;

/// Appends a run of rows with one number each. There must be at least one row.
pub(crate) fn put_run(out: &mut Vec<u8>, rows: Numbers<'_>) {
    out.push(RUN);
    run::put(out, rows);
}

/// The largest number of bytes of a row entry besides its fields.
pub(crate) const ROW_OVERHEAD_BYTES: usize = 24;

impl<'a> Entry<'a> {
    /// The table whose tables, series or columns the definition may change.
    pub(crate) fn defined_table(&self) -> Option<u32> {
        match *self {
            Self::Table { id: table, .. }
            | Self::Column { table, .. }
            | Self::Tag { table, .. }
            | Self::Series { table, .. }
            | Self::DroppedKey { table, .. }
            | Self::DroppedSeries { table, .. }
            | Self::DroppedTable { table } => Some(table),
            Self::Row { .. }
            | Self::Run(_)
            | Self::Ttl { .. }
            | Self::Retention { .. }
            | Self::Deletion { .. } => None,
        }
    }

    pub(crate) fn put(&self, out: &mut Vec<u8>) {
        match *self {
            Self::Table { id, name } => {
                out.push(TABLE);
                put_varint(out, id.into());
                put_text(out, name);
            }
            Self::Column { table, key, field_type, name, physical } => {
                out.push(COLUMN);
                put_varint(out, table.into());
                put_varint(out, key.into());
                out.push(field_type.code());
                put_text(out, name);
                put_text(out, physical);
            }
            Self::Tag { table, tag, name, physical } => {
                out.push(TAG);
                put_varint(out, table.into());
                put_varint(out, tag.into());
                put_text(out, name);
                put_text(out, physical);
            }
            Self::Series { id, table, tags } => {
                out.push(SERIES);
                put_varint(out, id.into());
                put_varint(out, table.into());
                put_varint(out, tags.len() as u64);
                out.extend_from_slice(tags);
            }
            Self::Ttl { table, ttl_us } => {
                out.push(TTL);
                put_varint(out, table.into());
                put_varint(out, ttl_us);
            }
            Self::Retention { ts } => {
                out.push(RETENTION);
                put_zigzag(out, ts);
            }
            Self::DroppedKey { table, key } => {
                out.push(DROPPED_KEY);
                put_varint(out, table.into());
                put_varint(out, key.into());
            }
            Self::Deletion { table, ts, keys, series } => {
                out.push(DELETION);
                put_varint(out, table.into());
                put_zigzag(out, ts.0);
                put_zigzag(out, ts.1);
                for bytes in [keys, series] {
                    put_varint(out, bytes.len() as u64);
                    out.extend_from_slice(bytes);
                }
            }
            Self::DroppedSeries { table, series } => {
                out.push(DROPPED_SERIES);
                put_varint(out, table.into());
                put_varint(out, series.len() as u64);
                out.extend_from_slice(series);
            }
            Self::DroppedTable { table } => {
                out.push(DROPPED_TABLE);
                put_varint(out, table.into());
            }
            Self::Row { series, ts, body } => {
                out.push(ROW);
                put_varint(out, series.into());
                out.extend_from_slice(&ts.to_le_bytes());
                put_varint(out, body.len() as u64);
                out.extend_from_slice(body);
            }
            Self::Run(_) => unreachable!("BUG: runs are put from columns"),
        }
    }

    /// The number of sequences that the entry takes: one for each row, and one for a deletion of rows or series.
    pub(crate) fn sequences(&self) -> u64 {
        match self {
            Self::Row { .. } | Self::Deletion { .. } | Self::DroppedSeries { .. } => 1,
            Self::Run(run) => run.len() as u64,
            Self::Table { .. }
            | Self::Column { .. }
            | Self::Tag { .. }
            | Self::Series { .. }
            | Self::Ttl { .. }
            | Self::Retention { .. }
            | Self::DroppedKey { .. }
            | Self::DroppedTable { .. } => 0,
        }
    }

    pub(crate) fn read(reader: &mut Reader<'a>) -> Result<Self, Malformed> {
        Ok(match reader.u8()? {
            TABLE => Self::Table { id: reader.index()?, name: reader.text()? },
            COLUMN => Self::Column {
                table: reader.index()?,
                key: reader.index()?,
                field_type: FieldType::from_code(reader.u8()?).ok_or(Malformed("unknown type code"))?,
                name: reader.text()?,
                physical: reader.text()?,
            },
            TAG => Self::Tag {
                table: reader.index()?,
                tag: reader.index()?,
                name: reader.text()?,
                physical: reader.text()?,
            },
            SERIES => Self::Series { id: reader.index()?, table: reader.index()?, tags: reader.blob()? },
            ROW => {
                Self::Row { series: reader.index()?, ts: reader.u64()?.cast_signed(), body: reader.blob()? }
            }
            RUN => Self::Run(Run::read(reader)?),
            TTL => Self::Ttl { table: reader.index()?, ttl_us: reader.varint()? },
            RETENTION => Self::Retention { ts: reader.zigzag()? },
            DROPPED_KEY => Self::DroppedKey { table: reader.index()?, key: reader.index()? },
            DELETION => Self::Deletion {
                table: reader.index()?,
                ts: (reader.zigzag()?, reader.zigzag()?),
                keys: reader.blob()?,
                series: reader.blob()?,
            },
            DROPPED_SERIES => Self::DroppedSeries { table: reader.index()?, series: reader.blob()? },
            DROPPED_TABLE => Self::DroppedTable { table: reader.index()? },
            _ => return Err(Malformed("unknown entry kind")),
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn entries_come_back() {
        let entries = [
            Entry::Table { id: 300, name: "telemetry" },
            Entry::Column { table: 1, key: 2, field_type: FieldType::F64, name: "v", physical: "v:f64" },
            Entry::Tag { table: 1, tag: 0, name: "device", physical: "device" },
            Entry::Series { id: 7, table: 1, tags: &[0, 1, b'd'] },
            Entry::Row { series: 7, ts: -5, body: &[1, 1] },
            Entry::Ttl { table: 300, ttl_us: u64::MAX },
            Entry::Retention { ts: -1 },
            Entry::DroppedKey { table: 1, key: 300 },
            Entry::Deletion { table: 1, ts: (i64::MIN, i64::MAX), keys: &[5], series: &[0, 3] },
            Entry::DroppedSeries { table: 1, series: &[7, 0] },
            Entry::DroppedTable { table: 300 },
        ];
        let mut out = Vec::new();
        entries.iter().for_each(|entry| entry.put(&mut out));
        let mut reader = Reader::new(&out);
        for entry in entries {
            assert_eq!(Entry::read(&mut reader), Ok(entry));
        }
        assert!(reader.is_empty());
        assert_eq!(Entry::read(&mut Reader::new(&[13])), Err(Malformed("unknown entry kind")));
    }
}
