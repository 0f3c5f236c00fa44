//! Lists of names and series: `/api/suggest`, `/api/search/lookup`, and HiTSDB's `/api/dump_meta`.

use std::sync::Arc;
use std::time::Instant;

use axum::extract::State;
use axum::http::StatusCode;
use axum::response::Response;
use hub::caller::Caller;
use serde::Deserialize;
use serde_json::{Value, json};
use timeseries::Source;
use timeseries::opentsdb::{
    LookupText, QueryError, field_names, metrics, metrics_with, series, tag_names, tag_values, tsuid,
};

use super::answers::{Refusal, json_answer};
use super::lenient::{flag, number, or_default, text};
use super::limits::{LISTED_MAX, LOOKED_UP, SUGGESTED};
use super::query_answer::TagsJson;
use super::request::{JsonRequest, RequestCaller, run_query};
use crate::error::{ApiError, ErrorCode};
use crate::http::tools::request::Params;
use crate::http::tools::state::HttpState;

/// A wish for names.
#[derive(Deserialize, Default)]
#[serde(default)]
pub(super) struct Suggest {
    #[serde(rename = "type", deserialize_with = "text")]
    kind: Option<String>,
    #[serde(deserialize_with = "or_default")]
    q: String,
    /// HiTSDB's: the names of one metric.
    #[serde(deserialize_with = "text")]
    metric: Option<String>,
    #[serde(deserialize_with = "number")]
    max: Option<usize>,
}

/// `GET /api/suggest`.
pub(super) async fn suggest(
    State(state): State<Arc<HttpState>>,
    RequestCaller(caller): RequestCaller,
    params: Params,
) -> Result<Response, Refusal> {
    let text = |name| params.text(name).map(str::to_owned);
    let max = params.number("max")?;
    let wanted =
        Suggest { kind: text("type"), q: text("q").unwrap_or_default(), metric: text("metric"), max };
    suggested(&state, caller, wanted).await
}

/// `POST /api/suggest`.
pub(super) async fn suggest_by_body(
    State(state): State<Arc<HttpState>>,
    JsonRequest(caller, wanted): JsonRequest<Suggest>,
) -> Result<Response, Refusal> {
    suggested(&state, caller, wanted).await
}

type List = fn(&dyn Source, Option<&str>, &str, usize) -> Result<Vec<String>, QueryError>;

async fn suggested(state: &HttpState, caller: Caller, wanted: Suggest) -> Result<Response, Refusal> {
    let Suggest { kind, q, metric, max } = wanted;
    let list: List = match kind.as_deref() {
        Some("metrics") => |source, _, prefix, max| metrics(source, prefix, max),
        Some("tagk") => tag_names,
        Some("tagv") => |source, metric, prefix, max| tag_values(source, metric, None, prefix, max),
        Some("field") => field_names,
        Some(other) => {
            return Err(Refusal::bad_request(format!("Invalid 'type' parameter:{other}"))
                .with_details("The types are metrics, tagk, tagv and field"));
        }
        None => return Err(Refusal::bad_request("Missing 'type' parameter")),
    };
    let max = max.filter(|max| *max > 0).unwrap_or(SUGGESTED).min(LISTED_MAX);
    let names = run_query(state, caller, move |source| list(source, metric.as_deref(), &q, max)).await?;
    Ok(json_answer(StatusCode::OK, json!(*names).to_string()))
}

/// A lookup as JSON.
#[derive(Deserialize, Default)]
#[serde(rename_all = "camelCase", default)]
pub(super) struct Lookup {
    #[serde(deserialize_with = "or_default")]
    metric: String,
    #[serde(deserialize_with = "or_default")]
    tags: Vec<Pair>,
    #[serde(deserialize_with = "number")]
    limit: Option<usize>,
    #[serde(deserialize_with = "number")]
    start_index: Option<usize>,
}

#[derive(Deserialize, Default)]
#[serde(default)]
struct Pair {
    #[serde(deserialize_with = "or_default")]
    key: String,
    #[serde(deserialize_with = "or_default")]
    value: String,
}

/// `GET /api/search/lookup`: the series that have tags.
pub(super) async fn lookup(
    State(state): State<Arc<HttpState>>,
    RequestCaller(caller): RequestCaller,
    params: Params,
) -> Result<Response, Refusal> {
    let text = params.text("m").ok_or_else(|| Refusal::bad_request("Missing query parameter 'm'"))?;
    looked_up(&state, caller, LookupText::parse(text)?, params.number("limit")?).await
}

/// `POST /api/search/lookup`.
pub(super) async fn lookup_by_body(
    State(state): State<Arc<HttpState>>,
    JsonRequest(caller, wanted): JsonRequest<Lookup>,
) -> Result<Response, Refusal> {
    if wanted.start_index.is_some_and(|start| start > 0) {
        return Err(Refusal::bad_request(
            "'startIndex' is not supported: ask for more with limit, or for fewer series with tags",
        ));
    }
    let tags = wanted.tags.into_iter().map(|Pair { key, value }| (key, value)).collect();
    looked_up(&state, caller, LookupText::new(wanted.metric, tags)?, wanted.limit).await
}

