//! The queries: each by the telemetry API and, where possible, by SQL.

use std::collections::HashMap;

use load::{Error, Result};
use serde::Deserialize;
use serde_json::{Value, json};

use super::fill::{DataSize, STEP_MS, StoredData, WIDE_KEYS, WIDE_PREFIX, wide_keys};
use crate::devices::Client;

const HOUR_MS: i64 = 3_600_000;
const BUCKET_MS: i64 = 300_000;
const MINUTE_MS: i64 = 60_000;
const SERIES: usize = 100;
/// The number of groups of the series, by the last digit of their number.
const GROUPS: usize = 10;

pub(super) struct Query {
    pub(super) name: &'static str,
    path: String,
    /// The body of a POST; `None` for GET.
    body: Option<Value>,
    /// The expected number of values, counted as `count` says.
    values: usize,
    count: Count,
}

/// How the values of an answer are counted.
#[derive(Clone, Copy)]
enum Count {
    /// By the occurrences of `"value":` in the device API.
    Values,
    /// By the rows of a CSV answer.
    Rows,
    /// By the elements of the lists of an answer in columns.
    Columns,
}

impl Query {
    /// Sends the query and returns the body of the answer.
    pub(super) fn ask(&self, client: &Client) -> Result<String> {
        client.text(&self.path, self.body.as_ref())
    }

    /// Checks the number of values in the answer.
    pub(super) fn check(&self, answer: &str) -> Result<()> {
        let found = match self.count {
            Count::Values => answer.matches("\"value\":").count(),
            Count::Columns => values_in_columns(answer),
            // The first line names the columns.
            Count::Rows => answer.lines().count().saturating_sub(1),
        };
        if found == self.values {
            return Ok(());
        }
        let quote: String = answer.chars().take(300).collect();
        Err(Error::Answer(format!(
            "{}: {found} values in the answer instead of {}: {quote}",
            self.name, self.values
        )))
    }
}

/// The number of non-null values of all devices and keys.
fn values_in_columns(answer: &str) -> usize {
    let devices: HashMap<String, Columns> = serde_json::from_str(answer).unwrap_or_default();
    let lists = devices.values().flat_map(|columns| {
        columns.values.values().map(|list| (list.len() == columns.ts.len()).then_some(list))
    });
    lists.flatten().map(|list| list.iter().flatten().count()).sum()
}

/// The part of an answer in columns for a device.
#[derive(Deserialize)]
struct Columns {
    ts: Vec<i64>,
    values: HashMap<String, Vec<Option<f64>>>,
}

/// The names of all queries.
pub(crate) const NAMES: [&str; 22] = [
    "latest-1000",
    "wide-1h",
    "one-1h",
    "one-12h-means",
    "hundred-1h",
    "hundred-12h-means",
    "grouped-1h-means",
    "grouped-12h-means",
    "wide-1h-columns",
    "one-1h-columns",
    "hundred-1h-columns",
    "hundred-12h-means-columns",
    "sql-select-1",
    "sql-wide-1h",
    "sql-one-1h",
    "sql-one-12h-means",
    "sql-hundred-1h",
    "sql-hundred-12h-means",
    "sql-grouped-1h-means",
    "sql-grouped-12h-means",
    "sql-latest-1000",
    "sql-count-avg",
];

