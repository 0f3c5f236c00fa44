//! Bodies of `/api/put` and `/api/mput`.

use proptest::prelude::*;

use super::super::limits::MEMBERS_MAX;
use super::*;

type TimedValue = Result<(i64, Number), String>;

fn timed_values(body: &str) -> Result<Vec<TimedValue>, SyntaxError> {
    let mut points = Points::new(body.as_bytes())?;
    let mut timed_values = Vec::new();
    while let Some(point) = points.next_point()? {
        timed_values.push(point.timed_value(Epoch::OpenTsdb).map_err(|refusal| refusal.to_string()));
    }
    Ok(timed_values)
}

fn one(body: &str) -> TimedValue {
    let mut all = timed_values(body).expect("valid JSON");
    assert_eq!(all.len(), 1);
    all.remove(0)
}

fn point(timestamp: &str, value: &str) -> String {
    format!(r#"{{"metric":"m","timestamp":{timestamp},"value":{value},"tags":{{"k":"v"}}}}"#)
}

fn value(json: &str) -> Result<Number, String> {
    one(&point("1700000000", json)).map(|(_, value)| value)
}

fn reason(body: &str) -> &'static str {
    timed_values(body).expect_err(body).reason
}

#[test]
fn a_body_is_an_object_or_an_array() {
    let timed_value = Ok((1_700_000_000_000_000, Number::I64(1)));
    let point = point("1700000000", "1");
    assert_eq!(timed_values(&point), Ok(vec![timed_value.clone()]));
    assert_eq!(
        timed_values(&format!(" [ {point} , {point} ]\r\n")),
        Ok(vec![timed_value.clone(), timed_value.clone()])
    );
    assert_eq!(timed_values(&format!("\u{feff}{point}")), Ok(vec![timed_value]));
    assert_eq!(timed_values("[]"), Ok(vec![]));
}

