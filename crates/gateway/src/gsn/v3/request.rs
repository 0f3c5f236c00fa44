//! The parameters of requests.

use hub::Order;

use super::super::aggregate::{Aggregation, Function};
use super::super::condition::{Condition, Operand, Operator, check_count};
use super::super::read::{Column, Selection};
use super::super::refusal::Refusal;
use super::super::sensor::Sensor;
use super::super::time::{TimeFormat, parse_iso};
use super::period::parse_millis;
use crate::http::tools::request::Params;

/// The form of an answer.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Format {
    Json,
    Csv,
    Xml,
}

impl Format {
    pub(super) fn read(params: &Params) -> Result<Self, Refusal> {
        match params.text("format").unwrap_or("json") {
            "json" => Ok(Self::Json),
            "csv" => Ok(Self::Csv),
            "xml" => Ok(Self::Xml),
            other @ ("shp" | "asc") => Err(Refusal::absent(format!(
                "this server writes no files of geographic systems ({other}); use json, which is GeoJSON, csv or xml"
            ))),
            other => Err(Refusal::argument(format!("Invalid format: {other}; it must be json, csv or xml"))),
        }
    }

    pub(super) fn content_type(self) -> &'static str {
        match self {
            Self::Json => "application/json; charset=utf-8",
            Self::Csv => "text/plain; charset=utf-8",
            Self::Xml => "application/xml; charset=utf-8",
        }
    }
}

/// `timeFormat`
pub(super) fn time_format(params: &Params) -> Result<TimeFormat, Refusal> {
    match params.text("timeFormat") {
        None | Some("unixTime") => Ok(TimeFormat::Unix),
        Some("iso8601") => Ok(TimeFormat::IsoSeconds),
        Some("iso8601ms") => Ok(TimeFormat::IsoMillis),
        Some(other) => Err(Refusal::argument(format!(
            "Invalid time format: {other}; it must be unixTime, iso8601 or iso8601ms"
        ))),
    }
}

/// The rows of `fields`, `filter`, `from`, `to`, `size`, `agg` and `aggPeriod`.
pub(super) fn selection(sensor: Sensor, params: &Params) -> Result<Selection, Refusal> {
    if params.text("period").is_some() {
        return Err(Refusal::absent(
            "period, a part of every year, does not apply here; ask for one year at a time with from and to",
        ));
    }
    let mut selection = Selection::all(sensor);
    if let Some(names) = params.text("fields") {
        selection.fields = columns(&selection.sensor, names)?;
    }
    if let Some(filter) = params.text("filter") {
        selection.conditions = conditions(&selection.sensor, filter)?;
    }
    // GSN's bounds: later than `from`, earlier than `to`.
    for (name, operator) in [("from", Operator::Above), ("to", Operator::Below)] {
        if let Some(millis) = time(params, name)? {
            selection.conditions.push(Condition::new(Operand::Time, operator, millis as f64));
        }
    }
    selection.newest = params.number("size")?;
    if selection.newest.is_some() {
        // As in GSN, a number of rows comes with the newest one first.
        selection.order = Order::Descending;
    }
    selection.aggregation = aggregation(params)?;
    Ok(selection)
}

/// Names of fields that are separated by commas. The time is in every answer.
pub(in super::super) fn columns(sensor: &Sensor, names: &str) -> Result<Vec<Column>, Refusal> {
    let names = names.split(',').map(str::trim);
    let names = names.filter(|name| !name.is_empty() && !name.eq_ignore_ascii_case("timestamp"));
    names.map(|name| Ok(Column::of(sensor.field(name)?))).collect()
}

/// Conditions that are separated by commas. All of them must hold.
pub(in super::super) fn conditions(sensor: &Sensor, text: &str) -> Result<Vec<Condition>, Refusal> {
    let conditions: Vec<Condition> = text.split(',').map(Condition::parse).collect::<Result<_, _>>()?;
    sensor.check_operands(&conditions)?;
    check_count(&conditions)?;
    Ok(conditions)
}

fn time(params: &Params, name: &str) -> Result<Option<i64>, Refusal> {
    let parse = |text| {
        parse_iso(text).ok_or_else(|| {
            Refusal::argument(format!(
                "{name} is {text:?}; it must be a time in UTC such as 2026-11-27T20:15:30, or a day"
            ))
        })
    };
    params.text(name).map(parse).transpose()
}

fn aggregation(params: &Params) -> Result<Option<Aggregation>, Refusal> {
    let Some(function) = params.text("agg") else { return Ok(None) };
    let function = Function::parse(function)?;
    let interval_ms = params.text("aggPeriod").and_then(parse_millis).ok_or_else(|| {
        Refusal::argument("agg needs aggPeriod, a period with a fixed length such as PT1H or P1D (ISO 8601)")
    })?;
    Ok(Some(Aggregation { function, interval_ms }))
}
