//! Gap filling in statements.

use arrow_array::cast::AsArray;
use arrow_array::types::TimestampMicrosecondType;
use arrow_schema::{DataType, IntervalUnit, TimeUnit};
use model::{Batch, SeriesKey, Timestamp, ValueRef};
use query::{Engine, QueryError, ScalarValue};
use store::{Durability, MemoryStore, Writer};

use crate::limits::until;
use crate::support::{NEW_YEAR_US, engine, fleet, many, plan, put, refusal, rows, run, text, user};

/// The first five minutes of the buses.
const BUSES: &str = "ts >= '2026-01-01T00:00:00Z' AND ts < '2026-01-01T00:05:00Z' AND device LIKE 'bus-%'";

/// The minute of each row's time, which is in the given column.
async fn minutes(engine: &Engine, sql: &str) -> Vec<String> {
    let minute = |row: String| row.split("T00:").nth(1).unwrap_or("??").chars().take(2).collect();
    rows(engine, sql).await.into_iter().map(minute).collect()
}

#[tokio::test]
async fn each_group_has_all_buckets_and_its_own_values() {
    let engine = engine(fleet());
    let sql = format!(
        "SELECT device, time_bucket_gapfill('1 minute', ts) AS t, avg(speed) AS speed, locf(avg(speed)) AS carried, \
         interpolate(avg(speed)) AS line, count(*) AS n FROM telemetry WHERE {BUSES} GROUP BY device, t ORDER BY device, t"
    );
    let expected = [
        "bus-1 2026-01-01T00:00:00Z 10.0 10.0 10.0 1",
        "bus-1 2026-01-01T00:01:00Z 20.0 20.0 20.0 1",
        "bus-1 2026-01-01T00:02:00Z 30.0 30.0 30.0 1",
        // A row without a speed is filled like a missing row, but it is counted.
        "bus-1 2026-01-01T00:03:00Z NULL 30.0 40.0 1",
        "bus-1 2026-01-01T00:04:00Z 50.0 50.0 50.0 1",
        "bus-2 2026-01-01T00:00:00Z 1.5 1.5 1.5 1",
        "bus-2 2026-01-01T00:01:00Z NULL 1.5 2.0 NULL",
        "bus-2 2026-01-01T00:02:00Z 2.5 2.5 2.5 1",
        "bus-2 2026-01-01T00:03:00Z NULL 2.5 3.0 NULL",
        "bus-2 2026-01-01T00:04:00Z 3.5 3.5 3.5 1",
    ];
    assert_eq!(rows(&engine, &sql).await, expected);
    // The plan was cached.
    assert_eq!(rows(&engine, &sql).await, expected);
    let plan = plan(&engine, &sql).await;
    assert_eq!(plan.matches("SortExec").count(), 1, "{plan}");
    let sort = plan.find("SortExec").unwrap();
    assert!(plan.find("GapFill").is_some_and(|fill| fill < sort), "{plan}");
    // With one device, the order of the time is the order of the rows.
    let one =
        sql.replace("device LIKE 'bus-%'", "device = 'bus-1'").replace("ORDER BY device, t", "ORDER BY t");
    let plan = self::plan(&engine, &one).await;
    assert_eq!((rows(&engine, &one).await.len(), plan.matches("SortExec").count()), (5, 1), "{plan}");
}

#[tokio::test]
async fn columns_are_named_as_in_postgresql() {
    let engine = engine(fleet());
    let sql = format!(
        "SELECT time_bucket_gapfill('1 minute', ts), locf(avg(speed)), 1 + interpolate(max(odo)) FROM telemetry WHERE {BUSES} GROUP BY 1"
    );
    let answer = engine.run(&sql, &user()).await.unwrap();
    let names: Vec<_> = answer.schema.fields().iter().map(|field| field.name().as_str()).collect();
    assert_eq!(names, ["time_bucket_gapfill", "locf", "?column?"]);
    assert_eq!(answer.collect().await.unwrap().iter().map(|batch| batch.num_rows()).sum::<usize>(), 5);
}

