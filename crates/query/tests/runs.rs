//! Aggregations whose groups are runs of the rows of a table.

use std::sync::Arc;

use model::{Batch, SeriesKey, Timestamp, ValueRef};
use query::Engine;
use store::{Durability, MemoryStore, Store, Writer};

use crate::support::{NEW_YEAR_US, engine, many, plan, rows, user};

/// Enough rows for several threads, of vehicles on two lines. Every seventh row has no value, every third a text.
fn lines() -> Arc<MemoryStore> {
    const STEP_US: i64 = 10_000_000;
    let store = Arc::new(MemoryStore::new());
    for number in 0..9_i64 {
        let device = format!("d{number}");
        let line = ["M1", "M2"][number as usize % 2];
        let tags = [("device", device.as_str()), ("line", line)];
        // The last vehicles are on no line.
        let key = SeriesKey::new("lines", &tags[..if number < 6 { 2 } else { 1 }]).unwrap();
        let id = store.series(&key).unwrap();
        let mut batch = Batch::new();
        let mut builder = batch.builder();
        for row in 0..10_000_i64 {
            if row % 7 != 0 {
                builder.field("x", ValueRef::F64((row * row % 1_000 + number) as f64));
            }
            if row % 3 == 0 {
                builder.field("word", ValueRef::String(["a", "bc", ""][(row / 3 % 3) as usize]));
            }
            builder.field("n", ValueRef::I64(row % 11));
            builder.row(id, Timestamp::from_micros(NEW_YEAR_US + row * STEP_US));
        }
        builder.finish();
        store.append(&batch, Durability::Memory).unwrap();
    }
    store
}

#[tokio::test]
async fn runs_give_the_results_of_a_hash_table() {
    let engine = engine(lines());
    let aggregates = "count(*), count(x), sum(n), avg(x), min(x), max(word), last(x, ts), first(n, ts), \
                      sum(x) FILTER (WHERE n > 5), count(word) FILTER (WHERE word <> ''), bool_and(n < 10)";
    // An expression of a value is not a run. It is never NULL, so the groups are the same.
    for (groups, hidden, condition) in [
        ("device", "CASE WHEN n < 0 THEN '' ELSE device END", ""),
        ("line", "CASE WHEN n < 0 THEN '' ELSE line END", "WHERE device <> 'd4'"),
        ("upper(line)", "CASE WHEN n < 0 THEN '' ELSE upper(line) END", "WHERE x > 500"),
        (
            "time_bucket(INTERVAL '2 hours', ts)",
            "time_bucket(INTERVAL '2 hours', CASE WHEN n < 0 THEN NULL ELSE ts END)",
            "WHERE ts > '2026-01-01T05:00:00Z' AND n <> 3",
        ),
        (
            "date_bin(INTERVAL '90 minutes', ts)",
            "date_bin(INTERVAL '90 minutes', CASE WHEN n < 0 THEN NULL ELSE ts END)",
            "",
        ),
        ("date_trunc('hour', ts)", "date_trunc('hour', CASE WHEN n < 0 THEN NULL ELSE ts END)", ""),
        // An expression of one tag is computed once for each run, unless a condition needs the tag in each row. An expression of
        // two tags is computed for each row.
        ("right(line, 1)", "CASE WHEN n < 0 THEN '' ELSE right(line, 1) END", ""),
        (
            "right(line, 1)",
            "CASE WHEN n < 0 THEN '' ELSE right(line, 1) END",
            "WHERE device || line <> 'd4M1' OR line IS NULL",
        ),
        ("coalesce(line, 'none')", "CASE WHEN n < 0 THEN '' ELSE coalesce(line, 'none') END", "WHERE n > 2"),
        (
            "CASE line WHEN 'M1' THEN 1 ELSE 2 END",
            "CASE WHEN n < 0 THEN 3 WHEN line = 'M1' THEN 1 ELSE 2 END",
            "",
        ),
        ("line IS NULL", "CASE WHEN n < 0 THEN NULL ELSE line IS NULL END", ""),
        ("device || line", "CASE WHEN n < 0 THEN '' ELSE device || line END", ""),
    ] {
        // Several threads read all lines, one thread reads two of them.
        for lines in ["lines", "(SELECT * FROM lines WHERE device IN ('d1', 'd7'))"] {
            let asked = |group: &str| {
                format!(
                    "SELECT device AS d, {group} AS g, {aggregates} FROM {lines} {condition} GROUP BY 1, 2 ORDER BY 1, 2"
                )
            };
            let (by_runs, by_hash) = (asked(groups), asked(hidden));
            let plan_by_runs = plan(&engine, &by_runs).await;
            // Device and line name a series.
            let mode = if groups == "line" && lines != "lines" { "Single" } else { "Partial" };
            assert!(plan_by_runs.contains(&format!("RunAggregateExec: mode={mode}")), "{plan_by_runs}");
            let plan_by_hash = plan(&engine, &by_hash).await;
            assert!(!plan_by_hash.contains("RunAggregate"), "{plan_by_hash}");
            let answer = rows(&engine, &by_runs).await;
            assert!(answer.len() >= 2, "{by_runs}: {answer:?}");
            assert_eq!(answer, rows(&engine, &by_hash).await, "{by_runs}");
        }
    }
}

