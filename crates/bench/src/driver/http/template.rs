//! Requests and expected bodies with places for a key: `GET /item/__key__`.

use wire::http1;
use wire::http2::hpack::{self, entry};
use wire::http2::limits::FRAME_BYTES_MAX;
use wire::resp::write::{decimal, decimal_digits};

/// What a key's number is put in for.
const KEY: &str = "__key__";

/// A text with places for a key.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(crate) struct Text {
    /// Before, between and behind the places; one more than there are places.
    parts: Vec<Vec<u8>>,
}

impl Text {
    pub(crate) fn parse(text: &str) -> Self {
        Self { parts: text.split(KEY).map(|part| part.as_bytes().to_vec()).collect() }
    }

    /// Whether it has a place for a key.
    pub(crate) fn has_key(&self) -> bool {
        self.parts.len() > 1
    }

    /// Its length with this key.
    pub(crate) fn len(&self, key: u64) -> usize {
        let fixed: usize = self.parts.iter().map(Vec::len).sum();
        fixed + (self.parts.len() - 1) * decimal_digits(key)
    }

    #[inline]
    pub(crate) fn append(&self, out: &mut Vec<u8>, key: u64) {
        let Some((first, others)) = self.parts.split_first() else { return };
        out.extend_from_slice(first);
        for part in others {
            decimal(out, key);
            out.extend_from_slice(part);
        }
    }
}

/// A request as a scenario says it.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Request {
    /// The method.
    pub method: String,
    /// Path and query; `__key__` in it stands for a key.
    pub target: String,
    /// Host and perhaps port, as the header `Host` has them.
    pub host: String,
    /// Headers in their order.
    pub headers: Vec<(String, String)>,
    /// The body; `__key__` in it stands for a key.
    pub body: Option<String>,
    /// Whether the server is told that no other request follows.
    pub close: bool,
}

/// Headers that belong to the connection and would contradict what the driver does.
const OWN_HEADERS: [&str; 5] = ["content-length", "transfer-encoding", "connection", "upgrade", "expect"];

impl Request {
    /// What cannot be sent in it.
    pub(crate) fn check(&self) -> Result<(), String> {
        if !http1::write::is_token(&self.method) || self.method.eq_ignore_ascii_case("CONNECT") {
            return Err(format!("`{}` is no method of this driver", self.method));
        }
        if !http1::write::is_target(&self.target) {
            return Err(format!("`{}` is no path: it begins with `/` and has no blanks", self.target));
        }
        for (name, value) in &self.headers {
            if !http1::write::is_token(name) || !http1::write::is_value(value) {
                return Err(format!("`{name}: {value}` is no header"));
            }
            if value.contains(KEY) {
                return Err(format!("`{name}: {value}`: a key stands in the path or in the body only"));
            }
            if OWN_HEADERS.contains(&name.to_ascii_lowercase().as_str()) {
                return Err(format!(
                    "the header `{name}` is the driver's own; see `body` and `connection` in docs/bench/http.md"
                ));
            }
        }
        Ok(())
    }

    pub(crate) fn is_head(&self) -> bool {
        self.method == "HEAD"
    }

    fn has(&self, name: &str) -> bool {
        self.headers.iter().any(|(known, _)| known.eq_ignore_ascii_case(name))
    }
}

/// A request of HTTP/1.1, ready to be filled in.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct One {
    head: Text,
    /// A body whose length depends on the key; its length stands between head and body.
    body: Option<Text>,
}

impl One {
    pub(crate) fn new(request: &Request) -> Self {
        let mut head = Vec::new();
        http1::write::start(&mut head, &request.method, &request.target);
        if !request.has("host") {
            http1::write::header(&mut head, "Host", &request.host);
        }
        for (name, value) in &request.headers {
            http1::write::header(&mut head, name, value);
        }
        if request.close {
            http1::write::header(&mut head, "Connection", "close");
        }
        let body = request.body.as_deref().map(Text::parse);
        let behind = match &body {
            None => String::new(),
            Some(text) if text.has_key() => "Content-Length: ".to_owned(),
            Some(text) => format!("Content-Length: {}\r\n", text.len(0)),
        };
        head.extend_from_slice(behind.as_bytes());
        let keyed = body.filter(Text::has_key);
        if keyed.is_none() {
            http1::write::end(&mut head);
            head.extend_from_slice(request.body.as_deref().unwrap_or_default().as_bytes());
        }
        Self { head: Text::parse(&String::from_utf8_lossy(&head)), body: keyed }
    }

    #[inline]
    pub(crate) fn append(&self, out: &mut Vec<u8>, key: u64) {
        self.head.append(out, key);
        if let Some(body) = &self.body {
            decimal(out, body.len(key) as u64);
            out.extend_from_slice(b"\r\n\r\n");
            body.append(out, key);
        }
    }
}

/// A request of HTTP/2, ready to be filled in.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Two {
    before: Vec<u8>,
    path: Text,
    behind: Vec<u8>,
    pub(crate) body: Option<Text>,
}

