//! A request for answers: what it asks and how.

use std::collections::HashMap;

use axum::extract::Request;
use axum::http::{HeaderMap, Method, StatusCode, header};
use serde_json::Value;
use timeseries::influxql::ast::Statement;
use timeseries::influxql::{Param, parse};

use super::super::limits::QUERY_BODY_BYTES_MAX;
use super::answer_format::Form;
use crate::error::{ApiError, ErrorCode};
use crate::http::tools::bodies::Sender;
use crate::http::tools::plain_body::PlainBody;
use crate::http::tools::request::Params;
use crate::http::tools::state::HttpState;

/// A request for answers.
#[derive(Debug)]
pub(super) struct QueryRequest {
    pub(super) statements: Vec<Statement>,
    /// Empty: the request names none.
    pub(super) database: String,
    /// Empty: the request names none.
    pub(super) policy: String,
    pub(super) form: Form,
    /// Whether the method is one that should change nothing.
    pub(super) read_only: bool,
}

impl QueryRequest {
    /// Reads a request. Parameters in a form come before those of the address.
    pub(super) async fn read(state: &HttpState, request: Request, sender: Sender) -> Result<Self, ApiError> {
        let headers = request.headers().clone();
        let query = request.uri().query().unwrap_or_default().to_owned();
        if request.method() != Method::POST {
            return Self::parse(&Params::parse(&query), &headers, true);
        }
        let has_form = has_form(&headers)?;
        let body = PlainBody::read(state, request, QUERY_BODY_BYTES_MAX, sender).await?;
        let form = if has_form { String::from_utf8_lossy(&body.bytes) } else { "".into() };
        Self::parse(&Params::parse(&format!("{form}&{query}")), &headers, false)
    }

    fn parse(params: &Params, headers: &HeaderMap, read_only: bool) -> Result<Self, ApiError> {
        let text = params.text("q").map(str::trim).filter(|text| !text.is_empty());
        let text = text.ok_or_else(|| ApiError::argument("missing required parameter \"q\""))?;
        if params.flag("async")? {
            return Err(ApiError::argument("async=true is not supported: wait for the answer"));
        }
        let values = bound(params.text("params"))?;
        let statements = parse(text, &values)
            .map_err(|reason| ApiError::argument(format!("error parsing query: {reason}")))?;
        Ok(Self {
            statements,
            database: params.text("db").unwrap_or_default().to_owned(),
            policy: params.text("rp").unwrap_or_default().to_owned(),
            form: Form::of(params, headers)?,
            read_only,
        })
    }
}

/// Whether a body has parameters. A body of another type is passed over, as by InfluxDB, unless it would have parameters there.
fn has_form(headers: &HeaderMap) -> Result<bool, ApiError> {
    let value = headers.get(header::CONTENT_TYPE).and_then(|value| value.to_str().ok()).unwrap_or_default();
    let name = value.split(';').next().unwrap_or_default().trim();
    if name.eq_ignore_ascii_case("multipart/form-data") {
        let message =
            "a body of multipart/form-data is not supported; send application/x-www-form-urlencoded";
        let (status, code) = (StatusCode::UNSUPPORTED_MEDIA_TYPE, ErrorCode::BadRequest);
        return Err(ApiError::new(status, code, "encoding", message));
    }
    Ok(name.eq_ignore_ascii_case("application/x-www-form-urlencoded"))
}

/// The values of `$name` in a query: a JSON object.
fn bound(text: Option<&str>) -> Result<HashMap<String, Param>, ApiError> {
    let wrong = |reason: String| ApiError::argument(format!("error parsing query parameters: {reason}"));
    let Some(text) = text else { return Ok(HashMap::new()) };
    let values: Value = serde_json::from_str(text).map_err(|error| wrong(error.to_string()))?;
    let values = match values {
        Value::Object(values) => values,
        // InfluxDB's client in Go sends it with each query.
        Value::Null => return Ok(HashMap::new()),
        _ => return Err(wrong("they are not a JSON object, such as {\"name\": 1}".to_owned())),
    };
    Ok(values.into_iter().map(|(name, value)| (name, param(value))).collect())
}

