//! The document has every route of the door and no other, and all it refers to.

use std::collections::BTreeSet;

use serde_json::Value as JsonValue;

use super::document::{assemble, operations};
use crate::http_door::routes;

#[test]
fn the_document_describes_every_route_and_no_other() {
    let described: BTreeSet<String> =
        operations().into_iter().map(|(method, path, _)| format!("{method} {path}")).collect();
    let served: BTreeSet<String> =
        routes().listed().iter().map(|(method, path)| format!("{method} {path}")).collect();
    let missing: Vec<_> = served.difference(&described).collect();
    let surplus: Vec<_> = described.difference(&served).collect();
    assert!(missing.is_empty(), "operations.json lacks {missing:#?}");
    assert!(surplus.is_empty(), "operations.json describes what the door does not serve: {surplus:#?}");
}

#[test]
fn every_reference_leads_to_a_schema_and_every_schema_is_used() {
    let document = assemble();
    let mut used = BTreeSet::new();
    collect_references(&document, &mut used);
    let schemas = document["components"]["schemas"].as_object().unwrap();
    let known: BTreeSet<String> = schemas.keys().map(|name| format!("#/components/schemas/{name}")).collect();
    assert_eq!(used.difference(&known).collect::<Vec<_>>(), Vec::<&String>::new());
    assert_eq!(known.difference(&used).collect::<Vec<_>>(), Vec::<&String>::new());
}

#[test]
fn operations_have_unique_ids() {
    let document = assemble();
    let mut seen = BTreeSet::new();
    for (path, methods) in document["paths"].as_object().unwrap() {
        for (method, operation) in methods.as_object().unwrap() {
            assert!(seen.insert(operation["operationId"].to_string()), "{method} {path}");
        }
    }
}

fn collect_references(value: &JsonValue, found: &mut BTreeSet<String>) {
    match value {
        JsonValue::Object(members) => {
            for (name, member) in members {
                match (name.as_str(), member) {
                    ("$ref", JsonValue::String(target)) => drop(found.insert(target.clone())),
                    _ => collect_references(member, found),
                }
            }
        }
        JsonValue::Array(elements) => elements.iter().for_each(|one| collect_references(one, found)),
        _ => {}
    }
}

/// The page of ThingsBoard's endpoints: what it says the server has is served, and what it calls absent is not.
#[test]
fn the_page_of_thingsboards_endpoints_tells_the_truth() {
    let page = include_str!("../../../../../../docs/protocol/thingsboard.md");
    let rest = page.split("## WebSockets").next().unwrap();
    let served: BTreeSet<String> =
        routes().listed().iter().map(|(method, path)| without_names(&format!("{method} {path}"))).collect();
    let mut rows = 0;
    for line in rest.lines().filter(|line| line.starts_with("| ") && line.contains(" /api/")) {
        let (status, endpoints) = (status_of(line), line.split('`').skip(1).step_by(2));
        for endpoint in endpoints.filter(|quoted| quoted.contains(" /api/")) {
            let wanted = status != "no";
            assert_eq!(served.contains(&without_names(endpoint)), wanted, "{endpoint} is {status:?}");
            rows += 1;
        }
    }
    assert!(rows > 450, "{rows} endpoints are listed");
}

/// The status in a row: the first cell that is one.
fn status_of(line: &str) -> &str {
    let found =
        line.split('|').map(str::trim).find(|cell| ["yes", "differs", "refused", "no"].contains(cell));
    found.unwrap_or_else(|| panic!("no status in {line}"))
}

/// `GET /api/device/{id}` and `GET /api/device/{deviceId}` are the same route.
fn without_names(route: &str) -> String {
    let words = route.split('/').map(|word| if word.starts_with('{') { "{}" } else { word });
    words.collect::<Vec<_>>().join("/")
}
