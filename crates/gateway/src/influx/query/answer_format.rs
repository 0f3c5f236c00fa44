//! The form of an answer.

use axum::http::{HeaderMap, HeaderValue, header};

use super::super::limits::CHUNK_ROWS_DEFAULT;
use crate::error::ApiError;
use crate::http::tools::request::Params;

/// How the results of a query are written.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Form {
    pub(super) format: Format,
    /// Rows of one piece of the answer, which is a document by itself; `None` for one document.
    pub(super) chunk: Option<usize>,
    /// Nanoseconds of the unit of times; `None` for RFC 3339 in JSON, and nanoseconds in CSV.
    pub(super) epoch: Option<i64>,
}

/// The format of an answer.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Format {
    Json { pretty: bool },
    Csv,
}

impl Form {
    /// The form that a request asks for.
    pub(super) fn of(params: &Params, headers: &HeaderMap) -> Result<Self, ApiError> {
        // As in InfluxDB every other text is false, and every other size the default.
        let is_true = |name| params.text(name) == Some("true");
        let size = params.text("chunk_size").and_then(|text| text.parse().ok());
        let size = size.filter(|size| *size > 0).unwrap_or(CHUNK_ROWS_DEFAULT);
        let pretty = is_true("pretty");
        Ok(Self {
            format: if wants_csv(headers) { Format::Csv } else { Format::Json { pretty } },
            chunk: is_true("chunked").then_some(size),
            epoch: params.text("epoch").map(|unit| epoch(unit.trim())).transpose()?,
        })
    }

    /// The media type of the answer.
    pub(super) fn media_type(self) -> HeaderValue {
        match self.format {
            Format::Json { .. } => HeaderValue::from_static("application/json"),
            Format::Csv => HeaderValue::from_static("text/csv"),
        }
    }
}

fn epoch(unit: &str) -> Result<i64, ApiError> {
    Ok(match unit {
        "n" | "ns" => 1,
        "u" | "us" | "µ" | "µs" => 1_000,
        "ms" => 1_000_000,
        "s" => 1_000_000_000,
        "m" => 60_000_000_000,
        "h" => 3_600_000_000_000,
        other => {
            return Err(ApiError::argument(format!("invalid epoch {other:?} (use ns, u, ms, s, m or h)")));
        }
    })
}

/// Whether the client asks for CSV before JSON. Types that the server does not have are passed over.
fn wants_csv(headers: &HeaderMap) -> bool {
    let lists = headers.get_all(header::ACCEPT).iter().filter_map(|value| value.to_str().ok());
    let names = lists.flat_map(|list| list.split(',')).map(|one| one.split(';').next().unwrap_or_default());
    let known = [
        ("application/json", false),
        ("application/csv", true),
        ("text/csv", true),
        ("*/*", false),
        ("application/*", false),
    ];
    let find = |name: &str| known.iter().find(|(own, _)| own.eq_ignore_ascii_case(name.trim()));
    names.filter_map(find).next().is_some_and(|(_, is_csv)| *is_csv)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn form(query: &str, accept: &'static str) -> Form {
        let headers = [(header::ACCEPT, HeaderValue::from_static(accept))].into_iter().collect();
        Form::of(&Params::parse(query), &headers).unwrap()
    }

    #[test]
    fn a_request_chooses_the_format_the_chunks_and_the_unit_of_times() {
        let json = Format::Json { pretty: false };
        assert_eq!(form("", "*/*"), Form { format: json, chunk: None, epoch: None });
        assert_eq!(form("chunk_size=5", "application/x-msgpack").chunk, None);
        assert_eq!(form("chunked=true&chunk_size=5", "").chunk, Some(5));
        assert_eq!(form("chunked=true&chunk_size=0", "").chunk, Some(CHUNK_ROWS_DEFAULT));
        assert_eq!(form("pretty=true", "text/html, application/json").format, Format::Json { pretty: true });
        assert_eq!(form("", "application/x-msgpack, application/csv;q=1").format, Format::Csv);
        assert_eq!(form("", "text/csv").format, Format::Csv);
        assert_eq!(form("chunked=1&pretty=1", "").chunk, None);
        assert_eq!(form("chunked=true&chunk_size=many", "").chunk, Some(CHUNK_ROWS_DEFAULT));
        assert_eq!(form("epoch=%C2%B5", "").epoch, Some(1_000));
        assert_eq!(form("epoch=h", "").epoch, Some(3_600_000_000_000));
    }

    #[test]
    fn an_unknown_unit_of_times_is_named() {
        let error = Form::of(&Params::parse("epoch=weeks"), &HeaderMap::new()).unwrap_err();
        assert!(error.message.contains("invalid epoch \"weeks\""), "{}", error.message);
    }
}