#[tokio::test]
async fn the_range_is_found_in_conditions_wherever_they_stand() {
    let engine = engine(fleet());
    let buckets = "time_bucket_gapfill('1 minute', ts) AS t, count(*)";
    for (from, expected) in [
        ("telemetry WHERE ts BETWEEN '2026-01-01T00:01:00Z' AND '2026-01-01T00:03:00Z'", 3),
        ("telemetry WHERE ts > '2026-01-01T00:01:00Z' AND '2026-01-01T00:03:00Z' >= ts", 3),
        ("telemetry WHERE ts = '2026-01-01T00:07:00Z'", 1),
        (
            "telemetry WHERE ts >= '2026-01-01T00:01:30Z' AND ts < TIMESTAMPTZ '2026-01-01T00:03:00Z' + INTERVAL '1 minute'",
            3,
        ),
        // The range around alternatives.
        (
            "telemetry WHERE (ts > '2026-01-01T00:01:00Z' AND ts < '2026-01-01T00:02:00Z') OR ts = '2026-01-01T00:09:00Z'",
            9,
        ),
        (
            "(SELECT * FROM telemetry WHERE ts >= '2026-01-01T00:01:00Z') x WHERE ts < '2026-01-01T00:03:00Z'",
            2,
        ),
        (
            "(SELECT device, ts FROM telemetry WHERE speed > 0 ORDER BY ts LIMIT 5) x WHERE x.ts >= '2026-01-01' AND x.ts < '2026-01-01T00:09:00Z'",
            9,
        ),
        (
            "(SELECT ts AS ts FROM telemetry GROUP BY ts) x WHERE ts >= '2026-01-01' AND ts < '2026-01-01T00:02:00Z'",
            2,
        ),
        (
            "telemetry JOIN (SELECT DISTINCT device FROM telemetry) d USING (device) WHERE ts >= '2026-01-01' AND ts < '2026-01-01T00:02:00Z'",
            2,
        ),
        (
            "(SELECT ts FROM telemetry WHERE ts >= '2026-01-01' AND ts < '2026-01-01T00:02:00Z' UNION ALL SELECT ts FROM weather WHERE ts >= '2026-01-01T00:01:00Z' AND ts < '2026-01-01T00:03:00Z') x",
            3,
        ),
    ] {
        let sql = format!("SELECT {buckets} FROM {from} GROUP BY t ORDER BY t");
        assert_eq!(rows(&engine, &sql).await.len(), expected, "{sql}");
    }
}

#[tokio::test]
async fn without_an_end_the_error_shows_the_missing_condition() {
    let engine = engine(fleet());
    for (key, condition, expected) in [
        (
            "time_bucket_gapfill('1 minute', ts)",
            "true",
            "where to begin and end: add a condition with constants to WHERE, such as ts >= now() - INTERVAL '1 hour' AND ts < now(), or give",
        ),
        (
            "time_bucket_gapfill('1 minute', ts)",
            "ts > '2026-01-01'",
            "where to end: add a condition with constants to WHERE, such as ts < now(), or give its fourth argument",
        ),
        ("time_bucket_gapfill('1 minute', ts)", "ts < '2026-01-01' AND speed > 3", "where to begin: add"),
        (
            "time_bucket_gapfill('1 minute', ts)",
            "ts > '2026-01-01' AND ts < (SELECT max(ts) FROM telemetry)",
            "where to end",
        ),
        (
            "time_bucket_gapfill('1 minute', ts)",
            "ts > '2026-01-01' AND ts < '2026-01-02' OR speed > 3",
            "where to begin and end",
        ),
        ("time_bucket_gapfill('1 minute', ts, '2026-01-01')", "true", "where to end"),
        (
            "time_bucket_gapfill('1 minute', ts + INTERVAL '1 hour')",
            "ts > '2026-01-01' AND ts < '2026-01-02'",
            "where to begin and end",
        ),
        (
            "date_bin_gapfill('1 minute', ts)",
            "ts > '2026-01-01'",
            "where to end: add a condition with constants to WHERE, such as ts < now()",
        ),
    ] {
        let sql = format!("SELECT {key} AS t, count(*) FROM telemetry WHERE {condition} GROUP BY t");
        let error = refusal(&engine, &sql).await;
        assert!(matches!(&error, QueryError::Invalid { .. }), "{sql}: {error:?}");
        assert!(error.to_string().contains(expected), "{sql}: {error}");
    }
}

