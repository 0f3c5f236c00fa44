//! Assembles the OpenAPI document (version 3.1) from the descriptions of operations and schemas.

use std::collections::BTreeMap;

use serde::Deserialize;
use serde_json::{Map, Value as JsonValue, json};

use super::parameters::{Kind, Parameter};

/// The operations by method and path, such as `GET /api/device/{id}`, in the order of the file.
const OPERATIONS: &str = include_str!("operations.json");
/// The schemas by name.
const SCHEMAS: &str = include_str!("schemas.json");

/// A described operation.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Operation {
    /// A sentence on what the operation does.
    summary: String,
    /// Names of parameters of the query string with their types ([`Parameter::read`]).
    #[serde(default)]
    query: Map<String, JsonValue>,
    /// Names of parameters that ThingsBoard has and this server does not, with the values that are accepted nevertheless.
    #[serde(default)]
    only: BTreeMap<String, Vec<String>>,
    /// The properties by which a listing can be sorted. Present: the operation has the parameters of a page.
    page: Option<Vec<String>>,
    /// The permission without which the operation is refused, whatever the request has. It has the name of an `Action`.
    pub(super) needs: Option<String>,
    /// The shape of the body ([`shape`]).
    pub(super) body: Option<String>,
    /// The shape of the answer; none for an answer without a body.
    answer: Option<String>,
    /// Whether the operation needs a login of a user; yes when absent.
    #[serde(default = "yes")]
    pub(super) login: bool,
}

impl Operation {
    /// All parameters of the query string.
    pub(super) fn parameters(&self) -> Vec<Parameter> {
        let of_query = self.query.iter().map(|(name, kind)| {
            Parameter::read(name, kind.as_str().expect("BUG: a test reads the parameters"))
        });
        let of_page = self.page.iter().flat_map(|sorted_by| page_parameters(sorted_by));
        let absent = self.only.iter().map(|(name, accepted)| Parameter::absent(name, accepted));
        let is_there = |parameter: &Parameter| !self.only.contains_key(&parameter.name);
        of_query.chain(of_page.filter(is_there)).chain(absent).collect()
    }
}

fn yes() -> bool {
    true
}

/// The operations as they are described.
pub(super) fn operations() -> Vec<(String, String, Operation)> {
    let read: Map<String, JsonValue> =
        serde_json::from_str(OPERATIONS).expect("BUG: a test reads the operations");
    let split = |(route, described): (String, JsonValue)| {
        let (method, path) = route.split_once(' ').expect("BUG: a test reads the names of operations");
        let operation = serde_json::from_value(described).expect("BUG: a test reads the operations");
        (method.to_owned(), path.to_owned(), operation)
    };
    read.into_iter().map(split).collect()
}

/// The schemas of bodies and answers by name.
pub(super) fn schemas() -> Map<String, JsonValue> {
    serde_json::from_str(SCHEMAS).expect("BUG: a test reads the schemas")
}

/// The whole document.
pub(super) fn assemble() -> JsonValue {
    let mut paths = Map::new();
    for (method, path, operation) in operations() {
        let methods = paths.entry(path.clone()).or_insert_with(|| json!({}));
        methods[method.to_lowercase()] = operation_json(&method, &path, &operation);
    }
    json!({
        "openapi": "3.1.0",
        "info": {
            "title": "Tachograph",
            "version": env!("CARGO_PKG_VERSION"),
            "license": { "name": "Apache-2.0", "identifier": "Apache-2.0" },
            "description": "Devices, values, alarms and administration, in ThingsBoard's shapes where ThingsBoard has the endpoint. \
                            Endpoints under /api/tacho are Tachograph's own.",
        },
        "servers": [{ "url": "/" }],
        "security": [{ "session": [] }],
        "paths": paths,
        "components": {
            "schemas": schemas(),
            "securitySchemes": {
                "session": {
                    "type": "apiKey",
                    "in": "header",
                    "name": "X-Authorization",
                    "description": "`Bearer <token of POST /api/auth/login>` or `ApiKey <key>`; the header Authorization works too",
                },
            },
        },
    })
}

