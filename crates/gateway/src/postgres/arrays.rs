//! Arrays in the binary form of PostgreSQL's protocol (`array_recv` and `array_send` in its `arrayfuncs.c`), as parameters and as
//! values of rows.

use arrow_array::cast::AsArray;
use arrow_array::{Array, ArrayRef, ListArray};
use arrow_schema::DataType;
use bytes::{Buf, BufMut, BytesMut};
use hub::sql::Parameter;
use pgwire::api::Type;

use super::value_error::ValueError;

/// The length of a NULL.
const NULL: i32 = -1;
/// Dimensions, whether there are NULLs, the type of the elements.
const HEAD_BYTES: usize = 12;
/// Length and first index of a dimension.
const DIMENSION_BYTES: usize = 8;

/// The types of arrays, with those of their elements.
const ARRAYS: [(Type, Type); 18] = [
    (Type::BOOL_ARRAY, Type::BOOL),
    (Type::BYTEA_ARRAY, Type::BYTEA),
    (Type::NAME_ARRAY, Type::NAME),
    (Type::INT2_ARRAY, Type::INT2),
    (Type::INT4_ARRAY, Type::INT4),
    (Type::INT8_ARRAY, Type::INT8),
    (Type::OID_ARRAY, Type::OID),
    (Type::TEXT_ARRAY, Type::TEXT),
    (Type::BPCHAR_ARRAY, Type::BPCHAR),
    (Type::VARCHAR_ARRAY, Type::VARCHAR),
    (Type::UUID_ARRAY, Type::UUID),
    (Type::JSON_ARRAY, Type::JSON),
    (Type::FLOAT4_ARRAY, Type::FLOAT4),
    (Type::FLOAT8_ARRAY, Type::FLOAT8),
    (Type::NUMERIC_ARRAY, Type::NUMERIC),
    (Type::DATE_ARRAY, Type::DATE),
    (Type::TIMESTAMP_ARRAY, Type::TIMESTAMP),
    (Type::TIMESTAMPTZ_ARRAY, Type::TIMESTAMPTZ),
];

/// The type of the elements, if this is a type of arrays.
pub(super) fn element_of(kind: &Type) -> Option<&'static Type> {
    ARRAYS.iter().find(|(array, _)| array == kind).map(|(_, element)| element)
}

/// The array that a client has bound, of elements of the type `wanted`, each of which `read` reads.
pub(super) fn from_binary(
    mut bytes: &[u8],
    wanted: &DataType,
    read: fn(&Type, &[u8]) -> Result<Parameter, ValueError>,
) -> Result<Parameter, ValueError> {
    if bytes.len() < HEAD_BYTES {
        return Err(ValueError::Invalid);
    }
    let (dimensions, _has_nulls, number) = (bytes.get_i32(), bytes.get_i32(), bytes.get_u32());
    // Clients may send text for varchar and the like.
    let element = Type::from_oid(number).ok_or(ValueError::Type)?;
    match dimensions {
        0 => return Ok(Parameter::List(Vec::new())),
        1 if bytes.len() >= DIMENSION_BYTES => {}
        1 => return Err(ValueError::Invalid),
        _ => return Err(ValueError::Shape),
    }
    let (count, _first) = (bytes.get_i32(), bytes.get_i32());
    // Each element has a length field, so the message cannot have more elements.
    let count = usize::try_from(count).ok().filter(|count| *count <= bytes.len() / size_of::<i32>());
    let mut values = Vec::with_capacity(count.ok_or(ValueError::Invalid)?);
    for _ in 0..count.unwrap_or(0) {
        if bytes.len() < size_of::<i32>() {
            return Err(ValueError::Invalid);
        }
        let length = bytes.get_i32();
        if length == NULL {
            values.push(Parameter::Null);
            continue;
        }
        let length = usize::try_from(length).ok().filter(|length| *length <= bytes.len());
        let (value, rest) = bytes.split_at(length.ok_or(ValueError::Invalid)?);
        values.push(checked(read(&element, value)?, wanted)?);
        bytes = rest;
    }
    if bytes.is_empty() { Ok(Parameter::List(values)) } else { Err(ValueError::Invalid) }
}

/// Checks that an element has the declared type.
fn checked(value: Parameter, element: &DataType) -> Result<Parameter, ValueError> {
    let is_right = match &value {
        Parameter::I64(_) => element.is_integer(),
        Parameter::F64(_) => element.is_floating(),
        Parameter::Bool(_) => *element == DataType::Boolean,
        Parameter::Text(_) => *element == DataType::Utf8,
        Parameter::Timestamp(_) => matches!(element, DataType::Timestamp(..)),
        Parameter::Date(_) => *element == DataType::Date32,
        Parameter::Bytes(_) => *element == DataType::Binary,
        Parameter::Null | Parameter::List(..) => false,
    };
    if is_right { Ok(value) } else { Err(ValueError::Invalid) }
}

/// Arrays of an answer.
pub(super) struct Lists {
    lists: ListArray,
    element: Type,
}

impl Lists {
    /// The arrays of a list column with elements of this type.
    pub(super) fn of(array: &ArrayRef, element: &Type) -> Option<Self> {
        let DataType::List(_) = array.data_type() else { return None };
        Some(Self { lists: array.as_list().clone(), element: element.clone() })
    }

    pub(super) fn values(&self) -> &ArrayRef {
        self.lists.values()
    }

    /// The range of a row's elements in all values.
    fn range(&self, row: usize) -> std::ops::Range<usize> {
        let offsets = self.lists.value_offsets();
        offsets[row] as usize..offsets[row + 1] as usize
    }

