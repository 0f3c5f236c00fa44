//! The text of answers, and what parameters mean.

use serde_json::{Value as Json, json};

use super::super::read::{Row, Selection};
use super::super::sensor::tests::meadow;
use super::super::value::Value;
use super::text::{RestText, fields, fields_with_time};
use super::*;
use crate::http::tools::request::Params;

const VALUES: [Option<Value<'static>>; 3] = [Some(Value::F64(21.5)), None, Some(Value::Text("a\nb"))];

fn rows(format: Format) -> String {
    let selection = Selection::all(meadow());
    let (mut text, mut out) = (RestText::new(format), Vec::new());
    text.begin(&mut out);
    text.begin_sensor(&selection.sensor, &fields_with_time(&selection.sensor, &selection.fields), &mut out);
    for micros in [1_795_810_530_125_000, 1_795_810_531_000_000] {
        text.row(&Row { micros, interval: None, values: &VALUES }, |at| selection.kind(at), &mut out);
    }
    text.end_sensor(&mut out);
    text.end(&mut out);
    String::from_utf8(out).unwrap()
}

fn properties(with_place: bool) -> Json {
    let mut properties = json!({
        "vs_name": "meadow",
        "is_public": "true",
        "place": "Wannengrat",
        "description": "Air & soil <north>",
        "fields": [
            { "name": "time", "unit": "", "type": "time" },
            { "name": "timestamp", "unit": "", "type": "bigint" },
            { "name": "temperature", "unit": "°C", "type": "double" },
            { "name": "readings", "unit": "", "type": "integer" },
            { "name": "state", "unit": "", "type": "varchar(20)" },
        ],
        "values": [
            ["2026-11-27 20:15:30", 1_795_810_530_125_i64, 21.5, null, "a\nb"],
            ["2026-11-27 20:15:31", 1_795_810_531_000_i64, 21.5, null, "a\nb"],
        ],
    });
    if with_place {
        (properties["latitude"], properties["longitude"]) = (json!("46.5"), json!("7.25"));
    }
    properties
}

#[test]
fn json_and_geojson_have_the_members_of_gsn() {
    let json: Json = serde_json::from_str(&rows(Format::Json)).unwrap();
    assert_eq!(json, json!([properties(true)]));
    let geo: Json = serde_json::from_str(&rows(Format::GeoJson)).unwrap();
    let feature = json!({
        "type": "Feature",
        "geometry": { "type": "Point", "coordinates": [7.25, 46.5] },
        "properties": properties(false),
    });
    assert_eq!(geo, json!({ "type": "FeatureCollection", "features": [feature] }));
}

#[test]
fn csv_has_the_lines_of_gsn() {
    let expected = "\
# vs_name:meadow
# is_public:true
# latitude:46.5
# longitude:7.25
# place:Wannengrat
# description:Air & soil <north>
# fields:time,timestamp,temperature,readings,state
# units:,,°C,,
# types:time,bigint,double,integer,varchar(20)
2026-11-27 20:15:30,1795810530125,21.5,null,a b
2026-11-27 20:15:31,1795810531000,21.5,null,a b
";
    assert_eq!(rows(Format::Csv), expected);
}

#[test]
fn a_list_has_sensors_with_and_without_values() {
    let selection = Selection::all(meadow());
    for format in [Format::Json, Format::GeoJson] {
        let (mut text, mut out) = (RestText::new(format), Vec::new());
        text.begin(&mut out);
        for with_values in [false, true] {
            text.begin_sensor(&selection.sensor, &fields(&selection.sensor, &selection.fields), &mut out);
            if with_values {
                text.values(&VALUES, |at| selection.kind(at), &mut out);
            }
            text.end_sensor(&mut out);
        }
        text.end(&mut out);
        let list: Json = serde_json::from_slice(&out).unwrap();
        let second = match format {
            Format::Json => &list[1],
            _ => &list["features"][1]["properties"],
        };
        assert_eq!(second["values"], json!([[21.5, null, "a\nb"]]));
    }
}

#[test]
fn rows_need_both_ends() {
    let select = |field, query: &str| data::selection(meadow(), field, &Params::parse(query));
    let range = "from=2026-11-27T00:00:00&to=2026-11-28T00:00:00";
    let all = select(None, range).unwrap();
    assert_eq!((all.fields.len(), all.conditions.len(), all.newest), (3, 2, None));
    let some =
        select(None, &format!("{range}&size=5&fields=state&filter=readings>1,temperature<=3")).unwrap();
    assert_eq!((some.fields.len(), some.conditions.len(), some.newest), (1, 4, Some(5)));
    assert_eq!(select(Some("readings"), range).unwrap().fields[0].name, "readings");
    for query in ["", "from=2026-11-27T00:00:00", "from=a&to=b"] {
        assert!(select(None, query).unwrap_err().0.message.starts_with("Malformed date"), "{query}");
    }
    assert!(select(Some("nosuch"), range).is_err());
}
