//! Templates of requests and expected bodies with places for a key and its data: `PUT /item/__key__` with `__data__`.

use load::dataset::{Alphabet, Content, Random};
use wire::http1;
use wire::http2::hpack::{self, entry};
use wire::http2::limits::FRAME_BYTES_MAX;
use wire::resp::write::{decimal, decimal_digits};

use super::variables::Fill;
use crate::limits::HTTP_VARIABLE_BYTES_MAX;

/// The place of a key.
const KEY: &str = "__key__";
/// The place of the data of a key.
const DATA: &str = "__data__";
/// The domain of the random data of keys.
const DATA_DOMAIN: u64 = 0x6864_6174;

/// The data of keys: printable bytes that depend on seed and key alone, so that a reader knows what was written.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Data {
    /// The seed of all data.
    pub seed: u64,
    /// The number of bytes.
    pub bytes: usize,
    /// The compressibility of printable bytes.
    pub content: Content,
}

impl Default for Data {
    fn default() -> Self {
        Self { seed: 0, bytes: 0, content: Content::new(Alphabet::Printable, 1.0) }
    }
}

impl Data {
    fn append(&self, out: &mut Vec<u8>, key: u64) {
        let begin = out.len();
        out.resize(begin + self.bytes, 0);
        self.content.fill(&mut Random::keyed(self.seed, DATA_DOMAIN, key), &mut out[begin..]);
    }
}

#[derive(Debug, Clone, PartialEq, Eq)]
enum Part {
    Fixed(Vec<u8>),
    Key,
    Data,
    /// The variable of this index.
    Variable(usize),
}

/// A text with places for a key, its data and variables.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(crate) struct Text {
    parts: Vec<Part>,
    data: Data,
}

impl Text {
    /// Finds the places of the key, its data and the named variables.
    pub(crate) fn parse(text: &str, data: Data, names: &[String]) -> Self {
        let variables =
            names.iter().enumerate().map(|(index, name)| (format!("__{name}__"), Part::Variable(index)));
        let known = [(KEY.to_owned(), Part::Key), (DATA.to_owned(), Part::Data)];
        let places: Vec<(String, Part)> = known.into_iter().chain(variables).collect();
        let mut parts = Vec::new();
        let mut rest = text;
        loop {
            let found = places.iter().filter_map(|(place, part)| Some((rest.find(place)?, place, part)));
            let Some((at, place, part)) = found.min_by_key(|(at, ..)| *at) else { break };
            parts.extend([Part::Fixed(rest.as_bytes()[..at].to_vec()), part.clone()]);
            rest = &rest[at + place.len()..];
        }
        parts.push(Part::Fixed(rest.as_bytes().to_vec()));
        Self { parts, data }
    }

    /// The indexes of the variables in it.
    pub(crate) fn variables(&self) -> Vec<usize> {
        let index = |part: &Part| match part {
            Part::Variable(index) => Some(*index),
            _ => None,
        };
        self.parts.iter().filter_map(index).collect()
    }

    /// Whether it has a place for the key or its data.
    pub(crate) fn has_key(&self) -> bool {
        self.parts.iter().any(|part| matches!(part, Part::Key | Part::Data))
    }

    /// An upper bound of its length.
    pub(crate) fn len_max(&self) -> usize {
        self.len(Fill { key: u64::MAX, variables: &[] }) + self.variables().len() * HTTP_VARIABLE_BYTES_MAX
    }

    /// Whether the text depends on the key or on variables.
    pub(crate) fn is_keyed(&self) -> bool {
        self.parts.iter().any(|part| !matches!(part, Part::Fixed(_)))
    }

    /// The length with these values.
    pub(crate) fn len(&self, fill: Fill<'_>) -> usize {
        let of_part = |part: &Part| match part {
            Part::Fixed(fixed) => fixed.len(),
            Part::Key => decimal_digits(fill.key),
            Part::Data => self.data.bytes,
            Part::Variable(index) => fill.variable(*index).len(),
        };
        self.parts.iter().map(of_part).sum()
    }

    #[inline]
    pub(crate) fn append(&self, out: &mut Vec<u8>, fill: Fill<'_>) {
        for part in &self.parts {
            match part {
                Part::Fixed(fixed) => out.extend_from_slice(fixed),
                Part::Key => decimal(out, fill.key),
                Part::Data => self.data.append(out, fill.key),
                Part::Variable(index) => out.extend_from_slice(fill.variable(*index).as_bytes()),
            }
        }
    }
}

/// Whether a text has a place for a key.
pub(crate) fn has_key(text: &str) -> bool {
    text.contains(KEY)
}

/// Whether a text has a place for data.
pub(crate) fn has_data(text: &str) -> bool {
    text.contains(DATA)
}

/// A request of a scenario.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Request {
    pub method: String,
    /// Path and query; `__key__` stands for a key.
    pub target: String,
    /// Host and port for the header `Host`.
    pub host: String,
    /// The headers, in order.
    pub headers: Vec<(String, String)>,
    /// The body; `__key__` stands for a key and `__data__` for its data.
    pub body: Option<String>,
    /// The data of keys.
    pub data: Data,
    /// Whether the request announces that the connection closes.
    pub close: bool,
}

/// Headers that the driver controls.
const OWN_HEADERS: [&str; 5] = ["content-length", "transfer-encoding", "connection", "upgrade", "expect"];

