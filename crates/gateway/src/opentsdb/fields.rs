//! HiTSDB's queries of several fields: `/api/mquery` and `/api/query/mlast`.

use std::collections::BTreeMap;
use std::fmt::Write;
use std::ops::ControlFlow;
use std::sync::Arc;

use axum::extract::State;
use axum::http::StatusCode;
use axum::response::Response;
use bytes::Bytes;
use serde::Deserialize;
use serde_json::{Value, json};
use timeseries::Source;
use timeseries::opentsdb::{
    Cell, FieldSub, FieldsAnswer, FieldsSub, Metric, Query, QueryError, Selection, Tags, last_fields,
    run_fields,
};

use super::answers::{Refusal, json_answer};
use super::last::since;
use super::lenient::{flag, number, or_default, text};
use super::limits::PIECE_BYTES;
use super::query::streamed;
use super::query_answer::{TagsJson, write_float};
use super::query_body::{QueryBody, SubBody};
use super::refused_members::refuse_of_mlast;
use super::request::{JsonRequest, now, run_query, stream_query};
use crate::http::tools::state::HttpState;

/// `POST /api/mquery`.
pub(super) async fn query(
    State(state): State<Arc<HttpState>>,
    JsonRequest(caller, body): JsonRequest<Value>,
) -> Result<Response, Refusal> {
    let body = QueryBody::read(body)?;
    body.refuse_for_fields()?;
    let subs: Vec<FieldsSub> = body.queries.iter().map(fields_of).collect::<Result<_, _>>()?;
    let (times, milliseconds) = (body.query(Vec::new(), now())?, body.milliseconds());
    let chunks = stream_query(&state, caller, move |source, sender| {
        send_tables(&times, &subs, milliseconds, source, &mut |piece| match sender.send(Bytes::from(piece)) {
            Ok(()) => ControlFlow::Continue(()),
            // The engine knows why; the query ends.
            Err(_) => ControlFlow::Break(()),
        })
    })?;
    streamed(chunks).await
}

fn fields_of(sub: &SubBody) -> Result<FieldsSub, Refusal> {
    let fields = sub.fields.iter().map(|field| {
        let name = field.field.clone().unwrap_or_default();
        let query = sub.of_field(field, &name)?;
        Ok(FieldSub { field: name, alias: field.alias.clone(), sub: query, values: sub.values_of(field)? })
    });
    Ok(FieldsSub {
        table: sub.metric.clone().unwrap_or_default(),
        fields: fields.collect::<Result<_, Refusal>>()?,
        rows: sub.rows()?,
    })
}

/// Runs a query and sends its tables as JSON text, piece by piece, until `send` returns `Break`.
fn send_tables(
    times: &Query,
    subs: &[FieldsSub],
    milliseconds: bool,
    source: &dyn Source,
    send: &mut dyn FnMut(String) -> ControlFlow<()>,
) -> Result<(), QueryError> {
    let mut text = String::from("[");
    let mut first = true;
    let mut ended = ControlFlow::Continue(());
    run_fields(times, subs, source, &mut |answer| {
        if !std::mem::take(&mut first) {
            text.push(',');
        }
        ended = write_table(&mut text, &answer, milliseconds, &mut |text| match text.len() >= PIECE_BYTES {
            true => send(std::mem::take(text)),
            false => ControlFlow::Continue(()),
        });
        ended
    })?;
    if ended.is_continue() {
        text.push(']');
        // Nobody waits for what a closed receiver does not take.
        let _ = send(text);
    }
    Ok(())
}

/// Writes a table, and calls `written` after each row.
fn write_table(
    text: &mut String,
    answer: &FieldsAnswer,
    milliseconds: bool,
    written: &mut dyn FnMut(&mut String) -> ControlFlow<()>,
) -> ControlFlow<()> {
    let columns: Vec<&str> =
        std::iter::once("timestamp").chain(answer.columns.iter().map(String::as_str)).collect();
    let (metric, tags) = (json!(answer.metric), TagsJson(&answer.tags));
    let (others, columns) = (json!(answer.aggregate_tags), json!(columns));
    // Writing to a text does not fail.
    let _ = write!(
        text,
        "{{\"metric\":{metric},\"tags\":{tags},\"aggregatedTags\":{others},\"columns\":{columns},\"values\":["
    );
    let time = |millis: i64| if milliseconds { millis } else { millis.div_euclid(1000) };
    let mut first = true;
    for (millis, cells) in &answer.rows {
        if !std::mem::take(&mut first) {
            text.push(',');
        }
        let _ = write!(text, "[{}", time(*millis));
        for cell in cells {
            text.push(',');
            write_cell(text, cell);
        }
        text.push(']');
        written(text)?;
    }
    text.push_str("]}");
    ControlFlow::Continue(())
}

fn write_cell(text: &mut String, cell: &Cell) {
    // Writing to a text does not fail.
    let _ = match cell {
        Cell::Null => write!(text, "null"),
        Cell::Integer(value) => write!(text, "{value}"),
        Cell::Float(value) => {
            write_float(text, *value, "null");
            Ok(())
        }
        Cell::Bool(value) => write!(text, "{value}"),
        Cell::Text(value) => write!(text, "{}", json!(value)),
    };
}

