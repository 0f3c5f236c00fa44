//! The client of MySQL and MariaDB.

use hub::virtual_sensors::{DatabaseOptions, OutputRow};
use mysql_async::prelude::Queryable;
use mysql_async::{Conn, Error, OptsBuilder, Params, Pool, PoolConstraints, PoolOpts, Value as Cell};

use super::table::{ColumnKind, RowKey, Table};
use super::value::{integer, real, text};

/// A pool that connects when a statement needs it.
pub(super) fn pool(options: &DatabaseOptions) -> Option<Pool> {
    let constraints = PoolConstraints::new(0, options.connections_max)?;
    let address = &options.address;
    let connection = OptsBuilder::default()
        .ip_or_hostname(address.host.as_str())
        .tcp_port(address.port)
        .user(Some(options.user.as_str()).filter(|user| !user.is_empty()))
        .pass(Some(options.password.as_str()).filter(|password| !password.is_empty()))
        .db_name(Some(address.database.as_str()))
        .prefer_socket(false)
        .pool_opts(PoolOpts::default().with_constraints(constraints));
    Some(Pool::new(connection))
}

/// Runs a statement without an answer.
pub(super) async fn execute(connection: &mut Conn, statement: &str) -> Result<(), Error> {
    connection.query_drop(statement).await
}

/// The texts of the first column of an answer.
pub(super) async fn texts(
    connection: &mut Conn,
    statement: &str,
    parameter: &str,
) -> Result<Vec<String>, Error> {
    connection.exec(statement, (parameter,)).await
}

/// Inserts rows.
pub(super) async fn insert(
    connection: &mut Conn,
    statement: &str,
    table: &Table,
    rows: &[&OutputRow],
) -> Result<(), Error> {
    let cells = rows.iter().flat_map(|row| cells(table, row)).collect();
    connection.exec_drop(statement, Params::Positional(cells)).await
}

/// Whether the server refuses the values of a row.
pub(super) fn is_of_data(error: &Error) -> bool {
    matches!(error, Error::Server(error) if error.state.starts_with("22") || error.state.starts_with("23"))
}

fn cells(table: &Table, row: &OutputRow) -> Vec<Cell> {
    let mut cells = Vec::with_capacity(table.columns.len() + 2);
    if table.key == RowKey::Pk {
        cells.push(Cell::Int(row.us));
    }
    cells.push(Cell::Int(row.us.div_euclid(1_000)));
    for (column, value) in table.columns.iter().zip(&row.values) {
        let cell = value.as_ref().and_then(|value| match column.kind {
            ColumnKind::Integer => integer(value).map(Cell::Int),
            ColumnKind::Real => real(value).map(Cell::Double),
            ColumnKind::Text | ColumnKind::Bytes => Some(Cell::Bytes(text(value).into_bytes())),
        });
        cells.push(cell.unwrap_or(Cell::NULL));
    }
    cells
}
