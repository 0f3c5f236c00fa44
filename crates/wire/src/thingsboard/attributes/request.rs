//! Requests of a device for attributes.

use serde_json::value::RawValue;

use super::super::object::{kind, read_object, text};
use crate::telemetry::PayloadError;

/// Nesting of a request.
const DEPTH_MAX: usize = 2;

/// The wanted attributes. Without any list a device gets all attributes of both scopes; with one list only those of its scope.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Request {
    /// Keys of client attributes, if the request has such a list.
    pub client: Option<Vec<String>>,
    /// Keys of shared attributes, likewise.
    pub shared: Option<Vec<String>>,
}

/// Reads `{"clientKeys":"a,b","sharedKeys":"c"}`. A list is text with commas, or an array of texts.
pub fn read_request(payload: &[u8]) -> Result<Request, PayloadError> {
    read_object(payload, DEPTH_MAX, "the payload", |members| {
        let mut request = Request::default();
        for (name, raw) in members {
            match &**name {
                "clientKeys" => request.client = keys(raw, "clientKeys")?,
                "sharedKeys" => request.shared = keys(raw, "sharedKeys")?,
                _ => {}
            }
        }
        Ok(request)
    })
}

fn keys(raw: &RawValue, what: &str) -> Result<Option<Vec<String>>, PayloadError> {
    match raw.get().as_bytes().first() {
        Some(b'n') => Ok(None),
        Some(b'[') => texts(raw, what).map(Some),
        Some(b'"') => {
            let list = text(raw, what)?;
            Ok(Some(list.split(',').filter(|key| !key.is_empty()).map(str::to_owned).collect()))
        }
        _ => {
            let found = kind(raw);
            Err(PayloadError::Shape(format!("{what} must be keys with commas between them, found {found}")))
        }
    }
}

/// An array of texts.
pub(super) fn texts(raw: &RawValue, what: &str) -> Result<Vec<String>, PayloadError> {
    let items = serde_json::from_str::<Vec<&RawValue>>(raw.get());
    let items = items
        .map_err(|_| PayloadError::Shape(format!("{what} must be an array of texts, found {}", kind(raw))))?;
    items.into_iter().map(|item| text(item, &format!("each of {what}"))).collect()
}