#[derive(Deserialize, Default)]
#[serde(rename_all = "camelCase", default)]
struct LastBody {
    #[serde(deserialize_with = "or_default")]
    queries: Vec<LastSubBody>,
    #[serde(deserialize_with = "number")]
    back_scan: Option<i64>,
    #[serde(deserialize_with = "flag")]
    ms_resolution: bool,
}

#[derive(Deserialize, Default)]
#[serde(default)]
struct LastSubBody {
    #[serde(deserialize_with = "text")]
    metric: Option<String>,
    #[serde(deserialize_with = "or_default")]
    fields: Vec<String>,
    #[serde(deserialize_with = "or_default")]
    tags: BTreeMap<String, String>,
    #[serde(deserialize_with = "or_default")]
    tsuids: Vec<String>,
}

/// `POST /api/query/mlast`.
pub(super) async fn last(
    State(state): State<Arc<HttpState>>,
    JsonRequest(caller, body): JsonRequest<Value>,
) -> Result<Response, Refusal> {
    refuse_of_mlast(&body)?;
    let body: LastBody = serde_json::from_value(body).map_err(|error| {
        Refusal::bad_request("Unable to parse the given JSON").with_details(error.to_string())
    })?;
    if body.queries.is_empty() {
        return Err(Refusal::bad_request("Missing sub queries"));
    }
    let (since, milliseconds) = (since(body.back_scan, now()), body.ms_resolution);
    let subs: Vec<(Selection, Vec<String>, Tags)> = body.queries.into_iter().map(LastSubBody::read).collect();
    let text = run_query(&state, caller, move |source| {
        let mut text = String::from("[");
        for (number, (selection, fields, tags)) in subs.iter().enumerate() {
            for answer in last_fields(number, selection, fields, tags, since, source)? {
                if text.len() > 1 {
                    text.push(',');
                }
                // A series has at most one row for each field, so the text is not sent in pieces.
                let _ = write_table(&mut text, &answer, milliseconds, &mut |_| ControlFlow::Continue(()));
            }
        }
        text.push(']');
        Ok(text)
    });
    Ok(json_answer(StatusCode::OK, text.await?.clone()))
}

impl LastSubBody {
    fn read(self) -> (Selection, Vec<String>, Tags) {
        let selection = match self.tsuids.is_empty() {
            true => Selection::Metric(Metric::Name(self.metric.unwrap_or_default())),
            false => Selection::Tsuids(self.tsuids),
        };
        (selection, self.fields, self.tags.into_iter().collect())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_table_has_its_time_first_and_values_of_all_types() {
        let answer = FieldsAnswer {
            query: 0,
            metric: "car".into(),
            tags: vec![("car".into(), "a".into())],
            aggregate_tags: vec!["fleet".into()],
            columns: vec!["speed".into(), "note".into()],
            rows: vec![
                (1_500, vec![Cell::Float(2.0), Cell::Text("a \"b\"".into())]),
                (2_000, vec![Cell::Float(f64::NAN), Cell::Bool(true)]),
                (3_000, vec![Cell::Integer(-1), Cell::Null]),
            ],
        };
        let written = |milliseconds| {
            let mut text = String::new();
            let _ = write_table(&mut text, &answer, milliseconds, &mut |_| ControlFlow::Continue(()));
            serde_json::from_str::<Value>(&text).unwrap()
        };
        let expected = json!({
            "metric": "car", "tags": { "car": "a" }, "aggregatedTags": ["fleet"],
            "columns": ["timestamp", "speed", "note"],
            "values": [[1, 2.0, "a \"b\""], [2, null, true], [3, -1, null]],
        });
        assert_eq!(written(false), expected);
        assert_eq!(written(true)["values"][0][0], 1_500);
    }

    #[test]
    fn what_only_a_query_of_metrics_has_is_refused() {
        for body in [
            json!({ "delete": true }),
            json!({ "showQuery": true }),
            json!({ "queries": [{ "tsuids": ["00"] }] }),
        ] {
            assert!(QueryBody::read(body.clone()).unwrap().refuse_for_fields().is_err(), "{body}");
        }
        assert!(QueryBody::read(json!({ "queries": [{}] })).unwrap().refuse_for_fields().is_ok());
    }

    #[test]
    fn a_field_takes_what_it_does_not_say_from_its_sub_query() {
        let body = json!({ "start": 1, "queries": [{
            "metric": "car", "aggregator": "sum", "downsample": "1m-avg", "tags": { "car": "*" }, "limit": 3,
            "fields": [{ "field": "speed", "alias": "v" }, { "field": "gear", "aggregator": "max", "dpValue": ">1" }],
        }] });
        let body = QueryBody::read(body).unwrap();
        let fields = fields_of(&body.queries[0]).unwrap();
        let [speed, gear] = fields.fields.as_slice() else { panic!("there are two fields") };
        assert_eq!((speed.sub.aggregator.as_str(), speed.alias.as_deref()), ("sum", Some("v")));
        assert_eq!((gear.sub.aggregator.as_str(), gear.sub.downsample.as_deref()), ("max", Some("1m-avg")));
        assert!(speed.values.shows(0.0) && !gear.values.shows(0.0));
        assert_eq!(fields.rows.page(10), 0..3);
    }
}
