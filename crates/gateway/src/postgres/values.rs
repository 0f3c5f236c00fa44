//! Types and values in PostgreSQL's forms: parameters of the client, and descriptions of columns.

use std::sync::Arc;

use arrow_pg::datatypes::{arrow_schema_to_pg_fields, into_pg_type};
use arrow_schema::{Field, Schema, TimeUnit};
use bytes::Buf;
use hub::sql::{DataType, Parameter};
use pgwire::api::Type;
use pgwire::api::portal::Format;
use pgwire::api::results::FieldInfo;
use pgwire::messages::data::{FieldDescription, RowDescription};
use wire::postgres::{Bound, ValueFormat};

use super::arrays;
use super::error::PgError;
use super::value_error::ValueError;

/// Microseconds and days from 1970 to 2000, where PostgreSQL's times begin.
pub(super) const EPOCH_US: i64 = 946_684_800_000_000;
pub(super) const EPOCH_DAYS: i32 = 10_957;

/// The columns of an answer as the session describes and writes them.
pub(super) type Fields = Arc<Vec<FieldInfo>>;

/// The columns of an answer. A single format applies to all columns; no format means text.
pub(super) fn fields(schema: &Schema, formats: &[ValueFormat]) -> Result<Fields, PgError> {
    let columns = schema.fields().len();
    if formats.len() > 1 && formats.len() != columns {
        let message = format!("{} format codes for {columns} columns", formats.len());
        return Err(PgError::new("08P01", message));
    }
    let code = |format: &ValueFormat| i16::from(*format == ValueFormat::Binary);
    let format = match formats {
        [] => Format::UnifiedText,
        [one] => Format::from(code(one)),
        all => Format::Individual(all.iter().map(code).collect()),
    };
    Ok(Arc::new(arrow_schema_to_pg_fields(schema, &format, None)?))
}

/// The text column of an answer of the door itself.
pub(super) fn text_field(name: &str) -> Fields {
    let format = pgwire::api::results::FieldFormat::Text;
    Arc::new(vec![FieldInfo::new(name.into(), None, None, Type::TEXT, format)])
}

/// The description of columns. They have the names of `headings`, if there are any.
pub(super) fn description(fields: &Fields, headings: &[String]) -> RowDescription {
    let mut description = RowDescription::new(fields.iter().map(described).collect());
    if headings.len() == fields.len() {
        let named = description.fields.iter_mut().zip(headings);
        named.for_each(|(field, heading)| field.name.clone_from(heading));
    }
    description
}

fn described(field: &FieldInfo) -> FieldDescription {
    let size = match *field.datatype() {
        Type::BOOL | Type::CHAR => 1,
        Type::INT2 => 2,
        Type::INT4 | Type::FLOAT4 | Type::DATE | Type::OID => 4,
        Type::INT8 | Type::FLOAT8 | Type::TIMESTAMP | Type::TIMESTAMPTZ | Type::TIME => 8,
        Type::INTERVAL => 16,
        _ => -1,
    };
    FieldDescription::from(&field.clone().with_type_size(size))
}

/// The object id of a type.
pub(super) fn type_number(data_type: &DataType) -> Result<u32, PgError> {
    Ok(match data_type {
        // A parameter without a type may have any text.
        DataType::Null => Type::TEXT.oid(),
        other => into_pg_type(other)?.oid(),
    })
}

/// The type of a parameter that a client declares; `None` if it leaves the type open.
pub(super) fn data_type(number: u32) -> Option<DataType> {
    let kind = Type::from_oid(number)?;
    if let Some(element) = arrays::element_of(&kind) {
        let element = data_type(element.oid())?;
        return Some(DataType::List(Arc::new(Field::new_list_field(element, true))));
    }
    Some(match kind {
        Type::BOOL => DataType::Boolean,
        Type::INT2 => DataType::Int16,
        Type::INT4 => DataType::Int32,
        Type::INT8 | Type::OID => DataType::Int64,
        Type::FLOAT4 => DataType::Float32,
        Type::FLOAT8 => DataType::Float64,
        Type::TEXT | Type::VARCHAR | Type::NAME | Type::BPCHAR | Type::UUID | Type::JSON | Type::JSONB => {
            DataType::Utf8
        }
        Type::BYTEA => DataType::Binary,
        Type::DATE => DataType::Date32,
        Type::TIMESTAMP => DataType::Timestamp(TimeUnit::Microsecond, None),
        Type::TIMESTAMPTZ => DataType::Timestamp(TimeUnit::Microsecond, Some("UTC".into())),
        _ => return None,
    })
}

/// The value that a client has bound to parameter `position` (from 1) of the type with this object id.
pub(super) fn parameter(position: usize, number: u32, bound: &Bound) -> Result<Parameter, PgError> {
    let Some(bytes) = &bound.bytes else { return Ok(Parameter::Null) };
    let kind = Type::from_oid(number).unwrap_or(Type::UNKNOWN);
    let read = match bound.format {
        ValueFormat::Text => from_text(&kind, bytes),
        ValueFormat::Binary => from_binary(&kind, bytes),
    };
    read.map_err(|reason| {
        PgError::new(reason.code(), format!("parameter ${position} ({}): {reason}", kind.name()))
    })
}