#[tokio::test]
async fn means_of_runs_are_those_of_their_values() {
    let engine = engine(many(3, 30_000));
    let sql = "SELECT device, date_bin(INTERVAL '1 millisecond', ts) AS t, count(*), sum(value) FROM many GROUP BY device, t ORDER BY device, t";
    let answer = rows(&engine, sql).await;
    let expected = (0..3).flat_map(|device| {
        (0..30).map(move |bucket| {
            let sum: i64 = (bucket * 1_000..(bucket + 1) * 1_000).sum();
            let fraction = if bucket == 0 { String::new() } else { format!(".{bucket:03}") };
            format!("d{device} 2026-01-01T00:00:00{fraction}Z 1000 {sum}.0")
        })
    });
    assert_eq!(answer, expected.collect::<Vec<_>>());
}

#[tokio::test]
async fn distinct_tags_are_runs_without_any_aggregate() {
    let engine = engine(many(3, 30_000));
    let sql = "SELECT DISTINCT device FROM many ORDER BY device";
    assert!(plan(&engine, sql).await.contains("RunAggregateExec"));
    assert_eq!(rows(&engine, sql).await, ["d0", "d1", "d2"]);
}

#[tokio::test]
async fn expressions_of_tags_see_them_in_each_row() {
    let engine = engine(lines());
    let sql = "SELECT device, count(line), max(device), count(*) FILTER (WHERE line = 'M2') FROM lines \
               WHERE device || line <> 'd4M1' OR line IS NULL GROUP BY device ORDER BY device";
    assert!(plan(&engine, sql).await.contains("RunAggregateExec"));
    let expected: Vec<String> = (0..9)
        .filter(|number| *number != 4)
        .map(|number| {
            let on_line = if number < 6 { 10_000 } else { 0 };
            let on_second = if number % 2 == 1 { on_line } else { 0 };
            format!("d{number} {on_line} d{number} {on_second}")
        })
        .collect();
    assert_eq!(rows(&engine, sql).await, expected);
}

#[tokio::test]
async fn expressions_of_a_tag_group_several_series() {
    let engine = engine(lines());
    let asked = |group: &str| {
        format!(
            "SELECT {group} AS g, time_bucket(INTERVAL '6 hours', ts) AS t, avg(x), count(*) FROM lines \
             WHERE device <> 'd3' GROUP BY g, t ORDER BY g, t"
        )
    };
    let group = "coalesce(line, 'none')";
    assert!(plan(&engine, &asked(group)).await.contains("RunAggregateExec: mode=Partial"));
    let answer = rows(&engine, &asked(group)).await;
    // 10,000 rows of 10 s span five buckets of six hours.
    assert_eq!(answer.len(), 3 * 5);
    assert_eq!(answer, rows(&engine, &asked(&format!("CASE WHEN n < 0 THEN '' ELSE {group} END"))).await);
}

#[tokio::test]
async fn expressions_that_differ_per_row_are_no_runs() {
    let engine = engine(lines());
    let by_name = "SELECT count(*) > 9000 FROM (SELECT device || random() AS g FROM lines WHERE device = 'd0' GROUP BY g)";
    assert!(!plan(&engine, by_name).await.contains("RunAggregate"));
    assert_eq!(rows(&engine, by_name).await, ["true"]);
    // Beside all tags, where no last stage would merge the runs.
    let halves =
        "SELECT device, line, random() < 0.5 AS h, count(*) AS n FROM lines GROUP BY device, line, h";
    assert!(!plan(&engine, halves).await.contains("RunAggregate"));
    let counted = format!("SELECT count(*), sum(n) FROM ({halves})");
    assert_eq!(rows(&engine, &counted).await, ["18 90000"]);
}

