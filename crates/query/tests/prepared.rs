//! Statements with parameters.

use arrow_schema::DataType;
use model::ValueRef;
use query::{Prepared, QueryError, ScalarValue};

use crate::support::{engine, fleet, put, text, user};

async fn rows(prepared: &Prepared, parameters: Vec<ScalarValue>) -> Result<Vec<String>, QueryError> {
    let batches = prepared.run(parameters, &user()).await?.collect().await?;
    Ok(text(&batches).into_iter().map(|row| row.join(" ")).collect())
}

#[tokio::test]
async fn types_follow_from_places_and_values_are_put_in() {
    let engine = engine(fleet());
    let sql = "SELECT device, speed FROM telemetry WHERE device = $1 AND speed > $2 ORDER BY ts LIMIT $3";
    let prepared = engine.prepare(sql, &[], &user()).await.unwrap();
    assert_eq!(prepared.parameter_types(), [DataType::Utf8View, DataType::Float64, DataType::Int64]);
    let names: Vec<_> = prepared.schema().fields().iter().map(|field| field.name().clone()).collect();
    assert_eq!(names, ["device", "speed"]);
    let run = |device: &str, speed: &str| {
        rows(&prepared, vec![ScalarValue::from(device), ScalarValue::from(speed), ScalarValue::from(2_i64)])
    };
    // Text, as the PostgreSQL protocol sends it, becomes what the parameter is.
    assert_eq!(run("bus-1", "15").await.unwrap(), ["bus-1 20.0", "bus-1 30.0"]);
    assert_eq!(run("bus-2", "3").await.unwrap(), ["bus-2 3.5"]);
    let error = run("bus-2", "three").await.unwrap_err();
    assert!(matches!(&error, QueryError::Value { .. }), "{error:?}");
}

#[tokio::test]
async fn given_types_are_kept_and_unknown_ones_refused() {
    let engine = engine(fleet());
    let prepared = engine.prepare("SELECT $1 + 1 AS n", &[Some(DataType::Int64)], &user()).await.unwrap();
    assert_eq!(rows(&prepared, vec![ScalarValue::from(41_i64)]).await.unwrap(), ["42"]);
    let cast = engine.prepare("SELECT 1 + $1::bigint AS n", &[], &user()).await.unwrap();
    assert_eq!(cast.parameter_types(), [DataType::Int64]);
    assert_eq!(rows(&cast, vec![ScalarValue::from("41")]).await.unwrap(), ["42"]);
    let error = engine.prepare("SELECT $1", &[], &user()).await.unwrap_err();
    assert!(error.to_string().contains("the type of $1 is not known"), "{error}");
    let error = rows(&prepared, vec![]).await.unwrap_err();
    assert!(error.to_string().contains("0 parameters were given, the statement has 1"), "{error}");
}

#[tokio::test]
async fn a_statement_whose_table_changed_has_to_be_prepared_again() {
    let store = fleet();
    let engine = engine(store.clone());
    let prepared = engine.prepare("SELECT * FROM weather", &[], &user()).await.unwrap();
    assert_eq!(rows(&prepared, vec![]).await.unwrap().len(), 4);
    put(&*store, "weather", &[("site", "yard")], 9, &[("rain", ValueRef::Bool(true))]);
    let error = rows(&prepared, vec![]).await.unwrap_err();
    assert!(error.to_string().contains("prepare it again"), "{error}");
}

#[tokio::test]
async fn a_statement_without_an_answer_is_refused_when_prepared() {
    let engine = engine(fleet());
    let error = engine.prepare("DELETE FROM weather WHERE site = $1", &[], &user()).await.unwrap_err();
    assert!(matches!(&error, QueryError::ReadOnly { .. }), "{error}");
    let error = engine.run("SELECT * FROM weather WHERE site = $1", &user()).await.unwrap_err();
    assert!(error.to_string().contains('$'), "{error}");
}
