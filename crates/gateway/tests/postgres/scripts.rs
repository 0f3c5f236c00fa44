//! The scripts of `crates/query/tests/slt` through the door, with statements that are prepared and values in binary form.

use std::error::Error;

use async_trait::async_trait;
use model::calendar::Moment;
use sqllogictest::{AsyncDB, DBOutput, DefaultColumnType, Runner};
use testkit::fleet::fleet;
use tokio_postgres::types::{FromSql, Type};
use tokio_postgres::{Client, NoTls, Row};

use super::{GUARD, Server};

/// Microseconds from 1970 to 2000, where PostgreSQL's times begin.
const EPOCH_US: i64 = 946_684_800_000_000;

struct Door(Client);

#[derive(Debug, thiserror::Error)]
#[error("{0}")]
struct Refused(String);

impl From<tokio_postgres::Error> for Refused {
    fn from(error: tokio_postgres::Error) -> Self {
        Self(error.as_db_error().map_or_else(|| error.to_string(), |refused| refused.message().to_owned()))
    }
}

#[async_trait]
impl AsyncDB for Door {
    type Error = Refused;
    type ColumnType = DefaultColumnType;

    async fn run(&mut self, sql: &str) -> Result<DBOutput<DefaultColumnType>, Refused> {
        let statement = self.0.prepare(sql).await?;
        let types = statement.columns().iter().map(|column| column_type(column.type_())).collect();
        let rows = self.0.query(&statement, &[]).await?;
        Ok(DBOutput::Rows { types, rows: rows.iter().map(shown).collect() })
    }

    async fn shutdown(&mut self) {}

    fn engine_name(&self) -> &str {
        "door"
    }
}

fn column_type(data_type: &Type) -> DefaultColumnType {
    match *data_type {
        Type::INT2 | Type::INT4 | Type::INT8 => DefaultColumnType::Integer,
        Type::FLOAT4 | Type::FLOAT8 => DefaultColumnType::FloatingPoint,
        _ => DefaultColumnType::Text,
    }
}

fn shown(row: &Row) -> Vec<String> {
    (0..row.len())
        .map(|column| row.get::<_, Option<Shown>>(column).map_or_else(|| "NULL".into(), |shown| shown.0))
        .collect()
}

/// A value as the scripts write it.
struct Shown(String);

impl FromSql<'_> for Shown {
    fn from_sql(data_type: &Type, raw: &[u8]) -> Result<Self, Box<dyn Error + Sync + Send>> {
        Ok(Self(match *data_type {
            Type::BOOL => bool::from_sql(data_type, raw)?.to_string(),
            Type::INT2 => i16::from_sql(data_type, raw)?.to_string(),
            Type::INT4 => i32::from_sql(data_type, raw)?.to_string(),
            Type::INT8 => i64::from_sql(data_type, raw)?.to_string(),
            Type::FLOAT4 => format!("{:?}", f32::from_sql(data_type, raw)?),
            Type::FLOAT8 => format!("{:?}", f64::from_sql(data_type, raw)?),
            Type::TIMESTAMPTZ => {
                let micros = EPOCH_US + i64::from_be_bytes(raw.try_into()?);
                Moment::from_micros(micros).ok_or("a time outside of the calendar")?.to_string()
            }
            Type::NUMERIC => whole_number(raw)?.to_string(),
            Type::TEXT_ARRAY => format!("[{}]", Vec::<String>::from_sql(data_type, raw)?.join(", ")),
            _ => String::from_sql(&Type::TEXT, raw)?,
        }))
    }

    fn accepts(data_type: &Type) -> bool {
        [
            Type::BOOL,
            Type::INT2,
            Type::INT4,
            Type::INT8,
            Type::FLOAT4,
            Type::FLOAT8,
            Type::NUMERIC,
            Type::TIMESTAMPTZ,
            Type::TEXT_ARRAY,
            Type::TEXT,
            Type::VARCHAR,
        ]
        .contains(data_type)
    }
}

/// An unsigned counter, for example of `row_number()`: a head of four words, then digits to the base of 10,000.
fn whole_number(raw: &[u8]) -> Result<u64, Box<dyn Error + Sync + Send>> {
    let words: Vec<i16> = raw.chunks_exact(2).map(|word| i16::from_be_bytes([word[0], word[1]])).collect();
    let [_, weight, 0, 0, digits @ ..] = words.as_slice() else { return Err("no whole number".into()) };
    let digit = |place: i16| digits.get(place as usize).copied().unwrap_or(0) as u64;
    Ok((0..=*weight).fold(0, |number, place| number * 10_000 + digit(place)))
}

/// A client of the administrator; the task that reads for it ends with it.
async fn client(server: &Server) -> Client {
    let mut config = tokio_postgres::Config::new();
    config.host("127.0.0.1").port(server.address.port()).dbname("tacho");
    config.user(&server.admin.login).password(&server.admin.password);
    let (client, connection) = config.connect(NoTls).await.unwrap();
    tokio::spawn(connection);
    client
}

async fn run(script: &str) {
    let path = format!("{}/../query/tests/slt/{script}", env!("CARGO_MANIFEST_DIR"));
    let server = Server::start_over(fleet(), |_| {}).await;
    let mut runner = Runner::new(|| async { Ok(Door(client(&server).await)) });
    let ran = tokio::time::timeout(GUARD, runner.run_file_async(path)).await.expect("the script ends");
    ran.unwrap_or_else(|error| panic!("{}", error.display(false)));
    drop(runner);
    server.stop().await;
}

#[tokio::test]
async fn rows_are_selected() {
    run("select.slt").await;
}

#[tokio::test]
async fn functions_give_the_expected_values() {
    run("functions.slt").await;
}

#[tokio::test]
async fn values_are_those_of_postgresql() {
    run("dialect.slt").await;
}

#[tokio::test]
async fn gaps_are_filled() {
    run("gaps.slt").await;
}

#[tokio::test]
async fn names_are_listed() {
    run("names.slt").await;
}

#[tokio::test]
async fn tables_are_joined_and_windows_move() {
    run("joins.slt").await;
}

#[tokio::test]
async fn statements_over_rows_of_their_own_have_postgresqls_answers() {
    run("postgresql.slt").await;
}

#[tokio::test]
async fn the_catalog_is_that_of_postgresql() {
    run("catalog.slt").await;
}

#[tokio::test]
async fn unsupported_statements_are_refused() {
    run("refused.slt").await;
}

#[tokio::test]
async fn values_are_bound_to_their_types() {
    let server = Server::start_over(fleet(), |_| {}).await;
    let client = client(&server).await;
    let sql = "SELECT count(*) FROM telemetry WHERE device = $1 AND speed > $2 AND odo < $3";
    let counted: i64 = client.query_one(sql, &[&"bus-1", &15.0_f64, &100_i64]).await.unwrap().get(0);
    assert_eq!(counted, 2);
    let named = "SELECT c.relname FROM pg_catalog.pg_class c WHERE c.oid = $1::regclass AND c.relkind = ANY (ARRAY[$2, 'v'])";
    let name: String = client.query_one(named, &[&"weather", &"r"]).await.unwrap().get(0);
    assert_eq!(name, "weather");
    drop(client);
    server.stop().await;
}