#[tokio::test]
async fn arguments_make_rows_and_filter_none() {
    let engine = engine(fleet());
    let query = |arguments: &str, condition: &str| {
        format!(
            "SELECT time_bucket_gapfill('1 minute', ts{arguments}) AS t, locf(avg(speed)) FROM telemetry WHERE device = 'bus-2' {condition} GROUP BY t ORDER BY t"
        )
    };
    let given = query(", '2026-01-01T00:03:00Z', '2026-01-01T00:07:00Z'", "");
    let expected = ["00 1.5", "02 2.5", "03 2.5", "04 3.5", "05 3.5", "06 3.5"];
    let shown = |rows: Vec<String>| -> Vec<String> {
        rows.iter().map(|row| row[14..16].to_owned() + &row[20..]).collect()
    };
    assert_eq!(shown(rows(&engine, &given).await), expected);
    let named = query(", start => '2026-01-01T00:03:00Z', finish => '2026-01-01T00:07:00Z'", "");
    assert_eq!(shown(rows(&engine, &named).await), expected);
    // A NULL argument counts as left out.
    let condition = "AND ts >= '2026-01-01' AND ts < '2026-01-01T00:02:00Z'";
    assert_eq!(shown(rows(&engine, &query(", NULL, NULL", condition)).await), ["00 1.5", "01 1.5"]);
    assert_eq!(
        shown(rows(&engine, &query(", NULL, '2026-01-01T00:03:00Z'", condition)).await),
        ["00 1.5", "01 1.5", "02 1.5"]
    );
    // An end before the beginning selects no rows.
    assert_eq!(shown(rows(&engine, &query(", '2026-01-03', '2026-01-02'", condition)).await), ["00 1.5"]);
    for (arguments, expected) in [
        (", ts, ts", "the start of time_bucket_gapfill must be a constant"),
        (", now(), ts", "the finish of time_bucket_gapfill must be a constant"),
        (", now(), now(), now()", "takes an interval, a time and perhaps a start and a finish"),
    ] {
        let error = refusal(&engine, &query(arguments, "")).await;
        assert!(error.to_string().contains(expected), "{arguments}: {error}");
    }
}

#[tokio::test]
async fn now_is_the_time_of_each_run() {
    let store = fleet();
    let engine = engine(store.clone());
    let now = std::time::SystemTime::now().duration_since(std::time::UNIX_EPOCH).unwrap().as_micros() as i64;
    let id = store.series(&SeriesKey::device("fresh", "d").unwrap()).unwrap();
    let mut batch = Batch::new();
    let mut builder = batch.builder();
    builder.field("x", ValueRef::F64(1.0));
    builder.row(id, Timestamp::from_micros(now - 3_000_000));
    builder.finish();
    store.append(&batch, Durability::Memory).unwrap();
    let sql = "SELECT time_bucket_gapfill('50 milliseconds', ts) AS t, count(x) FROM fresh \
               WHERE ts > now() - INTERVAL '10 minutes' AND ts < now() GROUP BY t ORDER BY t DESC LIMIT 1";
    let first = newest_bucket_us(&engine, sql).await;
    tokio::time::sleep(std::time::Duration::from_millis(120)).await;
    let second = newest_bucket_us(&engine, sql).await;
    assert!(second > first, "{first} {second}");
    let counted = sql.replace("ORDER BY t DESC LIMIT 1", "").replace("50 milliseconds", "1 minute");
    // Ten minutes overlap eleven buckets, unless a bucket begins right now.
    assert!((10..=11).contains(&rows(&engine, &counted).await.len()));
}

/// The first column of the first row as a number: as texts, 45 seconds come after 45.15 seconds.
async fn newest_bucket_us(engine: &Engine, sql: &str) -> i64 {
    let batches = run(engine, sql).await.unwrap();
    batches[0].column(0).as_primitive::<TimestampMicrosecondType>().value(0)
}