impl Request {
    /// Refuses parts of a request that cannot be sent.
    pub(crate) fn check(&self) -> Result<(), String> {
        if !http1::write::is_token(&self.method) || self.method.eq_ignore_ascii_case("CONNECT") {
            return Err(format!("`{}` is not a method of this driver", self.method));
        }
        if !http1::write::is_target(&self.target) {
            return Err(format!("`{}` is not a path: it begins with `/` and has no blanks", self.target));
        }
        if has_data(&self.target) {
            return Err(format!("`{}`: data is in the body only", self.target));
        }
        for (name, value) in &self.headers {
            if !http1::write::is_token(name) || !http1::write::is_value(value) {
                return Err(format!("`{name}: {value}` is not a header"));
            }
            if value.contains(KEY) || has_data(value) {
                return Err(format!("`{name}: {value}`: a key or data is in the path or in the body only"));
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

/// An HTTP/1.1 request with places for key and data.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Http1Template {
    head: Text,
    /// The body if its length depends on the key. Then the length is between head and body.
    body: Option<Text>,
}

impl Http1Template {
    pub(crate) fn new(request: &Request, names: &[String]) -> Self {
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
        let body = request.body.as_deref().map(|body| Text::parse(body, request.data, names));
        let behind = match &body {
            None => String::new(),
            Some(text) if text.is_keyed() => "Content-Length: ".to_owned(),
            Some(text) => format!("Content-Length: {}\r\n", text.len(Fill { key: 0, variables: &[] })),
        };
        head.extend_from_slice(behind.as_bytes());
        let keyed = body.filter(Text::is_keyed);
        if keyed.is_none() {
            http1::write::end(&mut head);
            head.extend_from_slice(request.body.as_deref().unwrap_or_default().as_bytes());
        }
        Self { head: Text::parse(&String::from_utf8_lossy(&head), request.data, names), body: keyed }
    }

    #[inline]
    pub(crate) fn append(&self, out: &mut Vec<u8>, fill: Fill<'_>) {
        self.head.append(out, fill);
        if let Some(body) = &self.body {
            decimal(out, body.len(fill) as u64);
            out.extend_from_slice(b"\r\n\r\n");
            body.append(out, fill);
        }
    }
}

/// An HTTP/2 request with places for key and data.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Http2Template {
    before: Vec<u8>,
    path: Text,
    behind: Vec<u8>,
    pub(crate) body: Option<Text>,
}

impl Http2Template {
    pub(crate) fn new(request: &Request, names: &[String]) -> Result<Self, String> {
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
        let body = request.body.as_deref().map(|body| Text::parse(body, request.data, names));
        let two = Self { before, path: Text::parse(&request.target, request.data, names), behind, body };
        if two.head_len() > FRAME_BYTES_MAX {
            return Err(format!(
                "path and headers of a request are more than the {FRAME_BYTES_MAX} bytes of a frame"
            ));
        }
        Ok(two)
    }

    /// An upper bound for the length of [`Self::append_head`].
    fn head_len(&self) -> usize {
        const INTEGERS: usize = 32;
        self.before.len() + self.path.len_max() + self.behind.len() + INTEGERS
    }

    /// Appends the block of headers.
    pub(crate) fn append_head(&self, out: &mut Vec<u8>, fill: Fill<'_>) {
        out.extend_from_slice(&self.before);
        hpack::named_start(out, entry::PATH, self.path.len(fill));
        self.path.append(out, fill);
        out.extend_from_slice(&self.behind);
        if let Some(body) = &self.body {
            let mut digits = Vec::new();
            decimal(&mut digits, body.len(fill) as u64);
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
            data: Data::default(),
            close: false,
        }
    }

    fn one(request: &Request, key: u64) -> String {
        let mut out = Vec::new();
        Http1Template::new(request, &[]).append(&mut out, Fill { key, variables: &[] });
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
    fn the_data_of_a_key_is_the_same_each_time_and_of_another_key_another() {
        let data = Data { seed: 5, bytes: 40, ..Data::default() };
        let put = Request { data, ..request("PUT /__key__", Some("[\"__data__\", \"__data__\"]")) };
        let body = |key| one(&put, key).split_once("\r\n\r\n").unwrap().1.to_owned();
        assert!(one(&put, 7).contains("Content-Length: 88\r\n"));
        let values: Vec<String> = serde_json::from_str(&body(7)).unwrap();
        assert_eq!((values[0].len(), &values[0]), (40, &values[1]));
        assert_eq!(body(7), body(7));
        assert_ne!(body(7), body(8));
        let seeded = Request { data: Data { seed: 6, ..data }, ..put.clone() };
        assert_ne!(body(7), one(&seeded, 7).split_once("\r\n\r\n").unwrap().1);
        let repeated = Data { content: Content::new(Alphabet::Printable, 0.0), ..data };
        assert!(
            one(&Request { data: repeated, ..put }, 7).contains("The vehicle reports speed, coolant, load")
        );
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
            with("a", "__data__"),
            request("GET /__data__", None),
            request("CONNECT /", None),
            request("GET item", None),
            request("GET /a b", None),
        ] {
            assert!(wrong.check().is_err(), "{wrong:?}");
        }
    }

    #[test]
    fn heads_of_http2_have_the_fields_of_the_request() {
        let two = Http2Template::new(&request("GET /a__key__", None), &[]).unwrap();
        let mut out = Vec::new();
        two.append_head(&mut out, Fill { key: 7, variables: &[] });
        assert_eq!(out, b"\x82\x86\x01\x03h:1\x04\x03/a7\x00\x06accept\x03*/*");
        let two = Http2Template::new(&request("DELETE /", Some("__key__")), &[]).unwrap();
        out.clear();
        two.append_head(&mut out, Fill { key: 10, variables: &[] });
        assert_eq!(out, b"\x02\x06DELETE\x86\x01\x03h:1\x04\x01/\x00\x06accept\x03*/*\x0f\x0d\x012");
        let long = Request { target: format!("/{}", "a".repeat(20_000)), ..request("GET /", None) };
        assert!(Http2Template::new(&long, &[]).unwrap_err().contains("16384"));
    }
}
