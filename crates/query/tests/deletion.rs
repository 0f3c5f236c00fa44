//! The rows that a DELETE names.

use arrow_schema::DataType;
use model::TimeRange;
use query::{NamedRows, QueryError, ScalarValue};
use store::TagPredicate;

use crate::support::{engine, user};

async fn named(sql: &str, parameters: Vec<ScalarValue>) -> Result<Option<NamedRows>, QueryError> {
    let (engine, session) = (engine(testkit::fleet::fleet()), user());
    let types: Vec<Option<DataType>> = Vec::new();
    let prepared = engine.prepare_deletion(sql, &types, &session).await?;
    engine.named_rows(&prepared, parameters, &session).await
}

fn micros(range: TimeRange) -> (i64, i64) {
    (range.start.micros(), range.end.micros())
}

#[tokio::test]
async fn conditions_on_tags_and_times_name_rows() {
    let sql = "DELETE FROM telemetry AS t WHERE t.device IN ('a', 'b', 'c', 'd') AND ts >= '1970-01-01T00:00:01Z' AND ts < $1";
    let end = ScalarValue::Utf8(Some("1970-01-01T00:00:02Z".into()));
    let rows = named(sql, vec![end]).await.unwrap().unwrap();
    assert_eq!((rows.table.as_str(), micros(rows.range)), ("telemetry", (1_000_000, 2_000_000)));
    let [matcher] = rows.matchers.as_slice() else { panic!("{:?}", rows.matchers) };
    assert_eq!(matcher.tag, "device");
    let TagPredicate::OneOf(values) = &matcher.predicate else { panic!("{matcher:?}") };
    assert_eq!(values, &["a", "b", "c", "d"]);

    let rows = named("DELETE FROM telemetry WHERE device LIKE 'bus%'", vec![]).await.unwrap().unwrap();
    assert_eq!((rows.range, rows.matchers.len()), (TimeRange::ALL, 1));
    let rows = named("DELETE FROM telemetry WHERE true", vec![]).await.unwrap().unwrap();
    assert_eq!((rows.range, rows.matchers.len()), (TimeRange::ALL, 0));
    let rows =
        named("DELETE FROM telemetry WHERE ts < now() - INTERVAL '1 day'", vec![]).await.unwrap().unwrap();
    assert!(rows.range.start == TimeRange::ALL.start && rows.range.end < TimeRange::ALL.end);
    assert!(named("DELETE FROM telemetry WHERE false", vec![]).await.unwrap().is_none());
    assert!(named("DELETE FROM telemetry WHERE device = NULL", vec![]).await.unwrap().is_none());
}

#[tokio::test]
async fn other_conditions_and_tables_are_refused() {
    for (sql, told) in [
        ("DELETE FROM telemetry WHERE speed > 5", "speed"),
        ("DELETE FROM telemetry WHERE device = 'a' OR ts < now()", "joined by AND"),
        ("DELETE FROM telemetry WHERE ts < now() - INTERVAL '2 days' OR ts > now()", "joined by AND"),
        ("DELETE FROM telemetry WHERE device = 'a' AND upper(device) = 'A'", "upper"),
        ("DELETE FROM telemetry WHERE device IN (SELECT device FROM telemetry)", "joined by AND"),
        ("DELETE FROM nowhere WHERE true", "nowhere"),
        ("DELETE FROM telemetry WHERE colour = 'red'", "colour"),
        ("DELETE FROM information_schema.tables WHERE true", "ts"),
        ("DELETE FROM telemetry", "WHERE true"),
    ] {
        let refused = named(sql, vec![]).await.unwrap_err().to_string();
        assert!(refused.contains(told), "{sql}: {refused}");
    }
    let missing = named("DELETE FROM telemetry WHERE device = $1", vec![]).await.unwrap_err().to_string();
    assert!(missing.contains("the statement has 1"), "{missing}");
}