#[tokio::test]
async fn months_and_weeks_and_origins_are_those_of_the_ordinary_functions() {
    let store = fleet();
    const DAY_MINUTES: i64 = 24 * 60;
    for day in [0, 3, 30, 45, 100, 190] {
        put(&*store, "days", &[("device", "d")], day * DAY_MINUTES, &[("x", ValueRef::F64(day as f64))]);
    }
    let engine = engine(store);
    let range = "ts >= '2025-12-20T00:00:00Z' AND ts < '2026-08-03T00:00:00Z'";
    for (gapfill, ordinary, buckets) in [
        ("time_bucket_gapfill('1 month', ts)", "time_bucket('1 month', ts)", 9),
        ("time_bucket_gapfill('3 months', ts)", "time_bucket('3 months', ts)", 4),
        ("time_bucket_gapfill('1 year', ts)", "time_bucket('1 year', ts)", 2),
        ("time_bucket_gapfill('1 week', ts)", "time_bucket('1 week', ts)", 33),
        ("time_bucket_gapfill('5 days', ts)", "time_bucket('5 days', ts)", 46),
        ("date_bin_gapfill('1 week', ts)", "date_bin('1 week', ts)", 33),
        (
            "date_bin_gapfill('5 days', ts, '2026-01-02')",
            "date_bin('5 days', ts, TIMESTAMP '2026-01-02')",
            46,
        ),
        (
            "date_bin_gapfill('1 month', ts, '2026-05-31')",
            "date_bin('1 month', ts, TIMESTAMP '2026-05-31')",
            9,
        ),
    ] {
        let query =
            |key: &str| format!("SELECT {key} AS t, sum(x) FROM days WHERE {range} GROUP BY t ORDER BY t");
        let filled = rows(&engine, &query(gapfill)).await;
        assert_eq!(filled.len(), buckets, "{gapfill}: {filled:?}");
        let known: Vec<_> = filled.into_iter().filter(|row| !row.ends_with("NULL")).collect();
        assert_eq!(known, rows(&engine, &query(ordinary)).await, "{gapfill}");
    }
}

