//! Rows (section 4.2.5.2).

use std::collections::BTreeMap;

use super::error::ProtocolError;
use super::reader::Reader;

/// Flags of the description of rows.
const ONE_TABLE: i32 = 0x01;
const MORE_PAGES: i32 = 0x02;

/// Rows with the names of their columns.
#[derive(Debug, Clone, Default, PartialEq)]
pub(in super::super) struct Rows {
    columns: Vec<String>,
    rows: Vec<Vec<Cell>>,
}

/// The value of a column.
#[derive(Debug, Clone, PartialEq)]
pub(in super::super) enum Cell {
    /// No value.
    Null,
    /// `ascii`, `text`, `varchar`
    Text(String),
    /// `tinyint`, `smallint`, `int`, `bigint`
    Integer(i64),
    /// `boolean`
    Boolean(bool),
    /// `double`
    Double(f64),
    /// `map<text, text>`
    Map(BTreeMap<String, String>),
}

/// The type of a column, of those that the probe selects.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Type {
    Text,
    Integer,
    Boolean,
    Double,
    Map,
}

impl Rows {
    pub(super) fn read(reader: &mut Reader<'_>) -> Result<Self, ProtocolError> {
        let (columns, types) = read_columns(reader)?;
        // Each cell has a length of four bytes, so the number of rows has a bound in the size of the body.
        let count = reader.count(4 * types.len().max(1), "the number of rows")?;
        let row = |reader: &mut Reader<'_>| types.iter().map(|of| Cell::read(*of, reader)).collect();
        let rows = (0..count).map(|_| row(reader)).collect::<Result<_, _>>()?;
        Ok(Self { columns, rows })
    }

    /// The rows, each as a way from the name of a column to its value.
    pub(in super::super) fn iter(&self) -> impl Iterator<Item = Row<'_>> {
        self.rows.iter().map(|cells| Row { columns: &self.columns, cells })
    }
}

#[derive(Debug, Clone, Copy)]
pub(in super::super) struct Row<'a> {
    columns: &'a [String],
    cells: &'a [Cell],
}

impl<'a> Row<'a> {
    fn cell(&self, column: &str) -> Option<&'a Cell> {
        self.cells.get(self.columns.iter().position(|name| name == column)?)
    }

    /// The text of a column.
    pub(in super::super) fn text(&self, column: &str) -> Option<&'a str> {
        match self.cell(column)? {
            Cell::Text(text) => Some(text),
            _ => None,
        }
    }

    /// The number of a column.
    pub(in super::super) fn number(&self, column: &str) -> Option<f64> {
        match self.cell(column)? {
            Cell::Integer(number) => Some(*number as f64),
            Cell::Double(number) => Some(*number),
            _ => None,
        }
    }

    /// The map of a column.
    pub(in super::super) fn map(&self, column: &str) -> Option<&'a BTreeMap<String, String>> {
        match self.cell(column)? {
            Cell::Map(map) => Some(map),
            _ => None,
        }
    }
}

fn read_columns(reader: &mut Reader<'_>) -> Result<(Vec<String>, Vec<Type>), ProtocolError> {
    let flags = reader.int("the flags of rows")?;
    let count = reader.count(4, "the number of columns")?;
    if flags & !ONE_TABLE != 0 {
        // The probe asks for all rows at once, with the description of columns.
        let field = if flags & MORE_PAGES != 0 { "the flag of pages" } else { "the flags of rows" };
        return Err(ProtocolError::Unexpected { field, value: i64::from(flags) });
    }
    let table = |reader: &mut Reader<'_>| -> Result<(), ProtocolError> {
        reader.string("the name of a keyspace")?;
        reader.string("the name of a table").map(|_| ())
    };
    if flags & ONE_TABLE != 0 {
        table(reader)?;
    }
    let (mut names, mut types) = (Vec::new(), Vec::new());
    for _ in 0..count {
        if flags & ONE_TABLE == 0 {
            table(reader)?;
        }
        names.push(reader.string("the name of a column")?.to_owned());
        types.push(Type::read(reader)?);
    }
    Ok((names, types))
}

impl Type {
    fn read(reader: &mut Reader<'_>) -> Result<Self, ProtocolError> {
        const FIELD: &str = "the type of a column";
        let id = reader.short(FIELD)?;
        let unexpected = || ProtocolError::Unexpected { field: FIELD, value: i64::from(id) };
        match id {
            0x01 | 0x0a | 0x0d => Ok(Self::Text),
            0x02 | 0x09 | 0x13 | 0x14 => Ok(Self::Integer),
            0x04 => Ok(Self::Boolean),
            0x07 => Ok(Self::Double),
            // Only maps of texts: a type in a type is read no deeper.
            0x21 => match (reader.short(FIELD)?, reader.short(FIELD)?) {
                (0x01 | 0x0a | 0x0d, 0x01 | 0x0a | 0x0d) => Ok(Self::Map),
                _ => Err(unexpected()),
            },
            _ => Err(unexpected()),
        }
    }
}

