//! The newest value of a field, as text.

use std::ops::ControlFlow;
use std::sync::Arc;

use axum::extract::State;
use axum::response::Response;
use hub::Order;
use timeseries::Source;

use super::super::answer_text::{AnswerText, streamed};
use super::super::read::{Column, Selection};
use super::super::refusal::Refusal;
use super::super::request_context::RequestContext;
use super::super::sensor::Sensor;
use crate::http::tools::request::PathOf;
use crate::http::tools::state::HttpState;

/// `GET /api/sensors/{sensor}/field/{field}`: the value of the newest row; empty if it has none.
pub(super) async fn newest(
    State(state): State<Arc<HttpState>>,
    PathOf((name, field)): PathOf<(String, String)>,
    RequestContext { caller, .. }: RequestContext,
) -> Result<Response, Refusal> {
    let sensor = Sensor::named(&state.sensors, &caller, &name)?;
    let fields = vec![Column::of(sensor.field(&field)?)];
    let selection = Selection { fields, newest: Some(1), order: Order::Descending, ..Selection::all(sensor) };
    let write = move |source: &dyn Source, out: &mut AnswerText<'_>| {
        selection.read(source, &mut |row| {
            if let Some(value) = row.values[0] {
                selection.kind(0).write(value, &mut out.text);
            }
            ControlFlow::Break(())
        })
    };
    streamed(&state, caller, "text/plain; charset=utf-8", write).await
}