async fn looked_up(
    state: &HttpState,
    caller: Caller,
    lookup: LookupText,
    limit: Option<usize>,
) -> Result<Response, Refusal> {
    let began = Instant::now();
    let limit = limit.unwrap_or(LOOKED_UP);
    let found_max = if limit == 0 { LISTED_MAX } else { limit.min(LISTED_MAX) };
    let head = lookup_head(&lookup, limit);
    // As in OpenTSDB, a lookup of an unknown metric is not a wrong request.
    let text = run_query(state, caller, move |source| match series(source, &lookup, found_max) {
        Err(QueryError::NoSuchMetric(name)) => Ok(Err(name)),
        found => found.map(|found| {
            let results = found.iter().map(|one| {
                let (metric, tags) = (json!(one.metric), TagsJson(&one.tags));
                format!(
                    "{{\"metric\":{metric},\"tags\":{tags},\"tsuid\":\"{}\"}}",
                    tsuid(&one.metric, &one.tags)
                )
            });
            let results: Vec<String> = results.collect();
            Ok(format!(",\"results\":[{}],\"totalResults\":{}}}", results.join(","), results.len()))
        }),
    });
    match &*text.await? {
        Ok(results) => {
            let time = format!(",\"time\":{}", began.elapsed().as_millis());
            Ok(json_answer(StatusCode::OK, [head.as_str(), &time, results].concat()))
        }
        Err(name) => {
            let message = "Unable to resolve one or more UIDs";
            let error = ApiError::new(StatusCode::NOT_FOUND, ErrorCode::NotFound, "not_found", message);
            Err(Refusal::from(error).with_details(format!("No such name for 'metrics': '{name}'")))
        }
    }
}

/// What the answer repeats of the request: a JSON object without its end.
fn lookup_head(lookup: &LookupText, limit: usize) -> String {
    let any = |text: &Option<String>| text.clone().unwrap_or_else(|| "*".to_owned());
    let tags = lookup.tags.iter().map(|(name, value)| json!({ "key": any(name), "value": any(value) }));
    let (metric, tags) = (json!(any(&lookup.metric)), tags.collect::<Value>());
    format!("{{\"type\":\"LOOKUP\",\"metric\":{metric},\"tags\":{tags},\"limit\":{limit},\"startIndex\":0")
}

/// HiTSDB's wish for the values of a tag, or for the metrics that have them.
#[derive(Deserialize, Default)]
#[serde(default)]
pub(super) struct DumpMeta {
    #[serde(deserialize_with = "text")]
    metric: Option<String>,
    #[serde(deserialize_with = "or_default")]
    tagkey: String,
    #[serde(deserialize_with = "or_default")]
    tagvalueprefix: String,
    #[serde(deserialize_with = "number")]
    max: Option<usize>,
    #[serde(alias = "dumpMetric", deserialize_with = "flag")]
    dump_metric: bool,
}

/// `POST /api/dump_meta`.
pub(super) async fn dump_meta(
    State(state): State<Arc<HttpState>>,
    JsonRequest(caller, wanted): JsonRequest<DumpMeta>,
) -> Result<Response, Refusal> {
    let DumpMeta { metric, tagkey, tagvalueprefix: prefix, max, dump_metric } = wanted;
    if tagkey.is_empty() {
        return Err(Refusal::bad_request("Missing 'tagkey'"));
    }
    if dump_metric && metric.is_some() {
        return Err(Refusal::bad_request("'metric' does not apply with 'dump_metric', which lists metrics"));
    }
    let max = max.filter(|max| *max > 0).unwrap_or(LISTED_MAX).min(LISTED_MAX);
    let name = tagkey.clone();
    let listed = run_query(&state, caller, move |source| match dump_metric {
        true => metrics_with(source, &name, &prefix, max),
        false => tag_values(source, metric.as_deref(), Some(&name), &prefix, max),
    });
    let listed = listed.await?;
    let body: Value = match dump_metric {
        true => json!(*listed),
        false => listed.iter().map(|value| json!({ tagkey.as_str(): value })).collect(),
    };
    Ok(json_answer(StatusCode::OK, body.to_string()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_answer_to_a_lookup_repeats_it() {
        let lookup = LookupText::parse("cpu{host=*,=a}").unwrap();
        let head: Value = serde_json::from_str(&(lookup_head(&lookup, 5) + "}")).unwrap();
        let tags = json!([{ "key": "host", "value": "*" }, { "key": "*", "value": "a" }]);
        assert_eq!((&head["metric"], &head["tags"], &head["limit"]), (&"cpu".into(), &tags, &5.into()));
    }

    #[test]
    fn bodies_of_several_clients_are_read() {
        let suggest: Suggest = serde_json::from_str(r#"{"type": "metrics", "q": null, "max": "7"}"#).unwrap();
        assert_eq!(
            (suggest.kind.as_deref(), suggest.q.as_str(), suggest.max),
            (Some("metrics"), "", Some(7))
        );
        let dump: DumpMeta = serde_json::from_str(
            r#"{"tagkey": "host", "tagvalueprefix": "a", "max": 2, "dump_metric": true}"#,
        )
        .unwrap();
        assert!(dump.dump_metric && dump.tagkey == "host" && dump.metric.is_none());
        let lookup: Lookup = serde_json::from_str(
            r#"{"metric": "m", "tags": [{"key": "host", "value": "*"}], "useMeta": false}"#,
        )
        .unwrap();
        assert_eq!((lookup.tags.len(), lookup.limit), (1, None));
    }
}
