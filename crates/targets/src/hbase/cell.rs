//! Cell blocks of HBase's `KeyValueCodec`: each cell is a length of 4 bytes and a KeyValue.
//!
//! A KeyValue is: length of the key, length of the value (4 bytes each), then the key: length of the row (2), row,
//! length of the family (1), family, qualifier, timestamp (8), type (1); then the value (`KeyValue.java`). All numbers are
//! big-endian.

/// The bytes of a key besides row, family and qualifier.
const KEY_FIXED_BYTES: usize = 2 + 1 + 8 + 1;
/// The type of a put.
const TYPE_PUT: u8 = 4;
/// A timestamp that the server replaces by its own time.
const LATEST_TIMESTAMP: u64 = i64::MAX as u64;

/// A cell, borrowed from its block.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Cell<'a> {
    pub(super) row: &'a [u8],
    /// Column family.
    pub(super) family: &'a [u8],
    pub(super) qualifier: &'a [u8],
    pub(super) value: &'a [u8],
}

/// Appends a put of a cell to a block. `value` appends the value.
pub(super) fn put_cell(
    out: &mut Vec<u8>,
    row: &[u8],
    (family, qualifier): (&[u8], &[u8]),
    value: impl FnOnce(&mut Vec<u8>),
) {
    let start = out.len();
    let key_bytes = KEY_FIXED_BYTES + row.len() + family.len() + qualifier.len();
    out.extend_from_slice(&[0; 4]);
    out.extend_from_slice(&(key_bytes as u32).to_be_bytes());
    let value_length_at = out.len();
    out.extend_from_slice(&[0; 4]);
    out.extend_from_slice(&(row.len() as u16).to_be_bytes());
    out.extend_from_slice(row);
    out.push(family.len() as u8);
    out.extend_from_slice(family);
    out.extend_from_slice(qualifier);
    out.extend_from_slice(&LATEST_TIMESTAMP.to_be_bytes());
    out.push(TYPE_PUT);
    let value_at = out.len();
    value(out);
    let value_bytes = (out.len() - value_at) as u32;
    out[value_length_at..value_length_at + 4].copy_from_slice(&value_bytes.to_be_bytes());
    let cell_bytes = (out.len() - start - 4) as u32;
    out[start..start + 4].copy_from_slice(&cell_bytes.to_be_bytes());
}

/// The cells of a block.
#[derive(Debug, Clone)]
pub(super) struct Cells<'a> {
    block: &'a [u8],
    offset: usize,
}

impl<'a> Cells<'a> {
    /// Reads a block from its start.
    pub(super) fn new(block: &'a [u8]) -> Self {
        Self { block, offset: 0 }
    }

    fn cell(&mut self) -> Option<Cell<'a>> {
        let mut rest = &self.block[self.offset..];
        let length = u32_of(&mut rest)?;
        let mut cell = take(&mut rest, length)?;
        self.offset += 4 + length;
        let key_bytes = u32_of(&mut cell)?;
        let value_bytes = u32_of(&mut cell)?;
        let mut key = take(&mut cell, key_bytes)?;
        let value = take(&mut cell, value_bytes)?;
        let row_bytes = u16::from_be_bytes(take(&mut key, 2)?.try_into().ok()?);
        let row = take(&mut key, row_bytes.into())?;
        let family_bytes = *take(&mut key, 1)?.first()?;
        let family = take(&mut key, family_bytes.into())?;
        let qualifier = key.get(..key.len().checked_sub(9)?)?;
        Some(Cell { row, family, qualifier, value })
    }
}

impl<'a> Iterator for Cells<'a> {
    type Item = Result<Cell<'a>, String>;

    fn next(&mut self) -> Option<Self::Item> {
        if self.offset >= self.block.len() {
            return None;
        }
        let at = self.offset;
        let cell = self.cell();
        if cell.is_none() {
            self.offset = self.block.len();
        }
        Some(cell.ok_or_else(|| {
            format!("the cell at byte {at} of a cell block of {} is cut off", self.block.len())
        }))
    }
}

fn u32_of(bytes: &mut &[u8]) -> Option<usize> {
    let number = u32::from_be_bytes(take(bytes, 4)?.try_into().ok()?);
    usize::try_from(number).ok()
}

fn take<'a>(bytes: &mut &'a [u8], count: usize) -> Option<&'a [u8]> {
    let (taken, rest) = bytes.split_at_checked(count)?;
    *bytes = rest;
    Some(taken)
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn a_cell_has_the_bytes_of_a_key_value() {
        let mut block = Vec::new();
        put_cell(&mut block, b"r1", (b"info0", b"0"), |out| out.extend_from_slice(b"AB"));
        let expected = [
            &[0, 0, 0, 30, 0, 0, 0, 20, 0, 0, 0, 2, 0, 2][..],
            b"r1\x05info00",
            &[0x7f, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 4],
            b"AB",
        ];
        assert_eq!(block, expected.concat());
    }

    proptest! {
        #[test]
        fn cells_are_read_as_they_were_written(
            cells in prop::collection::vec((prop::collection::vec(any::<u8>(), 0..40), "[a-z]{1,9}", ".{0,5}", prop::collection::vec(any::<u8>(), 0..90)), 0..6),
            cut in any::<prop::sample::Index>(),
        ) {
            let mut block = Vec::new();
            let mut ends = vec![0];
            for (row, family, qualifier, value) in &cells {
                put_cell(&mut block, row, (family.as_bytes(), qualifier.as_bytes()), |out| out.extend_from_slice(value));
                ends.push(block.len());
            }
            let read: Vec<Cell<'_>> = Cells::new(&block).collect::<Result<_, _>>().unwrap();
            let written: Vec<Cell<'_>> = cells.iter()
                .map(|(row, family, qualifier, value)| Cell { row, family: family.as_bytes(), qualifier: qualifier.as_bytes(), value })
                .collect();
            prop_assert_eq!(read, written);
            let cut = cut.index(block.len() + 1);
            let whole = Cells::new(&block[..cut]).all(|cell| cell.is_ok());
            prop_assert_eq!(whole, ends.contains(&cut));
        }

        #[test]
        fn any_bytes_end(block in prop::collection::vec(any::<u8>(), 0..200)) {
            prop_assert!(Cells::new(&block).count() <= block.len());
        }
    }
}
