//! The client of PostgreSQL.

use std::net::IpAddr;

use deadpool_postgres::{Client, Manager, ManagerConfig, Pool, RecyclingMethod, Runtime};
use tokio_postgres::types::ToSql;
use tokio_postgres::{Config, Error, NoTls};
use virtual_sensors::{DatabaseOptions, OutputRow};

use super::error::with_causes;
use super::limits::CONNECT_TIMEOUT;
use super::table::{ColumnKind, RowKey, Table};
use super::value::{integer, real, text};

/// A pool that connects to these addresses of the server when a statement needs it.
pub(super) fn pool(options: &DatabaseOptions, addresses: &[IpAddr]) -> Option<Pool> {
    let address = &options.address;
    let mut config = Config::new();
    config.port(address.port).dbname(&address.database).connect_timeout(CONNECT_TIMEOUT);
    for ip in addresses {
        config.host(&address.host).hostaddr(*ip);
    }
    config.application_name("tachograph");
    if !options.user.is_empty() {
        config.user(&options.user);
    }
    if !options.password.is_empty() {
        config.password(&options.password);
    }
    let manager = ManagerConfig { recycling_method: RecyclingMethod::Fast };
    let manager = Manager::from_config(config, NoTls, manager);
    let pool = Pool::builder(manager).max_size(options.connections_max).runtime(Runtime::Tokio1);
    pool.build().ok()
}

/// Runs a statement without an answer.
pub(super) async fn execute(client: &Client, statement: &str) -> Result<(), Error> {
    client.batch_execute(statement).await
}

/// The texts of the first column of an answer.
pub(super) async fn texts(client: &Client, statement: &str, parameter: &str) -> Result<Vec<String>, Error> {
    let rows = client.query(statement, &[&parameter]).await?;
    rows.iter().map(|row| row.try_get(0)).collect()
}

/// Inserts rows.
pub(super) async fn insert(
    client: &Client,
    statement: &str,
    table: &Table,
    rows: &[&OutputRow],
) -> Result<(), Error> {
    let statement = client.prepare_cached(statement).await?;
    let arrays = arrays(table, rows);
    let parameters: Vec<_> = arrays.iter().map(|array| &**array as &(dyn ToSql + Sync)).collect();
    client.execute(&statement, &parameters).await.map(drop)
}

/// Whether the server refuses the values of a row.
pub(super) fn is_of_data(error: &Error) -> bool {
    let state = error.code().map(tokio_postgres::error::SqlState::code);
    state.is_some_and(|state| state.starts_with("22") || state.starts_with("23"))
}

/// What the server says.
pub(super) fn cause(error: &Error) -> String {
    match error.as_db_error() {
        Some(said) => format!("{} (SQLSTATE {})", said.message(), said.code().code()),
        None => with_causes(error),
    }
}

/// An array for each column.
fn arrays(table: &Table, rows: &[&OutputRow]) -> Vec<Box<dyn ToSql + Sync + Send>> {
    let mut arrays: Vec<Box<dyn ToSql + Sync + Send>> = Vec::with_capacity(table.columns.len() + 2);
    if table.key == RowKey::Pk {
        arrays.push(Box::new(rows.iter().map(|row| row.us).collect::<Vec<i64>>()));
    }
    arrays.push(Box::new(rows.iter().map(|row| row.us.div_euclid(1_000)).collect::<Vec<i64>>()));
    for (at, column) in table.columns.iter().enumerate() {
        let values = rows.iter().map(|row| row.values.get(at).and_then(Option::as_ref));
        arrays.push(match column.kind {
            ColumnKind::Integer => Box::new(values.map(|value| value.and_then(integer)).collect::<Vec<_>>()),
            ColumnKind::Real => Box::new(values.map(|value| value.and_then(real)).collect::<Vec<_>>()),
            ColumnKind::Text => Box::new(values.map(|value| value.map(text)).collect::<Vec<_>>()),
            ColumnKind::Bytes => {
                let bytes = values.map(|value| value.map(|value| text(value).into_bytes()));
                Box::new(bytes.collect::<Vec<Option<Vec<u8>>>>())
            }
        });
    }
    arrays
}
