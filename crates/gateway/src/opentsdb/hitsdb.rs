//! What HiTSDB adds for those who look after data: `/api/ttl`, `/api/delete_data` and `/api/delete_meta`.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use axum::extract::State;
use axum::http::StatusCode;
use axum::response::Response;
use hub::bulk::{DeleteRequest, Deleted, matchers};
use hub::clock::system_now;
use model::{TimeRange, Timestamp};
use serde::Deserialize;
use serde_json::{Value, json};

use super::annotation_body::texts;
use super::answers::{Refusal, json_answer};
use super::lenient::number;
use super::request::{JsonRequest, RequestCaller};
use crate::http::tools::request::Params;
use crate::http::tools::state::HttpState;

/// The time to live that means forever.
const FOR_EVER: i64 = i32::MAX as i64;
/// The largest time in seconds; larger ones are milliseconds.
const SECONDS_MAX: i64 = 9_999_999_999;
/// The largest time in milliseconds.
const MILLIS_MAX: i64 = 9_999_999_999_999;

/// `GET /api/ttl`: for how long a metric keeps rows, in seconds; without a metric, the default.
pub(super) async fn ttl(
    State(state): State<Arc<HttpState>>,
    params: Params,
    RequestCaller(caller): RequestCaller,
) -> Result<Response, Refusal> {
    let ttl = state.hub.ttl_of(&caller, params.text("metric"))?;
    let seconds = ttl.map_or(FOR_EVER, |ttl| i64::try_from(ttl.as_secs()).unwrap_or(FOR_EVER));
    Ok(answer(json!({ "val": seconds.min(FOR_EVER) })))
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct TtlBody {
    #[serde(deserialize_with = "number")]
    val: Option<i64>,
    metric: Option<String>,
}

/// `POST /api/ttl`: sets for how long a metric keeps rows.
pub(super) async fn set_ttl(
    State(state): State<Arc<HttpState>>,
    JsonRequest(caller, TtlBody { val, metric }): JsonRequest<TtlBody>,
) -> Result<Response, Refusal> {
    let val = val.filter(|val| *val >= 1).ok_or_else(|| {
        Refusal::bad_request("val must be a number of seconds from 1 on; 2147483647 is forever")
    })?;
    let metric = metric.filter(|metric| !metric.is_empty()).ok_or_else(|| {
        Refusal::bad_request(
            "name a metric: each metric has a time to live of its own. That of the others is the setting \
             store.ttl_default of the server, which no request changes",
        )
    })?;
    let ttl = (val < FOR_EVER).then(|| Duration::from_secs(val.unsigned_abs()));
    let hub = Arc::clone(&state.hub);
    state.changes.run(move || hub.set_ttl(&caller, &metric, ttl, false)).await??;
    Ok(answer(json!({ "val": val.min(FOR_EVER) })))
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct DataBody {
    metric: String,
    #[serde(default, deserialize_with = "texts")]
    tags: Option<BTreeMap<String, String>>,
    #[serde(default)]
    fields: Option<Vec<String>>,
    #[serde(default, deserialize_with = "number")]
    start: Option<i64>,
    #[serde(default, deserialize_with = "number")]
    end: Option<i64>,
}

/// `POST /api/delete_data`: deletes the rows of a metric in a time, or only the values of some fields.
pub(super) async fn delete_data(
    State(state): State<Arc<HttpState>>,
    JsonRequest(caller, body): JsonRequest<DataBody>,
) -> Result<Response, Refusal> {
    let DataBody { metric, tags, fields, start, end } = body;
    let start = start.ok_or_else(|| Refusal::bad_request("name the time in start and end"))?;
    let what = Deleted::Rows { keys: fields.filter(|fields| !fields.is_empty()), range: range(start, end)? };
    let request = DeleteRequest { matchers: matchers(tags.unwrap_or_default()), what };
    let hub = Arc::clone(&state.hub);
    let rows = state.changes.run(move || hub.delete_rows(&caller, &metric, &request, false)).await??;
    Ok(answer(json!({ "rows": rows })))
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields, rename_all = "camelCase")]
pub(super) struct MetaBody {
    metric: String,
    #[serde(default, deserialize_with = "texts")]
    tags: Option<BTreeMap<String, String>>,
    #[serde(default)]
    fields: Option<Vec<String>>,
    delete_data: Option<bool>,
    #[serde(default)]
    recursive: bool,
}

/// `POST /api/delete_meta`: deletes series of a metric with their rows.
pub(super) async fn delete_meta(
    State(state): State<Arc<HttpState>>,
    JsonRequest(caller, body): JsonRequest<MetaBody>,
) -> Result<Response, Refusal> {
    let MetaBody { metric, tags, fields, delete_data, recursive } = body;
    if delete_data == Some(false) {
        return Err(Refusal::bad_request(
            "deleteData: false is not supported: a series is deleted with its rows. Leave it out or send true",
        ));
    }
    if fields.is_some_and(|fields| !fields.is_empty()) {
        return Err(Refusal::bad_request(
            "fields are not supported here: they are columns of the same series. /api/delete_data deletes their values",
        ));
    }
    let tags = tags.unwrap_or_default();
    // Without tags all series of the metric are meant.
    let only_these = !recursive && !tags.is_empty();
    let hub = Arc::clone(&state.hub);
    let rows = state.changes.run(move || hub.delete_series(&caller, &metric, tags, only_these)).await??;
    Ok(answer(json!({ "rows": rows })))
}

/// The times from `start` to `end`, both included; up to now without an end.
fn range(start: i64, end: Option<i64>) -> Result<TimeRange, Refusal> {
    let start = micros(start)?;
    let end = end.map_or_else(|| Ok(system_now().micros()), micros)?;
    if end < start {
        return Err(Refusal::bad_request("end is before start"));
    }
    Ok(TimeRange::new(Timestamp::from_micros(start), Timestamp::from_micros(end + 1)))
}

fn micros(time: i64) -> Result<i64, Refusal> {
    if !(0..=MILLIS_MAX).contains(&time) {
        let rule = format!("up to {SECONDS_MAX} are seconds, up to {MILLIS_MAX} milliseconds");
        return Err(Refusal::bad_request(format!("{time} is not a time: {rule}")));
    }
    Ok(if time <= SECONDS_MAX { time * 1_000_000 } else { time * 1_000 })
}

fn answer(body: Value) -> Response {
    json_answer(StatusCode::OK, body.to_string())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_time_is_in_seconds_or_milliseconds_and_both_ends_count() {
        let range =
            |start, end| range(start, Some(end)).ok().map(|range| (range.start.micros(), range.end.micros()));
        assert_eq!(range(1, 2), Some((1_000_000, 2_000_001)));
        assert_eq!(range(0, 1_700_000_000_123), Some((0, 1_700_000_000_123_001)));
        assert_eq!(range(2, 1), None);
        assert_eq!(range(-1, 1), None);
        assert_eq!(range(0, 10_000_000_000_000), None);
    }
}