/// All queries, in the order of [`NAMES`].
pub(super) fn all(size: DataSize, stored: &StoredData) -> Vec<Query> {
    let end_ms = stored.end_ms;
    let (hour, half_day) = (range(end_ms - HOUR_MS, end_ms), range(end_ms - 12 * HOUR_MS, end_ms));
    let hundred = || Some(json!(stored.ids[..SERIES]));
    let one = |question: &str| {
        format!("/api/plugins/telemetry/DEVICE/{}/values/timeseries?{question}", stored.ids[0])
    };
    let wide_question = format!("keys={}&{hour}&limit=3600", wide_keys().join(","));
    let wide = format!("/api/plugins/telemetry/DEVICE/{}/values/timeseries?{wide_question}", stored.wide);
    let per_hour = (HOUR_MS / STEP_MS) as usize;
    let buckets = (12 * HOUR_MS / BUCKET_MS) as usize;
    let minutes = (HOUR_MS / MINUTE_MS) as usize;
    let groups = || Some(Value::Object((0..GROUPS).map(|group| group_of(&stored.ids, group)).collect()));
    let means = format!("keys=x&{half_day}&agg=AVG&interval={BUCKET_MS}&limit={buckets}");
    let minute_means = format!("keys=x&{hour}&agg=AVG&interval={MINUTE_MS}");
    let raw = format!("keys=x&{hour}&limit={per_hour}");
    let many = |question: &str| format!("/api/tacho/values?{question}");
    let direct = |name, path, body, values| Query { name, path, body, values, count: Count::Values };
    let columns = |name, question: &str, ids, values| Query {
        name,
        path: format!("/api/tacho/values?{question}&format=columns"),
        body: ids,
        values,
        count: Count::Columns,
    };
    let sql = |name, statement: String, values| Query {
        name,
        path: "/api/sql".to_owned(),
        body: Some(json!({ "query": statement, "format": "csv" })),
        values,
        count: Count::Rows,
    };
    let between = |hours: i64| {
        let micros = |ms: i64| format!("to_timestamp_millis({ms})");
        format!("ts >= {} AND ts < {}", micros(end_ms - hours * HOUR_MS), micros(end_ms))
    };
    let hundred_names: Vec<String> = (0..SERIES).map(|device| format!("'walk-{device}'")).collect();
    let hundred_names = hundred_names.join(",");
    let (h1, h12) = (between(1), between(12));
    vec![
        direct("latest-1000", many("keys=x"), Some(json!(stored.ids)), stored.ids.len()),
        direct("wide-1h", wide, None, 3_600 * WIDE_KEYS),
        direct("one-1h", one(&raw), None, per_hour),
        direct("one-12h-means", one(&means), None, buckets),
        direct("hundred-1h", many(&raw), hundred(), SERIES * per_hour),
        direct("hundred-12h-means", many(&means), hundred(), SERIES * buckets),
        direct("grouped-1h-means", many(&minute_means), groups(), GROUPS * minutes),
        direct("grouped-12h-means", many(&means), groups(), GROUPS * buckets),
        columns("wide-1h-columns", &wide_question, Some(json!([stored.wide])), 3_600 * WIDE_KEYS),
        columns("one-1h-columns", &raw, Some(json!(stored.ids[..1])), per_hour),
        columns("hundred-1h-columns", &raw, hundred(), SERIES * per_hour),
        columns("hundred-12h-means-columns", &means, hundred(), SERIES * buckets),
        sql("sql-select-1", "SELECT 1".to_owned(), 1),
        sql(
            "sql-wide-1h",
            format!(
                "SELECT ts, {} FROM telemetry WHERE device = '{WIDE_PREFIX}0' AND {h1} ORDER BY ts",
                wide_keys().join(", ")
            ),
            3_600,
        ),
        sql(
            "sql-one-1h",
            format!("SELECT ts, x FROM telemetry WHERE device = 'walk-0' AND {h1} ORDER BY ts"),
            per_hour,
        ),
        sql(
            "sql-one-12h-means",
            format!(
                "SELECT time_bucket(INTERVAL '5 minutes', ts) AS t, avg(x) FROM telemetry WHERE device = 'walk-0' AND {h12} GROUP BY t ORDER BY t"
            ),
            buckets,
        ),
        sql(
            "sql-hundred-1h",
            format!("SELECT device, ts, x FROM telemetry WHERE device IN ({hundred_names}) AND {h1}"),
            SERIES * per_hour,
        ),
        sql(
            "sql-hundred-12h-means",
            format!(
                "SELECT device, time_bucket(INTERVAL '5 minutes', ts) AS t, avg(x) FROM telemetry WHERE device IN ({hundred_names}) AND {h12} GROUP BY device, t"
            ),
            SERIES * buckets,
        ),
        sql("sql-grouped-1h-means", grouped("1 minute", &hundred_names, &h1), GROUPS * minutes),
        sql("sql-grouped-12h-means", grouped("5 minutes", &hundred_names, &h12), GROUPS * buckets),
        sql(
            "sql-latest-1000",
            format!("SELECT device, last(x, ts) FROM telemetry WHERE {h1} AND x IS NOT NULL GROUP BY device"),
            size.devices as usize,
        ),
        sql("sql-count-avg", "SELECT count(*), avg(x) FROM telemetry".to_owned(), 1),
    ]
}

/// The name of a group and the ids of its devices.
fn group_of(ids: &[String], group: usize) -> (String, Value) {
    let of_group: Vec<&String> = ids[..SERIES].iter().skip(group).step_by(GROUPS).collect();
    (group.to_string(), json!(of_group))
}

fn grouped(bucket: &str, devices: &str, between: &str) -> String {
    format!(
        "SELECT right(device, 1) AS line, time_bucket(INTERVAL '{bucket}', ts) AS t, avg(x) FROM telemetry WHERE device IN ({devices}) AND {between} GROUP BY line, t"
    )
}

fn range(start_ms: i64, end_ms: i64) -> String {
    format!("startTs={start_ms}&endTs={end_ms}&useStrictDataTypes=true")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_questions_are_those_that_are_named() {
        let ids = (0..100).map(|n| format!("id-{n}")).collect();
        let stored = StoredData { ids, wide: "w".to_owned(), end_ms: 86_400_000, rows: 0 };
        let names: Vec<&str> = all(DataSize::LEAST, &stored).iter().map(|query| query.name).collect();
        assert_eq!(names, NAMES);
    }

    #[test]
    fn an_answer_with_too_few_values_is_wrong() {
        let question = |values, count| Query { name: "q", path: String::new(), body: None, values, count };
        let answer = r#"{"x":[{"ts":1,"value":1.5},{"ts":2,"value":2}]}"#;
        assert!(question(2, Count::Values).check(answer).is_ok());
        assert!(
            question(3, Count::Values)
                .check(answer)
                .unwrap_err()
                .to_string()
                .contains("2 values in the answer instead of 3")
        );
        assert!(question(1, Count::Rows).check("count,avg\r\n3,1.5\r\n").is_ok());
        assert!(question(1, Count::Rows).check("count,avg\r\n").is_err());
        let columns = r#"{"d":{"ts":[1,2],"values":{"x":[1.5,null],"y":[2,3]}}}"#;
        assert!(question(3, Count::Columns).check(columns).is_ok());
        assert!(question(3, Count::Columns).check(r#"{"d":{"ts":[1],"values":{"y":[2,3]}}}"#).is_err());
        assert!(question(3, Count::Columns).check("no JSON").is_err());
    }
}
