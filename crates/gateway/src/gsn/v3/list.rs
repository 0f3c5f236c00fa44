//! The sensors, with their newest rows on request.

use std::sync::Arc;

use axum::extract::State;
use axum::response::Response;
use hub::Order;
use timeseries::{Source, SourceError};

use super::super::answer_text::{AnswerText, streamed};
use super::super::container::push_sensor;
use super::super::json_text::push;
use super::super::newest::{NewestRow, newest_row, oldest_time};
use super::super::read::Selection;
use super::super::refusal::Refusal;
use super::super::request_context::RequestContext;
use super::super::sensor::Sensor;
use super::super::time::TimeFormat;
use super::csv::{data_head, list_head, list_line};
use super::feature::{Extent, FeatureText, TIME, about};
use super::request::{Format, time_format};
use crate::http::tools::request::{Params, PathOf};
use crate::http::tools::state::HttpState;

/// `GET /api/sensors`
pub(super) async fn sensors(
    State(state): State<Arc<HttpState>>,
    RequestContext { caller, params }: RequestContext,
) -> Result<Response, Refusal> {
    let sensors = Sensor::all(&state.sensors, &caller)?;
    let look = Look::read(&params)?;
    let write = move |source: &dyn Source, out: &mut AnswerText<'_>| look.write_list(&sensors, source, out);
    streamed(&state, caller, look.format.content_type(), write).await
}

/// `GET /api/sensors/{sensor}`
pub(super) async fn sensor(
    State(state): State<Arc<HttpState>>,
    PathOf(name): PathOf<String>,
    RequestContext { caller, params }: RequestContext,
) -> Result<Response, Refusal> {
    let sensor = Sensor::named(&state.sensors, &caller, &name)?;
    let look = Look::read(&params)?;
    let write = move |source: &dyn Source, out: &mut AnswerText<'_>| match look.format {
        Format::Json => look.write_feature(&sensor, source, out),
        Format::Csv => {
            push(&mut out.text, &data_head(&Selection::all(sensor), false));
            Ok(())
        }
        Format::Xml => look.write_list(&[sensor], source, out),
    };
    streamed(&state, caller, look.format.content_type(), write).await
}

/// What an answer looks like.
#[derive(Debug, Clone, Copy)]
struct Look {
    format: Format,
    times: TimeFormat,
    with_values: bool,
}

impl Look {
    fn read(params: &Params) -> Result<Self, Refusal> {
        let with_values = params.flag("latestValues")?;
        Ok(Self { format: Format::read(params)?, times: time_format(params)?, with_values })
    }

    fn newest(&self, source: &dyn Source, sensor: &Sensor) -> Result<Option<NewestRow>, SourceError> {
        if self.with_values { newest_row(source, sensor) } else { Ok(None) }
    }

    fn write_list(
        &self,
        sensors: &[Sensor],
        source: &dyn Source,
        out: &mut AnswerText<'_>,
    ) -> Result<(), SourceError> {
        let (begin, end) = match self.format {
            Format::Json => ("{\"type\":\"FeatureCollection\",\"features\":[".to_owned(), "]}"),
            Format::Csv => (list_head(self.with_values), ""),
            Format::Xml => ("<gsn name=\"Tachograph\">\n".to_owned(), "</gsn>\n"),
        };
        push(&mut out.text, &begin);
        for (at, sensor) in sensors.iter().enumerate() {
            match self.format {
                Format::Json => {
                    push(&mut out.text, if at > 0 { "," } else { "" });
                    self.write_feature(sensor, source, out)?;
                }
                Format::Csv => {
                    let line = list_line(sensor, self.newest(source, sensor)?.as_ref(), self.with_values);
                    push(&mut out.text, &line);
                }
                Format::Xml => {
                    let mut text = String::new();
                    push_sensor(sensor, self.newest(source, sensor)?.as_ref(), &mut text);
                    push(&mut out.text, &text);
                }
            }
            if out.send_full().is_break() {
                return Ok(());
            }
        }
        push(&mut out.text, end);
        Ok(())
    }

    fn write_feature(
        &self,
        sensor: &Sensor,
        source: &dyn Source,
        out: &mut AnswerText<'_>,
    ) -> Result<(), SourceError> {
        let mut selection = Selection { newest: Some(1), ..Selection::all(sensor.clone()) };
        selection.order = Order::Descending;
        let mut feature = FeatureText::new(self.times);
        feature.begin(sensor, &mut out.text);
        let mut extent = Extent { start: oldest_time(source, sensor)?, end: None };
        selection.read(source, &mut |row| {
            extent.end = Some(row.millis());
            if self.with_values {
                feature.row(&row, |at| selection.kind(at), &mut out.text);
            }
            std::ops::ControlFlow::Break(())
        })?;
        let time = (self.with_values && extent.end.is_some()).then_some(TIME);
        let fields: Vec<_> = time.into_iter().chain(about(sensor, selection.fields.iter())).collect();
        feature.end(sensor, &fields, extent, &mut out.text);
        Ok(())
    }
}
