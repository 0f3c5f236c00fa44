//! `/field`: one value of a row.

use std::ops::ControlFlow;
use std::sync::Arc;

use axum::extract::State;
use axum::http::{HeaderValue, header};
use axum::response::{IntoResponse, Response};
use hub::Order;
use hub::registry::OWN_DATABASE;
use hub::sql::Reader;
use timeseries::{Source, SourceError};

use super::condition::{Condition, Operand, Operator};
use super::read::{Column, Selection};
use super::refusal::{Refusal, refused_task};
use super::request_context::RequestContext;
use super::sensor::Sensor;
use crate::error::ApiError;
use crate::http::tools::state::HttpState;

/// `GET /field` and `POST /field`: the value of a field in the row `pk`, which is its time in milliseconds; without it the newest row's.
pub(super) async fn value(
    State(state): State<Arc<HttpState>>,
    RequestContext { caller, params }: RequestContext,
) -> Result<Response, Refusal> {
    let missing =
        |name| Refusal::argument(format!("the parameter {name} is missing; /field takes vs, field and pk"));
    let name = params.text("vs").ok_or_else(|| missing("vs"))?;
    let sensor = Sensor::named(&state.sensors, &caller, name)?;
    let field = sensor.field(params.text("field").ok_or_else(|| missing("field"))?)?;
    let selection = selection(&sensor, Column::of(field), params.number("pk")?);
    let database = state.hub.database(&caller, OWN_DATABASE)?;
    let read = move |source: &dyn Source| text(&selection, source);
    let found = state.hub.time_series(&Reader::from(caller), &database, read).await;
    let found = found.map_err(refused_task)?;
    let row = found.as_ref().ok_or_else(|| {
        Refusal(ApiError::not_found(format!(
            "{} has no such row; pk is the time of a row in milliseconds since 1970, as /multidata has it with time_format=unix",
            sensor.name()
        )))
    })?;
    let text = row.as_deref().unwrap_or_default().to_owned();
    Ok(([(header::CONTENT_TYPE, HeaderValue::from_static("text/plain; charset=utf-8"))], text)
        .into_response())
}

fn selection(sensor: &Sensor, column: Column, pk: Option<i64>) -> Selection {
    let all = Selection { fields: vec![column], ..Selection::all(sensor.clone()) };
    match pk {
        None => Selection { newest: Some(1), order: Order::Descending, ..all },
        Some(millis) => {
            let is_of_row = Condition::new(Operand::Time, Operator::Equal, millis as f64);
            Selection { conditions: vec![is_of_row], ..all }
        }
    }
}

/// The text of the value of the first row; nothing if there is no row, or no value in it.
fn text(selection: &Selection, source: &dyn Source) -> Result<Option<Option<Vec<u8>>>, SourceError> {
    let mut found = None;
    selection.read(source, &mut |row| {
        let text = row.values[0].map(|value| {
            let mut text = Vec::new();
            selection.kind(0).write(value, &mut text);
            text
        });
        found = Some(text);
        ControlFlow::Break(())
    })?;
    Ok(found)
}
