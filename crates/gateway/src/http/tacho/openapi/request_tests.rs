//! The check of requests covers every operation, and what real clients send passes it.

use std::collections::BTreeMap;

use axum::http::Method;
use serde::Deserialize;
use serde_json::{Value as JsonValue, json};

use super::check::Rules;
use super::document::{operations, schemas, shape};
use super::words::NOT_DESCRIBED;
use crate::error::ApiError;
use crate::http::server::described_routes;
use crate::http::tools::body_check::BodyRules;

/// Parameters and bodies by route: those of `tb-rest-client` 4.2 with all its members, of ThingsBoard's pages and its client for Java,
/// and entities as ThingsBoard answers them.
#[derive(Deserialize)]
struct Requests {
    queries: BTreeMap<String, Vec<String>>,
    bodies: BTreeMap<String, Vec<JsonValue>>,
}

fn rules(route: &str) -> &'static Rules {
    let (method, path) = route.split_once(' ').unwrap();
    Rules::find(&method.parse().unwrap(), path).unwrap_or_else(|| panic!("{route} has no rules"))
}

fn check_body(route: &str, body: &JsonValue) -> Result<(), ApiError> {
    let members = rules(route).body().unwrap_or_else(|| panic!("{route} has no body"));
    members.check(body.to_string().as_bytes())
}

/// The described routes of these interfaces with the names of the shapes of their bodies.
fn checked_routes() -> Vec<(String, Option<String>)> {
    let bodies: BTreeMap<String, Option<String>> =
        operations().into_iter().map(|(method, path, one)| (format!("{method} {path}"), one.body)).collect();
    let routes = described_routes();
    let routes = routes.listed().iter().filter(|(_, path)| path.starts_with("/api/"));
    routes
        .map(|(method, path)| format!("{method} {path}"))
        .map(|route| (route.clone(), bodies[&route].clone()))
        .collect()
}

#[test]
fn what_real_clients_send_passes() {
    let text = include_str!("../../../../testdata/thingsboard-requests.json");
    let requests: Requests = serde_json::from_str(text).unwrap();
    for (route, queries) in &requests.queries {
        for query in queries {
            rules(route)
                .check_query(query)
                .unwrap_or_else(|refused| panic!("{route}?{query}: {}", refused.message));
        }
    }
    for (route, bodies) in &requests.bodies {
        for body in bodies {
            check_body(route, body).unwrap_or_else(|refused| panic!("{route} {body}: {}", refused.message));
        }
    }
}

#[test]
fn every_operation_refuses_unknown_parameters_and_members() {
    let routes = checked_routes();
    assert!(routes.len() > 150, "{} routes", routes.len());
    for (route, body) in routes {
        let refused = rules(&route).check_query("nonsense=1").unwrap_err();
        assert_eq!((refused.status.as_u16(), refused.label), (400, NOT_DESCRIBED), "{route}");
        // Attributes and values have any names, and some bodies are not objects.
        let Some(body) =
            body.filter(|body| !["any", "{any}", "bytes", "DeviceSelection"].contains(&body.as_str()))
        else {
            continue;
        };
        let refused = check_body(&route, &json!({ "nonsense": 1 }));
        assert!(refused.is_err_and(|refused| refused.message.contains("nonsense")), "{route} with {body}");
    }
}

/// A body that is described as anything is one of these.
#[test]
fn only_values_and_files_have_bodies_of_any_form() {
    let open: Vec<String> = checked_routes()
        .into_iter()
        .filter(|(_, body)| body.as_ref().is_some_and(|body| body.contains("any")))
        .map(|(route, _)| route)
        .filter(|route| !route.contains("/api/plugins/telemetry/"))
        .collect();
    assert_eq!(open, Vec::<String>::new());
}

