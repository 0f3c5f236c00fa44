//! Parses headers of Parquet pages, as far as they bound the unpacked size of a page.
//!
//! The library parses a header only together with its page, which it then unpacks. A page of some kilobytes can unpack to
//! gigabytes, so this code checks the headers first. They are structs in Thrift's compact form:
//! <https://github.com/apache/parquet-format>.

/// The header of a page.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(super) struct PageHeader {
    /// Bytes of the header itself.
    pub(super) header_bytes: usize,
    pub(super) compressed_bytes: u64,
    pub(super) unpacked_bytes: u64,
    pub(super) is_dictionary: bool,
    pub(super) values: u64,
    pub(super) encoding: i64,
}

/// Encoding of texts as differences to the previous text: a page unpacks to more than its bytes.
pub(super) const DELTA_BYTE_ARRAY: i64 = 7;
/// Encoding of texts after their lengths.
pub(super) const DELTA_LENGTH_BYTE_ARRAY: i64 = 6;

const DICTIONARY_PAGE: i64 = 2;
/// Nesting of structs that a header may have. Its statistics have one level.
const DEPTH_MAX: usize = 8;

/// Parses a header at the beginning of `bytes`; `None` if it is malformed or incomplete.
pub(super) fn read(bytes: &[u8]) -> Option<PageHeader> {
    let mut reader = Compact { bytes, position: 0 };
    let mut header = PageHeader::default();
    let (mut kind, mut unpacked, mut compressed) = (None, None, None);
    reader.fields(0, &mut |reader, field, wire| {
        match (field, wire) {
            (1, INTEGERS) => kind = Some(reader.integer()?),
            (2, INTEGERS) => unpacked = Some(reader.integer()?),
            (3, INTEGERS) => compressed = Some(reader.integer()?),
            (5 | 7 | 8, STRUCT) => of_kind(reader, field, &mut header)?,
            _ => reader.skip(wire, 0)?,
        }
        Some(())
    })?;
    header.is_dictionary = kind? == DICTIONARY_PAGE;
    header.unpacked_bytes = size(unpacked?)?;
    header.compressed_bytes = size(compressed?)?;
    header.header_bytes = reader.position;
    Some(header)
}

/// A number of bytes: a 31-bit number.
fn size(number: i64) -> Option<u64> {
    u32::try_from(number).ok().filter(|bytes| *bytes <= i32::MAX.cast_unsigned()).map(u64::from)
}

/// The part of a header that depends on the kind of page: 5 data, 7 dictionary, 8 data in its second form.
fn of_kind(reader: &mut Compact<'_>, kind: i64, header: &mut PageHeader) -> Option<()> {
    let encoding = if kind == 8 { 4 } else { 2 };
    reader.fields(1, &mut |reader, field, wire| {
        match (field, wire) {
            (1, INTEGERS) => header.values = reader.integer()?.try_into().ok()?,
            (field, INTEGERS) if field == encoding => header.encoding = reader.integer()?,
            _ => reader.skip(wire, 1)?,
        }
        Some(())
    })
}

/// Types of fields: 1 and 2 are booleans without bytes, 4 to 6 are integers of any length.
const BYTE: u8 = 3;
const INTEGERS: u8 = 5;
const DOUBLE: u8 = 7;
const BINARY: u8 = 8;
const LIST: u8 = 9;
const SET: u8 = 10;
const STRUCT: u8 = 12;

struct Compact<'a> {
    bytes: &'a [u8],
    position: usize,
}

