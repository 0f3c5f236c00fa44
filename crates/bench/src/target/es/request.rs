//! Requests of the load, written once: their heads differ only in path and length.

use wire::http1::write;
use wire::resp::write::decimal;

/// The headers that all requests have in common.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct RequestHead {
    /// Host and port.
    pub(super) host: String,
    /// The value of the header `Authorization`.
    pub(super) login: Option<String>,
}

/// The format of a body.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Format {
    /// One document.
    Json,
    /// Lines of JSON.
    Lines,
}

impl RequestHead {
    /// Appends a request with a body.
    pub(super) fn append(&self, out: &mut Vec<u8>, method: &str, target: &str, format: Format, body: &[u8]) {
        write::start(out, method, target);
        write::header(out, "Host", &self.host);
        if let Some(login) = &self.login {
            write::header(out, "Authorization", login);
        }
        let format = match format {
            Format::Json => "application/json",
            Format::Lines => "application/x-ndjson",
        };
        write::header(out, "Content-Type", format);
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
