//! The limits that end a query.

use std::time::{Duration, Instant};

use model::limits::QueryLimits;
use query::{Engine, QueryError};

use crate::support::{many, refusal, rows, run, user};

/// The time limit of tests that could hang.
const PATIENCE: Duration = Duration::from_secs(60);

/// 40,000 rows crossed with themselves three times: more than a query can hold or finish.
const ENDLESS: &str =
    "SELECT count(*) FROM many a CROSS JOIN many b CROSS JOIN many c WHERE a.value + b.value = c.value";

fn limited(change: impl FnOnce(&mut QueryLimits)) -> Engine {
    let mut limits = QueryLimits { threads: 2, ..QueryLimits::default() };
    change(&mut limits);
    Engine::new(many(4, 10_000), limits).unwrap()
}

pub(crate) async fn until(what: &str, condition: impl Fn() -> bool) {
    let started = Instant::now();
    while !condition() {
        assert!(started.elapsed() < PATIENCE, "{what}");
        tokio::time::sleep(Duration::from_millis(5)).await;
    }
}

#[tokio::test]
async fn memory_of_one_query_is_limited() {
    let engine = limited(|limits| limits.memory_bytes_max = 8 * 1024 * 1024);
    for sql in [
        // 1,600,000,000 rows to sort.
        "SELECT a.device, b.ts, a.value FROM many a CROSS JOIN many b ORDER BY a.value + b.value, b.ts",
        "SELECT array_agg(a.value) FROM many a CROSS JOIN many b",
        "SELECT a.value, b.value, count(*) FROM many a CROSS JOIN many b GROUP BY a.value, b.value",
        "SELECT sum(a.value) OVER () FROM many a CROSS JOIN many b",
        "SELECT rate(a.value, a.ts) FROM many a CROSS JOIN many b",
    ] {
        let error = tokio::time::timeout(PATIENCE, refusal(&engine, sql)).await.unwrap();
        assert!(matches!(&error, QueryError::OverLimit { .. }), "{sql}: {error:?}");
        // The limit of what operators account for, or of what the query allocates.
        let error = error.to_string();
        assert!(
            error.contains(" 8 MiB for one query") || error.contains(" 16 MiB for one query"),
            "{sql}: {error}"
        );
        until("its memory is given back", || engine.status().memory_bytes == 0).await;
    }
}

/// A statement of the largest depth is planned and runs. Any deeper one is refused and ends nothing else.
#[tokio::test]
async fn deep_statements_are_answered_or_refused() {
    // A statement of the largest depth takes seconds in a debug build, and longer on a busy machine.
    let engine = limited(|limits| limits.timeout = Duration::from_secs(3_600));
    for (begin, link, answered) in [
        ("SELECT 1", "+1", 999),
        ("SELECT 1 WHERE 1 = 2", " OR 1 = 1", 998),
        ("SELECT 'a'", " || 'a'", 999),
        ("SELECT 1", "::bigint", 999),
        ("SELECT 1", " IS NULL", 999),
        ("SELECT 1", " UNION ALL SELECT 1", 500),
        ("SELECT 1", " UNION SELECT 1", 100),
    ] {
        let of = |links: usize| format!("{begin}{}", link.repeat(links));
        run(&engine, &of(answered)).await.unwrap_or_else(|error| panic!("{answered} x {link}: {error}"));
        let as_long_as_may_be = (model::limits::SQL_BYTES_MAX - begin.len()) / link.len();
        for links in [1_001, as_long_as_may_be] {
            let error = refusal(&engine, &of(links)).await;
            assert!(matches!(&error, QueryError::OverLimit { .. }), "{links} x {link}: {error:?}");
        }
    }
    let joins = |count: usize| {
        let tables: Vec<_> = (0..=count).map(|n| format!("(SELECT 1) AS t{n}")).collect();
        format!("SELECT count(*) FROM {}", tables.join(" CROSS JOIN "))
    };
    run(&engine, &joins(100)).await.unwrap();
    assert!(matches!(refusal(&engine, &joins(101)).await, QueryError::OverLimit { .. }));
    let ctes = |count: usize| {
        let next = |n: usize| format!("t{n} AS (SELECT * FROM t{})", n - 1);
        let ctes: Vec<_> = (1..count).map(next).collect();
        format!("WITH t0 AS (SELECT 1), {} SELECT * FROM t{}", ctes.join(", "), count - 1)
    };
    run(&engine, &ctes(100)).await.unwrap();
    assert!(matches!(refusal(&engine, &ctes(101)).await, QueryError::OverLimit { .. }));
}

#[tokio::test]
async fn memory_of_all_queries_together_is_limited() {
    let engine = limited(|limits| limits.memory_bytes_total_max = 4 * 1024 * 1024);
    let error = refusal(&engine, "SELECT array_agg(a.value) FROM many a CROSS JOIN many b").await;
    let error = error.to_string();
    assert!(error.contains(" 4 MiB for all queries") || error.contains(" 8 MiB for all queries"), "{error}");
}