fn operation_json(method: &str, path: &str, operation: &Operation) -> JsonValue {
    let mut parameters: Vec<JsonValue> = path_parameters(path).map(path_parameter).collect();
    parameters.extend(operation.parameters().iter().map(Parameter::json));
    let mut answer = json!({ "description": "done" });
    if let Some(name) = &operation.answer {
        answer["content"] = json!({ media_type(name): { "schema": shape(name) } });
    }
    let refused = json!({
        "description": "refused; the message names the reason and the remedy",
        "content": { "application/json": { "schema": shape("Error") } },
    });
    let mut described = json!({
        "operationId": operation_id(method, path),
        "tags": [tag(path)],
        "summary": operation.summary,
        "parameters": parameters,
        "responses": { "200": answer, "4XX": refused },
    });
    if let Some(name) = &operation.body {
        described["requestBody"] =
            json!({ "required": true, "content": { media_type(name): { "schema": shape(name) } } });
    }
    if !operation.login {
        described["security"] = json!([]);
    }
    described
}

/// A unique name of an operation: method and path with words joined by `_`, `root` in front of a path outside of `/api`.
fn operation_id(method: &str, path: &str) -> String {
    let (place, path) = match path.strip_prefix("/api/") {
        Some(path) => (None, path),
        None => (Some("root"), path),
    };
    let words = path.split(['/', '-', '.']).filter(|word| !word.is_empty());
    let words = words.map(|word| word.trim_matches(['{', '}']));
    let method = method.to_lowercase();
    std::iter::once(method.as_str()).chain(place).chain(words).collect::<Vec<_>>().join("_")
}

/// The first word of the path behind `/api`.
fn tag(path: &str) -> &str {
    let mut words = path.split('/').filter(|word| !word.is_empty() && *word != "api" && *word != "v2");
    words.next().unwrap_or("root")
}

/// The variable parts of a path.
fn path_parameters(path: &str) -> impl Iterator<Item = &str> {
    path.split('/').filter_map(|word| word.strip_prefix('{')?.strip_suffix('}'))
}

fn path_parameter(name: &str) -> JsonValue {
    json!({ "name": name, "in": "path", "required": true, "schema": { "type": "string" } })
}

/// The parameters of a page.
fn page_parameters(sorted_by: &[String]) -> Vec<Parameter> {
    let mut parameters = vec![
        Parameter::read("pageSize", "integer!"),
        Parameter::read("page", "integer!"),
        Parameter::read("textSearch", "string"),
    ];
    if !sorted_by.is_empty() {
        let kind = Kind::Choice(sorted_by.to_vec());
        parameters.push(Parameter { name: "sortProperty".to_owned(), required: false, kind });
        parameters.push(Parameter::read("sortOrder", "ASC|DESC"));
    }
    parameters
}

/// The schema with a name; `[X]` is an array of X, `page:X` a page of X, `{X}` an object with values X, and a lower-case name a type.
pub(super) fn shape(name: &str) -> JsonValue {
    if let Some(element) = name.strip_prefix('[').and_then(|name| name.strip_suffix(']')) {
        return json!({ "type": "array", "items": shape(element) });
    }
    if let Some(element) = name.strip_prefix('{').and_then(|name| name.strip_suffix('}')) {
        return json!({ "type": "object", "additionalProperties": shape(element) });
    }
    if let Some(element) = name.strip_prefix("page:") {
        return json!({ "type": "object", "required": ["data", "totalPages", "totalElements", "hasNext"], "properties": {
            "data": { "type": "array", "items": shape(element) },
            "totalPages": { "type": "integer" },
            "totalElements": { "type": "integer" },
            "hasNext": { "type": "boolean" },
        } });
    }
    match name {
        "any" => json!({}),
        "bytes" => json!({ "type": "string", "format": "binary" }),
        name if name.starts_with(char::is_lowercase) => json!({ "type": name }),
        name => json!({ "$ref": format!("#/components/schemas/{name}") }),
    }
}

fn media_type(shape: &str) -> &'static str {
    match shape {
        "bytes" => "application/octet-stream",
        "string" => "text/plain",
        _ => "application/json",
    }
}