impl Cell {
    fn read(of: Type, reader: &mut Reader<'_>) -> Result<Self, ProtocolError> {
        let Some(bytes) = reader.bytes("a value")? else { return Ok(Self::Null) };
        let unexpected =
            || ProtocolError::Unexpected { field: "the length of a value", value: bytes.len() as i64 };
        match of {
            Type::Text => text(bytes).map(Self::Text),
            Type::Integer => integer(bytes).map(Self::Integer).ok_or_else(unexpected),
            Type::Boolean => bytes.first().map(|byte| Self::Boolean(*byte != 0)).ok_or_else(unexpected),
            Type::Double => {
                let bytes = bytes.try_into().map_err(|_| unexpected())?;
                Ok(Self::Double(f64::from_be_bytes(bytes)))
            }
            Type::Map => map(bytes).map(Self::Map),
        }
    }
}

fn text(bytes: &[u8]) -> Result<String, ProtocolError> {
    let text = std::str::from_utf8(bytes);
    text.map(str::to_owned)
        .map_err(|error| ProtocolError::NotText { field: "a value", at: error.valid_up_to() })
}

/// A signed number of one, two, four or eight bytes.
fn integer(bytes: &[u8]) -> Option<i64> {
    match *bytes {
        [a] => Some(i64::from(a.cast_signed())),
        [a, b] => Some(i64::from(i16::from_be_bytes([a, b]))),
        [a, b, c, d] => Some(i64::from(i32::from_be_bytes([a, b, c, d]))),
        _ => Some(i64::from_be_bytes(bytes.try_into().ok()?)),
    }
}

/// The pairs of a map (section 6.9).
fn map(bytes: &[u8]) -> Result<BTreeMap<String, String>, ProtocolError> {
    let mut reader = Reader::new(bytes);
    let count = reader.count(8, "the size of a map")?;
    let mut item = || text(reader.bytes("an item of a map")?.unwrap_or_default());
    (0..count).map(|_| Ok((item()?, item()?))).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn value(bytes: &[u8]) -> Vec<u8> {
        [&u32::try_from(bytes.len()).unwrap().to_be_bytes(), bytes].concat()
    }

    /// Rows of one table with the columns `t text, n int, b boolean, d double, m map<text, text>`.
    fn body() -> Vec<u8> {
        let mut body = b"\0\0\0\x01\0\0\0\x05\0\x02ks\0\x01t".to_vec();
        for (name, of) in [("t", &[0, 0x0d][..]), ("n", &[0, 9]), ("b", &[0, 4]), ("d", &[0, 7])] {
            body.extend([0, 1]);
            body.extend(name.bytes());
            body.extend(of);
        }
        body.extend(b"\0\x01m\0\x21\0\x0d\0\x0d\0\0\0\x02");
        let map = [&[0, 0, 0, 1][..], &value(b"class"), &value(b"LZ4")].concat();
        for bytes in [&b"\xc3\xa9"[..], &(-7_i32).to_be_bytes(), &[1], &0.5_f64.to_be_bytes(), &map] {
            body.extend(value(bytes));
        }
        body.extend([0xff; 20]);
        body
    }

    #[test]
    fn rows_are_read() {
        let body = body();
        let rows = Rows::read(&mut Reader::new(&body)).unwrap();
        let [first, second] = [0, 1].map(|index| rows.iter().nth(index).unwrap());
        assert_eq!(
            (first.text("t"), first.number("n"), first.number("d")),
            (Some("é"), Some(-7.0), Some(0.5))
        );
        assert_eq!(first.cell("b"), Some(&Cell::Boolean(true)));
        assert_eq!(first.map("m").unwrap()["class"], "LZ4");
        assert_eq!((second.text("t"), second.cell("m"), second.cell("x")), (None, Some(&Cell::Null), None));
    }

    #[test]
    fn rows_that_are_cut_off_are_errors() {
        let body = body();
        for end in 0..body.len() {
            assert!(Rows::read(&mut Reader::new(&body[..end])).is_err(), "{end}");
        }
    }

    #[test]
    fn hostile_counts_and_types_are_refused() {
        let read = |body: &[u8]| Rows::read(&mut Reader::new(body)).unwrap_err();
        let columns = read(b"\0\0\0\x01\x7f\xff\xff\xff");
        assert!(matches!(columns, ProtocolError::Unexpected { field: "the number of columns", .. }));
        // 2,147,483,647 rows without columns.
        let rows = read(b"\0\0\0\x01\0\0\0\0\0\x01k\0\x01t\x7f\xff\xff\xff");
        assert!(matches!(rows, ProtocolError::Unexpected { field: "the number of rows", .. }));
        let nested = read(b"\0\0\0\x01\0\0\0\x01\0\x01k\0\x01t\0\x01c\0\x21\0\x0d\0\x21");
        assert!(matches!(nested, ProtocolError::Unexpected { field: "the type of a column", .. }));
        let pages = read(b"\0\0\0\x03\0\0\0\0");
        assert!(matches!(pages, ProtocolError::Unexpected { field: "the flag of pages", .. }));
        assert!(map(b"\x7f\xff\xff\xff").is_err());
        assert_eq!(integer(&[0; 3]), None);
    }
}