fn param(value: Value) -> Param {
    match value {
        Value::String(text) => Param::Str(text),
        Value::Bool(value) => Param::Bool(value),
        Value::Number(number) => match (number.as_i64(), number.as_f64()) {
            (Some(number), _) => Param::Int(number),
            (None, Some(float)) if !number.is_u64() => Param::Num(float),
            _ => Param::Bad(format!("unable to bind parameter: {number} is not a 64-bit number")),
        },
        Value::Object(members) => typed(members),
        Value::Null => Param::Bad("unable to bind parameter with type <nil>".to_owned()),
        Value::Array(_) => Param::Bad("unable to bind parameter with type []interface {}".to_owned()),
    }
}

/// `{"regex": "..."}` and the like.
fn typed(members: serde_json::Map<String, Value>) -> Param {
    let mut members = members.into_iter();
    let (Some((kind, value)), None) = (members.next(), members.next()) else {
        return Param::Bad("bound object parameter value must have exactly one entry".to_owned());
    };
    match (kind.as_str(), value) {
        ("regex", Value::String(text)) => Param::Regex(text),
        ("ident" | "identifier", Value::String(text)) => Param::Ident(text),
        ("duration", Value::String(text)) => Param::Duration(text),
        ("string", Value::String(text)) => Param::Str(text),
        ("float" | "number", Value::Number(number)) => number.as_f64().map_or_else(
            || Param::Bad(format!("unable to bind parameter: {number} is not a 64-bit number")),
            Param::Num,
        ),
        ("integer" | "int", Value::Number(number)) if number.is_i64() => param(Value::Number(number)),
        (kind, _) => Param::Bad(format!("unknown bind object type, or a wrong value for it: {kind}")),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn request(query: &str) -> Result<QueryRequest, String> {
        QueryRequest::parse(&Params::parse(query), &HeaderMap::new(), true).map_err(|error| error.message)
    }

    #[test]
    fn parameters_of_a_request_are_read() {
        let read = request("q=SELECT+v+FROM+m;SHOW+DATABASES&db=d&rp=autogen").unwrap();
        assert_eq!((read.statements.len(), &*read.database, &*read.policy), (2, "d", "autogen"));
        assert!(request("q=;").unwrap().statements.is_empty());
    }

    #[test]
    fn wrong_requests_are_refused_in_the_words_of_influxdb() {
        for (query, part) in [
            ("db=d", "missing required parameter \"q\""),
            ("q=+", "missing required parameter \"q\""),
            ("q=frob", "error parsing query: found frob, expected SELECT"),
            ("q=SELECT+v+FROM+m&async=true", "async=true is not supported"),
            ("q=SELECT+v+FROM+m&params=%7B", "error parsing query parameters: EOF"),
            ("q=SELECT+v+FROM+m&params=7", "error parsing query parameters: they are not a JSON object"),
            ("q=SELECT+v+FROM+m+WHERE+h%3D$h", "error parsing query: missing parameter: h"),
        ] {
            let error = request(query).unwrap_err();
            assert!(error.starts_with(part), "{query}: {error}");
        }
    }

    #[test]
    fn values_of_every_kind_are_bound() {
        let bound = |value: &str| {
            let params = format!(r#"{{"h":{value}}}"#);
            bound(Some(&params)).unwrap().remove("h").unwrap()
        };
        assert_eq!(bound("\"a'b\""), Param::Str("a'b".into()));
        assert_eq!(bound("3"), Param::Int(3));
        assert_eq!(bound("3.0"), Param::Num(3.0));
        assert_eq!(bound("true"), Param::Bool(true));
        assert_eq!(bound(r#"{"regex":"a.*"}"#), Param::Regex("a.*".into()));
        assert_eq!(bound(r#"{"identifier":"host"}"#), Param::Ident("host".into()));
        assert_eq!(bound(r#"{"duration":"10s"}"#), Param::Duration("10s".into()));
        assert!(matches!(bound("null"), Param::Bad(_)));
        assert!(matches!(bound("[1]"), Param::Bad(_)));
        assert!(matches!(bound("18446744073709551615"), Param::Bad(_)));
        assert!(matches!(bound(r#"{"regex":1}"#), Param::Bad(_)));
    }

    #[test]
    fn null_binds_nothing() {
        assert_eq!(bound(Some("null")), Ok(HashMap::new()));
    }

    #[test]
    fn a_form_is_a_body_with_parameters() {
        let form =
            |name: &str| has_form(&[(header::CONTENT_TYPE, name.parse().unwrap())].into_iter().collect());
        assert!(form("application/x-www-form-urlencoded; charset=utf-8").unwrap());
        assert!(!form("application/json").unwrap());
        assert_eq!(form("multipart/form-data; boundary=x").unwrap_err().status, 415);
    }
}
