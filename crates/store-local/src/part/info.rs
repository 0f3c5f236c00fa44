//! What the manifest records of a part, and its encoding there. docs/format/manifest.md.

use crate::chunk::Extent;
use crate::codec::{Malformed, Reader, put_varint, put_zigzag};

/// The layout of a part.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum PartLayout {
    /// Many tables, each with one f64 field. Sorted by (table, series, ts).
    Narrow,
    /// One table, with a column for each tag and field. Sorted by (series, ts).
    Wide,
}

/// The entry of a part in the manifest.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct PartInfo {
    pub(crate) id: u64,
    pub(crate) layout: PartLayout,
    /// Smallest and largest table. A wide part has one table.
    pub(crate) tables: (u32, u32),
    /// Partition: the days whose rows the part may have, in microseconds, half-open.
    pub(crate) partition: (i64, i64),
    pub(crate) rows: u64,
    pub(crate) bytes: u64,
    /// Smallest and largest series.
    pub(crate) series: (u32, u32),
    pub(crate) ts: (i64, i64),
    pub(crate) sequence: (u64, u64),
    /// The part has no row that a deletion up to this sequence hides.
    pub(crate) applied: u64,
    /// Number of fields of all rows.
    pub(crate) points: u64,
    /// Bytes of times and fields as plain columns: eight for a time or a number, one for a bool, the length of a text.
    pub(crate) raw_bytes: u64,
    /// The tables of a narrow part, ascending, each with the number of its rows. Empty in a wide part.
    pub(crate) shares: Vec<(u32, u64)>,
    /// The checksum of each block of the file.
    pub(crate) block_crcs: Vec<u32>,
}

/// Codes of the layouts in the manifest.
const WIDE: u64 = 0;
const NARROW: u64 = 1;

impl PartInfo {
    /// Whether the part may have rows of a table.
    pub(crate) fn may_have(&self, table: u32) -> bool {
        match self.shares.is_empty() {
            true => self.tables.0 <= table && table <= self.tables.1,
            false => self.shares.binary_search_by_key(&table, |share| share.0).is_ok(),
        }
    }

    /// The tables that may have rows in the part.
    pub(crate) fn members(&self) -> impl Iterator<Item = u32> {
        let range = if self.shares.is_empty() { Some(self.tables.0..=self.tables.1) } else { None };
        range.into_iter().flatten().chain(self.shares.iter().map(|share| share.0))
    }

    /// The number of rows of one table.
    pub(crate) fn rows_of(&self, table: u32) -> u64 {
        match self.shares.binary_search_by_key(&table, |share| share.0) {
            Ok(index) => self.shares[index].1,
            Err(_) if self.shares.is_empty() && self.may_have(table) => self.rows,
            Err(_) => 0,
        }
    }

    /// The share of one table in a total of the part, in proportion to its rows.
    pub(crate) fn share_of(&self, table: u32, total: u64) -> u64 {
        let share = u128::from(total) * u128::from(self.rows_of(table));
        u64::try_from(share.div_ceil(u128::from(self.rows.max(1)))).unwrap_or(u64::MAX)
    }

    /// The smallest and largest series and time.
    pub(crate) fn extent(&self) -> Extent {
        Extent { series: self.series, ts: self.ts }
    }

    /// Appends the encoded info.
    pub(crate) fn put(&self, out: &mut Vec<u8>) {
        let layout = match self.layout {
            PartLayout::Wide => WIDE,
            PartLayout::Narrow => NARROW,
        };
        for number in [self.id, layout, self.tables.0.into(), self.tables.1.into()] {
            put_varint(out, number);
        }
        for time in [self.partition.0, self.partition.1, self.ts.0, self.ts.1] {
            put_zigzag(out, time);
        }
        let series = (u64::from(self.series.0), u64::from(self.series.1));
        let numbers = [self.rows, self.bytes, series.0, series.1, self.sequence.0, self.sequence.1];
        numbers.into_iter().for_each(|number| put_varint(out, number));
        put_varint(out, self.applied);
        put_varint(out, self.points);
        put_varint(out, self.raw_bytes);
        if self.layout == PartLayout::Narrow {
            put_varint(out, self.shares.len() as u64);
            for (table, rows) in &self.shares {
                put_varint(out, (*table).into());
                put_varint(out, *rows);
            }
        }
        put_varint(out, self.block_crcs.len() as u64);
        self.block_crcs.iter().for_each(|crc| out.extend_from_slice(&crc.to_le_bytes()));
    }

    /// Reads the info from an edit.
    pub(crate) fn read(reader: &mut Reader<'_>) -> Result<Self, Malformed> {
        let id = reader.varint()?;
        let layout = match reader.varint()? {
            WIDE => PartLayout::Wide,
            NARROW => PartLayout::Narrow,
            _ => return Err(Malformed("unknown layout of a part")),
        };
        let tables = (reader.index()?, reader.index()?);
        let partition = (reader.zigzag()?, reader.zigzag()?);
        let ts = (reader.zigzag()?, reader.zigzag()?);
        let (rows, bytes) = (reader.varint()?, reader.varint()?);
        let series = (reader.index()?, reader.index()?);
        let sequence = (reader.varint()?, reader.varint()?);
        let applied = reader.varint()?;
        let (points, raw_bytes) = (reader.varint()?, reader.varint()?);
        let shares = match layout {
            PartLayout::Narrow => read_shares(reader, tables)?,
            PartLayout::Wide => Vec::new(),
        };
        let blocks = reader.varint()?;
        if blocks > reader.remaining() as u64 / 4 {
            return Err(Malformed("more block checksums than bytes"));
        }
        let block_crcs = (0..blocks).map(|_| reader.u32()).collect::<Result<_, _>>()?;
        Ok(Self {
            id,
            layout,
            tables,
            partition,
            rows,
            bytes,
            series,
            ts,
            sequence,
            applied,
            points,
            raw_bytes,
            shares,
            block_crcs,
        })
    }
}

fn read_shares(reader: &mut Reader<'_>, tables: (u32, u32)) -> Result<Vec<(u32, u64)>, Malformed> {
    let count = reader.varint()?;
    if count > reader.remaining() as u64 / 2 {
        return Err(Malformed("more tables of a part than bytes"));
    }
    let shares = (0..count).map(|_| Ok((reader.index()?, reader.varint()?)));
    let shares: Vec<(u32, u64)> = shares.collect::<Result<_, Malformed>>()?;
    let ascend = shares.windows(2).all(|pair| pair[0].0 < pair[1].0);
    let ends = shares.first().zip(shares.last()).map(|(first, last)| (first.0, last.0));
    match ascend && ends.is_none_or(|ends| ends == tables) {
        true => Ok(shares),
        false => Err(Malformed("the tables of a part are not those between its smallest and largest")),
    }
}
