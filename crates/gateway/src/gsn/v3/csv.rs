//! Sensors and their rows as GSN 2.0's CSV.

use super::super::newest::NewestRow;
use super::super::read::{Row, Selection};
use super::super::sensor::Sensor;
use super::super::time::TimeText;
use super::super::value::Value;
use super::feature::{FieldAbout, TIME, about, properties};

/// The properties that a list of sensors has (`gsn.api.defaultMetadataProps`).
const LISTED: [&str; 5] = ["description", "latitude", "longitude", "altitude", "accessProtected"];

/// The first line of a list.
pub(super) fn list_head(with_values: bool) -> String {
    let values = if with_values { ",values" } else { "" };
    format!("#vs_name,{},fields,units,types{values}\n", LISTED.join(","))
}

/// The line of a sensor in a list.
pub(super) fn list_line(sensor: &Sensor, newest: Option<&NewestRow>, with_values: bool) -> String {
    let own = properties(sensor);
    let text = |name: &str| own.iter().find(|(key, _)| key == name).map_or("", |(_, value)| value.as_str());
    let quoted = LISTED.map(|name| format!("\"{}\"", without_breaks(text(name))));
    let columns = sensor.fields();
    let joined = |of: &dyn Fn(usize) -> String| (0..columns.len()).map(of).collect::<Vec<_>>().join("|");
    let names = joined(&|at| columns[at].name.clone());
    let units = joined(&|at| columns[at].unit.clone());
    let types = joined(&|at| columns[at].type_name.clone());
    let values = match (with_values, newest) {
        (false, _) => String::new(),
        (true, None) => ",".to_owned(),
        (true, Some(row)) => {
            format!(",{}", joined(&|at| row.values[at].clone().unwrap_or_else(|| "null".into())))
        }
    };
    format!("{},{},\"{names}\",\"{units}\",\"{types}\"{values}\n", sensor.name(), quoted.join(","))
}

/// The lines before the rows of a sensor.
pub(super) fn data_head(selection: &Selection, with_time: bool) -> String {
    let sensor = &selection.sensor;
    let mut text = format!("# vs_name:{}\n", sensor.name());
    for (name, value) in properties(sensor) {
        text.push_str(&format!("# {name}:{}\n", without_breaks(&value)));
    }
    let time = with_time.then_some(TIME);
    let fields: Vec<FieldAbout<'_>> =
        time.into_iter().chain(about(sensor, selection.fields.iter())).collect();
    let joined = |of: &dyn Fn(&FieldAbout<'_>) -> String| fields.iter().map(of).collect::<Vec<_>>().join(",");
    let names = joined(&|field| field.name.to_owned());
    let units = joined(&|field| field.unit.unwrap_or_default().to_owned());
    let types = joined(&|field| field.type_name.to_owned());
    format!("{text}# fields:{names}\n# units:{units}\n# types:{types}\n")
}

/// The line of a row.
pub(super) fn push_row(selection: &Selection, row: &Row<'_>, times: &mut TimeText, out: &mut Vec<u8>) {
    times.write(row.millis(), out);
    for (at, value) in row.values.iter().enumerate() {
        out.push(b',');
        match value {
            None => out.extend_from_slice(b"null"),
            Some(Value::Text(text)) => out.extend_from_slice(without_breaks(text).as_bytes()),
            Some(value) => selection.kind(at).write(*value, out),
        }
    }
    out.push(b'\n');
}

/// A text in which `\n` stands for a line break.
fn without_breaks(text: &str) -> String {
    text.replace("\r\n", "\n").replace(['\r', '\n'], "\\n")
}
