//! Writes HTTP/1.1 requests. The functions do not check their arguments; [`is_token`], [`is_target`] and [`is_value`] check
//! whether a text is allowed.

/// Appends the request line.
pub fn start(out: &mut Vec<u8>, method: &str, target: &str) {
    for part in [method, " ", target, " HTTP/1.1\r\n"] {
        out.extend_from_slice(part.as_bytes());
    }
}

/// Appends a header.
pub fn header(out: &mut Vec<u8>, name: &str, value: &str) {
    for part in [name, ": ", value, "\r\n"] {
        out.extend_from_slice(part.as_bytes());
    }
}

/// Ends the head. A body follows if a header has its length.
pub fn end(out: &mut Vec<u8>) {
    out.extend_from_slice(b"\r\n");
}

/// Whether a text can be a method or the name of a header (RFC 9110, 5.6.2).
pub fn is_token(text: &str) -> bool {
    let of_token = |byte: u8| byte.is_ascii_alphanumeric() || b"!#$%&'*+-.^_`|~".contains(&byte);
    !text.is_empty() && text.bytes().all(of_token)
}

/// Whether a text can be the target of a request: a path and perhaps a query, or `*`.
pub fn is_target(text: &str) -> bool {
    (text.starts_with('/') || text == "*") && text.bytes().all(|byte| byte.is_ascii_graphic())
}

/// Whether a text can be the value of a header.
pub fn is_value(text: &str) -> bool {
    text.bytes().all(|byte| byte == b'\t' || !byte.is_ascii_control())
        && text.trim_matches([' ', '\t']) == text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn requests_have_the_form_of_the_standard() {
        let mut out = Vec::new();
        start(&mut out, "GET", "/hello.txt");
        header(&mut out, "Host", "www.example.com");
        header(&mut out, "Accept-Language", "en, mi");
        end(&mut out);
        let expected = "GET /hello.txt HTTP/1.1\r\nHost: www.example.com\r\nAccept-Language: en, mi\r\n\r\n";
        assert_eq!(out, expected.as_bytes());
    }

    #[test]
    fn paths_and_headers_that_would_change_the_request_are_refused() {
        assert!(is_token("GET") && is_token("X-Id") && !is_token("") && !is_token("A B") && !is_token("A:"));
        assert!(is_target("/a?b=c%20d#e") && is_target("*"));
        assert!(!is_target("a") && !is_target("/a b") && !is_target("/a\r\nB") && !is_target("/ä"));
        assert!(is_value("text/html; q=0.5") && is_value("") && !is_value("a\r\nB: c") && !is_value(" a"));
    }
}