#[tokio::test]
async fn one_thread_merges_few_groups() {
    let engine = engine(many(3, 30_000));
    let asked = |step: &str| {
        format!("SELECT device, date_bin(INTERVAL '{step}', ts) AS t, count(*) FROM many GROUP BY device, t")
    };
    let few = plan(&engine, &asked("1 millisecond")).await;
    assert!(few.contains("mode=Final,") && !few.contains("RepartitionExec"), "{few}");
    let many = plan(&engine, &asked("1 microsecond")).await;
    assert!(many.contains("mode=FinalPartitioned") && many.contains("RepartitionExec"), "{many}");
    assert_eq!(rows(&engine, &asked("1 microsecond")).await.len(), 90_000);
    // Each side of such a join needs its groups spread in the same way.
    let joined = format!(
        "SELECT count(*) FROM ({}) a JOIN ({}) b USING (device, t)",
        asked("1 millisecond"),
        asked("1 millisecond")
    );
    assert_eq!(rows(&engine, &joined).await, ["90"]);
}

#[tokio::test]
async fn groups_that_name_their_series_need_no_last_stage() {
    let engine = engine(many(18, 4_000));
    for (step, is_ordered) in [
        ("1 millisecond", true),
        ("7 microseconds", false),
        ("7 microseconds", true),
        ("1 microsecond", true),
    ] {
        let order = if is_ordered { "ORDER BY device, t" } else { "" };
        let asked = |device: &str| {
            format!(
                "SELECT {device} AS device, date_bin(INTERVAL '{step}', ts) AS t, avg(value), last(value, ts), \
                 bool_or(value > 5) FROM many GROUP BY 1, t {order}"
            )
        };
        let by_series = plan(&engine, &asked("device")).await;
        assert!(by_series.contains("RunAggregateExec: mode=SinglePartitioned"), "{by_series}");
        assert!(!by_series.contains("Final") && !by_series.contains("RepartitionExec"), "{by_series}");
        let by_hash = asked("CASE WHEN value < 0 THEN '' ELSE device END");
        assert!(!plan(&engine, &by_hash).await.contains("RunAggregate"));
        let (mut found, mut expected) =
            (rows(&engine, &asked("device")).await, rows(&engine, &by_hash).await);
        if !is_ordered {
            found.sort();
            expected.sort();
        }
        assert!(found == expected, "{step}: {} and {} rows", found.len(), expected.len());
    }
    // Each side of such a join needs its groups spread in the same way.
    let counted = "SELECT device, count(*) AS rows FROM many GROUP BY device";
    let joined =
        format!("SELECT count(*), sum(a.rows + b.rows) FROM ({counted}) a JOIN ({counted}) b USING (device)");
    assert_eq!(rows(&engine, &joined).await, ["18 144000"]);
    let limited = format!("{counted} LIMIT 4");
    assert_eq!(rows(&engine, &limited).await.len(), 4);
}

/// Rows of each of 18 vehicles, some of them on no line.
fn drive(store: &dyn Store, rows: std::ops::Range<i64>) {
    for number in 0..18 {
        let device = format!("d{number}");
        let tags = [("device", device.as_str()), ("line", "M1")];
        let key = SeriesKey::new("parted", &tags[..1 + number % 2]).unwrap();
        let series = store.series(&key).unwrap();
        let mut batch = Batch::new();
        let mut builder = batch.builder();
        for row in rows.clone() {
            builder.field("value", ValueRef::F64((row * row % 1_000 + number as i64) as f64));
            builder.row(series, Timestamp::from_micros(NEW_YEAR_US + row * 1_000_000));
        }
        builder.finish();
        store.append(&batch, Durability::Memory).unwrap();
    }
}