#[tokio::test]
async fn gap_filled_groups_behave_like_other_groups() {
    let engine = engine(fleet());
    let from = format!("FROM telemetry WHERE {BUSES}");
    let t = "time_bucket_gapfill('1 minute', ts) AS t";
    for (sql, expected) in [
        (format!("SELECT {t} {from} GROUP BY t ORDER BY t DESC"), vec!["04", "03", "02", "01", "00"]),
        (format!("SELECT {t} {from} GROUP BY t ORDER BY t DESC LIMIT 2"), vec!["04", "03"]),
        (
            format!("SELECT device, {t} {from} GROUP BY device, t ORDER BY device, t OFFSET 3 LIMIT 3"),
            vec!["03", "04", "00"],
        ),
        (
            format!("SELECT DISTINCT {t} {from} GROUP BY device, t ORDER BY t"),
            vec!["00", "01", "02", "03", "04"],
        ),
        // Groups that HAVING drops are gaps.
        (
            format!("SELECT {t}, avg(speed) {from} GROUP BY t HAVING avg(speed) > 40 ORDER BY t"),
            vec!["00", "01", "02", "03", "04"],
        ),
        (
            format!("SELECT {t} {from} GROUP BY device, t HAVING device = 'bus-2' ORDER BY t"),
            vec!["00", "01", "02", "03", "04"],
        ),
        (
            format!(
                "SELECT t FROM (SELECT {t}, avg(speed) AS speed {from} GROUP BY t) x WHERE speed IS NULL"
            ),
            vec!["03"],
        ),
        (
            format!(
                "SELECT t FROM (SELECT device, {t}, locf(avg(speed)) AS c {from} GROUP BY device, t) x WHERE device = 'bus-2' AND c = 2.5 ORDER BY t"
            ),
            vec!["02", "03"],
        ),
        (
            format!(
                "WITH f AS (SELECT device, {t} {from} GROUP BY device, t) SELECT a.t FROM f a JOIN f b ON a.t = b.t AND a.device < b.device ORDER BY a.t"
            ),
            vec!["00", "01", "02", "03", "04"],
        ),
        // Twice in one statement.
        (
            format!(
                "SELECT {t} {from} GROUP BY t UNION ALL SELECT time_bucket_gapfill('3 minutes', ts) AS t {from} GROUP BY 1 ORDER BY 1"
            ),
            vec!["00", "00", "01", "02", "03", "03", "04"],
        ),
        (
            format!(
                "SELECT time_bucket_gapfill('2 minutes', t) AS u FROM (SELECT {t}, max(ts) AS ts {from} GROUP BY t) x WHERE t >= '2026-01-01' AND t < '2026-01-01T00:09:00Z' GROUP BY u ORDER BY u"
            ),
            vec!["00", "02", "04", "06", "08"],
        ),
        (format!("SELECT {t} {from} GROUP BY ALL"), vec!["00", "01", "02", "03", "04"]),
    ] {
        assert_eq!(minutes(&engine, &sql).await, expected, "{sql}");
    }
    for (sql, expected) in [
        // Expressions of the key and of filled values.
        (
            format!(
                "SELECT date_part('minute', {}) AS m, coalesce(locf(max(speed)), -1) + 1, coalesce(count(*), 0) {from} AND device = 'bus-2' AND speed > 2 GROUP BY time_bucket_gapfill('1 minute', ts) ORDER BY m",
                "time_bucket_gapfill('1 minute', ts)"
            ),
            vec!["0.0 0.0 0", "1.0 0.0 0", "2.0 3.5 1", "3.0 3.5 0", "4.0 4.5 1"],
        ),
        // Windows above, one of them with a filled value.
        (
            format!(
                "SELECT sum(locf(max(speed))) OVER (ORDER BY time_bucket_gapfill('1 minute', ts)) {from} AND device = 'bus-2' GROUP BY time_bucket_gapfill('1 minute', ts)"
            ),
            vec!["1.5", "3.0", "5.5", "8.0", "11.5"],
        ),
        (
            format!(
                "SELECT locf(max(speed)) OVER (ORDER BY time_bucket_gapfill('1 minute', ts)), locf(max(speed)) {from} AND device = 'bus-2' GROUP BY time_bucket_gapfill('1 minute', ts)"
            ),
            vec!["1.5 1.5", "1.5 1.5", "2.5 2.5", "2.5 2.5", "3.5 3.5"],
        ),
        (
            format!(
                "SELECT interpolate(sum(odo)), locf(max(device)), count(DISTINCT speed), first(speed, ts), interpolate(avg(speed) + max(speed)) {from} AND device = 'bus-1' AND odo > 110 GROUP BY time_bucket_gapfill('1 minute', ts)"
            ),
            vec![
                "NULL NULL NULL NULL NULL",
                "NULL NULL NULL NULL NULL",
                "125.0 bus-1 1 30.0 60.0",
                "NULL bus-1 NULL NULL NULL",
                "NULL bus-1 NULL NULL NULL",
            ],
        ),
        // Without input rows there is one group without other keys, and none with other keys.
        (
            format!(
                "SELECT count(*), locf(max(device)) {from} AND device = 'bus-9' GROUP BY time_bucket_gapfill('2 minutes', ts)"
            ),
            vec!["NULL NULL"; 3],
        ),
        (
            format!("SELECT count(*) {from} AND false GROUP BY time_bucket_gapfill('2 minutes', ts)"),
            vec!["NULL"; 3],
        ),
        (
            format!(
                "SELECT device {from} AND device = 'bus-9' GROUP BY device, time_bucket_gapfill('2 minutes', ts)"
            ),
            vec![],
        ),
        (format!("SELECT count(*) FROM (SELECT {t} {from} GROUP BY t) x"), vec!["5"]),
        // A count that is NULL, filled and not, as a key of other groups.
        (
            format!(
                "SELECT n, count(*) FROM (SELECT device, {t}, count(*) AS n {from} GROUP BY device, t) x GROUP BY n ORDER BY n"
            ),
            vec!["1 8", "NULL 2"],
        ),
        (
            format!(
                "SELECT n, time_bucket_gapfill('3 minutes', t) AS u, count(*) FROM (SELECT device, {t}, count(*) AS n {from} GROUP BY device, t) x WHERE t >= '2026-01-01' AND t < '2026-01-01T00:06:00Z' GROUP BY n, u ORDER BY n, u"
            ),
            vec![
                "1 2026-01-01T00:00:00Z 5",
                "1 2026-01-01T00:03:00Z 3",
                "NULL 2026-01-01T00:00:00Z 1",
                "NULL 2026-01-01T00:03:00Z 1",
            ],
        ),
        (
            format!(
                "SELECT (SELECT count(*) FROM (SELECT {t} {from} GROUP BY t) x) AS n FROM weather LIMIT 1"
            ),
            vec!["5"],
        ),
    ] {
        assert_eq!(rows(&engine, &sql).await, expected, "{sql}");
    }
}

