//! The messages of a stream of rows.

use std::sync::Arc;

use hub::live::Update;
use model::{Timestamp, Value as Stored, ValueRef};
use serde_json::{Map, Value as Json};

use super::super::sensor::Sensor;
use super::super::value::Value;

const WEEKDAYS: [&str; 7] = ["Thu", "Fri", "Sat", "Sun", "Mon", "Tue", "Wed"];
const MONTHS: [&str; 12] =
    ["Jan", "Feb", "Mar", "Apr", "May", "Jun", "Jul", "Aug", "Sep", "Oct", "Nov", "Dec"];
const DAY_S: i64 = 86_400;

/// A message for each row: its time as Java shows it, and the value of each field as text. A field without a value is `null`.
pub(super) fn messages(sensor: &Sensor, updates: &[Arc<Update>]) -> Vec<String> {
    let mut rows: Vec<(Timestamp, Vec<Option<&Stored>>)> = Vec::new();
    for update in updates {
        let field = sensor.fields().iter().position(|field| field.name == update.key);
        let Some(field) = field else { continue };
        // The values of a row follow each other.
        if rows.last().is_none_or(|(ts, _)| *ts != update.ts) {
            rows.push((update.ts, vec![None; sensor.fields().len()]));
        }
        if let Some((_, values)) = rows.last_mut() {
            values[field] = Some(&update.value);
        }
    }
    rows.iter().map(|(ts, values)| message(sensor, *ts, values)).collect()
}

fn message(sensor: &Sensor, ts: Timestamp, values: &[Option<&Stored>]) -> String {
    let mut members = Map::new();
    members.insert("timestamp".to_owned(), date_text(ts).into());
    for (field, value) in sensor.fields().iter().zip(values) {
        let text = value.map_or_else(
            || "null".to_owned(),
            |value| {
                let value = match value.as_ref() {
                    ValueRef::F64(number) => Value::F64(number),
                    ValueRef::I64(number) => Value::I64(number),
                    ValueRef::Bool(value) => Value::Bool(value),
                    ValueRef::String(text) | ValueRef::Json(text) => Value::Text(text),
                };
                let mut out = Vec::new();
                field.kind.write(value, &mut out);
                String::from_utf8_lossy(&out).into_owned()
            },
        );
        members.insert(field.name.clone(), text.into());
    }
    Json::Object(members).to_string()
}

/// A time as `Date.toString` of Java has it: `Fri Nov 27 20:15:30 UTC 2026`.
fn date_text(ts: Timestamp) -> String {
    let seconds = ts.micros().div_euclid(1_000_000);
    let (date, of_day) = (ts.date(), seconds.rem_euclid(DAY_S));
    let weekday = WEEKDAYS[seconds.div_euclid(DAY_S).rem_euclid(7) as usize];
    let month = MONTHS[usize::from(date.month) - 1];
    let (hours, minutes) = (of_day / 3_600, of_day / 60 % 60);
    format!("{weekday} {month} {:02} {hours:02}:{minutes:02}:{:02} UTC {}", date.day, of_day % 60, date.year)
}

#[cfg(test)]
mod tests {
    use model::SeriesId;

    use super::super::super::sensor::tests::meadow;
    use super::*;

    #[test]
    fn the_values_of_a_time_are_one_message() {
        let update = |ts: i64, key: &str, value| {
            Arc::new(Update { series: SeriesId(1), key: key.into(), ts: Timestamp::from_micros(ts), value })
        };
        let first = 1_795_810_530_125_000;
        let updates = [
            update(first, "temperature", Stored::F64(20.0)),
            update(first, "readings", Stored::I64(3)),
            update(first, "other", Stored::I64(3)),
            update(first + 1, "state", Stored::String("a\"b".into())),
        ];
        let parsed: Vec<Json> =
            messages(&meadow(), &updates).iter().map(|text| serde_json::from_str(text).unwrap()).collect();
        let time = "Fri Nov 27 20:15:30 UTC 2026";
        assert_eq!(
            parsed,
            [
                serde_json::json!({ "timestamp": time, "temperature": "20.0", "readings": "3", "state": "null" }),
                serde_json::json!({ "timestamp": time, "temperature": "null", "readings": "null", "state": "a\"b" }),
            ]
        );
    }

    #[test]
    fn times_before_1970_have_their_day() {
        assert_eq!(date_text(Timestamp::from_micros(-1)), "Wed Dec 31 23:59:59 UTC 1969");
        assert_eq!(date_text(Timestamp::from_micros(0)), "Thu Jan 01 00:00:00 UTC 1970");
    }
}
