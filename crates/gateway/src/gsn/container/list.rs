//! `REQUEST=0`: the sensors with their fields, and the newest value of each field.

use axum::response::Response;
use timeseries::{Source, SourceError};
use virtual_sensors::ContainerInfo;

use super::super::answer_text::{AnswerText, streamed};
use super::super::newest::{NewestRow, newest_row};
use super::super::refusal::Refusal;
use super::super::request_context::RequestContext;
use super::super::sensor::Sensor;
use super::super::time::{TimeFormat, time_text};
use super::super::xml::escaped;
use super::document::{DECLARATION, set_headers};
use crate::http::tools::state::HttpState;

/// Lists all sensors, or the one of the parameter `name`.
pub(super) async fn list(state: &HttpState, context: RequestContext) -> Result<Response, Refusal> {
    let RequestContext { caller, params } = context;
    let without_values = params.flag("omit_latest_values")?;
    let mut sensors = Sensor::all(&state.sensors, &caller)?;
    if let Some(name) = params.text("name") {
        sensors.retain(|sensor| sensor.name().eq_ignore_ascii_case(name.trim()));
    }
    let head = head(state.sensors.container(&caller)?.as_deref());
    let write = move |source: &dyn Source, out: &mut AnswerText<'_>| -> Result<(), SourceError> {
        let mut text = DECLARATION.to_owned();
        text.push_str(&head);
        for sensor in &sensors {
            let newest = if without_values { None } else { newest_row(source, sensor)? };
            push_sensor(sensor, newest.as_ref(), &mut text);
            out.text.extend_from_slice(text.as_bytes());
            text.clear();
            if out.send_full().is_break() {
                return Ok(());
            }
        }
        out.text.extend_from_slice(text.as_bytes());
        out.text.extend_from_slice(b"</gsn>\n");
        Ok(())
    };
    let mut response = streamed(state, caller, "text/xml", write).await?;
    set_headers(&mut response);
    Ok(response)
}

/// The first element: the names of the file of the container, if there is one.
fn head(container: Option<&ContainerInfo>) -> String {
    let word = |said: Option<&Option<String>>, default: &str| {
        escaped(said.and_then(Option::as_deref).unwrap_or(default))
    };
    format!(
        "<gsn name=\"{}\" author=\"{}\" email=\"{}\" description=\"{}\">\n",
        word(container.map(|said| &said.name), "Tachograph"),
        word(container.map(|said| &said.author), ""),
        word(container.map(|said| &said.email), ""),
        word(container.map(|said| &said.description), "Virtual sensors of Tachograph"),
    )
}

/// Appends a sensor. Without a newest row its fields are empty.
pub(in super::super) fn push_sensor(sensor: &Sensor, newest: Option<&NewestRow>, text: &mut String) {
    text.push_str(&format!(
        "<virtual-sensor name=\"{}\" protected=\" \" description=\"{}\">\n",
        escaped(sensor.name()),
        escaped(sensor.description())
    ));
    let time = newest.map(|row| time_text(row.millis, TimeFormat::Container)).unwrap_or_default();
    text.push_str(&format!(
        "\t<field name=\"time\" type=\"string\" description=\"The timestamp associated with the stream element\" unit=\"\">{time}</field>\n"
    ));
    for (at, field) in sensor.fields().iter().enumerate() {
        let value = newest.map(|row| row.values[at].as_deref().map_or_else(|| "null".to_owned(), escaped));
        let description = match field.description.as_str() {
            "" => String::new(),
            description => format!(" description=\"{}\"", escaped(description)),
        };
        text.push_str(&format!(
            "\t<field name=\"{}\" type=\"{}\"{description} unit=\"{}\">{}</field>\n",
            escaped(&field.name),
            escaped(&field.type_name),
            escaped(&field.unit),
            value.unwrap_or_default()
        ));
    }
    for (key, value) in sensor.addressing() {
        text.push_str(&format!(
            "\t<field name=\"{}\" category=\"predicate\">{}</field>\n",
            escaped(&key.to_lowercase()),
            escaped(value)
        ));
    }
    text.push_str("</virtual-sensor>\n");
}
