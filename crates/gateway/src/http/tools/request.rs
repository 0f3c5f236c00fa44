//! Extractors for handlers: path, query, body. Every refusal has the shape of this door.

use std::str::FromStr;
use std::sync::Arc;

use axum::body::{Body, HttpBody};
use axum::extract::{FromRequest, FromRequestParts, Path, Request};
use axum::http::StatusCode;
use axum::http::request::Parts;
use bytes::Bytes;
use http_body_util::BodyExt;
use serde::de::DeserializeOwned;
use uuid::Uuid;

use super::bodies::{HeldBytes, NoRoomForBody, Sender};
use super::body_check::BodyCheck;
use super::session::Session;
use super::state::HttpState;
use crate::error::{ApiError, ErrorCode};
use crate::http::limits::{BODY_TIMEOUT, LOGIN_BODY_BYTES_MAX, REST_BODY_BYTES_MAX};

/// The variable parts of the path.
#[derive(Debug)]
pub(crate) struct PathOf<T>(pub(crate) T);

impl<T, S> FromRequestParts<S> for PathOf<T>
where
    T: DeserializeOwned + Send,
    S: Send + Sync,
{
    type Rejection = ApiError;

    async fn from_request_parts(parts: &mut Parts, state: &S) -> Result<Self, ApiError> {
        let Path(value) = Path::from_request_parts(parts, state).await?;
        Ok(Self(value))
    }
}

/// The decoded parameters of the query string, in their order.
#[derive(Debug, Default)]
pub(crate) struct Params(Vec<(String, String)>);

impl Params {
    pub(crate) fn parse(query: &str) -> Self {
        Self(form_urlencoded::parse(query.as_bytes()).into_owned().collect())
    }

    /// The first value of a name. An empty value counts as absent.
    pub(crate) fn text(&self, name: &str) -> Option<&str> {
        let found = self.0.iter().find(|(key, _)| key == name);
        found.map(|(_, value)| value.as_str()).filter(|value| !value.is_empty())
    }

    /// Whether a name appears, with a value or without one. Blanks after the name do not count.
    pub(crate) fn has(&self, name: &str) -> bool {
        self.0.iter().any(|(key, _)| key.trim_end() == name)
    }

    /// A whole number.
    pub(crate) fn number<T: FromStr>(&self, name: &str) -> Result<Option<T>, ApiError> {
        let parse = |text: &str| {
            text.parse().map_err(|_| {
                ApiError::argument(format!("{name} is {text:?}; it must be a whole number in its range"))
            })
        };
        self.text(name).map(parse).transpose()
    }

    /// `pageSize`, at most `most`. Clients of ThingsBoard ask for pages of 999,999,999 entries; the answer has `hasNext` and numbers of
    /// pages for the size that they get.
    pub(crate) fn page_size(&self, most: usize) -> Result<usize, ApiError> {
        let asked: Option<u64> = self.number("pageSize")?;
        match asked.map(|asked| usize::try_from(asked).unwrap_or(usize::MAX)) {
            None => Err(ApiError::argument("name the page you want (pageSize and page)")),
            Some(0) => Err(ApiError::bad_request("pageSize is 0; it must be 1 or more")),
            Some(asked) => Ok(asked.min(most)),
        }
    }

    /// Whether `sortOrder` asks for the last first; absent is ascending.
    pub(crate) fn descending(&self) -> Result<bool, ApiError> {
        match self.text("sortOrder") {
            None | Some("ASC") => Ok(false),
            Some("DESC") => Ok(true),
            Some(other) => Err(ApiError::argument(format!("sortOrder is {other:?}; it must be ASC or DESC"))),
        }
    }

    /// `true` or `false` in any letter case, as clients of several languages write them; absent is false.
    pub(crate) fn flag(&self, name: &str) -> Result<bool, ApiError> {
        match self.text(name) {
            None => Ok(false),
            // Python's clients of ThingsBoard send `True` and `False`.
            Some(text) if text.eq_ignore_ascii_case("false") => Ok(false),
            Some(text) if text.eq_ignore_ascii_case("true") => Ok(true),
            Some(other) => Err(ApiError::argument(format!("{name} is {other:?}; it must be true or false"))),
        }
    }

