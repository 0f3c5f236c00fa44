//! Columns and rows of PostgreSQL.

use deadpool_postgres::Client;
use model::Value;
use tokio_postgres::types::Type;
use tokio_postgres::{Column, Error, Row};

use super::columns::{CHARACTER_BYTES_MAX, CellKind, Columns, FoundColumn};
use super::rows::{Position, ReadRow};
use crate::databases::value::{decimal, finite};

/// What the type modifier of a text has besides its length.
const MODIFIER_HEAD: i32 = 4;

/// The columns of a statement, which is not executed.
pub(super) async fn columns(client: &Client, statement: &str) -> Result<Vec<FoundColumn>, Error> {
    let prepared = client.prepare(statement).await?;
    Ok(prepared.columns().iter().map(found).collect())
}

/// The rows of a page. The inner error names a value that cannot be read.
pub(super) async fn rows(
    client: &Client,
    statement: &str,
    columns: &Columns,
) -> Result<Result<Vec<ReadRow>, String>, Error> {
    let rows = client.query(statement, &[]).await?;
    rows.iter().map(|row| read(row, columns)).collect::<Result<Vec<_>, Error>>().map(Ok)
}

fn found(column: &Column) -> FoundColumn {
    let (kind, bytes_max) = kind_of(column.type_(), column.type_modifier());
    FoundColumn { name: column.name().to_owned(), kind, bytes_max }
}

/// The type of the values of a type, and the bytes of their longest text if the type says so.
fn kind_of(column: &Type, modifier: i32) -> (CellKind, Option<u64>) {
    match *column {
        Type::INT2 | Type::INT4 | Type::INT8 => (CellKind::Integer, None),
        Type::FLOAT4 | Type::FLOAT8 => (CellKind::Real, None),
        Type::NUMERIC => (CellKind::Decimal, None),
        Type::BOOL => (CellKind::Flag, None),
        Type::BYTEA => (CellKind::Bytes, None),
        Type::TIMESTAMP => (CellKind::Time { has_zone: false }, None),
        Type::TIMESTAMPTZ => (CellKind::Time { has_zone: true }, None),
        Type::JSON | Type::JSONB => (CellKind::Json, None),
        Type::VARCHAR | Type::BPCHAR => {
            let characters = u64::try_from(modifier.saturating_sub(MODIFIER_HEAD)).ok().filter(|n| *n > 0);
            (CellKind::Text, characters.map(|characters| characters * CHARACTER_BYTES_MAX))
        }
        Type::UUID | Type::DATE | Type::TIME | Type::TIMETZ | Type::INTERVAL => (CellKind::Text, Some(64)),
        _ => (CellKind::Text, None),
    }
}

fn read(row: &Row, columns: &Columns) -> Result<ReadRow, Error> {
    let time = row.try_get(0)?;
    let key = if columns.has_key() { row.try_get(1)? } else { 0 };
    let first = 1 + usize::from(columns.has_key());
    let values = columns.values.iter().enumerate().map(|(at, column)| value(row, first + at, column.kind));
    Ok(ReadRow { position: Position { time, key }, values: values.collect::<Result<_, Error>>()? })
}

fn value(row: &Row, at: usize, kind: CellKind) -> Result<Option<Value>, Error> {
    Ok(match kind {
        CellKind::Integer => row.try_get::<_, Option<i64>>(at)?.map(Value::I64),
        CellKind::Real => row.try_get::<_, Option<f64>>(at)?.and_then(finite),
        CellKind::Flag => row.try_get::<_, Option<bool>>(at)?.map(Value::Bool),
        kind => {
            let text = row.try_get::<_, Option<String>>(at)?;
            text.and_then(|text| match kind {
                CellKind::Decimal => decimal(&text),
                CellKind::Json => Some(Value::Json(text)),
                _ => Some(Value::String(text)),
            })
        }
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn types_say_what_values_are() {
        assert_eq!(kind_of(&Type::INT2, -1), (CellKind::Integer, None));
        assert_eq!(kind_of(&Type::VARCHAR, 44), (CellKind::Text, Some(160)));
        assert_eq!(kind_of(&Type::VARCHAR, -1), (CellKind::Text, None));
        assert_eq!(kind_of(&Type::TEXT_ARRAY, -1), (CellKind::Text, None));
        assert_eq!(kind_of(&Type::TIMESTAMPTZ, -1), (CellKind::Time { has_zone: true }, None));
    }
}