    /// Appends an array whose elements `write` appends.
    pub(super) fn write_text<E>(
        &self,
        row: usize,
        out: &mut BytesMut,
        mut write: impl FnMut(usize, &mut BytesMut) -> Result<(), E>,
    ) -> Result<(), E> {
        let mut element = BytesMut::new();
        out.put_u8(b'{');
        for (number, index) in self.range(row).enumerate() {
            if number > 0 {
                out.put_u8(b',');
            }
            if self.values().is_null(index) {
                out.put_slice(b"NULL");
                continue;
            }
            element.clear();
            write(index, &mut element)?;
            write_quoted(&element, out);
        }
        out.put_u8(b'}');
        Ok(())
    }

    /// The same in binary form.
    pub(super) fn write_binary<E>(
        &self,
        row: usize,
        out: &mut BytesMut,
        mut write: impl FnMut(usize, &mut BytesMut) -> Result<(), E>,
    ) -> Result<(), E> {
        let range = self.range(row);
        let has_nulls = range.clone().any(|index| self.values().is_null(index));
        out.put_i32(i32::from(!range.is_empty()));
        out.put_i32(has_nulls.into());
        out.put_u32(self.element.oid());
        if !range.is_empty() {
            // The number fits, because positions in a list have 31 bits.
            out.put_i32(range.len() as i32);
            out.put_i32(1);
        }
        for index in range {
            if self.values().is_null(index) {
                out.put_i32(NULL);
                continue;
            }
            let start = out.len();
            out.put_i32(0);
            write(index, out)?;
            let length = (out.len() - start - size_of::<i32>()) as i32;
            out[start..start + size_of::<i32>()].copy_from_slice(&length.to_be_bytes());
        }
        Ok(())
    }
}

/// Writes an element, with quotes if it could be misread.
fn write_quoted(element: &[u8], out: &mut BytesMut) {
    let is_special =
        |byte: &u8| matches!(byte, b'{' | b'}' | b',' | b'"' | b'\\' | b'\x0b') || byte.is_ascii_whitespace();
    let is_plain =
        !element.is_empty() && !element.eq_ignore_ascii_case(b"null") && !element.iter().any(is_special);
    if is_plain {
        out.put_slice(element);
        return;
    }
    out.put_u8(b'"');
    for byte in element {
        if matches!(byte, b'"' | b'\\') {
            out.put_u8(b'\\');
        }
        out.put_u8(*byte);
    }
    out.put_u8(b'"');
}

#[cfg(test)]
mod tests {
    use super::*;

    fn from_binary(bytes: &[u8]) -> Result<Parameter, ValueError> {
        let read = |kind: &Type, bytes: &[u8]| match *kind {
            Type::TEXT => Ok(Parameter::Text(String::from_utf8_lossy(bytes).into())),
            _ => Err(ValueError::Type),
        };
        super::from_binary(bytes, &DataType::Utf8, read)
    }

    /// `'{a,NULL,ä}'::text[]` as PostgreSQL 15 sends it.
    const TEXTS: &[u8] =
        b"\0\0\0\x01\0\0\0\x01\0\0\0\x19\0\0\0\x03\0\0\0\x01\0\0\0\x01a\xff\xff\xff\xff\0\0\0\x02\xc3\xa4";

    #[test]
    fn arrays_are_read_and_written_in_binary_form() {
        let texts = vec![Parameter::Text("a".into()), Parameter::Null, Parameter::Text("ä".into())];
        assert_eq!(from_binary(TEXTS), Ok(Parameter::List(texts)));
        let mut builder = arrow_array::builder::ListBuilder::new(arrow_array::builder::StringBuilder::new());
        builder.append_value([Some("a"), None, Some("ä")]);
        let array: ArrayRef = std::sync::Arc::new(builder.finish());
        let lists = Lists::of(&array, &Type::TEXT).unwrap();
        let mut out = BytesMut::new();
        let values = lists.values().as_string::<i32>().clone();
        let write = |index: usize, out: &mut BytesMut| {
            out.put_slice(values.value(index).as_bytes());
            Ok::<_, ()>(())
        };
        lists.write_binary(0, &mut out, write).unwrap();
        assert_eq!(&out[..], TEXTS);
        out.clear();
        lists.write_text(0, &mut out, write).unwrap();
        assert_eq!(&out[..], "{a,NULL,ä}".as_bytes());
    }

    #[test]
    fn arrays_that_are_cut_or_nested_are_refused() {
        for end in 0..TEXTS.len() {
            assert_eq!(from_binary(&TEXTS[..end]), Err(ValueError::Invalid), "{end}");
        }
        let mut nested = TEXTS.to_vec();
        nested[3] = 2;
        assert_eq!(from_binary(&nested), Err(ValueError::Shape));
        // A header of four billion elements without any bytes of them.
        let many = [&TEXTS[..12], &[0x7f, 0xff, 0xff, 0xff, 0, 0, 0, 1]].concat();
        assert_eq!(from_binary(&many), Err(ValueError::Invalid));
        let empty = b"\0\0\0\0\0\0\0\0\0\0\0\x19";
        assert_eq!(from_binary(empty), Ok(Parameter::List(Vec::new())));
    }

    #[test]
    fn elements_are_in_quotes_where_they_must_be() {
        for (element, written) in [
            ("a b", r#""a b""#),
            ("", r#""""#),
            ("Null", r#""Null""#),
            (r#"a"\b"#, r#""a\"\\b""#),
            ("{}", r#""{}""#),
            ("ä-1.5", "ä-1.5"),
        ] {
            let mut out = BytesMut::new();
            write_quoted(element.as_bytes(), &mut out);
            assert_eq!(&out[..], written.as_bytes(), "{element}");
        }
    }
}