fn from_text(kind: &Type, bytes: &[u8]) -> Result<Parameter, ValueError> {
    let text = std::str::from_utf8(bytes).map_err(|_| ValueError::Invalid)?;
    let trimmed = text.trim();
    Ok(match *kind {
        Type::BOOL => match trimmed.to_ascii_lowercase().as_str() {
            "t" | "true" | "y" | "yes" | "on" | "1" => Parameter::Bool(true),
            "f" | "false" | "n" | "no" | "off" | "0" => Parameter::Bool(false),
            _ => return Err(ValueError::Invalid),
        },
        Type::INT2 | Type::INT4 | Type::INT8 | Type::OID => {
            Parameter::I64(trimmed.parse().map_err(|_| ValueError::Invalid)?)
        }
        Type::FLOAT4 | Type::FLOAT8 => Parameter::F64(trimmed.parse().map_err(|_| ValueError::Invalid)?),
        Type::BYTEA => Parameter::Bytes(hex(trimmed.strip_prefix("\\x").ok_or(ValueError::Invalid)?)?),
        // The engine parses the rest, such as times and arrays.
        _ => Parameter::Text(text.into()),
    })
}

fn hex(digits: &str) -> Result<Vec<u8>, ValueError> {
    let digits = digits.as_bytes();
    let value = |digit: u8| (digit as char).to_digit(16).ok_or(ValueError::Invalid);
    if !digits.len().is_multiple_of(2) {
        return Err(ValueError::Invalid);
    }
    digits.chunks(2).map(|pair| Ok((value(pair[0])? << 4 | value(pair[1])?) as u8)).collect()
}

fn from_binary(kind: &Type, bytes: &[u8]) -> Result<Parameter, ValueError> {
    if let Some(element) = arrays::element_of(kind) {
        // Decimal numbers have no parameter type and become text.
        let wanted = data_type(element.oid()).unwrap_or(DataType::Utf8);
        return arrays::from_binary(bytes, &wanted, from_binary);
    }
    fn sized<const N: usize>(bytes: &[u8]) -> Result<[u8; N], ValueError> {
        bytes.try_into().map_err(|_| ValueError::Invalid)
    }
    let text = |bytes: &[u8]| {
        std::str::from_utf8(bytes).map(|text| Parameter::Text(text.into())).map_err(|_| ValueError::Invalid)
    };
    Ok(match *kind {
        Type::BOOL => Parameter::Bool(sized::<1>(bytes)? != [0]),
        Type::INT2 => Parameter::I64(i16::from_be_bytes(sized(bytes)?).into()),
        Type::INT4 => Parameter::I64(i32::from_be_bytes(sized(bytes)?).into()),
        Type::INT8 => Parameter::I64(i64::from_be_bytes(sized(bytes)?)),
        Type::OID => Parameter::I64(u32::from_be_bytes(sized(bytes)?).into()),
        Type::FLOAT4 => Parameter::F64(f32::from_be_bytes(sized(bytes)?).into()),
        Type::FLOAT8 => Parameter::F64(f64::from_be_bytes(sized(bytes)?)),
        Type::TIMESTAMP | Type::TIMESTAMPTZ => {
            let since_2000 = i64::from_be_bytes(sized(bytes)?);
            Parameter::Timestamp(since_2000.checked_add(EPOCH_US).ok_or(ValueError::Invalid)?)
        }
        Type::DATE => {
            let since_2000 = i32::from_be_bytes(sized(bytes)?);
            Parameter::Date(since_2000.checked_add(EPOCH_DAYS).ok_or(ValueError::Invalid)?)
        }
        Type::NUMERIC => Parameter::Text(numeric(bytes)?),
        Type::UUID => Parameter::Text(uuid::Uuid::from_bytes(sized(bytes)?).to_string()),
        Type::BYTEA => Parameter::Bytes(bytes.into()),
        // A version number is before the text.
        Type::JSONB => text(bytes.strip_prefix(&[1]).ok_or(ValueError::Invalid)?)?,
        Type::TEXT | Type::VARCHAR | Type::BPCHAR | Type::NAME | Type::JSON | Type::UNKNOWN => text(bytes)?,
        _ => return Err(ValueError::Type),
    })
}

/// Parses a numeric: groups of four decimal digits, the weight of the first, sign and scale.
fn numeric(mut bytes: &[u8]) -> Result<String, ValueError> {
    if bytes.len() < 8 {
        return Err(ValueError::Invalid);
    }
    let (groups, weight) = (usize::from(bytes.get_u16()), i32::from(bytes.get_i16()));
    let (sign, scale) = (bytes.get_u16(), usize::from(bytes.get_u16()));
    if bytes.len() != groups * 2 || scale > 16_383 || !(-20_000..=20_000).contains(&weight) {
        return Err(ValueError::Invalid);
    }
    let groups: Vec<u16> = (0..groups).map(|_| bytes.get_u16()).collect();
    let group = |position: i32| {
        let index = usize::try_from(weight - position).ok();
        index.and_then(|index| groups.get(index)).copied().unwrap_or(0)
    };
    let mut text = match sign {
        0 => String::new(),
        0x4000 => "-".into(),
        0xC000 => return Ok("NaN".into()),
        0xD000 => return Ok("Infinity".into()),
        0xF000 => return Ok("-Infinity".into()),
        _ => return Err(ValueError::Invalid),
    };
    text.push_str(&group(weight.max(0)).to_string());
    for position in (0..weight.max(0)).rev() {
        text.push_str(&format!("{:04}", group(position)));
    }
    if scale > 0 {
        let fraction: String =
            (1..=scale.div_ceil(4) as i32).map(|position| format!("{:04}", group(-position))).collect();
        text.push('.');
        text.push_str(&fraction[..scale]);
    }
    Ok(text)
}