#[tokio::test]
async fn other_places_are_refused_with_a_remedy() {
    let engine = engine(fleet());
    let from = format!("FROM telemetry WHERE {BUSES}");
    let key = "time_bucket_gapfill('1 minute', ts)";
    for (sql, expected) in [
        (
            format!("SELECT {key} {from}"),
            "time_bucket_gapfill must be an element of GROUP BY, alone and only once",
        ),
        (format!("SELECT DISTINCT {key} {from}"), "must be an element of GROUP BY"),
        (
            format!("SELECT count(*) {from} GROUP BY {key} + INTERVAL '1 hour'"),
            "must be an element of GROUP BY",
        ),
        (
            format!("SELECT count(*) {from} GROUP BY {key}, time_bucket_gapfill('2 minutes', ts)"),
            "alone and only once",
        ),
        (format!("SELECT count(*) {from} GROUP BY ROLLUP (device, {key})"), "must be an element of GROUP BY"),
        (format!("SELECT count(*) FROM telemetry WHERE {key} = ts"), "must be an element of GROUP BY"),
        (format!("SELECT max({key}) {from}"), "must be an element of GROUP BY"),
        (
            format!("SELECT * FROM (SELECT {key} AS t, count(*) {from} GROUP BY t) x WHERE random() < 0.5"),
            "leaves rows to chance, such as random()",
        ),
        (format!("SELECT date_bin_gapfill('1 minute', ts) {from}"), "date_bin_gapfill must be an element"),
        (
            "SELECT locf(speed) FROM telemetry".into(),
            "locf without OVER takes an aggregate, such as locf(avg(speed)), and must be a column of a SELECT that groups by time_bucket_gapfill; elsewhere write locf(x) OVER (ORDER BY ts)",
        ),
        (
            "SELECT interpolate(avg(speed)) FROM telemetry".into(),
            "elsewhere write interpolate(x, ts) OVER (ORDER BY ts)",
        ),
        (
            format!("SELECT locf(avg(speed)) {from} GROUP BY time_bucket('1 minute', ts)"),
            "locf without OVER takes",
        ),
        (format!("SELECT avg(locf(speed)) {from} GROUP BY {key}"), "locf without OVER takes an aggregate"),
        (
            format!("SELECT locf(interpolate(avg(speed))) {from} GROUP BY {key}"),
            "interpolate without OVER takes an aggregate",
        ),
        (
            format!("SELECT 1 {from} GROUP BY {key} HAVING locf(avg(speed)) > 3"),
            "must be a column of a SELECT",
        ),
        (format!("SELECT 1 {from} GROUP BY {key} ORDER BY locf(avg(speed))"), "must be a column of a SELECT"),
        (format!("SELECT interpolate(max(device)) {from} GROUP BY {key}"), "interpolate takes one number"),
        (format!("SELECT interpolate(avg(speed), ts) {from} GROUP BY {key}"), "interpolate takes one number"),
        (
            format!("SELECT 1 {from} GROUP BY time_bucket_gapfill('0 minutes', ts)"),
            "the interval of time_bucket_gapfill must be longer than nothing",
        ),
        (format!("SELECT 1 {from} GROUP BY time_bucket_gapfill('1 month 1 day', ts)"), "not both"),
        (
            format!("SELECT 1 {from} GROUP BY time_bucket_gapfill(ts - ts, ts)"),
            "the interval of time_bucket_gapfill must be a constant",
        ),
        (
            format!("SELECT 1 {from} GROUP BY time_bucket_gapfill('1 minute')"),
            "takes an interval, a time and perhaps",
        ),
    ] {
        let error = refusal(&engine, &sql).await;
        assert!(matches!(&error, QueryError::Invalid { .. }), "{sql}: {error:?}");
        assert!(error.to_string().contains(expected), "{sql}: {error}");
    }
}

