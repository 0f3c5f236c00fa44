//! Requests to `/api/sql`: the query, its parameters, and the format of the answer.

use axum::extract::Request;
use axum::http::{HeaderMap, header};
use hub::sql::Parameter;
use serde::Deserialize;
use serde_json::Value;

use crate::answer::Format;
use crate::error::ApiError;
use crate::http::limits::SQL_BODY_BYTES_MAX;
use crate::http::tools::bodies::HeldBytes;
use crate::http::tools::request::{Params, read_body};

/// A query with its parameters, and the format of the answer.
#[derive(Debug, PartialEq)]
pub(crate) struct SqlRequest {
    pub(crate) text: String,
    /// The database; the tenant's own one if it is not given.
    pub(crate) database: Option<String>,
    pub(crate) parameters: Vec<Parameter>,
    pub(crate) format: Format,
}

/// A request body in JSON.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct RequestBody {
    query: String,
    database: Option<String>,
    format: Option<String>,
    #[serde(default)]
    params: Vec<Value>,
}

impl SqlRequest {
    pub(crate) fn from_params(params: &Params, headers: &HeaderMap) -> Result<Self, ApiError> {
        let text = params.text("q").ok_or_else(|| ApiError::argument("q is missing; it holds the query"))?;
        Self::plain(text, params, headers)
    }

    /// A request with its text alone: everything else is in the query string.
    fn plain(text: &str, params: &Params, headers: &HeaderMap) -> Result<Self, ApiError> {
        Ok(Self {
            text: text.into(),
            database: params.text("database").map(str::to_owned),
            parameters: Vec::new(),
            format: format(None, params, headers)?,
        })
    }

    pub(crate) async fn from_body(
        params: &Params,
        request: Request,
        account: HeldBytes,
    ) -> Result<Self, ApiError> {
        let headers = request.headers().clone();
        let body = read_body(request, SQL_BODY_BYTES_MAX, "", account).await?;
        Self::parse(&body.bytes, params, &headers)
    }

    fn parse(body: &[u8], params: &Params, headers: &HeaderMap) -> Result<Self, ApiError> {
        if media_type(headers) == "application/json" {
            let wrong = |error| {
                ApiError::bad_request(format!(
                    "the body is not the JSON wanted here, {{\"query\": \"...\"}}: {error}"
                ))
            };
            let written: RequestBody = serde_json::from_slice(body).map_err(wrong)?;
            let parameters =
                written.params.into_iter().enumerate().map(|(index, value)| parameter(index, value));
            return Ok(Self {
                format: format(written.format.as_deref(), params, headers)?,
                text: written.query,
                database: written.database.or_else(|| params.text("database").map(str::to_owned)),
                parameters: parameters.collect::<Result<_, _>>()?,
            });
        }
        let text = std::str::from_utf8(body)
            .map_err(|error| ApiError::bad_request(format!("the query is not UTF-8: {error}")))?;
        if text.trim().is_empty() {
            return Err(ApiError::bad_request("the body is empty; it holds the query"));
        }
        Self::plain(text, params, headers)
    }
}

fn media_type(headers: &HeaderMap) -> String {
    let value = headers.get(header::CONTENT_TYPE).and_then(|value| value.to_str().ok()).unwrap_or_default();
    value.split(';').next().unwrap_or_default().trim().to_ascii_lowercase()
}

/// The format of the body, else of the query string, else of the Accept header, else JSON.
fn format(body: Option<&str>, params: &Params, headers: &HeaderMap) -> Result<Format, ApiError> {
    match body.or_else(|| params.text("format")) {
        Some(name) => name.parse().map_err(ApiError::argument),
        None => Ok(accepted(headers)),
    }
}

fn accepted(headers: &HeaderMap) -> Format {
    let lists = headers.get_all(header::ACCEPT).iter().filter_map(|value| value.to_str().ok());
    let mut types =
        lists.flat_map(|list| list.split(',')).map(|one| one.split(';').next().unwrap_or_default().trim());
    types
        .find_map(|one| {
            Format::ALL.into_iter().find(|format| {
                format.media_type().split(';').next().is_some_and(|name| name.eq_ignore_ascii_case(one))
            })
        })
        .unwrap_or(Format::Json)
}

fn parameter(index: usize, value: Value) -> Result<Parameter, ApiError> {
    let number = index + 1;
    Ok(match value {
        Value::Null => Parameter::Null,
        Value::Bool(value) => Parameter::Bool(value),
        Value::String(text) => Parameter::Text(text),
        Value::Number(digits) => match (digits.as_i64(), digits.as_f64()) {
            (Some(value), _) => Parameter::I64(value),
            (None, Some(value)) if !digits.is_u64() => Parameter::F64(value),
            _ => {
                let message = format!(
                    "parameter ${number} is {digits}, which is not a 64-bit number; pass it as a string"
                );
                return Err(ApiError::argument(message));
            }
        },
        Value::Array(values) => {
            let values = values.into_iter().map(|value| match value {
                Value::Array(_) => {
                    let message =
                        format!("parameter ${number} is a list of lists; arrays have one dimension");
                    Err(ApiError::argument(message))
                }
                value => parameter(index, value),
            });
            of_one_kind(values.collect::<Result<_, _>>()?).map(Parameter::List).ok_or_else(|| {
                let message = format!(
                    "parameter ${number} is a list of several kinds; its values are truth values, numbers or strings"
                );
                ApiError::argument(message)
            })?
        }
        Value::Object(_) => {
            let message = format!("parameter ${number} is or has an object; pass it as a string of JSON");
            return Err(ApiError::argument(message));
        }
    })
}

