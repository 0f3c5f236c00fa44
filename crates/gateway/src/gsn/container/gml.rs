//! `REQUEST=901`: the sensors that have a place, with their newest values, in GML.

use axum::response::Response;
use timeseries::{Source, SourceError};

use super::super::answer_text::{AnswerText, streamed};
use super::super::newest::{NewestRow, newest_row};
use super::super::refusal::Refusal;
use super::super::request_context::RequestContext;
use super::super::sensor::Sensor;
use super::super::xml::escaped;
use super::document::{DECLARATION, set_headers};
use crate::http::tools::request::Params;
use crate::http::tools::state::HttpState;

const BEGIN: &str = "<gsn:FeatureCollection xmlns:xsi=\"http://www.w3.org/2001/XMLSchema-instance\" xsi:schemaLocation=\"./gsn.xsd\" \
                     xmlns:gsn=\"http://gsn.ch/\" xmlns:gml=\"http://www.opengis.net/gml\"> \n";
const END: &str = "</gsn:FeatureCollection>\n";

/// Answers with the sensors of the parameters `name` (a list) and `group` (the part of a name before `_`), or with all.
pub(super) async fn features(
    state: &HttpState,
    RequestContext { caller, params }: RequestContext,
) -> Result<Response, Refusal> {
    let mut sensors = Sensor::all(&state.sensors, &caller)?;
    sensors.retain(|sensor| is_wanted(sensor.name(), &params));
    let write = move |source: &dyn Source, out: &mut AnswerText<'_>| -> Result<(), SourceError> {
        out.text.extend_from_slice(DECLARATION.as_bytes());
        out.text.extend_from_slice(BEGIN.as_bytes());
        for sensor in &sensors {
            let Some(place) = Coordinates::of(sensor) else { continue };
            let newest = newest_row(source, sensor)?;
            out.text.extend_from_slice(feature(sensor, &place, newest.as_ref()).as_bytes());
            if out.send_full().is_break() {
                return Ok(());
            }
        }
        out.text.extend_from_slice(END.as_bytes());
        Ok(())
    };
    let mut response = streamed(state, caller, "text/xml", write).await?;
    set_headers(&mut response);
    Ok(response)
}

fn is_wanted(name: &str, params: &Params) -> bool {
    let is_named = params.text("name").is_none()
        || params.list("name").any(|wanted| wanted.trim().eq_ignore_ascii_case(name));
    let is_of_group = params.text("group").is_none_or(|group| {
        name.split_once('_').is_some()
            && name.to_lowercase().starts_with(&format!("{}_", group.to_lowercase()))
    });
    is_named && is_of_group
}

/// The texts of the predicates of a place.
struct Coordinates<'a> {
    longitude: &'a str,
    latitude: &'a str,
}

impl<'a> Coordinates<'a> {
    /// `None` if the sensor has none.
    fn of(sensor: &'a Sensor) -> Option<Self> {
        let text = |wanted: &str| {
            let found = sensor.addressing().iter().find(|(key, _)| key.eq_ignore_ascii_case(wanted));
            found.map(|(_, value)| value.trim()).filter(|value| !value.is_empty())
        };
        Some(Self { longitude: text("longitude")?, latitude: text("latitude")? })
    }
}

fn feature(sensor: &Sensor, place: &Coordinates<'_>, newest: Option<&NewestRow>) -> String {
    let name = escaped(sensor.name());
    let mut text = format!(
        "<gml:featureMember>\n<gsn:sensors fid=\"{name}\">\n\t<gsn:geometryProperty><gml:Point><gml:coordinates>{},{}\
         </gml:coordinates></gml:Point></gsn:geometryProperty>\n",
        escaped(place.longitude),
        escaped(place.latitude)
    );
    if let Some(row) = newest {
        text.push_str(&format!("\t<gsn:sensor>{name}</gsn:sensor>\n"));
        for (key, value) in sensor.addressing() {
            element(&key.to_lowercase(), value, &mut text);
        }
        for (field, value) in sensor.fields().iter().zip(&row.values) {
            element(&field.name, value.as_deref().unwrap_or("null"), &mut text);
        }
    }
    text + "</gsn:sensors>\n</gml:featureMember>\n"
}

/// Appends an element. A key that cannot be the name of one is left out.
fn element(name: &str, text: &str, out: &mut String) {
    let is_name = name.bytes().all(|byte| byte.is_ascii_alphanumeric() || b"_-.".contains(&byte))
        && name.bytes().next().is_some_and(|byte| byte.is_ascii_alphabetic() || byte == b'_');
    if is_name {
        out.push_str(&format!("\t<gsn:{name}>{}</gsn:{name}>\n", escaped(text)));
    }
}

#[cfg(test)]
mod tests {
    use super::super::super::sensor::tests::meadow;
    use super::*;

    #[test]
    fn a_sensor_with_a_place_is_a_feature() {
        let sensor = meadow();
        let newest = NewestRow { millis: 0, values: vec![Some("21.5".into()), None, Some("a<b".into())] };
        let expected = "\
<gml:featureMember>
<gsn:sensors fid=\"meadow\">
\t<gsn:geometryProperty><gml:Point><gml:coordinates>7.25,46.5</gml:coordinates></gml:Point></gsn:geometryProperty>
\t<gsn:sensor>meadow</gsn:sensor>
\t<gsn:latitude>46.5</gsn:latitude>
\t<gsn:longitude>7.25</gsn:longitude>
\t<gsn:place>Wannengrat</gsn:place>
\t<gsn:temperature>21.5</gsn:temperature>
\t<gsn:readings>null</gsn:readings>
\t<gsn:state>a&lt;b</gsn:state>
</gsn:sensors>
</gml:featureMember>
";
        assert_eq!(feature(&sensor, &Coordinates::of(&sensor).unwrap(), Some(&newest)), expected);
    }

    #[test]
    fn sensors_are_chosen_by_name_and_group() {
        let wanted = |name: &str, query: &str| is_wanted(name, &Params::parse(query));
        assert!(wanted("a", "") && wanted("a", "name=b,A") && !wanted("a", "name=b"));
        assert!(
            wanted("imis_1", "group=IMIS") && !wanted("imis", "group=imis") && !wanted("a_1", "group=imis")
        );
        let mut out = String::new();
        element("no name", "x", &mut out);
        assert!(out.is_empty());
    }
}