#[tokio::test]
async fn series_are_whole_wherever_their_rows_lie() {
    let store = testkit::parts::store_without_merges();
    // Parts that follow each other, one that overlaps two of them, and rows in memory.
    for rows in [0..1_500, 1_500..3_000, 1_000..2_000, 3_000..4_500] {
        drive(&*store, rows);
        store.flush().unwrap();
    }
    drive(&*store, 4_000..5_000);
    let engine = engine(store);
    let asked = |device: &str, condition: &str| {
        format!(
            "SELECT {device} AS device, line, date_bin(INTERVAL '7 minutes', ts) AS t, count(*), avg(value), last(value, ts) \
             FROM parted {condition} GROUP BY 1, line, t ORDER BY 1, line, t"
        )
    };
    for condition in ["", "WHERE value > 300", "WHERE device LIKE 'd1%' AND ts >= '2026-01-01T00:20:00Z'"] {
        let by_series = asked("device", condition);
        let shown = plan(&engine, &by_series).await;
        assert!(shown.contains("RunAggregateExec: mode=Single"), "{shown}");
        let by_hash = asked("CASE WHEN value < 0 THEN '' ELSE device END", condition);
        let (found, expected) = (rows(&engine, &by_series).await, rows(&engine, &by_hash).await);
        assert!(found.len() > 80, "{condition}: {}", found.len());
        assert_eq!(found, expected, "{condition}");
    }
}

#[tokio::test]
async fn states_of_runs_count_as_memory_of_the_query() {
    let limits = model::limits::QueryLimits { memory_bytes_max: 64 * 1024, ..Default::default() };
    let engine = Engine::new(many(3, 30_000), limits).unwrap();
    let sql = "SELECT device, time_bucket(INTERVAL '10 microseconds', ts) AS t, sum(value) FROM many \
               WHERE device = 'd1' GROUP BY device, t";
    let error = engine.run(sql, &user()).await.unwrap().collect().await.unwrap_err();
    assert!(matches!(error, query::QueryError::OverLimit { .. }), "{error:?}");
}

#[tokio::test]
async fn groups_that_change_with_each_row_are_no_runs() {
    let engine = engine(many(3, 30_000));
    for sql in [
        "SELECT ts, count(*) FROM many GROUP BY ts",
        "SELECT device, value, count(*) FROM many GROUP BY device, value",
        "SELECT count(*) FROM many",
        // Aggregates without a groups accumulator.
        "SELECT device, approx_percentile_cont(0.5) WITHIN GROUP (ORDER BY value) FROM many GROUP BY device",
        "SELECT device, count(*) FROM (SELECT device, value FROM many ORDER BY value LIMIT 70000) GROUP BY device",
    ] {
        let plan = plan(&engine, sql).await;
        assert!(!plan.contains("RunAggregate"), "{sql}: {plan}");
    }
}

/// Sums of runs equal sums of rows, also beyond 64 bits.
#[tokio::test]
async fn sums_of_integers_do_not_wrap() {
    let store = Arc::new(MemoryStore::new());
    let series = store.series(&SeriesKey::device("large", "d1").unwrap()).unwrap();
    let mut batch = Batch::new();
    let mut builder = batch.builder();
    for row in 0..10_i64 {
        builder.field("n", ValueRef::I64(9_000_000_000_000_000_000 + row));
        builder.row(series, Timestamp::from_micros(NEW_YEAR_US + row));
    }
    builder.finish();
    store.append(&batch, Durability::Memory).unwrap();
    let engine = engine(store);
    let by_series = "SELECT device, sum(n), sum(n) / count(n) > 8e18 FROM large GROUP BY device";
    assert!(plan(&engine, by_series).await.contains("RunAggregateExec"));
    let by_hash = "SELECT CASE WHEN n < 0 THEN '' ELSE device END AS d, sum(n), sum(n) / count(n) > 8e18 FROM large GROUP BY d";
    assert!(!plan(&engine, by_hash).await.contains("RunAggregate"));
    let expected = ["d1 90000000000000000045 true"];
    assert_eq!(rows(&engine, by_series).await, expected);
    assert_eq!(rows(&engine, by_hash).await, expected);
    assert_eq!(rows(&engine, "SELECT sum(n) FROM large").await, ["90000000000000000045"]);
    for sql in [
        "SELECT n + n FROM large",
        "SELECT sum(n * 2) FROM large",
        "SELECT -n - n FROM large WHERE n + n > 0",
    ] {
        let error = crate::support::refusal(&engine, sql).await;
        assert_eq!(
            (error.sql_state(), error.to_string().as_str()),
            ("22003", "bigint out of range"),
            "{sql}"
        );
    }
}
