//! Driver `opentsdb`: the HiTSDB test through OpenTSDB's `/api/put`, in JSON.
//!
//! `mod.rs` writes points and checks the acknowledgements, `read.rs` reads back through `/api/query` and `/api/tscount`.

mod read;

use wire::resp::write::decimal;

use super::request::Format;
use super::timeseries::protocol::Writes;
use super::timeseries::refusal::quoted;
use super::timeseries::timelines::{METRIC, PointPosition, TAG_KEY, Timelines};
pub(crate) use read::OpenTsdb;

/// Writes of `/api/put`.
#[derive(Debug)]
pub(crate) struct Put;

impl Writes for Put {
    fn path(&self) -> String {
        // The answer counts the points. A server without details answers with 204.
        "/api/put?details".to_owned()
    }

    fn format(&self) -> Format {
        Format::Json
    }

    fn append(&self, timelines: &Timelines, first: u64, points: u64, body: &mut Vec<u8>) {
        body.push(b'[');
        for point in first..first + points {
            let separator: &[u8] = if point == first { b"" } else { b"," };
            body.extend_from_slice(separator);
            append_point(timelines, timelines.place(point), body);
        }
        body.push(b']');
    }

    fn check(&self, status: u16, body: &[u8], points: u64) -> Result<(), String> {
        match status {
            204 => return Ok(()),
            200 => {}
            _ => return Err(quoted(status, body)),
        }
        let answer: Answer = serde_json::from_slice(body)
            .map_err(|error| format!("status 200 without the counts of details: {error}"))?;
        if (answer.success, answer.failed) == (points, 0) {
            return Ok(());
        }
        Err(match answer.failed {
            0 => format!("{} points are acknowledged of {points}", answer.success),
            failed => format!("{failed} of {points} points failed"),
        })
    }
}

/// The answer to `?details`, as far as it counts.
#[derive(serde::Deserialize)]
struct Answer {
    success: u64,
    failed: u64,
}

fn append_point(timelines: &Timelines, place: PointPosition, body: &mut Vec<u8>) {
    body.extend_from_slice(b"{\"metric\":\"");
    body.extend_from_slice(METRIC.as_bytes());
    decimal(body, timelines.metric(place.timeline));
    body.extend_from_slice(b"\",\"timestamp\":");
    decimal(body, timelines.time_ms(place.cycle).unsigned_abs());
    body.extend_from_slice(b",\"value\":");
    append_value(timelines.thousandths(place), body);
    body.extend_from_slice(b",\"tags\":{");
    for tag in 0..timelines.tags {
        let before: &[u8] = if tag == 0 { b"\"" } else { b",\"" };
        body.extend_from_slice(before);
        body.extend_from_slice(TAG_KEY.as_bytes());
        decimal(body, tag.into());
        body.extend_from_slice(b"\":\"");
        body.extend_from_slice(timelines.tag_value.as_bytes());
        decimal(body, timelines.tag_value(place.timeline, tag));
        body.push(b'"');
    }
    body.extend_from_slice(b"}}");
}

/// Appends a number of thousandths as a decimal fraction.
pub(crate) fn append_value(thousandths: u64, body: &mut Vec<u8>) {
    decimal(body, thousandths / 1_000);
    let digit = |of: u64| b'0' + (thousandths / of % 10) as u8;
    body.extend_from_slice(&[b'.', digit(100), digit(10), digit(1)]);
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::super::timeseries::timelines::example;
    use super::*;

    #[test]
    fn a_request_is_an_array_of_points_that_name_metric_time_value_and_tags() {
        let timelines = example();
        let mut body = Vec::new();
        Put.append(&timelines, 19, 2, &mut body);
        let points: Value = serde_json::from_slice(&body).unwrap();
        let value = |timeline, cycle| timelines.value(PointPosition { timeline, cycle });
        let expected = json!([
            { "metric": "metricname0", "timestamp": 1_700_000_001_000_i64, "value": value(9, 1),
              "tags": { "tagkeyname0": "000000000v9", "tagkeyname1": "000000000v9" } },
            { "metric": "metricname0", "timestamp": 1_700_000_002_000_i64, "value": value(0, 2),
              "tags": { "tagkeyname0": "000000000v0", "tagkeyname1": "000000000v0" } },
        ]);
        assert_eq!(points, expected);
    }

    #[test]
    fn only_an_answer_for_all_points_acknowledges_a_request() {
        let check = |status, body: &str| Put.check(status, body.as_bytes(), 500);
        assert_eq!(check(204, ""), Ok(()));
        assert_eq!(check(200, r#"{"errors":[],"failed":0,"success":500}"#), Ok(()));
        assert_eq!(
            check(200, r#"{"errors":[{}],"failed":1,"success":499}"#).unwrap_err(),
            "1 of 500 points failed"
        );
        assert!(check(200, r#"{"failed":0,"success":499}"#).unwrap_err().starts_with("499 points"));
        assert!(check(200, "").unwrap_err().contains("without the counts"));
        assert!(check(400, r#"{"error":{"message":"no"}}"#).unwrap_err().contains("400"));
    }
}