#[tokio::test]
async fn buckets_are_limited_and_rows_are_streamed() {
    let engine = engine(fleet());
    let years = "SELECT time_bucket_gapfill('1 microsecond', ts) AS t, count(*) FROM telemetry \
                 WHERE ts > '2020-01-01' AND ts < '2026-02-01' GROUP BY t";
    let error = refusal(&engine, years).await;
    assert!(matches!(&error, QueryError::OverLimit { .. }), "{error:?}");
    assert!(error.to_string().contains("1000000 buckets; take wider buckets or a shorter range"), "{error}");
    // Of both buses.
    let sql = "SELECT device, time_bucket_gapfill('1 microsecond', ts) AS t, count(*), interpolate(avg(speed)) FROM telemetry \
               WHERE ts >= '2026-01-01T00:00:00Z' AND ts < '2026-01-01T00:00:00.2Z' GROUP BY device, t";
    let mut answer = engine.run(sql, &user()).await.unwrap();
    let mut count = 0;
    let mut largest = 0;
    while let Some(batch) = answer.batches.next().await {
        let batch = batch.unwrap();
        count += batch.num_rows();
        largest = largest.max(batch.num_rows());
        assert!(engine.status().memory_bytes < 4 * 1024 * 1024);
    }
    assert_eq!((count, largest), (400_000, 8_192));
}

#[tokio::test]
async fn parameters_give_width_and_range() {
    let engine = engine(fleet());
    let sql = "SELECT time_bucket_gapfill($1, ts) AS t, locf(avg(speed)) AS speed FROM telemetry \
               WHERE device = $2 AND ts >= $3 AND ts < $4 GROUP BY t ORDER BY t";
    let prepared = engine.prepare(sql, &[], &user()).await.unwrap();
    let time = DataType::Timestamp(TimeUnit::Microsecond, Some("UTC".into()));
    let interval = DataType::Interval(IntervalUnit::MonthDayNano);
    assert_eq!(prepared.parameter_types(), [interval, DataType::Utf8View, time.clone(), time.clone()]);
    let run = async |width: &str, end: &str| {
        let values = [width, "bus-2", "2026-01-01T00:00:00Z", end].map(ScalarValue::from);
        let batches = prepared.run(values.to_vec(), &user()).await?.collect().await?;
        Ok::<_, QueryError>(text(&batches).into_iter().map(|row| row.join(" ")).collect::<Vec<_>>())
    };
    let expected = ["2026-01-01T00:00:00Z 1.5", "2026-01-01T00:01:00Z 1.5"];
    assert_eq!(run("1 minute", "2026-01-01T00:02:00Z").await.unwrap(), expected);
    assert_eq!(run("30 seconds", "2026-01-01T00:02:00Z").await.unwrap().len(), 4);
    assert_eq!(run("1 minute", "2026-01-01T00:10:00Z").await.unwrap().len(), 10);
    let error = run("1 microsecond", "2026-01-01T00:10:00Z").await.unwrap_err();
    assert!(error.to_string().contains("1000000 buckets"), "{error}");
    let sql =
        "SELECT time_bucket_gapfill('1 minute', ts, $1, $2) AS t, count(*) AS n FROM telemetry GROUP BY 1";
    let prepared = engine.prepare(sql, &[], &user()).await.unwrap();
    assert_eq!(prepared.parameter_types(), [time.clone(), time]);
    let values = ["2026-01-01T00:00:00Z", "2026-01-01T01:00:00Z"].map(ScalarValue::from);
    let batches = prepared.run(values.to_vec(), &user()).await.unwrap().collect().await.unwrap();
    assert_eq!(text(&batches).len(), 60);
    // Some errors of a statement depend on its parameters, so they appear when it runs.
    let prepared = engine.prepare("SELECT locf(speed) AS x FROM telemetry", &[], &user()).await.unwrap();
    let error = prepared.run(vec![], &user()).await.map(|_| ()).unwrap_err();
    assert!(error.to_string().contains("locf without OVER"), "{error}");
}

