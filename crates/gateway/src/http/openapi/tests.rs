//! The document has every route of the door and no other, and all it refers to.

use std::collections::BTreeSet;

use serde_json::Value as JsonValue;

use super::document::{assemble, operations};
use crate::http::routes::routes;

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
