//! The form of a stored attribute: the code of its type, its time, its value.

use model::{FieldType, Timestamp, Value, ValueRef};

/// Bytes before the value: the type, and the time in microseconds.
const HEAD_BYTES: usize = 1 + 8;

pub(super) fn encode(value: ValueRef<'_>, ts: Timestamp) -> Vec<u8> {
    let mut record = vec![value.field_type().code()];
    record.extend_from_slice(&ts.micros().to_le_bytes());
    match value {
        ValueRef::Bool(value) => record.push(u8::from(value)),
        ValueRef::I64(value) => record.extend_from_slice(&value.to_le_bytes()),
        ValueRef::F64(value) => record.extend_from_slice(&value.to_le_bytes()),
        ValueRef::String(text) | ValueRef::Json(text) => record.extend_from_slice(text.as_bytes()),
    }
    record
}

/// Reads what [`encode`] wrote; `None` if the record is something else.
pub(super) fn decode(record: &[u8]) -> Option<(Value, Timestamp)> {
    let (head, body) = record.split_at_checked(HEAD_BYTES)?;
    let ts = Timestamp::from_micros(i64::from_le_bytes(head[1..].try_into().ok()?));
    let text = || String::from_utf8(body.to_vec()).ok();
    let value = match FieldType::from_code(head[0])? {
        FieldType::Bool => Value::Bool(match body {
            [0] => false,
            [1] => true,
            _ => return None,
        }),
        FieldType::I64 => Value::I64(i64::from_le_bytes(body.try_into().ok()?)),
        FieldType::F64 => Value::F64(f64::from_le_bytes(body.try_into().ok()?)),
        FieldType::String => Value::String(text()?),
        FieldType::Json => Value::Json(text()?),
    };
    Some((value, ts))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn values_of_all_types_come_back() {
        let ts = Timestamp::from_micros(-7);
        for value in [
            Value::Bool(true),
            Value::I64(i64::MIN),
            Value::F64(-0.5),
            Value::String("é".into()),
            Value::String(String::new()),
            Value::Json("[1]".into()),
        ] {
            assert_eq!(decode(&encode(value.as_ref(), ts)), Some((value, ts)));
        }
    }

    #[test]
    fn the_bytes_are_those_of_the_format() {
        let bytes = encode(ValueRef::I64(2), Timestamp::from_micros(256));
        assert_eq!(bytes, [2, 0, 1, 0, 0, 0, 0, 0, 0, 2, 0, 0, 0, 0, 0, 0, 0]);
    }

    #[test]
    fn other_bytes_are_no_attribute() {
        let good = encode(ValueRef::Bool(true), Timestamp::from_micros(1));
        for wrong in [&good[..0], &good[..9], &[&good[..9], &[2]].concat(), &[&[9], &good[1..]].concat()] {
            assert_eq!(decode(wrong), None, "{wrong:?}");
        }
        let text = encode(ValueRef::String("a"), Timestamp::from_micros(1));
        assert_eq!(decode(&[&text[..9], &[0xff]].concat()), None);
    }
}
