//! Columns and rows of MySQL and MariaDB.

use model::Value;
use mysql_async::consts::ColumnType;
use mysql_async::prelude::Queryable;
use mysql_async::{Column, Conn, Error, Params, Row, Value as Cell};

use super::columns::{CellKind, Columns, FoundColumn};
use super::rows::{Position, ReadRow};
use crate::databases::value::{decimal, finite};

/// The character set of bytes.
const BINARY: u16 = 63;

/// The columns of a statement, which is not executed.
pub(super) async fn columns(connection: &mut Conn, statement: &str) -> Result<Vec<FoundColumn>, Error> {
    let prepared = connection.prep(statement).await?;
    Ok(prepared.columns().iter().map(found).collect())
}

/// The rows of a page. The inner error names a value that cannot be read.
pub(super) async fn rows(
    connection: &mut Conn,
    statement: &str,
    columns: &Columns,
) -> Result<Result<Vec<ReadRow>, String>, Error> {
    let rows: Vec<Row> = connection.exec(statement, Params::Empty).await?;
    Ok(rows.into_iter().map(|row| read(row.unwrap(), columns)).collect())
}

fn found(column: &Column) -> FoundColumn {
    let is_binary = column.character_set() == BINARY;
    let kind = kind_of(column.column_type(), is_binary);
    FoundColumn {
        name: column.name_str().into_owned(),
        kind,
        bytes_max: Some(u64::from(column.column_length())),
    }
}

fn kind_of(column: ColumnType, is_binary: bool) -> CellKind {
    use ColumnType as T;
    match column {
        T::MYSQL_TYPE_TINY | T::MYSQL_TYPE_SHORT | T::MYSQL_TYPE_INT24 => CellKind::Integer,
        T::MYSQL_TYPE_LONG | T::MYSQL_TYPE_LONGLONG | T::MYSQL_TYPE_YEAR => CellKind::Integer,
        T::MYSQL_TYPE_FLOAT | T::MYSQL_TYPE_DOUBLE => CellKind::Real,
        T::MYSQL_TYPE_DECIMAL | T::MYSQL_TYPE_NEWDECIMAL => CellKind::Decimal,
        T::MYSQL_TYPE_TIMESTAMP | T::MYSQL_TYPE_DATETIME => CellKind::Time { has_zone: false },
        T::MYSQL_TYPE_JSON => CellKind::Json,
        T::MYSQL_TYPE_BIT | T::MYSQL_TYPE_GEOMETRY | T::MYSQL_TYPE_VECTOR => CellKind::Bytes,
        T::MYSQL_TYPE_VARCHAR | T::MYSQL_TYPE_VAR_STRING | T::MYSQL_TYPE_STRING if is_binary => {
            CellKind::Bytes
        }
        T::MYSQL_TYPE_TINY_BLOB | T::MYSQL_TYPE_BLOB if is_binary => CellKind::Bytes,
        T::MYSQL_TYPE_MEDIUM_BLOB | T::MYSQL_TYPE_LONG_BLOB if is_binary => CellKind::Bytes,
        _ => CellKind::Text,
    }
}

fn read(cells: Vec<Cell>, columns: &Columns) -> Result<ReadRow, String> {
    let mut cells = cells.into_iter();
    let time = whole(cells.next(), &columns.time)?;
    let key = match &columns.key {
        Some(key) => whole(cells.next(), key)?,
        None => 0,
    };
    let values = columns.values.iter().zip(cells).map(|(column, cell)| value(column.kind, cell)).collect();
    Ok(ReadRow { position: Position { time, key }, values })
}

fn whole(cell: Option<Cell>, column: &FoundColumn) -> Result<i64, String> {
    let number = match cell {
        Some(Cell::Int(number)) => Some(number),
        Some(Cell::UInt(number)) => i64::try_from(number).ok(),
        _ => None,
    };
    number.ok_or_else(|| format!("a value of the column {} is not a whole number of 64 bits", column.name))
}

fn value(kind: CellKind, cell: Cell) -> Option<Value> {
    match cell {
        Cell::Int(number) => Some(Value::I64(number)),
        Cell::UInt(number) => {
            Some(i64::try_from(number).map_or_else(|_| Value::F64(number as f64), Value::I64))
        }
        Cell::Float(number) => finite(f64::from(number)),
        Cell::Double(number) => finite(number),
        Cell::Bytes(bytes) => {
            let text = String::from_utf8_lossy(&bytes).into_owned();
            match kind {
                CellKind::Decimal => decimal(&text),
                CellKind::Json => Some(Value::Json(text)),
                _ => Some(Value::String(text)),
            }
        }
        // The statement makes text of these.
        Cell::NULL | Cell::Date(..) | Cell::Time(..) => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn types_say_what_values_are() {
        use ColumnType as T;
        assert_eq!(kind_of(T::MYSQL_TYPE_LONGLONG, true), CellKind::Integer);
        assert_eq!(kind_of(T::MYSQL_TYPE_VAR_STRING, false), CellKind::Text);
        assert_eq!(kind_of(T::MYSQL_TYPE_VAR_STRING, true), CellKind::Bytes);
        assert_eq!(kind_of(T::MYSQL_TYPE_DATE, true), CellKind::Text);
        assert_eq!(kind_of(T::MYSQL_TYPE_DATETIME, true), CellKind::Time { has_zone: false });
    }

    #[test]
    fn cells_are_values() {
        assert_eq!(value(CellKind::Integer, Cell::UInt(u64::MAX)), Some(Value::F64(u64::MAX as f64)));
        assert_eq!(value(CellKind::Decimal, Cell::Bytes(b"20.50".to_vec())), Some(Value::F64(20.5)));
        assert_eq!(value(CellKind::Text, Cell::Bytes(b"20".to_vec())), Some(Value::String("20".into())));
        assert_eq!(value(CellKind::Real, Cell::Double(f64::NAN)), None);
        assert_eq!(value(CellKind::Text, Cell::NULL), None);
    }
}
