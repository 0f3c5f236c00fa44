//! The client of MySQL and MariaDB.

use std::net::IpAddr;

use mysql_async::prelude::Queryable;
use mysql_async::{
    Conn, Error, OptsBuilder, Params, Pool, PoolConstraints, PoolOpts, ServerError, Value as Cell,
};
use virtual_sensors::{DatabaseOptions, OutputRow};

use super::table::{ColumnKind, RowKey, Table};
use super::value::{integer, real, text};

/// The error ER_TRUNCATED_WRONG_VALUE_FOR_FIELD, such as a text that the character set of its column does not have. MySQL gives it the general
/// state HY000.
const INCORRECT_VALUE: u16 = 1366;

/// A pool that connects to these addresses of the server when a statement needs it.
pub(super) fn pool(options: &DatabaseOptions, addresses: &[IpAddr]) -> Option<Pool> {
    let constraints = PoolConstraints::new(0, options.connections_max)?;
    let address = &options.address;
    let connection = OptsBuilder::default()
        .ip_or_hostname(address.host.as_str())
        .resolved_ips(Some(addresses))
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
    let Error::Server(ServerError { code, state, .. }) = error else { return false };
    state.starts_with("22") || state.starts_with("23") || *code == INCORRECT_VALUE
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_server_refuses_values_by_its_state_or_its_code() {
        let error = |code, state: &str| {
            Error::Server(ServerError { code, message: String::new(), state: state.to_owned() })
        };
        assert!(is_of_data(&error(1264, "22003")));
        assert!(is_of_data(&error(1048, "23000")));
        assert!(is_of_data(&error(1366, "HY000")));
        assert!(!is_of_data(&error(1205, "HY000")));
        assert!(!is_of_data(&error(1146, "42S02")));
    }
}
