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
    // Text, as the PostgreSQL protocol sends it, is converted to the type of the parameter.
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
async fn a_statement_whose_answer_changed_must_be_prepared_again() {
    let store = fleet();
    let engine = engine(store.clone());
    let all = engine.prepare("SELECT * FROM weather", &[], &user()).await.unwrap();
    let one = engine.prepare("SELECT max(celsius) AS c FROM weather", &[], &user()).await.unwrap();
    assert_eq!(rows(&all, vec![]).await.unwrap().len(), 4);
    put(&*store, "weather", &[("site", "yard")], 9, &[("rain", ValueRef::Bool(true))]);
    let error = rows(&all, vec![]).await.unwrap_err();
    assert!(matches!(error, QueryError::ResultChanged) && error.sql_state() == "0A000", "{error}");
    assert_eq!(error.to_string(), "cached plan must not change result type");
    // A new key that the statement does not name changes nothing.
    assert_eq!(rows(&one, vec![]).await.unwrap(), ["3.0"]);
    put(&*store, "weather", &[("site", "yard")], 9, &[("celsius", ValueRef::F64(7.5))]);
    assert_eq!(rows(&one, vec![]).await.unwrap(), ["7.5"]);
}

/// The first float of a key arrives between two executions.
#[tokio::test]
async fn a_column_that_becomes_double_changes_no_answer_in_silence() {
    let store = fleet();
    let engine = engine(store.clone());
    let prepare = async |sql| engine.prepare(sql, &[], &user()).await.unwrap();
    let plain = prepare("SELECT odo FROM telemetry WHERE device = 'bus-1' ORDER BY ts LIMIT 1").await;
    let mean = prepare("SELECT avg(odo) AS mean, count(odo) AS n FROM telemetry").await;
    let above = prepare("SELECT count(*) AS n FROM telemetry WHERE odo > $1").await;
    let exact = prepare("SELECT max(ts) AS t FROM telemetry WHERE odo = $1 AND odo < $2 + 1").await;
    assert_eq!(above.parameter_types(), [DataType::Int64]);
    let long = |n: i64| ScalarValue::from(n);
    for _ in 0..2 {
        assert_eq!(rows(&plain, vec![]).await.unwrap(), ["100"]);
        assert_eq!(rows(&mean, vec![]).await.unwrap(), ["66.66666666666667 6"]);
        assert_eq!(rows(&above, vec![long(100)]).await.unwrap(), ["2"]);
        assert_eq!(rows(&exact, vec![long(110), long(110)]).await.unwrap(), ["2026-01-01T00:01:00Z"]);
    }
    put(&*store, "telemetry", &[("device", "bus-1")], 7, &[("odo", ValueRef::F64(100.5))]);
    let error = rows(&plain, vec![]).await.unwrap_err();
    assert!(matches!(error, QueryError::ResultChanged), "{error}");
    for _ in 0..2 {
        assert_eq!(rows(&mean, vec![]).await.unwrap(), ["71.5 7"]);
        // The client still sends values of the types of the first description.
        assert_eq!(above.parameter_types(), [DataType::Int64]);
        assert_eq!(rows(&above, vec![long(100)]).await.unwrap(), ["3"]);
        assert_eq!(rows(&exact, vec![long(110), long(110)]).await.unwrap(), ["2026-01-01T00:01:00Z"]);
    }
    let again = prepare("SELECT odo FROM telemetry WHERE device = 'bus-1' ORDER BY ts LIMIT 1").await;
    assert_eq!(rows(&again, vec![]).await.unwrap(), ["100.0"]);
}

#[tokio::test]
async fn a_statement_without_an_answer_is_refused_when_prepared() {
    let engine = engine(fleet());
    let error = engine.prepare("DELETE FROM weather WHERE site = $1", &[], &user()).await.unwrap_err();
    assert!(matches!(&error, QueryError::ReadOnly { .. }), "{error}");
    let error = engine.run("SELECT * FROM weather WHERE site = $1", &user()).await.unwrap_err();
    assert!(error.to_string().contains('$'), "{error}");
}
