//! The statement of the server about itself: `/api/aggregators`, `/api/config`, `/api/stats` and the like.

use std::sync::Arc;

use axum::extract::State;
use axum::http::StatusCode;
use axum::response::Response;
use model::limits::TAGS_PER_SERIES_MAX;
use serde_json::{Map, Value, json};
use timeseries::opentsdb::{AGGREGATORS, FILTER_TYPES, limits};

use super::answers::{Refusal, json_answer};
use super::limits::PUT_BYTES_MAX;
use super::request::{RequestCaller, now};
use crate::http::tools::state::HttpState;

/// `/api/aggregators`.
pub(super) async fn aggregators() -> Response {
    let names: Vec<&str> = AGGREGATORS.iter().map(|aggregator| aggregator.name()).collect();
    json_answer(StatusCode::OK, json!(names).to_string())
}

/// `/api/config/filters`.
pub(super) async fn filters() -> Response {
    let types = FILTER_TYPES.iter().map(|kind| {
        (kind.name.to_owned(), json!({ "description": kind.description, "examples": kind.example }))
    });
    json_answer(StatusCode::OK, Value::Object(types.collect()).to_string())
}

/// `/api/config`: OpenTSDB's settings that say something about this server.
pub(super) async fn config(State(state): State<Arc<HttpState>>, RequestCaller(_): RequestCaller) -> Response {
    let settings: Map<_, _> =
        settings(state.options.open.is_some()).map(|(name, value)| (name.to_owned(), value.into())).collect();
    json_answer(StatusCode::OK, Value::Object(settings).to_string())
}

fn settings(open: bool) -> impl Iterator<Item = (&'static str, String)> {
    [
        ("tsd.core.authentication.enable", (!open).to_string()),
        ("tsd.core.auto_create_metrics", true.to_string()),
        ("tsd.core.auto_create_tagks", true.to_string()),
        ("tsd.core.auto_create_tagvs", true.to_string()),
        ("tsd.http.query.allow_delete", true.to_string()),
        ("tsd.http.request.enable_chunked", true.to_string()),
        ("tsd.http.request.max_chunk", PUT_BYTES_MAX.to_string()),
        ("tsd.mode", "rw".to_owned()),
        ("tsd.query.limits.data_points.default", limits::POINTS_MAX.to_string()),
        ("tsd.query.skip_unresolved_tagvs", true.to_string()),
        ("tsd.storage.max_tags", TAGS_PER_SERIES_MAX.to_string()),
    ]
    .into_iter()
}

/// `/api/stats`: the counters of `/metrics` as data points, without the buckets of histograms.
pub(super) async fn stats(State(state): State<Arc<HttpState>>, RequestCaller(_): RequestCaller) -> Response {
    let seconds = now() / 1000;
    let text = state.hub.metrics_text();
    let points: Value = text.lines().filter_map(sample).map(|sample| sample.point(seconds)).collect();
    json_answer(StatusCode::OK, points.to_string())
}

/// A line of Prometheus' text format.
#[derive(Debug, PartialEq)]
struct Sample<'a> {
    name: &'a str,
    labels: Vec<(&'a str, String)>,
    value: &'a str,
}

impl Sample<'_> {
    fn point(&self, seconds: i64) -> Value {
        let tags: Map<_, _> =
            self.labels.iter().map(|(name, value)| ((*name).to_owned(), value.clone().into())).collect();
        json!({ "metric": self.name, "timestamp": seconds, "value": self.value, "tags": tags })
    }
}

/// Reads a line; `None` for a comment, a bucket, and what has another form.
fn sample(line: &str) -> Option<Sample<'_>> {
    let end = line.find(['{', ' '])?;
    let (name, mut rest) = line.split_at(end);
    if name.starts_with('#') || name.ends_with("_bucket") {
        return None;
    }
    let mut labels = Vec::new();
    if let Some(inner) = rest.strip_prefix('{') {
        rest = inner;
        while !rest.starts_with('}') {
            let (label, after) = rest.split_once("=\"")?;
            let (value, after) = quoted(after)?;
            labels.push((label, value));
            rest = after.strip_prefix(',').unwrap_or(after);
        }
        rest = &rest[1..];
    }
    let value = rest.split_ascii_whitespace().next()?;
    value.parse::<f64>().ok().map(|_| Sample { name, labels, value })
}

/// The text before the closing quote, and what follows it.
fn quoted(text: &str) -> Option<(String, &str)> {
    let (mut value, mut characters) = (String::new(), text.char_indices());
    while let Some((at, character)) = characters.next() {
        match character {
            '"' => return Some((value, &text[at + 1..])),
            '\\' => value.push(match characters.next()?.1 {
                'n' => '\n',
                other => other,
            }),
            other => value.push(other),
        }
    }
    None
}

/// `/api/dropcaches`. The caches of this server follow what they hold, so there is nothing to drop.
pub(super) async fn drop_caches(RequestCaller(_): RequestCaller) -> Response {
    json_answer(StatusCode::OK, json!({ "status": "200", "message": "Caches dropped" }).to_string())
}

/// `/api/uid/...`: refused.
pub(super) async fn uid(RequestCaller(_): RequestCaller) -> Refusal {
    Refusal::bad_request("This server has no UIDs").with_details(
        "Names are stored as they are: data points create them. /api/suggest and /api/search/lookup list them. A TSUID spells the \
         names of its series",
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_sample_of_prometheus_is_read() {
        let read = |line| {
            sample(line).map(|sample| (sample.name.to_owned(), sample.labels, sample.value.to_owned()))
        };
        assert_eq!(read("a_total 5"), Some(("a_total".into(), vec![], "5".into())));
        let labels = vec![("door", "http".to_owned()), ("why", "a \"b\",}\\\n".to_owned())];
        assert_eq!(
            read(r#"a{door="http",why="a \"b\",}\\\n"} 1.5 1700000000"#),
            Some(("a".into(), labels, "1.5".into()))
        );
        for other in
            ["# TYPE a counter", "", "a", "a_bucket{le=\"1\"} 5", "a{b=\"c} 5", "a{b} 5", "a x", "# EOF"]
        {
            assert_eq!(read(other), None, "{other}");
        }
        let point = sample(r#"a{door="http"} 5"#).unwrap().point(7);
        let expected = json!({ "metric": "a", "timestamp": 7, "value": "5", "tags": { "door": "http" } });
        assert_eq!(point, expected);
    }

    #[test]
    fn settings_are_texts_with_opentsdbs_names() {
        assert!(settings(true).all(|(name, value)| name.starts_with("tsd.") && !value.is_empty()));
        let value = |open| settings(open).next().unwrap().1;
        assert_eq!((value(false).as_str(), value(true).as_str()), ("true", "false"));
    }
}