impl Two {
    pub(crate) fn new(request: &Request) -> Result<Self, String> {
        let mut before = Vec::new();
        match request.method.as_str() {
            "GET" => hpack::indexed(&mut before, entry::GET),
            "POST" => hpack::indexed(&mut before, entry::POST),
            method => hpack::named(&mut before, entry::GET, method.as_bytes()),
        }
        hpack::indexed(&mut before, entry::HTTP);
        let host = request.headers.iter().find(|(name, _)| name.eq_ignore_ascii_case("host"));
        let host = host.map_or(&request.host, |(_, value)| value);
        hpack::named(&mut before, entry::AUTHORITY, host.as_bytes());
        let mut behind = Vec::new();
        for (name, value) in &request.headers {
            let name = name.to_ascii_lowercase();
            if name != "host" {
                hpack::literal(&mut behind, name.as_bytes(), value.as_bytes());
            }
        }
        let body = request.body.as_deref().map(Text::parse);
        let two = Self { before, path: Text::parse(&request.target), behind, body };
        if two.head_len(u64::MAX) > FRAME_BYTES_MAX {
            return Err(format!(
                "path and headers of a request are more than the {FRAME_BYTES_MAX} bytes of a frame"
            ));
        }
        Ok(two)
    }

    /// At least as long as what [`Self::append_head`] writes.
    fn head_len(&self, key: u64) -> usize {
        const INTEGERS: usize = 32;
        self.before.len() + self.path.len(key) + self.behind.len() + INTEGERS
    }

    /// Appends the block of headers.
    pub(crate) fn append_head(&self, out: &mut Vec<u8>, key: u64) {
        out.extend_from_slice(&self.before);
        hpack::named_start(out, entry::PATH, self.path.len(key));
        self.path.append(out, key);
        out.extend_from_slice(&self.behind);
        if let Some(body) = &self.body {
            let mut digits = Vec::new();
            decimal(&mut digits, body.len(key) as u64);
            hpack::named(out, entry::CONTENT_LENGTH, &digits);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn request(text: &str, body: Option<&str>) -> Request {
        let (method, target) = text.split_once(' ').unwrap();
        Request {
            method: method.to_owned(),
            target: target.to_owned(),
            host: "h:1".to_owned(),
            headers: vec![("Accept".to_owned(), "*/*".to_owned())],
            body: body.map(str::to_owned),
            close: false,
        }
    }

    fn one(request: &Request, key: u64) -> String {
        let mut out = Vec::new();
        One::new(request).append(&mut out, key);
        String::from_utf8(out).unwrap()
    }

    #[test]
    fn keys_and_lengths_are_filled_in() {
        let get = request("GET /item/__key__?of=__key__", None);
        assert_eq!(one(&get, 42), "GET /item/42?of=42 HTTP/1.1\r\nHost: h:1\r\nAccept: */*\r\n\r\n");
        let put = request("PUT /item/__key__", Some("{\"n\":__key__}"));
        let expected =
            "PUT /item/123 HTTP/1.1\r\nHost: h:1\r\nAccept: */*\r\nContent-Length: 9\r\n\r\n{\"n\":123}";
        assert_eq!(one(&put, 123), expected);
        let post = Request { close: true, ..request("POST /", Some("fixed")) };
        let expected = "POST / HTTP/1.1\r\nHost: h:1\r\nAccept: */*\r\nConnection: close\r\nContent-Length: 5\r\n\r\nfixed";
        assert_eq!(one(&post, 9), expected);
        let other = Request { headers: vec![("HOST".to_owned(), "other".to_owned())], ..get };
        assert_eq!(one(&other, 1).matches("HOST: other\r\n").count(), 1);
        assert!(!one(&other, 1).contains("h:1"));
    }

    #[test]
    fn what_would_break_the_framing_is_refused() {
        let with = |name: &str, value: &str| Request {
            headers: vec![(name.to_owned(), value.to_owned())],
            ..request("GET /", None)
        };
        assert_eq!(request("GET /", None).check(), Ok(()));
        for wrong in [
            with("Content-Length", "5"),
            with("connection", "close"),
            with("a b", "c"),
            with("a", "b\r\nc: d"),
            request("CONNECT /", None),
            request("GET item", None),
            request("GET /a b", None),
        ] {
            assert!(wrong.check().is_err(), "{wrong:?}");
        }
    }

    #[test]
    fn heads_of_http2_have_the_fields_of_the_request() {
        let two = Two::new(&request("GET /a__key__", None)).unwrap();
        let mut out = Vec::new();
        two.append_head(&mut out, 7);
        assert_eq!(out, b"\x82\x86\x01\x03h:1\x04\x03/a7\x00\x06accept\x03*/*");
        let two = Two::new(&request("DELETE /", Some("__key__"))).unwrap();
        out.clear();
        two.append_head(&mut out, 10);
        assert_eq!(out, b"\x02\x06DELETE\x86\x01\x03h:1\x04\x01/\x00\x06accept\x03*/*\x0f\x0d\x012");
        let long = Request { target: format!("/{}", "a".repeat(20_000)), ..request("GET /", None) };
        assert!(Two::new(&long).unwrap_err().contains("16384"));
    }
}
