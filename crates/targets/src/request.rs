//! Requests of the load, written once: their heads differ only in path and length.

use wire::http1::write;
use wire::resp::write::decimal;

/// The headers that all requests have in common.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct RequestHead {
    /// Host and port.
    pub(crate) host: String,
    /// The value of the header `Authorization`.
    pub(crate) login: Option<String>,
}

/// The format of a body.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Format {
    /// One document.
    Json,
    /// Lines of JSON.
    Lines,
    /// Plain text.
    Text,
    /// A message of Prometheus' remote write 1.0.
    RemoteWrite,
}

impl Format {
    /// The headers that describe the body.
    fn headers(self) -> &'static [(&'static str, &'static str)] {
        match self {
            Self::Json => &[("Content-Type", "application/json")],
            Self::Lines => &[("Content-Type", "application/x-ndjson")],
            Self::Text => &[("Content-Type", "text/plain; charset=utf-8")],
            Self::RemoteWrite => &[
                ("Content-Type", "application/x-protobuf"),
                ("Content-Encoding", "snappy"),
                ("X-Prometheus-Remote-Write-Version", "0.1.0"),
            ],
        }
    }
}

impl RequestHead {
    /// Appends a request with a body.
    pub(crate) fn append(&self, out: &mut Vec<u8>, method: &str, target: &str, format: Format, body: &[u8]) {
        write::start(out, method, target);
        write::header(out, "Host", &self.host);
        if let Some(login) = &self.login {
            write::header(out, "Authorization", login);
        }
        for (name, value) in format.headers() {
            write::header(out, name, value);
        }
        out.extend_from_slice(b"Content-Length: ");
        decimal(out, body.len() as u64);
        out.extend_from_slice(b"\r\n");
        write::end(out);
        out.extend_from_slice(body);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_request_has_the_length_of_its_body_and_the_login() {
        let head = RequestHead { host: "h:9200".to_owned(), login: Some("Basic eA==".to_owned()) };
        let mut out = Vec::new();
        head.append(&mut out, "POST", "/i/_bulk", Format::Lines, b"{}\n");
        let expected = "POST /i/_bulk HTTP/1.1\r\nHost: h:9200\r\nAuthorization: Basic eA==\r\nContent-Type: application/x-ndjson\r\n\
                        Content-Length: 3\r\n\r\n{}\n";
        assert_eq!(String::from_utf8(out).unwrap(), expected);
    }
}