impl Compact<'_> {
    fn byte(&mut self) -> Option<u8> {
        let byte = self.bytes.get(self.position).copied()?;
        self.position += 1;
        Some(byte)
    }

    fn varint(&mut self) -> Option<u64> {
        let mut value = 0;
        for shift in (0..64).step_by(7) {
            let byte = self.byte()?;
            value |= u64::from(byte & 0x7f) << shift;
            if byte & 0x80 == 0 {
                return Some(value);
            }
        }
        None
    }

    fn integer(&mut self) -> Option<i64> {
        let value = self.varint()?;
        Some((value >> 1).cast_signed() ^ -(value & 1).cast_signed())
    }

    /// Passes the number and type of each field of a struct to `take`, which parses the value.
    fn fields(&mut self, depth: usize, take: &mut dyn FnMut(&mut Self, i64, u8) -> Option<()>) -> Option<()> {
        if depth > DEPTH_MAX {
            return None;
        }
        let mut field = 0_i64;
        loop {
            let byte = self.byte()?;
            if byte == 0 {
                return Some(());
            }
            field = match byte >> 4 {
                0 => self.integer()?,
                step => field.checked_add(i64::from(step))?,
            };
            let wire = match byte & 0x0f {
                4..=6 => INTEGERS,
                other => other,
            };
            take(self, field, wire)?;
        }
    }

    fn skip(&mut self, wire: u8, depth: usize) -> Option<()> {
        match wire {
            1 | 2 => Some(()),
            BYTE => self.byte().map(|_| ()),
            4..=6 => self.varint().map(|_| ()),
            DOUBLE => self.advance(8),
            BINARY => {
                let length = self.varint()?;
                self.advance(length.try_into().ok()?)
            }
            LIST | SET => self.skip_list(depth + 1),
            STRUCT => self.fields(depth + 1, &mut |reader, _, wire| reader.skip(wire, depth + 1)),
            _ => None,
        }
    }

    fn skip_list(&mut self, depth: usize) -> Option<()> {
        let head = self.byte()?;
        let count = match head >> 4 {
            15 => self.varint()?,
            count => u64::from(count),
        };
        if depth > DEPTH_MAX {
            return None;
        }
        for _ in 0..count {
            match head & 0x0f {
                // Truth values take a byte each in a list.
                1 | 2 => self.byte().map(|_| ())?,
                wire => self.skip(wire, depth)?,
            }
        }
        Some(())
    }

    fn advance(&mut self, bytes: usize) -> Option<()> {
        self.position = self.position.checked_add(bytes).filter(|end| *end <= self.bytes.len())?;
        Some(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A data page of 300 values in 1000 bytes that were 2^31 - 1, with statistics that are skipped.
    const DATA: [u8; 27] = [
        0x15, 0x00, 0x15, 0xfe, 0xff, 0xff, 0xff, 0x0f, 0x15, 0xd0, 0x0f, 0x2c, 0x15, 0xd8, 0x04, 0x15, 0x10,
        0x15, 0x06, 0x15, 0x06, 0x1c, 0x18, 0x01, 0x61, 0x00, 0x00,
    ];

    fn with_end() -> Vec<u8> {
        [&DATA[..], &[0x00]].concat()
    }

    #[test]
    fn a_header_has_the_unpacked_size_of_its_page() {
        let header = read(&[&with_end()[..], &[0xff; 9]].concat()).unwrap();
        let expected = PageHeader {
            header_bytes: 28,
            compressed_bytes: 1_000,
            unpacked_bytes: i32::MAX as u64,
            is_dictionary: false,
            values: 300,
            encoding: 8,
        };
        assert_eq!(header, expected);
        // A dictionary of 3 values.
        let dictionary = [0x15, 0x04, 0x15, 0x18, 0x15, 0x18, 0x4c, 0x15, 0x06, 0x15, 0x00, 0x00, 0x00];
        let header = read(&dictionary).unwrap();
        assert!(header.is_dictionary && header.values == 3 && header.unpacked_bytes == 12, "{header:?}");
    }

    #[test]
    fn a_truncated_header_or_one_without_sizes_is_refused() {
        for len in 0..DATA.len() {
            assert_eq!(read(&DATA[..len]), None, "{len}");
        }
        for bytes in [&[0x00][..], &[0x15, 0x00, 0x15, 0x01, 0x15, 0x00, 0x00], &[0xff; 64], &[0x1c; 64]] {
            assert_eq!(read(bytes), None, "{bytes:x?}");
        }
    }
}