#[tokio::test]
async fn a_query_ends_when_its_time_is_over() {
    let engine = limited(|limits| limits.timeout = Duration::from_millis(300));
    let error = tokio::time::timeout(PATIENCE, refusal(&engine, ENDLESS)).await.unwrap();
    assert!(matches!(&error, QueryError::Timeout { .. }), "{error:?}");
    assert!(error.to_string().contains("after 0.3 s"), "{error}");
    let patient = Engine::new(many(4, 10_000), QueryLimits { threads: 2, ..QueryLimits::default() }).unwrap();
    let hasty = user().with_timeout(Duration::from_millis(200));
    // On a busy machine the time limit may end the query while it is planned.
    let answer = async { patient.run(ENDLESS, &hasty).await?.collect().await };
    let error = tokio::time::timeout(PATIENCE, answer).await.unwrap().unwrap_err();
    assert!(error.to_string().contains("after 0.2 s"), "{error}");
}

#[tokio::test]
async fn an_answer_that_is_not_read_ends_with_a_timeout() {
    // Long enough to plan the query on a busy machine.
    let engine = limited(|limits| limits.timeout = Duration::from_secs(2));
    let mut answer = engine.run("SELECT a.value FROM many a CROSS JOIN many b", &user()).await.unwrap();
    assert!(answer.batches.next().await.unwrap().is_ok());
    until("the query is over", || engine.status().running == 0).await;
    let mut last = None;
    while let Some(batch) = answer.batches.next().await {
        last = Some(batch);
    }
    assert!(matches!(last, Some(Err(QueryError::Timeout { .. }))), "{last:?}");
}

#[tokio::test]
async fn dropping_an_answer_ends_its_query() {
    let engine = limited(|_| ());
    let mut answer = engine.run("SELECT a.value FROM many a CROSS JOIN many b", &user()).await.unwrap();
    assert!(answer.batches.next().await.unwrap().is_ok());
    assert_eq!(engine.status().running, 1);
    drop(answer);
    until("the query is over", || engine.status().running == 0).await;
    // A query that has returned nothing yet.
    let endless = tokio::spawn({
        let engine = engine.clone();
        async move { run(&engine, ENDLESS).await }
    });
    until("the query runs", || engine.status().running == 1).await;
    endless.abort();
    until("the query is over", || engine.status().running == 0).await;
    until("its memory is given back", || engine.status().memory_bytes == 0).await;
}

#[tokio::test]
async fn two_hundred_queries_at_once_end_or_are_busy() {
    let engine = limited(|limits| {
        limits.running_max = 4;
        limits.waiting_max = 100;
        limits.waiting_time_max = PATIENCE;
        limits.timeout = PATIENCE;
    });
    let queries = (0..200).map(|number| {
        let engine = engine.clone();
        tokio::spawn(async move {
            run(&engine, &format!("SELECT device, avg(value + {number}) FROM many GROUP BY device")).await
        })
    });
    let queries: Vec<_> = queries.collect();
    let (mut answered, mut busy) = (0, 0);
    for query in queries {
        match query.await.unwrap() {
            Ok(batches) => {
                assert_eq!(batches.iter().map(arrow_array::RecordBatch::num_rows).sum::<usize>(), 4);
                answered += 1;
            }
            Err(error) => {
                assert!(error.to_string().contains("4 queries run and 100 wait, the limit"), "{error}");
                busy += 1;
            }
        }
    }
    // At least 4 run and 100 wait. How many more depends on how fast they end.
    assert!(answered >= 104 && answered + busy == 200, "{answered} answered, {busy} busy");
    until("none is left", || {
        let query::EngineStatus { running, waiting, memory_bytes, .. } = engine.status();
        (running, waiting, memory_bytes) == (0, 0, 0)
    })
    .await;
}

#[tokio::test]
async fn a_query_that_waits_too_long_is_refused() {
    let engine = limited(|limits| {
        limits.running_max = 1;
        limits.waiting_time_max = Duration::from_millis(50);
    });
    let _running = engine.run(ENDLESS, &user()).await.unwrap();
    let error = refusal(&engine, "SELECT 1").await;
    assert!(error.to_string().contains("1 queries run and none has ended for 0.05 s"), "{error}");
}

