//! `/metrics`, in the text format that the client asks for.
//!
//! - OpenMetrics 1.0 (<https://prometheus.io/docs/specs/om/open_metrics_spec/>), if the header Accept names it.
//! - The text format 0.0.4 of Prometheus (<https://prometheus.io/docs/instrumenting/exposition_formats/>) otherwise: every tool reads it.

use std::sync::Arc;

use axum::extract::State;
use axum::http::{HeaderMap, HeaderValue, header};
use axum::response::{IntoResponse, Response};

use super::process_series;
use crate::http::tools::state::HttpState;

const OPEN_METRICS: &str = "application/openmetrics-text; version=1.0.0; charset=utf-8";
const TEXT: &str = "text/plain; version=0.0.4; charset=utf-8";
/// The last line of OpenMetrics.
const END: &str = "# EOF\n";

/// `GET /metrics`, for Prometheus.
pub(crate) async fn metrics(State(state): State<Arc<HttpState>>, headers: HeaderMap) -> Response {
    let mut text = state.hub.metrics_text();
    text.truncate(text.len() - if text.ends_with(END) { END.len() } else { 0 });
    process_series::append(&state, &mut text);
    text.push_str(END);
    let (kind, text) = if wants_open_metrics(&headers) { (OPEN_METRICS, text) } else { (TEXT, plain(&text)) };
    ([(header::CONTENT_TYPE, HeaderValue::from_static(kind))], text).into_response()
}

/// Whether the header Accept names OpenMetrics.
fn wants_open_metrics(headers: &HeaderMap) -> bool {
    let values = headers.get_all(header::ACCEPT).iter().filter_map(|value| value.to_str().ok());
    let mut names =
        values.flat_map(|list| list.split(',')).map(|one| one.split(';').next().unwrap_or_default());
    names.any(|name| name.trim().eq_ignore_ascii_case("application/openmetrics-text"))
}

/// OpenMetrics as the older text format: the description of a counter has the name of its samples, and there are no units.
fn plain(text: &str) -> String {
    let mut plain = String::with_capacity(text.len());
    let mut help = None;
    for line in text.lines() {
        if let Some(described) = line.strip_prefix("# HELP ") {
            help = described.split_once(' ');
        } else if let Some((name, kind)) =
            line.strip_prefix("# TYPE ").and_then(|typed| typed.split_once(' '))
        {
            let (suffix, kind) = match kind {
                "counter" => ("_total", kind),
                "unknown" => ("", "untyped"),
                "info" => ("_info", "gauge"),
                _ => ("", kind),
            };
            if let Some((_, words)) = help.take().filter(|(described, _)| *described == name) {
                plain.push_str(&format!("# HELP {name}{suffix} {words}\n"));
            }
            plain.push_str(&format!("# TYPE {name}{suffix} {kind}\n"));
        } else if !line.starts_with('#') {
            plain.push_str(line);
            plain.push('\n');
        }
    }
    plain
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_counter_is_described_by_the_name_of_its_samples() {
        let open = "# HELP a_bytes Bytes.\n# TYPE a_bytes counter\n# UNIT a_bytes bytes\na_bytes_total{x=\"# y\"} 1\n\
                    # HELP b Open.\n# TYPE b gauge\nb 2\n# TYPE c info\nc_info{v=\"1\"} 1\n# EOF\n";
        let expected = "# HELP a_bytes_total Bytes.\n# TYPE a_bytes_total counter\na_bytes_total{x=\"# y\"} 1\n\
                        # HELP b Open.\n# TYPE b gauge\nb 2\n# TYPE c_info gauge\nc_info{v=\"1\"} 1\n";
        assert_eq!(plain(open), expected);
    }

    #[test]
    fn the_format_is_the_one_that_the_client_names() {
        let wants = |accept: Option<&'static str>| {
            let headers = accept.map(|value| (header::ACCEPT, HeaderValue::from_static(value)));
            wants_open_metrics(&headers.into_iter().collect())
        };
        assert!(wants(Some("application/openmetrics-text;version=1.0.0;q=0.5,text/plain;q=0.3")));
        assert!(!wants(None) && !wants(Some("*/*")) && !wants(Some("text/plain;version=0.0.4")));
    }
}