#[cfg(test)]
mod tests {
    use bytes::Bytes;

    use super::*;

    fn binary(kind: Type, bytes: &'static [u8]) -> Result<Parameter, PgError> {
        let bound = Bound { format: ValueFormat::Binary, bytes: Some(Bytes::from_static(bytes)) };
        parameter(1, kind.oid(), &bound)
    }

    fn text(kind: Type, text: &'static str) -> Result<Parameter, PgError> {
        let bound = Bound { format: ValueFormat::Text, bytes: Some(Bytes::from_static(text.as_bytes())) };
        parameter(1, kind.oid(), &bound)
    }

    #[test]
    fn binary_parameters_are_decoded() {
        for (kind, bytes, expected) in [
            (Type::BOOL, b"\x01".as_slice(), Parameter::Bool(true)),
            (Type::INT2, b"\xff\xff", Parameter::I64(-1)),
            (Type::INT4, b"\0\0\0\x07", Parameter::I64(7)),
            (Type::INT8, b"\x80\0\0\0\0\0\0\0", Parameter::I64(i64::MIN)),
            (Type::FLOAT8, b"\x3f\xf8\0\0\0\0\0\0", Parameter::F64(1.5)),
            (Type::FLOAT4, b"\x3f\xc0\0\0", Parameter::F64(1.5)),
            (Type::TIMESTAMPTZ, b"\0\0\0\0\0\0\0\x01", Parameter::Timestamp(EPOCH_US + 1)),
            (Type::DATE, b"\xff\xff\xff\xff", Parameter::Date(EPOCH_DAYS - 1)),
            (Type::TEXT, "ä".as_bytes(), Parameter::Text("ä".into())),
            (Type::JSONB, b"\x01{}", Parameter::Text("{}".into())),
            (Type::BYTEA, b"\0\xff", Parameter::Bytes(vec![0, 255])),
            (Type::NUMERIC, b"\0\x02\0\0\0\0\0\x02\0\x0c\x13\x88", Parameter::Text("12.50".into())),
            (Type::NUMERIC, b"\0\x01\0\x01\x40\0\0\0\0\x05", Parameter::Text("-50000".into())),
            (Type::NUMERIC, b"\0\x01\xff\xff\0\0\0\x04\0\x01", Parameter::Text("0.0001".into())),
            (Type::NUMERIC, b"\0\0\0\0\xc0\0\0\0", Parameter::Text("NaN".into())),
        ] {
            assert_eq!(binary(kind.clone(), bytes), Ok(expected), "{kind}");
        }
    }

    #[test]
    fn text_parameters_are_decoded() {
        for (kind, written, expected) in [
            (Type::BOOL, "off", Parameter::Bool(false)),
            (Type::INT8, " 42 ", Parameter::I64(42)),
            (Type::FLOAT8, "1e3", Parameter::F64(1_000.0)),
            (Type::BYTEA, "\\x00fF", Parameter::Bytes(vec![0, 255])),
            (Type::TIMESTAMPTZ, "2026-11-21 15:40:00+00", Parameter::Text("2026-11-21 15:40:00+00".into())),
            (Type::TEXT, " a ", Parameter::Text(" a ".into())),
        ] {
            assert_eq!(text(kind.clone(), written), Ok(expected), "{kind}");
        }
        let null = Bound { format: ValueFormat::Binary, bytes: None };
        assert_eq!(parameter(1, Type::INT8.oid(), &null), Ok(Parameter::Null));
    }

    #[test]
    fn values_outside_of_their_type_are_refused() {
        for refused in [
            binary(Type::INT4, b"\0"),
            binary(Type::BOOL, b""),
            binary(Type::TEXT, b"\xff"),
            binary(Type::NUMERIC, b"\0\x05\0\0\0\0\0\0"),
            binary(Type::NUMERIC, b"\0\0\x7f\xff\0\0\0\0"),
            binary(Type::TIMESTAMP, b"\x7f\xff\xff\xff\xff\xff\xff\xff"),
            text(Type::INT4, "four"),
            text(Type::BYTEA, "\\x0"),
            text(Type::BYTEA, "\\x0ä"),
        ] {
            assert_eq!(refused.unwrap_err().code, "22P02");
        }
        let refused = binary(Type::POINT, b"").unwrap_err();
        assert_eq!((refused.code, refused.message.contains("$1::text")), ("0A000", true));
    }
}
