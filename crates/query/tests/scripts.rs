//! The scripts in `tests/slt`: statements and the rows that they give.

use std::sync::Arc;

use async_trait::async_trait;
use datafusion::arrow::datatypes::DataType;
use query::{Engine, QueryError};
use sqllogictest::{AsyncDB, DBOutput, DefaultColumnType, Runner};
use store::Store;

use crate::support::{engine, fleet, probe, text, user};

struct Asked(Engine);

#[async_trait]
impl AsyncDB for Asked {
    type Error = QueryError;
    type ColumnType = DefaultColumnType;

    async fn run(&mut self, sql: &str) -> Result<DBOutput<DefaultColumnType>, QueryError> {
        let answer = self.0.run(sql, &user()).await?;
        let types = answer.schema.fields().iter().map(|field| column_type(field.data_type())).collect();
        Ok(DBOutput::Rows { types, rows: text(&answer.collect().await?) })
    }

    async fn shutdown(&mut self) {}

    fn engine_name(&self) -> &str {
        "tachograph"
    }
}

fn column_type(data_type: &DataType) -> DefaultColumnType {
    if data_type.is_integer() {
        DefaultColumnType::Integer
    } else if data_type.is_floating() {
        DefaultColumnType::FloatingPoint
    } else {
        DefaultColumnType::Text
    }
}

fn run(script: &str) {
    run_over(fleet(), script);
}

fn run_over(store: Arc<dyn Store>, script: &str) {
    let path = format!("{}/tests/slt/{script}", env!("CARGO_MANIFEST_DIR"));
    let mut runner = Runner::new(|| async { Ok(Asked(engine(store.clone()))) });
    runner.run_file(path).unwrap_or_else(|error| panic!("{}", error.display(false)));
}

#[test]
fn rows_are_selected() {
    run("select.slt");
}

#[test]
fn functions_give_the_expected_values() {
    run("functions.slt");
}

#[test]
fn values_are_those_of_postgresql() {
    run("dialect.slt");
}

#[test]
fn gaps_are_filled() {
    run("gaps.slt");
}

#[test]
fn integers_and_floats_of_a_key_are_one_column() {
    run_over(probe(), "numbers.slt");
}

#[test]
fn names_are_listed() {
    run("names.slt");
}

#[test]
fn statements_over_rows_of_their_own_have_postgresqls_answers() {
    run("postgresql.slt");
}

#[test]
fn an_order_is_never_lost() {
    run("order.slt");
}

#[test]
fn tables_are_joined_and_windows_move() {
    run("joins.slt");
}

#[test]
fn the_catalog_is_that_of_postgresql() {
    run("catalog.slt");
}

#[test]
fn unsupported_statements_are_refused() {
    run("refused.slt");
}
