//! Rows of a body.

use std::borrow::Cow;
use std::cell::RefCell;

use hub::points::{Points, RefusedItem};
use model::limits::TAGS_PER_SERIES_MAX;
use model::{Timestamp, ValueRef, name};
use wire::opentsdb::put::{self, Charset, DataPoint, Epoch, FieldValue, Number, SeriesRules, SyntaxError};

use super::outcome::Outcome;

/// The column of a point with one value.
pub(super) const VALUE: &str = "value";

/// How a point has its values.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Form {
    /// One number, `value`.
    Value,
    /// HiTSDB's `fields`.
    Fields,
}

impl Form {
    /// The path of the requests, which names them in dead letters.
    pub(super) fn path(self) -> &'static str {
        match self {
            Self::Value => "/api/put",
            Self::Fields => "/api/mput",
        }
    }

    pub(super) fn rules(self) -> SeriesRules {
        let charset = match self {
            Self::Value => Charset::opentsdb(""),
            Self::Fields => Charset::hitsdb(""),
        };
        SeriesRules { charset, tags_max: TAGS_PER_SERIES_MAX }
    }
}

/// Adds the points of a body. The number of a row's item is that of its point. Refused points are kept as dead letters and named in
/// the result.
///
/// # Errors
/// The body is malformed; then the caller must accept none of the points.
pub(super) fn collect(points: &mut Points, form: Form, body: &[u8]) -> Result<Outcome, SyntaxError> {
    let mut reader = put::Points::new(body)?;
    let (rules, mut key, mut outcome) = (form.rules(), Vec::new(), Outcome::default());
    while let Some(point) = reader.next_point()? {
        let added = match form {
            Form::Value => add_value(points, outcome.points, point, &rules, &mut key),
            Form::Fields => add_fields(points, outcome.points, point, &rules, &mut key),
        };
        // A body is shorter than 4 GiB.
        outcome.points += 1;
        if let Err(reason) = added {
            points.refuse(&reason, point.text.as_bytes());
            outcome.refuse(point.text, &reason);
        }
    }
    Ok(outcome)
}

/// Names the points of which the store refused values.
pub(super) fn name_refused(body: &[u8], refused: &[RefusedItem], outcome: &mut Outcome) {
    let mut refused = refused.iter().peekable();
    let Ok(mut reader) = put::Points::new(body) else { return };
    let mut item = 0;
    while let (Some(next), Ok(Some(point))) = (refused.peek(), reader.next_point()) {
        if next.item == item {
            outcome.refuse(point.text, &next.reason);
            refused.next();
        }
        item += 1;
    }
}

/// Names all points of a body as not stored in time.
pub(super) fn timed_out(body: &[u8]) -> Outcome {
    let mut outcome = Outcome::default();
    let Ok(mut reader) = put::Points::new(body) else { return outcome };
    while let Ok(Some(point)) = reader.next_point() {
        outcome.points += 1;
        outcome.time_out(point.text);
    }
    outcome
}

fn add_value(
    points: &mut Points,
    item: u32,
    point: &DataPoint<'_>,
    rules: &SeriesRules,
    key: &mut Vec<u8>,
) -> Result<(), String> {
    let (micros, number) = point.timed_value(Epoch::OpenTsdb).map_err(|refusal| refusal.to_string())?;
    let fields = vec![(VALUE, value_of(number))];
    add(points, item, point, (rules, key), micros, fields)
}

fn add_fields(
    points: &mut Points,
    item: u32,
    point: &DataPoint<'_>,
    rules: &SeriesRules,
    key: &mut Vec<u8>,
) -> Result<(), String> {
    let micros = point.fields_time(Epoch::HiTsdb).map_err(|refusal| refusal.to_string())?;
    let mut fields = Vec::with_capacity(point.fields.len());
    for (field, value) in &point.fields {
        name::check_key(field).map_err(|error| error.to_string())?;
        let value = match value.field().map_err(|refusal| refusal.to_string())? {
            FieldValue::Number(number) => value_of(number),
            FieldValue::Text(text) => ValueRef::String(text),
            FieldValue::Bool(value) => ValueRef::Bool(value),
        };
        fields.push((&**field, value));
    }
    add(points, item, point, (rules, key), micros, fields)
}

pub(super) fn value_of(number: Number) -> ValueRef<'static> {
    match number {
        Number::I64(value) => ValueRef::I64(value),
        Number::F64(value) => ValueRef::F64(value),
    }
}

/// Adds fields to the series of a point. `key` is working space.
fn add(
    points: &mut Points,
    item: u32,
    point: &DataPoint<'_>,
    (rules, key): (&SeriesRules, &mut Vec<u8>),
    micros: i64,
    fields: Vec<(&str, ValueRef<'_>)>,
) -> Result<(), String> {
    let (metric, tags) = point.series_text();
    key.clear();
    // The first byte distinguishes these names from those of the other interfaces.
    key.push(0);
    key.extend_from_slice(metric.as_bytes());
    key.extend_from_slice(tags.as_bytes());
    let fault = RefCell::new(None);
    let names = || {
        if let Err(refusal) = point.check_series(rules) {
            fault.replace(Some(refusal.to_string()));
            // No table has an empty name, so the series is refused.
            return ("", Vec::new());
        }
        let mut tags: Vec<(&str, &str)> =
            point.tags.iter().map(|(key, value)| (Cow::as_ref(key), Cow::as_ref(value))).collect();
        tags.sort_unstable();
        (Cow::as_ref(&point.metric), tags)
    };
    let added = points.add(item, Timestamp::from_micros(micros), key, names, fields);
    added.map_err(|refusal| fault.take().unwrap_or_else(|| refusal.to_string()))
}
