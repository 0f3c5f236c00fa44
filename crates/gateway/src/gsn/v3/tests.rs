//! The text of answers, and what parameters mean.

use hub::Order;
use serde_json::{Value as Json, json};

use super::super::read::{Row, Selection};
use super::super::sensor::tests::meadow;
use super::super::time::{TimeFormat, TimeText};
use super::super::value::Value;
use super::feature::{Extent, FeatureText, TIME, about};
use super::*;
use crate::http::tools::request::Params;

const ROWS: [(i64, [Option<Value<'static>>; 3]); 2] = [
    (1_795_810_530_125_000, [Some(Value::F64(21.5)), Some(Value::I64(3)), Some(Value::Text("a\"b,\nc"))]),
    (1_795_810_531_000_000, [Some(Value::F64(20.0)), None, Some(Value::Bool(true))]),
];

fn feature(format: TimeFormat, extent: Extent) -> Json {
    let selection = Selection::all(meadow());
    let mut out = Vec::new();
    let mut feature = FeatureText::new(format);
    feature.begin(&selection.sensor, &mut out);
    for (micros, values) in &ROWS {
        feature.row(&Row { micros: *micros, interval: None, values }, |at| selection.kind(at), &mut out);
    }
    let fields: Vec<_> =
        std::iter::once(TIME).chain(about(&selection.sensor, selection.fields.iter())).collect();
    feature.end(&selection.sensor, &fields, extent, &mut out);
    serde_json::from_slice(&out).unwrap()
}

#[test]
fn a_feature_has_the_members_of_gsn() {
    let expected = json!({
        "type": "Feature",
        "properties": {
            "vs_name": "meadow",
            "values": [
                [1_795_810_530_125_i64, 21.5, 3, "a\"b,\nc"],
                [1_795_810_531_000_i64, 20.0, null, true],
            ],
            "fields": [
                { "name": "timestamp", "type": "time", "unit": "ms" },
                { "name": "temperature", "type": "double", "unit": "°C" },
                { "name": "readings", "type": "integer", "unit": null },
                { "name": "state", "type": "varchar(20)", "unit": null },
            ],
            "stats": { "start-datetime": null, "end-datetime": 5 },
            "latitude": "46.5",
            "longitude": "7.25",
            "place": "Wannengrat",
            "description": "Air & soil <north>",
        },
        "geometry": { "type": "Point", "coordinates": [7.25, 46.5, 0.0] },
        "total_size": 2,
        "page_size": 2,
    });
    assert_eq!(feature(TimeFormat::Unix, Extent { start: None, end: Some(5) }), expected);
    let times = feature(TimeFormat::IsoSeconds, Extent::default())["properties"]["values"][0][0].clone();
    assert_eq!(times, "2026-11-27T20:15:30Z");
}

#[test]
fn csv_has_the_lines_of_gsn() {
    let selection = Selection::all(meadow());
    let mut out = csv::data_head(&selection, true).into_bytes();
    let mut times = TimeText::new(TimeFormat::Unix);
    for (micros, values) in &ROWS {
        csv::push_row(&selection, &Row { micros: *micros, interval: None, values }, &mut times, &mut out);
    }
    let expected = "\
# vs_name:meadow
# latitude:46.5
# longitude:7.25
# place:Wannengrat
# description:Air & soil <north>
# fields:timestamp,temperature,readings,state
# units:ms,°C,,
# types:time,double,integer,varchar(20)
1795810530125,21.5,3,a\"b,\\nc
1795810531000,20.0,null,true
";
    assert_eq!(String::from_utf8(out).unwrap(), expected);
    assert_eq!(
        csv::list_head(false),
        "#vs_name,description,latitude,longitude,altitude,accessProtected,fields,units,types\n"
    );
    let line = "meadow,\"Air & soil <north>\",\"46.5\",\"7.25\",\"\",\"\",\"temperature|readings|state\",\"°C||\",\"double|integer|varchar(20)\"";
    assert_eq!(csv::list_line(&meadow(), None, false), format!("{line}\n"));
    assert_eq!(csv::list_line(&meadow(), None, true), format!("{line},\n"));
}

#[test]
fn parameters_select_rows() {
    let select = |query: &str| request::selection(meadow(), &Params::parse(query));
    let all = select("").unwrap();
    assert_eq!((all.fields.len(), all.newest, all.order), (3, None, Order::Ascending));
    let some =
        select("fields=timestamp,State&filter=temperature>20,readings<=3&from=2026-11-27&size=10").unwrap();
    assert_eq!((some.fields.len(), some.newest, some.order), (1, Some(10), Order::Descending));
    assert_eq!(some.conditions.len(), 3);
    let aggregation = select("agg=avg&aggPeriod=PT1H").unwrap().aggregation.unwrap();
    assert_eq!(aggregation.interval_ms, 3_600_000);
    for query in [
        "size=x",
        "fields=nosuch",
        "filter=a",
        "filter=nosuch>1",
        "from=1",
        "agg=avg",
        "agg=x&aggPeriod=PT1H",
        "period=01-01/02-01",
    ] {
        assert!(select(query).is_err(), "{query}");
    }
}

#[test]
fn uploaded_rows_become_telemetry() {
    let body = |values: &str| {
        let fields =
            r#"[{"name":"timestamp","type":"time"},{"name":"Temperature","type":"double"},{"name":"state"}]"#;
        upload::payload(
            &meadow(),
            format!(r#"{{"type":"Feature","properties":{{"fields":{fields},"values":{values}}}}}"#)
                .as_bytes(),
        )
    };
    let payload: Json = serde_json::from_slice(&body(r#"[[5,21.5,"on"],[6,null,"off"]]"#).unwrap()).unwrap();
    assert_eq!(
        payload,
        json!([{ "ts": 5, "values": { "temperature": 21.5, "state": "on" } }, { "ts": 6, "values": { "state": "off" } }])
    );
    for (values, part) in [
        ("[[5,1]]", "has 2 values"),
        ("[[\"x\",1,\"on\"]]", "row 0"),
        ("[[5,[1],\"on\"]]", "no single value"),
        ("5", "the body is not"),
    ] {
        let refused = body(values).unwrap_err().0;
        assert!(refused.message.contains(part), "{}", refused.message);
    }
}