/// The values of a list, if all values but NULL have one kind. Integers beside floats become floats.
fn of_one_kind(mut values: Vec<Parameter>) -> Option<Vec<Parameter>> {
    if values.iter().any(|value| matches!(value, Parameter::F64(_))) {
        for value in &mut values {
            if let Parameter::I64(whole) = value {
                *value = Parameter::F64(*whole as f64);
            }
        }
    }
    let mut kinds = values.iter().filter(|value| **value != Parameter::Null).map(std::mem::discriminant);
    let first = kinds.next();
    kinds.all(|kind| Some(kind) == first).then_some(values)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn headers(pairs: &[(header::HeaderName, &str)]) -> HeaderMap {
        pairs.iter().map(|(name, value)| (name.clone(), value.parse().unwrap())).collect()
    }

    fn parse(body: &str, query: &str, pairs: &[(header::HeaderName, &str)]) -> Result<SqlRequest, ApiError> {
        SqlRequest::parse(body.as_bytes(), &Params::parse(query), &headers(pairs))
    }

    const JSON: (header::HeaderName, &str) = (header::CONTENT_TYPE, "application/json; charset=utf-8");

    #[test]
    fn json_and_plain_text_are_taken() {
        let body = r#"{"query":"SELECT $1","format":"csv","params":[1,"a",null,true,1.5,-7]}"#;
        let sql_request = parse(body, "format=arrow", &[JSON]).unwrap();
        assert_eq!((sql_request.text.as_str(), sql_request.format), ("SELECT $1", Format::Csv));
        let expected = [
            Parameter::I64(1),
            Parameter::Text("a".into()),
            Parameter::Null,
            Parameter::Bool(true),
            Parameter::F64(1.5),
            Parameter::I64(-7),
        ];
        assert_eq!(sql_request.parameters, expected);
        for content_type in ["text/plain", "application/sql", "application/x-www-form-urlencoded"] {
            let sql_request =
                parse("SELECT 1", "format=arrow", &[(header::CONTENT_TYPE, content_type)]).unwrap();
            assert_eq!((sql_request.text.as_str(), sql_request.format), ("SELECT 1", Format::Arrow));
        }
        assert_eq!(parse("SELECT 1", "", &[]).unwrap().format, Format::Json);
    }

    #[test]
    fn lists_are_arrays_of_one_kind() {
        let body = r#"{"query":"SELECT $1","params":[["a",null],[1,2.5,-3],[],[true]]}"#;
        let expected = [
            vec![Parameter::Text("a".into()), Parameter::Null],
            vec![Parameter::F64(1.0), Parameter::F64(2.5), Parameter::F64(-3.0)],
            vec![],
            vec![Parameter::Bool(true)],
        ];
        assert_eq!(parse(body, "", &[JSON]).unwrap().parameters, expected.map(Parameter::List));
    }

    #[test]
    fn the_accept_header_selects_the_format() {
        for (accept, format) in [
            ("text/csv", Format::Csv),
            ("text/html, application/vnd.apache.arrow.stream;q=0.9", Format::Arrow),
            ("application/vnd.apache.parquet, application/json", Format::Parquet),
            ("*/*", Format::Json),
        ] {
            assert_eq!(
                parse("SELECT 1", "", &[(header::ACCEPT, accept)]).unwrap().format,
                format,
                "{accept}"
            );
        }
        let sql_request = parse("SELECT 1", "format=json", &[(header::ACCEPT, "text/csv")]).unwrap();
        assert_eq!(sql_request.format, Format::Json);
    }

    #[test]
    fn errors_of_requests_name_the_cause() {
        for (body, query, pairs, part) in [
            ("{\"q\":\"SELECT 1\"}", "", [JSON].as_slice(), "unknown field `q`"),
            ("SELECT 1", "", &[JSON], "the JSON wanted here"),
            ("  ", "", &[], "the body is empty"),
            ("SELECT 1", "format=xml", &[], "format is \"xml\""),
            (r#"{"query":"SELECT $1","params":[18446744073709551615]}"#, "", &[JSON], "parameter $1"),
            (
                r#"{"query":"SELECT $1","params":[1,{"a":2}]}"#,
                "",
                &[JSON],
                "parameter $2 is or has an object",
            ),
            (r#"{"query":"SELECT $1","params":[1,[[2]]]}"#, "", &[JSON], "parameter $2 is a list of lists"),
            (
                r#"{"query":"SELECT $1","params":[1,["a",2]]}"#,
                "",
                &[JSON],
                "parameter $2 is a list of several",
            ),
        ] {
            let error = parse(body, query, pairs).unwrap_err();
            assert!(error.message.contains(part), "{body}: {}", error.message);
        }
        let error = SqlRequest::parse(b"\xff", &Params::default(), &HeaderMap::new()).unwrap_err();
        assert!(error.message.contains("UTF-8"), "{}", error.message);
        let error = SqlRequest::from_params(&Params::parse("format=csv"), &HeaderMap::new()).unwrap_err();
        assert!(error.message.contains("q is missing"), "{}", error.message);
    }
}
