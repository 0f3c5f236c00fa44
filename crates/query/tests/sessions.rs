//! The access of users to tables.

use query::{Access, Engine, QueryError, Session};
use store::{TagMatcher, TagPredicate};

use crate::support::{engine, fleet, text};

/// A user with access to buses and no access to the weather.
fn dispatcher() -> Session {
    Session::new("dispatcher").with_access(|table| match table {
        "telemetry" => Access::Series(vec![TagMatcher {
            tag: "device".into(),
            predicate: TagPredicate::Matches(regex::Regex::new("^bus-").unwrap()),
        }]),
        _ => Access::Nothing,
    })
}

async fn rows(engine: &Engine, sql: &str, session: &Session) -> Vec<String> {
    let answer = engine.run(sql, session).await.unwrap();
    text(&answer.collect().await.unwrap()).into_iter().map(|row| row.join(" ")).collect()
}

#[tokio::test]
async fn a_user_sees_some_series_of_a_table() {
    let engine = engine(fleet());
    let everybody = Session::new("admin");
    let count = "SELECT count(*) FROM telemetry";
    // A plan that one user's query has cached does not show another user hidden rows.
    assert_eq!(rows(&engine, count, &everybody).await, ["10"]);
    assert_eq!(rows(&engine, count, &dispatcher()).await, ["9"]);
    assert_eq!(rows(&engine, count, &everybody).await, ["10"]);
    let cars = "SELECT device FROM telemetry WHERE device = 'car-1' OR device LIKE 'car%'";
    assert_eq!(rows(&engine, cars, &dispatcher()).await, [""; 0]);
}

#[tokio::test]
async fn a_hidden_table_does_not_exist() {
    let engine = engine(fleet());
    let sql = "SELECT count(*) FROM weather";
    assert_eq!(rows(&engine, sql, &Session::new("admin")).await, ["4"]);
    let error = engine.run(sql, &dispatcher()).await.unwrap_err();
    assert!(matches!(&error, QueryError::UnknownTable { nearest: None, .. }), "{error}");
    let tables = "SELECT table_name FROM information_schema.tables WHERE table_schema = 'public'";
    assert_eq!(rows(&engine, tables, &dispatcher()).await, ["telemetry"]);
    let columns = "SELECT count(*) FROM information_schema.columns WHERE table_name = 'weather'";
    assert_eq!(rows(&engine, columns, &dispatcher()).await, ["0"]);
}
