//! Vectors: the payloads of ThingsBoard's MQTT device API and gateway API.

use model::{Value, ValueRef};

use super::super::names::Names;
use super::*;

const DEPTH: usize = 32;

fn published(payload: &str) -> Vec<(String, Value)> {
    read_publish(payload.as_bytes(), DEPTH).unwrap_or_else(|error| panic!("{payload}: {error}"))
}

fn text(bytes: Vec<u8>) -> String {
    String::from_utf8(bytes).unwrap()
}

fn keys(names: &[&str]) -> Option<Vec<String>> {
    Some(names.iter().map(|name| (*name).to_owned()).collect())
}

#[test]
fn a_device_publishes_an_object_of_attributes() {
    let payload = r#"{"attribute1":"value1", "attribute2":true, "attribute3":42.0, "attribute4":73, "attribute5":{"a":[1, 2.50]},
        "none":null, "big":18446744073709551616}"#;
    let expected = [
        ("attribute1", Value::String("value1".into())),
        ("attribute2", Value::Bool(true)),
        ("attribute3", Value::F64(42.0)),
        ("attribute4", Value::I64(73)),
        ("attribute5", Value::Json(r#"{"a":[1, 2.50]}"#.into())),
        ("big", Value::Json("18446744073709551616".into())),
    ];
    assert_eq!(published(payload), expected.map(|(key, value)| (key.to_owned(), value)));
    assert!(published("{}").is_empty());
}

#[test]
fn relaxed_json_is_accepted_and_values_named_ts_are_ordinary() {
    assert_eq!(published("\u{feff}{'a':True,b:05}"), published(r#"{"a":true,"b":5}"#));
    assert_eq!(published(r#"{"ts":1,"values":2}"#).len(), 2);
}

#[test]
fn payloads_of_another_form_are_refused_by_name() {
    for (payload, part) in [
        ("[]", "the payload must be an object, found an array"),
        ("7", "the payload must be an object, found a number"),
        ("'x'", "the payload must be an object, found a text"),
        ("null", "found null"),
        ("", "ends too early"),
        ("{", "ends too early"),
        (r#"{"a":NaN}"#, "NaN is not a JSON number"),
        (r#"{"a":[[[]]]}"#, "nesting of a JSON value is 3, the limit is 2"),
        (r#"{"\ud800":1}"#, "not valid JSON"),
    ] {
        let error = read_publish(payload.as_bytes(), 2).unwrap_err();
        assert!(error.to_string().contains(part), "{payload}: {error}");
    }
    assert!(read_publish(b"{\"a\":\"\xff\"}", 2).unwrap_err().to_string().contains("not UTF-8"));
}

#[test]
fn a_device_asks_with_lists_of_keys() {
    let read = |payload: &str| read_request(payload.as_bytes()).unwrap();
    let both = read(r#"{"clientKeys":"attribute1,attribute2", "sharedKeys":"shared1,shared2"}"#);
    assert_eq!(both.client, keys(&["attribute1", "attribute2"]));
    assert_eq!(both.shared, keys(&["shared1", "shared2"]));
    assert_eq!(read("{}"), Request::default());
    assert_eq!(read(r#"{"sharedKeys":"a"}"#), Request { client: None, shared: keys(&["a"]) });
    assert_eq!(read(r#"{"clientKeys":"","sharedKeys":null}"#), Request { client: keys(&[]), shared: None });
    assert_eq!(read("{clientKeys:['a b', c]}").client, keys(&["a b", "c"]));
    for (payload, part) in [
        ("[]", "must be an object"),
        (r#"{"clientKeys":5}"#, "clientKeys must be keys with commas between them, found a number"),
        (r#"{"sharedKeys":["a",5]}"#, "each of sharedKeys must be a text, found a number"),
        (r#"{"sharedKeys":[[[]]]}"#, "each of sharedKeys must be a text, found an array"),
    ] {
        let error = read_request(payload.as_bytes()).unwrap_err().to_string();
        assert!(error.contains(part), "{payload}: {error}");
    }
}

#[test]
fn the_server_answers_with_the_scopes_that_have_attributes() {
    let client = [("attribute1", ValueRef::String("value1")), ("attribute2", ValueRef::Bool(true))];
    let shared = [("n", ValueRef::I64(5)), ("f", ValueRef::F64(5.0)), ("j", ValueRef::Json(r#"{"a": 1}"#))];
    assert_eq!(
        text(response(&client, &shared)),
        r#"{"client":{"attribute1":"value1","attribute2":true},"shared":{"n":5,"f":5.0,"j":{"a": 1}}}"#
    );
    assert_eq!(text(response(&[], &shared[..1])), r#"{"shared":{"n":5}}"#);
    assert_eq!(text(response(&[], &[])), "{}");
}

#[test]
fn the_server_pushes_changes_of_shared_attributes() {
    let changed = [("firmware", ValueRef::String("1.2")), ("bad", ValueRef::Json("{"))];
    assert_eq!(text(push_of_changed(&changed)), r#"{"firmware":"1.2","bad":"{"}"#);
    assert_eq!(text(push_of_deleted(&["a", "b\""])), r#"{"deleted":["a","b\""]}"#);
    assert_eq!(
        text(push_of_changed_to_gateway("Device A", &changed[..1])),
        r#"{"device":"Device A","data":{"firmware":"1.2"}}"#
    );
    assert_eq!(
        text(push_of_deleted_to_gateway("Device A", &["a"])),
        r#"{"device":"Device A","data":{"deleted":["a"]}}"#
    );
}

#[test]
fn a_gateway_asks_for_one_or_several_keys() {
    let read = |payload: &str| read_gateway_request(payload.as_bytes());
    let one = read(r#"{"id": 1, "device": "Device A", "client": true, "key": "attribute1"}"#).unwrap();
    let keys = vec!["attribute1".to_owned()];
    assert_eq!(one, GatewayRequest { id: 1, device: "Device A".into(), client: true, keys });
    let two = read(r#"{"id":2,"device":"A","client":false,"keys":["a","b,c"]}"#).unwrap();
    assert_eq!((two.client, two.keys), (false, vec!["a".to_owned(), "b,c".to_owned()]));
    for (payload, part) in [
        (r#"{"device":"A","client":true,"key":"a"}"#, "no member id"),
        (r#"{"id":1,"client":true,"key":"a"}"#, "no member device"),
        (r#"{"id":1,"device":"A","key":"a"}"#, "no member client"),
        (r#"{"id":1,"device":"A","client":true}"#, "no member keys"),
        (r#"{"id":"x","device":"A","client":true,"key":"a"}"#, "id must be a whole number"),
        (r#"{"id":1,"device":7,"client":true,"key":"a"}"#, "device must be a text"),
        (r#"{"id":1,"device":"A","client":1,"key":"a"}"#, "client must be true or false, found a number"),
        (r#"{"id":1,"device":"A","client":true,"keys":"a"}"#, "keys must be an array of texts, found a text"),
    ] {
        let error = read(payload).unwrap_err().to_string();
        assert!(error.contains(part), "{payload}: {error}");
    }
}

#[test]
fn the_form_of_an_answer_to_a_gateway_depends_on_the_keys_it_asked_for() {
    let found = [("a", ValueRef::I64(27)), ("b", ValueRef::Bool(false))];
    let answer = |asked, found| text(gateway_response(7, "Device A", asked, found));
    assert_eq!(answer(1, &found[..1]), r#"{"id":7,"device":"Device A","value":27}"#);
    assert_eq!(answer(2, &found), r#"{"id":7,"device":"Device A","values":{"a":27,"b":false}}"#);
    assert_eq!(answer(2, &found[..1]), r#"{"id":7,"device":"Device A","values":{"a":27}}"#);
    assert_eq!(answer(1, &[]), r#"{"id":7,"device":"Device A"}"#);
}

#[test]
fn topics_are_read_and_written() {
    for (name, topic) in [
        ("v1/devices/me/attributes", Topic::Attributes(Names::Long)),
        ("v2/a", Topic::Attributes(Names::Short)),
        ("v2/a/j", Topic::Attributes(Names::ShortJson)),
        ("v2/a/p", Topic::Attributes(Names::ShortProtobuf)),
        ("v1/devices/me/attributes/request/17", Topic::Request { names: Names::Long, id: 17 }),
        ("v2/a/req/0", Topic::Request { names: Names::Short, id: 0 }),
        ("v2/a/req/j/1", Topic::Request { names: Names::ShortJson, id: 1 }),
        ("v2/a/req/p/2", Topic::Request { names: Names::ShortProtobuf, id: 2 }),
        ("v2/a/res/p/3", Topic::Response { names: Names::ShortProtobuf, id: 3 }),
        ("v1/devices/me/attributes/response/17", Topic::Response { names: Names::Long, id: 17 }),
        ("v2/a/res/2147483647", Topic::Response { names: Names::Short, id: i32::MAX }),
    ] {
        assert_eq!(Topic::parse(name), Some(topic));
        assert_eq!(topic.to_string(), name);
    }
    for name in
        ["v2/a/", "v2/a/req/", "v2/a/req/x", "v2/a/req/-1", "v2/a/req/2147483648", "v2/t", "v2/a/req/1/2"]
    {
        assert_eq!(Topic::parse(name), None, "{name}");
    }
}