#[tokio::test]
async fn many_groups_from_many_threads_are_complete() {
    let engine = engine(many(4, 30_000));
    let sql = "SELECT device, time_bucket_gapfill('3 milliseconds', ts) AS t, count(*) AS n FROM many \
               WHERE ts >= '2026-01-01T00:00:00Z' AND ts < '2026-01-01T00:00:00.1Z' GROUP BY device, t ORDER BY device, t";
    let found = rows(&engine, sql).await;
    let counted: i64 =
        found.iter().filter_map(|row| row.rsplit(' ').next().unwrap().parse::<i64>().ok()).sum();
    // The hundred milliseconds begin with a bucket and end within one.
    assert_eq!((found.len(), counted), (4 * 34, 4 * 30_000));
    let mut sorted = found.clone();
    sorted.sort_by_key(|row| row.split(' ').next().unwrap().to_owned());
    assert_eq!(sorted, found);
    let plan = plan(&engine, sql).await;
    assert!(plan.contains("RunAggregate") && plan.matches("SortExec").count() == 1, "{plan}");
}

#[tokio::test]
async fn a_condition_on_a_key_is_decided_by_the_store() {
    let engine = engine(fleet());
    let sql = format!(
        "SELECT * FROM (SELECT device, time_bucket_gapfill('1 minute', ts) AS t, locf(avg(speed)) AS c FROM telemetry WHERE {BUSES} GROUP BY device, t) x WHERE device = 'bus-1' ORDER BY t"
    );
    assert_eq!(rows(&engine, &sql).await.len(), 5);
    let plan = plan(&engine, &sql).await;
    assert!(plan.contains("series=1") && !plan.contains("FilterExec"), "{plan}");
}

#[tokio::test]
async fn a_query_that_makes_rows_ends_when_its_time_is_over() {
    let store = MemoryStore::new();
    for device in 0..200 {
        let id = store.series(&SeriesKey::device("many", &format!("d{device}")).unwrap()).unwrap();
        let mut batch = Batch::new();
        let mut builder = batch.builder();
        builder.field("x", ValueRef::F64(1.0));
        builder.row(id, Timestamp::from_micros(NEW_YEAR_US));
        builder.finish();
        store.append(&batch, Durability::Memory).unwrap();
    }
    let limits = model::limits::QueryLimits { threads: 2, ..model::limits::QueryLimits::default() };
    let engine = Engine::new(std::sync::Arc::new(store), limits).unwrap();
    let hasty = user().with_timeout(std::time::Duration::from_millis(300));
    let sql = "SELECT max(t), sum(n) FROM (SELECT device, time_bucket_gapfill('1 microsecond', ts) AS t, locf(count(*)) AS n \
               FROM many WHERE ts >= '2026-01-01T00:00:00Z' AND ts < '2026-01-01T00:00:01Z' GROUP BY device, t) x";
    let answer = async { engine.run(sql, &hasty).await?.collect().await };
    let error = answer.await.unwrap_err();
    assert!(matches!(&error, QueryError::Timeout { .. }), "{error:?}");
    until("the query is over", || engine.status().running == 0).await;
}

#[tokio::test]
async fn days_of_another_zone_are_those_of_time_bucket() {
    let store = fleet();
    // Half past midnight of the second in Berlin is still the first in Greenwich.
    put(&*store, "late", &[("device", "d")], 23 * 60 + 30, &[("x", ValueRef::F64(1.0))]);
    let engine = engine(store);
    let local = "to_local_time(ts AT TIME ZONE 'Europe/Berlin')";
    let ordinary = format!("SELECT time_bucket('1 day', {local}) AS t, count(*) FROM late GROUP BY t");
    assert_eq!(rows(&engine, &ordinary).await, ["2026-01-02T00:00:00 1"]);
    let filled = format!(
        "SELECT time_bucket_gapfill('1 day', {local}, '2026-01-01', '2026-01-04') AS t, count(*) FROM late GROUP BY t ORDER BY t"
    );
    let expected = ["2026-01-01T00:00:00 NULL", "2026-01-02T00:00:00 1", "2026-01-03T00:00:00 NULL"];
    assert_eq!(rows(&engine, &filled).await, expected);
}