/// A few SQL bytes that would make gigabytes, or compute for hours, are refused with the name of the limit.
#[tokio::test]
async fn large_results_of_short_statements_are_refused_before_they_are_computed() {
    let engine = limited(|_| {});
    let texts = ["repeat('x', 60000000)"; 40].join(", ");
    for sql in [
        "SELECT length(replace(repeat('x', 60000000), 'x', repeat('y', 1000)))".to_owned(),
        format!("SELECT length(concat({texts}))"),
        format!("SELECT length({})", texts.replace(", r", " || r")),
        format!("SELECT cardinality(ARRAY[{texts}])"),
        "SELECT levenshtein(repeat('x', 100000), repeat('y', 100000))".to_owned(),
        "SELECT repeat('x', 3000000) ~ '((x?){50}){20}y'".to_owned(),
        format!("SELECT 'x' ~ '{}'", "(x?){50}".repeat(6_000)),
        format!("SELECT {}", ["repeat('x', 60000000)"; 1_000].join(", ")),
        "SELECT first_value(repeat('x', 3000000)) OVER () FROM many".to_owned(),
        "SELECT array_agg(value) OVER (ORDER BY value) FROM many".to_owned(),
        "SELECT a.t FROM (SELECT repeat('x', 1000000) || value::text AS t FROM many) a, many b".to_owned(),
        "SELECT value, (SELECT array_agg(device || value::text) FROM many) FROM many".to_owned(),
        "SELECT array_element((SELECT array_agg(value) FROM many), value::bigint) FROM many".to_owned(),
        "SELECT ((SELECT array_agg(value) FROM many))[value::bigint] FROM many".to_owned(),
        "SELECT (SELECT array_agg(value) FROM many)::text[], value FROM many".to_owned(),
        "SELECT repeat('x', 3000000) LIKE '%' || repeat('_', 500) || '%y'".to_owned(),
        "SELECT count(*) FROM many WHERE device || 'x' LIKE repeat('%_é', 5000) || value::text".to_owned(),
        "WITH RECURSIVE t AS (SELECT 'x' AS a UNION ALL SELECT a || a FROM t) SELECT max(length(a)) FROM t"
            .to_owned(),
    ] {
        let error = tokio::time::timeout(PATIENCE, refusal(&engine, &sql)).await.unwrap();
        assert!(matches!(&error, QueryError::OverLimit { .. }), "{sql}: {error:?}");
    }
    until("what they allocated is given back", || engine.status().allocated_bytes == 0).await;
}

/// Large, but within the limits.
#[tokio::test]
async fn large_results_within_the_limits_are_answered() {
    let engine = limited(|_| {});
    for (sql, expected) in [
        ("SELECT length(repeat('x', 60000000))", "60000000"),
        ("SELECT length(repeat('ab', 1000) || NULL)", "NULL"),
        ("SELECT max(length(replace(repeat('ab', 1000) || device, 'a', '12345'))) FROM many", "6002"),
        ("SELECT count(*) FROM many WHERE device || value::text ~ '^d[0-3]'", "40000"),
        ("SELECT count(*) FROM many WHERE device !~* 'D1'", "30000"),
        ("SELECT count(*) FROM many WHERE device LIKE '_1' OR device ILIKE 'D%2'", "20000"),
        ("SELECT count(*) FROM many WHERE device || '%' NOT LIKE 'd_\\%' OR NULL LIKE device", "0"),
        (
            "SELECT count(*) FROM many WHERE device = ANY(string_to_array(repeat('d9,', 700) || 'd3', ','))",
            "10000",
        ),
        (
            "SELECT count(*) FROM many WHERE device = lower('D1' || repeat(' ', 0)) AND length(repeat(device, 9)) = 18",
            "10000",
        ),
        ("SELECT count(*) FROM many WHERE value IN (SELECT value FROM many) OR value < 0", "40000"),
        ("SELECT count(*) FROM many WHERE device = (SELECT max(device) FROM many)", "10000"),
        ("SELECT regexp_count(repeat('abc', 100000), '[ac]')", "200000"),
        ("SELECT length(regexp_replace(repeat('abc', 1000), '(b)(c)', '<\\2>', 'g'))", "4000"),
        ("SELECT cardinality(array_agg(value)) FROM many", "40000"),
        ("SELECT sum(levenshtein(device, 'd0')) FROM many", "30000"),
        (
            "SELECT max(length(s)) FROM (SELECT string_agg(device, ',') OVER (ORDER BY value) AS s FROM many WHERE value < 100) q",
            "1199",
        ),
    ] {
        let rows = rows(&engine, sql).await;
        assert_eq!(rows, [expected], "{sql}");
    }
}

/// A function computes in pieces, and between two of them it sees that the client has left.
#[tokio::test]
async fn a_function_ends_when_the_answer_is_dropped() {
    let engine = limited(|_| {});
    let slow = "SELECT sum(levenshtein(repeat('x', 9000) || value::text, repeat('y', 9000))) FROM many";
    let asked = tokio::spawn({
        let engine = engine.clone();
        async move { run(&engine, slow).await }
    });
    until("the query runs", || engine.status().running == 1).await;
    asked.abort();
    until("the query is over", || engine.status().running == 0).await;
    assert_eq!(engine.status().unended, 0);
}

/// The memory of an answer is given back when the caller has taken its batches, however small they are.
#[tokio::test]
async fn a_long_answer_allocates_no_more_than_a_short_one() {
    let engine = limited(|limits| {
        limits.memory_bytes_max = 32 * 1024 * 1024;
        limits.batch_rows = 10;
    });
    let columns: Vec<_> = (0..100).map(|n| format!("value + {n} AS c{n}")).collect();
    let sql = format!("SELECT {} FROM many", columns.join(", "));
    let mut answer = engine.run(&sql, &user()).await.unwrap();
    let mut rows = 0;
    while let Some(batch) = answer.batches.next().await {
        rows += batch.unwrap().num_rows();
    }
    assert_eq!(rows, 40_000);
}