    /// All pairs of name and value.
    pub(crate) fn pairs(&self) -> impl Iterator<Item = (&str, &str)> {
        self.0.iter().map(|(name, value)| (name.as_str(), value.as_str()))
    }

    /// The parts of all lists of a name, which are separated by commas.
    pub(crate) fn list<'a>(&'a self, name: &'a str) -> impl Iterator<Item = &'a str> {
        let values = self.0.iter().filter(move |(key, _)| key == name);
        values.flat_map(|(_, value)| split_keys(value))
    }

    /// The named keys: those of all lists `keys`, and each `key`.
    pub(crate) fn keys(&self) -> impl Iterator<Item = &str> {
        self.0.iter().flat_map(|(name, value)| {
            let list = (name == "keys").then(|| split_keys(value));
            let one = (name == "key").then_some(value.as_str()).filter(|key| !key.is_empty());
            list.into_iter().flatten().chain(one)
        })
    }
}

/// Splits a list of keys at commas. Blanks belong to a key, as in ThingsBoard. A list cannot name a key with a comma.
pub(crate) fn split_keys(list: &str) -> impl Iterator<Item = &str> {
    list.split(',').filter(|key| !key.is_empty())
}

impl<S: Send + Sync> FromRequestParts<S> for Params {
    type Rejection = ApiError;

    async fn from_request_parts(parts: &mut Parts, _state: &S) -> Result<Self, ApiError> {
        Ok(Self::parse(parts.uri.query().unwrap_or_default()))
    }
}

/// Reads an id of an entity in a body or a parameter.
pub(crate) fn parse_id(text: &str) -> Result<Uuid, ApiError> {
    let wrong = || ApiError::argument(format!("{text:?} is not an id; ids are UUIDs"));
    Uuid::parse_str(text).map_err(|_| wrong())
}

/// Reads an id of an entity in a path. A word at its place is the name of an endpoint that this server does not have.
pub(crate) fn path_id(text: &str) -> Result<Uuid, ApiError> {
    let is_word = !text.is_empty() && text.chars().all(|c| c.is_ascii_alphabetic() || c == '_');
    match Uuid::parse_str(text) {
        Err(_) if is_word => Err(ApiError::not_found(format!(
            "this server has no endpoint {text:?} here; GET /api/openapi.json lists those that it has"
        ))),
        _ => parse_id(text),
    }
}

/// The body of a request. Its bytes count for the sender until this is dropped.
#[derive(Debug)]
pub(crate) struct HeldBody {
    pub(crate) bytes: Bytes,
    _account: HeldBytes,
}

/// Reads a whole body of at most `limit` bytes and charges it to an account. The error text ends with `setting`, which says
/// how to raise the limit. Applies the [`BodyCheck`] of the request.
pub(crate) async fn read_body(
    request: Request,
    limit: usize,
    setting: &str,
    account: HeldBytes,
) -> Result<HeldBody, ApiError> {
    let check = request.extensions().get::<BodyCheck>().copied();
    let mut body = request.into_body();
    let reading = tokio::time::timeout(BODY_TIMEOUT, collect(&mut body, limit, account));
    let read = reading.await.unwrap_or(Err(Unread::Slow));
    let body = read.map_err(|unread| match unread {
        Unread::TooLarge => ApiError::too_large("the body", limit, setting),
        Unread::Slow => {
            let seconds = BODY_TIMEOUT.as_secs();
            let message = format!("the body did not arrive within {seconds} s; send it faster");
            ApiError::new(StatusCode::REQUEST_TIMEOUT, ErrorCode::BadRequest, "slow_body", message)
        }
        Unread::NoRoom(refused) => refused.into(),
        Unread::Broken(error) => ApiError::bad_request(format!("the body ended early: {error}")),
    })?;
    if let Some(BodyCheck(rules)) = check {
        rules.check(&body.bytes)?;
    }
    Ok(body)
}

/// The reason why a body was not read.
enum Unread {
    TooLarge,
    Slow,
    NoRoom(NoRoomForBody),
    Broken(axum::Error),
}