#[test]
fn members_are_in_any_order_and_others_are_ignored() {
    let body = r#"{"x":[{"y":null}],"tags":{"host":"a","n":1},"value":"2.5","timestamp":"1700000000123","metric":"m"}"#;
    assert_eq!(one(body), Ok((1_700_000_000_123_000, Number::F64(2.5))));
    let mut points = Points::new(body.as_bytes()).unwrap();
    let point = points.next_point().unwrap().unwrap();
    assert_eq!(point.series_text(), (r#""m""#, r#"{"host":"a","n":1}"#));
    assert_eq!(point.tags, [("host".into(), "a".into()), ("n".into(), "1".into())]);
    assert_eq!(point.text, body);
}

#[test]
fn integers_are_exact_and_strings_are_numbers() {
    assert_eq!(value("9223372036854775807"), Ok(Number::I64(i64::MAX)));
    assert_eq!(value("\"-9223372036854775808\""), Ok(Number::I64(i64::MIN)));
    assert_eq!(value("1e3"), Ok(Number::F64(1000.0)));
    assert_eq!(value("42.0"), Ok(Number::F64(42.0)));
    for refused in ["9223372036854775808", "\"NaN\"", "\"Infinity\"", "true", "\"1 \""] {
        assert_eq!(value(refused), Err("Unable to parse value to a number".into()), "{refused}");
    }
    assert_eq!(value("1e999"), Err("value is NaN or Infinite: Infinity".into()));
    assert_eq!(value("null"), Err("Empty value".into()));
}

#[test]
fn a_fault_in_a_point_is_its_own() {
    let good = point("1700000000000", "7");
    let bad = [
        (r#"{}"#.to_owned(), "Metric name was empty"),
        ("null".to_owned(), "Unexpected null datapoint encountered in set."),
        (point("0", "1"), "Invalid timestamp"),
        (point("\"now\"", "1"), "Invalid timestamp"),
        (point("1700000000", "\"\""), "Empty value"),
        (r#"{"metric":"m","timestamp":1,"value":1}"#.to_owned(), "Missing tags"),
        (r#"{"metric":"m","timestamp":1,"value":1,"tags":{}}"#.to_owned(), "Missing tags"),
        (
            point("1700000000000000", "1"),
            "bad timestamp=1700000000000000; a timestamp has at most 10 digits in seconds or 13 in milliseconds",
        ),
    ];
    for (bad, expected) in bad {
        let all = timed_values(&format!("[{good},{bad},{good}]")).unwrap();
        assert_eq!(all[1], Err(expected.into()), "{bad}");
        assert!(all[0].is_ok() && all[2].is_ok());
    }
}

#[test]
fn a_fault_in_the_json_is_one_of_the_body() {
    assert_eq!(reason(""), "Missing request content");
    assert_eq!(reason(" \n"), "Missing request content");
    assert_eq!(reason("7"), "The JSON must start as an object or an array");
    assert_eq!(reason("[7]"), "a data point must be an object");
    assert_eq!(reason("[{}"), "a comma or a closing bracket is missing");
    assert_eq!(reason("[{},]"), "a data point must be an object");
    assert_eq!(reason("{} {}"), "something follows the JSON");
    assert_eq!(reason(r#"{"tags":7}"#), "tags and fields must be objects");
    assert_eq!(reason(r#"{"tags":{"k":{}}}"#), "a string or a number is missing");
    assert_eq!(reason(r#"{"metric":"m"#), "a string does not end");
    assert_eq!(Points::new(b"[\xff]").unwrap_err(), SyntaxError { at: 1, reason: "the body is not UTF-8" });
    let open = br#"[{"m\"#;
    let fault = Points::new(open).unwrap().next_point().unwrap_err();
    assert_eq!(fault, SyntaxError { at: open.len(), reason: "an escape is unknown" });
}

#[test]
fn the_number_of_tags_is_bounded() {
    let body = |count: usize| {
        let tags: Vec<String> = (0..count).map(|n| format!("\"k{n}\":1")).collect();
        format!(r#"{{"tags":{{{}}}}}"#, tags.join(","))
    };
    assert!(timed_values(&body(MEMBERS_MAX)).is_ok());
    assert_eq!(reason(&body(MEMBERS_MAX + 1)), "a point has too many tags or fields");
}

#[test]
fn points_with_fields_have_values_of_any_type() {
    let body =
        r#"{"metric":"m","timestamp":4294967296,"fields":{"i":1,"f":1.5,"t":"1","b":true},"tags":{"k":"v"}}"#;
    let mut points = Points::new(body.as_bytes()).unwrap();
    let point = points.next_point().unwrap().unwrap();
    assert_eq!(point.fields_time(Epoch::HiTsdb), Ok(4_294_967_296_000_000));
    let fields: Vec<_> = point.fields.iter().map(|(name, value)| (&**name, value.field().unwrap())).collect();
    let number = FieldValue::Number;
    let expected = [
        ("i", number(Number::I64(1))),
        ("f", number(Number::F64(1.5))),
        ("t", FieldValue::Text("1")),
        ("b", FieldValue::Bool(true)),
    ];
    assert_eq!(fields, expected);
    let refusal = |fields: &str| {
        let body = format!(r#"{{"metric":"m","timestamp":1700000000,"fields":{fields},"tags":{{"k":"v"}}}}"#);
        let mut points = Points::new(body.as_bytes()).unwrap();
        points.next_point().unwrap().unwrap().fields_time(Epoch::HiTsdb).unwrap_err().to_string()
    };
    assert_eq!(refusal("{}"), "Missing fields");
    assert_eq!(refusal(r#"{"a":null}"#), "Empty value, field: a");
}

proptest! {
    #[test]
    fn what_serde_json_writes_is_read(
        metric in "[a-zA-Z\"\\\\é]{1,9}",
        time in 1_i64..4_294_967_296,
        value in any::<i64>(),
        tags in prop::collection::btree_map("[a-z\"\n]{1,3}", any::<String>(), 1..5),
    ) {
        let json = serde_json::json!({"metric": metric, "timestamp": time, "value": value, "tags": tags}).to_string();
        let mut points = Points::new(json.as_bytes()).unwrap();
        let point = points.next_point().unwrap().unwrap();
        prop_assert_eq!(&point.metric, &metric);
        let read: std::collections::BTreeMap<_, _> =
            point.tags.iter().map(|(key, value)| (key.to_string(), value.to_string())).collect();
        prop_assert_eq!(read, tags);
        prop_assert_eq!(point.timed_value(Epoch::OpenTsdb), Ok((time * 1_000_000, Number::I64(value))));
    }

    #[test]
    fn no_bytes_make_the_reader_fail(bytes in prop::collection::vec(any::<u8>(), 0..60)) {
        let Ok(mut points) = Points::new(&bytes) else { return Ok(()) };
        while let Ok(Some(point)) = points.next_point() {
            let _ = point.timed_value(Epoch::OpenTsdb);
        }
    }

    #[test]
    fn what_is_read_is_json(text in r#"[\[{"a:,0-9.e+\\ \]}u]{0,30}"#) {
        let read = timed_values(&text);
        if read.is_ok() {
            prop_assert!(serde_json::from_str::<serde_json::Value>(&text).is_ok(), "{text}");
        }
    }
}
