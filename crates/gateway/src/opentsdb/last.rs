//! `/api/query/last`: the last points of series.

use std::sync::Arc;

use axum::extract::State;
use axum::http::{StatusCode, Uri};
use axum::response::Response;
use hub::caller::Caller;
use serde::Deserialize;
use serde_json::{Value, json};
use timeseries::opentsdb::{LastPoint, Metric, Number, Selection, Tags, last_points, metric_and_tags, tsuid};

use super::answers::{Refusal, json_answer};
use super::lenient::{number, or_default, text};
use super::query_answer::TagsJson;
use super::refused_members::refuse_of_last;
use super::request::{JsonRequest, RequestCaller, now, run_query};
use crate::http::tools::state::HttpState;

/// A wish for last points.
#[derive(Debug, Default)]
pub(super) struct LastRequest {
    subs: Vec<(Selection, Tags)>,
    /// Points before this time do not count.
    since: Option<i64>,
}

#[derive(Deserialize, Default)]
#[serde(rename_all = "camelCase", default)]
struct LastBody {
    #[serde(deserialize_with = "or_default")]
    queries: Vec<LastSubBody>,
    #[serde(deserialize_with = "number")]
    back_scan: Option<i64>,
}

#[derive(Deserialize, Default)]
#[serde(default)]
struct LastSubBody {
    #[serde(deserialize_with = "text")]
    metric: Option<String>,
    #[serde(deserialize_with = "or_default")]
    tags: std::collections::BTreeMap<String, String>,
    #[serde(deserialize_with = "or_default")]
    tsuids: Vec<String>,
}

/// `GET /api/query/last`.
pub(super) async fn get(
    State(state): State<Arc<HttpState>>,
    RequestCaller(caller): RequestCaller,
    uri: Uri,
) -> Result<Response, Refusal> {
    let request = LastRequest::of_parameters(uri.query().unwrap_or_default(), now())?;
    answer(&state, caller, request).await
}

/// `POST /api/query/last`.
pub(super) async fn post(
    State(state): State<Arc<HttpState>>,
    JsonRequest(caller, body): JsonRequest<Value>,
) -> Result<Response, Refusal> {
    answer(&state, caller, LastRequest::of_body(body, now())?).await
}

async fn answer(state: &HttpState, caller: Caller, request: LastRequest) -> Result<Response, Refusal> {
    if request.subs.is_empty() {
        return Err(Refusal::bad_request("Missing sub queries"));
    }
    let text = run_query(state, caller, move |source| {
        let mut text = String::from("[");
        for (selection, tags) in &request.subs {
            for point in last_points(source, selection, tags, request.since)? {
                if text.len() > 1 {
                    text.push(',');
                }
                text.push_str(&point_json(&point));
            }
        }
        text.push(']');
        Ok(text)
    });
    Ok(json_answer(StatusCode::OK, text.await?.clone()))
}

/// A value is a text, as in OpenTSDB.
fn point_json(point: &LastPoint) -> String {
    let value = match point.value {
        Number::Integer(value) => value.to_string(),
        Number::Float(value) => format!("{value:?}"),
    };
    let (metric, tags, millis) = (json!(point.metric), TagsJson(&point.tags), point.millis);
    let tsuid = tsuid(&point.metric, &point.tags);
    format!(
        "{{\"metric\":{metric},\"timestamp\":{millis},\"value\":\"{value}\",\"tags\":{tags},\"tsuid\":\"{tsuid}\"}}"
    )
}

impl LastRequest {
    fn of_parameters(text: &str, now: i64) -> Result<Self, Refusal> {
        let (mut subs, mut back_scan) = (Vec::new(), None);
        for (name, value) in form_urlencoded::parse(text.as_bytes()) {
            match &*name {
                "timeseries" => {
                    let (metric, mut tags) = metric_and_tags(&value)?;
                    tags.sort_unstable();
                    subs.push((Selection::Metric(Metric::Name(metric)), tags));
                }
                "tsuids" => {
                    let tsuids = value.split(',').map(str::to_owned).collect();
                    subs.push((Selection::Tsuids(tsuids), Tags::new()));
                }
                "back_scan" => {
                    let hours = value
                        .parse()
                        .map_err(|_| Refusal::bad_request("Unable to parse back_scan parameter"))?;
                    back_scan = Some(hours);
                }
                _ => {}
            }
        }
        Ok(Self { subs, since: since(back_scan, now) })
    }

    fn of_body(body: Value, now: i64) -> Result<Self, Refusal> {
        refuse_of_last(&body)?;
        let body: LastBody = serde_json::from_value(body).map_err(|error| {
            Refusal::bad_request("Unable to parse the given JSON").with_details(error.to_string())
        })?;
        let subs = body.queries.into_iter().map(|sub| match sub.tsuids.is_empty() {
            false => (Selection::Tsuids(sub.tsuids), Tags::new()),
            true => {
                let metric = Metric::Name(sub.metric.unwrap_or_default());
                (Selection::Metric(metric), sub.tags.into_iter().collect())
            }
        });
        Ok(Self { subs: subs.collect(), since: since(body.back_scan, now) })
    }
}

/// The time `hours` before `now`, in milliseconds; `None` without a positive number of hours.
pub(super) fn since(hours: Option<i64>, now: i64) -> Option<i64> {
    let hours = hours.filter(|hours| *hours > 0)?;
    Some(now.saturating_sub(hours.saturating_mul(3_600_000)))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_wish_is_a_url_or_a_body() {
        let request = LastRequest::of_parameters(
            "timeseries=cpu{zone=x,host=a}&tsuids=000161,000162&resolve&back_scan=1",
            7_200_000,
        );
        let request = request.unwrap();
        let tags = vec![("host".to_owned(), "a".to_owned()), ("zone".to_owned(), "x".to_owned())];
        assert_eq!(request.subs[0], (Selection::Metric(Metric::Name("cpu".into())), tags.clone()));
        assert_eq!(request.subs[1].0, Selection::Tsuids(vec!["000161".into(), "000162".into()]));
        assert_eq!(request.since, Some(3_600_000));
        let body = json!({
            "queries": [{ "metric": "cpu", "tags": { "zone": "x", "host": "a" } }, { "tsuids": ["000161"] }],
            "resolveNames": true, "backScan": 0,
        });
        let request = LastRequest::of_body(body, 0).unwrap();
        assert_eq!(request.subs[0].1, tags);
        assert_eq!((request.subs.len(), request.since), (2, None));
    }

    #[test]
    fn a_wrong_wish_is_refused_by_name() {
        assert!(LastRequest::of_parameters("back_scan=x", 0).is_err());
        assert!(LastRequest::of_parameters("timeseries=cpu{host", 0).is_err());
        let fields = json!({ "queries": [{ "metric": "cpu", "fields": ["a"] }] });
        assert!(LastRequest::of_body(fields, 0).unwrap_err().message().contains("mlast"));
        assert!(
            LastRequest::of_body(json!({ "tupleFormat": true }), 0)
                .unwrap_err()
                .message()
                .contains("tupleFormat")
        );
    }

    #[test]
    fn a_value_is_a_text() {
        let point = LastPoint {
            metric: "cpu".into(),
            tags: vec![("host".into(), "a".into())],
            millis: 1_500,
            value: Number::Float(2.0),
        };
        let tsuid = "00036370750004686F7374000161";
        let expected = format!(
            r#"{{"metric":"cpu","timestamp":1500,"value":"2.0","tags":{{"host":"a"}},"tsuid":"{tsuid}"}}"#
        );
        assert_eq!(point_json(&point), expected);
    }
}