async fn collect(body: &mut Body, limit: usize, mut account: HeldBytes) -> Result<HeldBody, Unread> {
    if body.size_hint().lower() > limit as u64 {
        return Err(Unread::TooLarge);
    }
    let announced = body.size_hint().exact().map_or(0, |bytes| bytes as usize);
    let mut first = Bytes::new();
    let mut all = Vec::new();
    while let Some(frame) = body.frame().await {
        let Ok(data) = frame.map_err(Unread::Broken)?.into_data() else { continue };
        if first.len() + all.len() + data.len() > limit {
            return Err(Unread::TooLarge);
        }
        // Charged as it arrives: an announced length costs nothing.
        account.add(data.len()).map_err(Unread::NoRoom)?;
        if first.is_empty() && all.is_empty() {
            first = data;
            continue;
        }
        if all.is_empty() {
            // Memory that was never written to costs nothing, and a vector that grows is copied.
            all.reserve_exact(announced.min(limit).max(first.len() + data.len()));
            all.extend_from_slice(&std::mem::take(&mut first));
        }
        all.extend_from_slice(&data);
    }
    let bytes = if all.is_empty() { first } else { all.into() };
    Ok(HeldBody { bytes, _account: account })
}

/// A JSON body of the REST interface.
#[derive(Debug)]
pub(crate) struct JsonBody<T>(pub(crate) T);

impl<T: DeserializeOwned> FromRequest<Arc<HttpState>> for JsonBody<T> {
    type Rejection = ApiError;

    async fn from_request(request: Request, state: &Arc<HttpState>) -> Result<Self, ApiError> {
        // An anonymous client sends a login, which is short.
        let (account, limit) = match Session::of(state, request.headers()) {
            Ok(session) => (session.body_account(state), REST_BODY_BYTES_MAX),
            Err(_) => (state.body_account(Sender::Anonymous), LOGIN_BODY_BYTES_MAX),
        };
        let body = read_body(request, limit, "", account).await?;
        // Tools of Windows write a byte order mark before UTF-8 text.
        let text = body.bytes.strip_prefix(b"\xef\xbb\xbf").unwrap_or(&body.bytes);
        let parsed = serde_json::from_slice(text);
        let wrong = |error| ApiError::bad_request(format!("the body is not the JSON wanted here: {error}"));
        parsed.map(Self).map_err(wrong)
    }
}

#[cfg(test)]
mod tests {
    use super::super::bodies::{Bodies, BodyLimits};
    use super::*;

    #[test]
    fn keys_are_named_in_lists_or_one_by_one() {
        let params = Params::parse("keys=a,%20b%2Cc,,&limit=5&keys=d&key=x%2Cy%20&key=&key=a,b");
        assert_eq!(params.keys().collect::<Vec<_>>(), ["a", " b", "c", "d", "x,y ", "a,b"]);
        assert_eq!(params.number::<u64>("limit").unwrap(), Some(5));
        assert_eq!(params.number::<u64>("interval").unwrap(), None);
    }

    #[test]
    fn wrong_values_are_named() {
        let params = Params::parse("startTs=yesterday&useStrictDataTypes=1&endTs=");
        let error = params.number::<i64>("startTs").unwrap_err();
        assert_eq!(error.message, "startTs is \"yesterday\"; it must be a whole number in its range");
        assert!(params.flag("useStrictDataTypes").unwrap_err().message.contains("true or false"));
        assert_eq!(params.text("endTs"), None);
        assert!(!params.flag("absent").unwrap());
        assert!(Params::parse("strict=True").flag("strict").unwrap());
    }

    #[tokio::test]
    async fn bodies_are_bounded_one_by_one_and_together() {
        let limits = BodyLimits { total: 10, device: 10, user: 10, anonymous: 0 };
        let bodies = Bodies::new(limits, Arc::default());
        let sender = Sender::Device { id: Uuid::nil(), tenant: Uuid::nil() };
        let read = async |size: usize, limit| {
            read_body(Request::new(Body::from(vec![b'x'; size])), limit, "", bodies.begin(sender, 1)).await
        };
        let held = read(8, 100).await.unwrap();
        assert_eq!(held.bytes.len(), 8);
        assert_eq!(read(3, 100).await.unwrap_err().status, StatusCode::TOO_MANY_REQUESTS);
        drop(held);
        assert!(read(3, 100).await.is_ok());
        assert_eq!(read(3, 2).await.unwrap_err().status, StatusCode::PAYLOAD_TOO_LARGE);
        assert!(read(10, 100).await.is_ok(), "what was refused is not held");
    }
}