/// Schemas of bodies are closed at each depth, except for the members that the server keeps or hands on as they are.
#[test]
fn schemas_of_bodies_are_closed() {
    const OPEN: [&str; 10] = [
        "additionalInfo",
        "params",
        "details",
        "comment",
        "configuration",
        "transportConfiguration",
        "alarms",
        "tachoTopics",
        "tachoProvisionGateways",
        "value",
    ];
    let schemas = schemas();
    for (route, body) in checked_routes() {
        let body = body.filter(|body| body.starts_with(char::is_uppercase));
        if let Some(schema) = body.map(|body| shape(&body)) {
            let name = schema["$ref"].as_str().unwrap().rsplit('/').next().unwrap().to_owned();
            look(&schemas[&name], &route, &schemas, &OPEN, 0);
        }
    }
    fn look(
        schema: &JsonValue,
        place: &str,
        schemas: &serde_json::Map<String, JsonValue>,
        open: &[&str],
        depth: usize,
    ) {
        if schema["readOnly"] == true || depth > 8 {
            return;
        }
        if let Some(target) = schema["$ref"].as_str() {
            let name = target.rsplit('/').next().unwrap();
            return look(&schemas[name], place, schemas, open, depth + 1);
        }
        if let Some(members) = schema["properties"].as_object() {
            let named = place.rsplit('.').next().unwrap();
            assert!(schema["additionalProperties"] == false || open.contains(&named), "{place} is open");
            for (name, member) in members {
                let is_open = member.as_object().is_some_and(|member| member.is_empty());
                assert!(!is_open || open.contains(&name.as_str()), "{place}.{name} takes anything");
                look(member, &format!("{place}.{name}"), schemas, open, depth + 1);
            }
        }
        look_into(schema.get("items"), place, schemas, open, depth);
        for variant in schema["oneOf"].as_array().into_iter().flatten() {
            look_into(Some(variant), place, schemas, open, depth);
        }
    }
    fn look_into(
        schema: Option<&JsonValue>,
        place: &str,
        schemas: &serde_json::Map<String, JsonValue>,
        open: &[&str],
        depth: usize,
    ) {
        if let Some(schema) = schema {
            look(schema, place, schemas, open, depth + 1);
        }
    }
}

#[test]
fn refusals_name_the_place_and_the_remedy() {
    let filter = json!({ "type": "deviceType", "deviceTyps": ["a"] });
    let complex = json!({ "type": "COMPLEX", "operation": "AND", "predicates": [{ "type": "NUMERIC", "value": { "default": 1 } }] });
    let key_filter = json!({ "key": { "type": "TIME_SERIES", "key": "a" }, "predicate": complex });
    for (route, body, wanted) in [
        (
            "POST /api/device",
            json!({ "name": "a", "lable": "b" }),
            r#"the body of POST /api/device has no member "lable"; did you mean "label"?"#,
        ),
        (
            "POST /api/device",
            json!({ "nonsense": null }),
            r#"the body of POST /api/device has no member "nonsense"; GET /api/openapi.json lists its members"#,
        ),
        (
            "POST /api/device",
            json!({ "deviceData": { "configuration": { "typ": 1 } } }),
            r#"deviceData.configuration has no member "typ"; did you mean "type"?"#,
        ),
        (
            "POST /api/device",
            json!({ "externalId": { "id": "x" } }),
            r#"externalId is {"id":"x"}, which this server does not have; use null"#,
        ),
        (
            "POST /api/deviceProfile",
            json!({ "defaultQueueName": "HighPriority" }),
            r#"defaultQueueName is "HighPriority", which this server does not have; use null or "Main" or """#,
        ),
        (
            "POST /api/alarmsQuery/find",
            json!({ "pageLink": { "statusList": ["ACTIVE", "OPEN"] } }),
            r#"pageLink.statusList[1] is "OPEN"; it must be "ANY", "ACTIVE", "CLEARED", "ACK" or "UNACK""#,
        ),
        (
            "POST /api/entitiesQuery/find",
            json!({ "entityFilter": filter }),
            r#"entityFilter has no member "deviceTyps"; did you mean "deviceType"?"#,
        ),
        (
            "POST /api/entitiesQuery/count",
            json!({ "keyFilters": [key_filter] }),
            r#"keyFilters[0].predicate.predicates[0].value has no member "default"; GET /api/openapi.json lists its members"#,
        ),
    ] {
        let refused = check_body(route, &body).unwrap_err();
        assert_eq!((refused.message.as_str(), refused.label), (wanted, NOT_DESCRIBED));
    }
}

#[test]
fn texts_that_are_not_json_are_left_to_their_reader() {
    let members = rules("POST /api/device").body().unwrap();
    for body in ["", "{", "7", "[]", "\"x\"", "{\"name\":\"a\"", "\u{feff}{\"name\":\"a\"}"] {
        members.check(body.as_bytes()).unwrap_or_else(|refused| panic!("{body}: {}", refused.message));
    }
    let deep = format!(r#"{{"additionalInfo":{}{},"nonsense":1}}"#, "[".repeat(500), "]".repeat(500));
    assert!(members.check(deep.as_bytes()).unwrap_err().message.contains("nonsense"));
    assert!(Rules::find(&Method::HEAD, "/api/tenant/devices").is_some());
    assert!(Rules::find(&Method::GET, "/metrics").is_none());
}
