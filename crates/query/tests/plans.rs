//! The conditions and orders that reach the store, as plans show them.

use crate::support::{engine, fleet, plan, rows};

#[tokio::test]
async fn conditions_on_tags_and_time_leave_no_filter() {
    let engine = engine(fleet());
    for (condition, expected) in [
        ("device = 'bus-1'", "series=1"),
        ("'bus-1' = device", "series=1"),
        ("device != 'bus-1'", "series=2"),
        ("device <> 'bus-1' AND device <> 'car-1'", "series=1"),
        ("device IN ('bus-1', 'bus-2')", "series=2"),
        ("device IN ('bus-1', 'bus-2', 'a', 'b', 'c', 'd')", "series=2"),
        ("device NOT IN ('bus-1', 'a', 'b', 'c', 'd')", "series=2"),
        ("device LIKE 'bus-%'", "series=2"),
        ("device NOT LIKE 'bus-_'", "series=1"),
        ("device ~ '[12]$'", "series=3"),
        ("device ~* 'CAR'", "series=1"),
        ("device !~ 'car'", "series=2"),
        ("device IS NULL", "series=0"),
        ("ts >= '2026-01-01T00:00:00Z'", "from=1767225600000000us"),
        ("ts > '2026-01-01T00:00:00Z'", "from=1767225600000001us"),
        ("ts < '2026-01-01T00:00:00Z'", "before=1767225600000000us"),
        ("ts <= '2026-01-01T00:00:00Z'", "before=1767225600000001us"),
        ("ts = '2026-01-01T00:00:00Z'", "from=1767225600000000us, before=1767225600000001us"),
        ("ts BETWEEN '2026-01-01' AND '2026-01-02'", "from=1767225600000000us, before=1767312000000001us"),
        ("ts > now() - INTERVAL '5 minutes'", "from="),
        ("ts >= now() - INTERVAL '5 minutes' AND ts < now()", "before="),
    ] {
        let plan = plan(&engine, &format!("SELECT speed FROM telemetry WHERE {condition}")).await;
        assert!(plan.contains(expected), "{condition}: {plan}");
        assert!(!plan.contains("FilterExec"), "{condition}: {plan}");
    }
}

#[tokio::test]
async fn other_conditions_are_checked_above_the_scan() {
    let engine = engine(fleet());
    for condition in ["speed > 5", "device = 'bus-1' OR speed > 5", "upper(device) = 'BUS-1'"] {
        let plan = plan(&engine, &format!("SELECT ts FROM telemetry WHERE {condition}")).await;
        assert!(plan.contains("FilterExec") && !plan.contains("series="), "{condition}: {plan}");
    }
    let two_days = "SELECT ts FROM telemetry WHERE ts < '2026-01-01' OR ts = '2026-01-02'";
    let plan = plan(&engine, two_days).await;
    assert!(plan.contains("before=1767312000000001us") && plan.contains("FilterExec"), "{plan}");
}

#[tokio::test]
async fn only_needed_columns_are_read() {
    let engine = engine(fleet());
    let counted = plan(&engine, "SELECT count(*) FROM telemetry WHERE device = 'bus-1'").await;
    assert!(counted.contains("columns=[]"), "{counted}");
    let one = plan(&engine, "SELECT avg(speed) FROM telemetry WHERE device = 'bus-1'").await;
    assert!(one.contains("columns=[speed]"), "{one}");
}

#[tokio::test]
async fn newest_rows_need_no_sort() {
    let engine = engine(fleet());
    for (query, expected) in [
        ("WHERE device = 'bus-1' ORDER BY ts DESC LIMIT 2", "order=ts DESC, limit=2"),
        ("WHERE device = 'bus-1' ORDER BY ts LIMIT 2", "order=ts ASC, limit=2"),
        ("WHERE device = 'bus-1' ORDER BY device, ts DESC LIMIT 2", "order=ts DESC, limit=2"),
        ("WHERE device = 'bus-1' ORDER BY ts DESC, speed LIMIT 2", "order=ts DESC, limit=2"),
        ("WHERE device LIKE 'bus%' ORDER BY ts DESC LIMIT 2", "order=ts DESC, limit=2"),
        ("ORDER BY ts", "order=ts ASC"),
        ("LIMIT 4", "limit=4"),
    ] {
        let plan = plan(&engine, &format!("SELECT ts, device, speed FROM telemetry {query}")).await;
        assert!(plan.contains(expected), "{query}: {plan}");
        assert!(!plan.contains("Sort"), "{query}: {plan}");
    }
}

#[tokio::test]
async fn orders_that_the_store_cannot_give_are_sorted() {
    let engine = engine(fleet());
    for query in ["ORDER BY ts DESC, device LIMIT 2", "ORDER BY device, ts", "ORDER BY speed"] {
        let plan = plan(&engine, &format!("SELECT ts, device, speed FROM telemetry {query}")).await;
        assert!(plan.contains("SortExec") && !plan.contains("order="), "{query}: {plan}");
    }
}

#[tokio::test]
async fn a_kept_plan_gives_new_rows_and_sees_new_columns() {
    use model::ValueRef;
    let store = fleet();
    let engine = engine(store.clone());
    let sql = "SELECT * FROM weather WHERE site = 'yard' ORDER BY ts";
    assert_eq!(rows(&engine, sql).await, ["NULL yard 2026-01-01T00:00:00Z -5.0"]);
    crate::support::put(&*store, "weather", &[("site", "yard")], 9, &[("celsius", ValueRef::F64(1.0))]);
    assert_eq!(rows(&engine, sql).await.len(), 2);
    crate::support::put(&*store, "weather", &[("site", "yard")], 9, &[("rain", ValueRef::Bool(true))]);
    assert_eq!(rows(&engine, sql).await[1], "NULL yard 2026-01-01T00:09:00Z 1.0 true");
}

#[tokio::test]
async fn now_is_the_time_of_each_run() {
    let engine = engine(fleet());
    let first = rows(&engine, "SELECT now() FROM telemetry LIMIT 1").await;
    tokio::time::sleep(std::time::Duration::from_millis(2)).await;
    assert_ne!(rows(&engine, "SELECT now() FROM telemetry LIMIT 1").await, first);
}
