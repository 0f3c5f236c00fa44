//! The path of a stream: its statement and the time behind which it begins.

use std::convert::Infallible;

use axum::extract::FromRequestParts;
use axum::http::request::Parts;
use percent_encoding::percent_decode_str;

/// What follows `/streaming/`. Clients of GSN encode it like a form: `+` is a blank, and `%2B` a plus sign.
#[derive(Debug, PartialEq, Eq)]
pub(in super::super) struct StreamPath {
    pub(super) statement: String,
    /// Empty if the path has no time.
    pub(super) start: String,
}

impl StreamPath {
    fn parse(path: &str) -> Self {
        let rest = path.strip_prefix("/streaming/").unwrap_or_default();
        let (statement, start) = rest.split_once('/').unwrap_or((rest, ""));
        let text = |part: &str| percent_decode_str(&part.replace('+', " ")).decode_utf8_lossy().into_owned();
        Self { statement: text(statement), start: text(start) }
    }
}

impl<S: Send + Sync> FromRequestParts<S> for StreamPath {
    type Rejection = Infallible;

    async fn from_request_parts(parts: &mut Parts, _state: &S) -> Result<Self, Infallible> {
        Ok(Self::parse(parts.uri.path()))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_statement_is_encoded_like_a_form() {
        let path =
            |statement: &str, start: &str| StreamPath { statement: statement.into(), start: start.into() };
        let statement = "select * from tick where n > +1";
        assert_eq!(StreamPath::parse("/streaming/select+*+from+tick+where+n+>+%2B1"), path(statement, ""));
        let start = "2026-11-27T00:00:00.000+01:00";
        let plain = "/streaming/select%20*%20from%20tick/2026-11-27T00%3A00%3A00.000%2B01%3A00";
        assert_eq!(StreamPath::parse(plain), path("select * from tick", start));
    }
}
