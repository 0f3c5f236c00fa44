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
    Csv(&'static str),
}

impl Form {
    /// The form that a request asks for.
    pub(super) fn of(params: &Params, headers: &HeaderMap) -> Result<Self, ApiError> {
        let pretty = params.flag("pretty")?;
        let size = params.number("chunk_size")?.filter(|size| *size > 0).unwrap_or(CHUNK_ROWS_DEFAULT);
        Ok(Self {
            format: csv(headers).map_or(Format::Json { pretty }, Format::Csv),
            chunk: params.flag("chunked")?.then_some(size),
            epoch: params.text("epoch").map(|unit| epoch(unit.trim())).transpose()?,
        })
    }

    /// The media type of the answer.
    pub(super) fn media_type(self) -> HeaderValue {
        match self.format {
            Format::Json { .. } => HeaderValue::from_static("application/json"),
            Format::Csv(name) => HeaderValue::from_static(name),
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

/// The media type of CSV, if the client asks for it before JSON. Types that the server does not have are passed over.
fn csv(headers: &HeaderMap) -> Option<&'static str> {
    let lists = headers.get_all(header::ACCEPT).iter().filter_map(|value| value.to_str().ok());
    let names = lists.flat_map(|list| list.split(',')).map(|one| one.split(';').next().unwrap_or_default());
    let known = [
        ("application/json", None),
        ("application/csv", Some("application/csv")),
        ("text/csv", Some("text/csv")),
        ("*/*", None),
        ("application/*", None),
    ];
    let find = |name: &str| known.iter().find(|(own, _)| own.eq_ignore_ascii_case(name.trim()));
    names.filter_map(find).next().and_then(|(_, csv)| *csv)
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
        assert_eq!(
            form("", "application/x-msgpack, application/csv;q=1").format,
            Format::Csv("application/csv")
        );
        assert_eq!(form("", "text/csv").format, Format::Csv("text/csv"));
        assert_eq!(form("epoch=%C2%B5", "").epoch, Some(1_000));
        assert_eq!(form("epoch=h", "").epoch, Some(3_600_000_000_000));
    }

    #[test]
    fn wrong_parameters_are_named() {
        for (query, part) in [
            ("epoch=weeks", "invalid epoch \"weeks\""),
            ("chunked=true&chunk_size=many", "chunk_size is \"many\""),
            ("chunked=perhaps", "chunked is \"perhaps\""),
        ] {
            let error = Form::of(&Params::parse(query), &HeaderMap::new()).unwrap_err();
            assert!(error.message.contains(part), "{query}: {}", error.message);
        }
    }
}
