//! Forms of `multipart/form-data` (RFC 7578) with texts. A file in a form is refused.

use super::refusal::Refusal;

/// A name and a text of a form.
pub(super) type Pair = (String, String);

/// The boundary of a content type; `None` if it is no such form.
pub(super) fn boundary(content_type: &str) -> Option<&str> {
    let (name, parameters) = content_type.split_once(';')?;
    if !name.trim().eq_ignore_ascii_case("multipart/form-data") {
        return None;
    }
    parameter(parameters, "boundary").filter(|boundary| !boundary.is_empty())
}

/// The names and texts of a form.
pub(super) fn pairs(body: &[u8], boundary: &str) -> Result<Vec<Pair>, Refusal> {
    let wrong =
        || Refusal::argument("the body is not a form of multipart/form-data (RFC 7578) with texts in UTF-8");
    let text = std::str::from_utf8(body).map_err(|_| wrong())?;
    let delimiter = format!("--{boundary}");
    let mut parts = text.split(delimiter.as_str()).skip(1);
    let mut pairs = Vec::new();
    loop {
        let part = parts.next().ok_or_else(wrong)?;
        if part.starts_with("--") {
            return Ok(pairs);
        }
        let (head, content) = part.split_once("\r\n\r\n").ok_or_else(wrong)?;
        let content = content.strip_suffix("\r\n").ok_or_else(wrong)?;
        let disposition = head.lines().find_map(disposition).ok_or_else(wrong)?;
        let name = parameter(disposition, "name").ok_or_else(wrong)?;
        if parameter(disposition, "filename").is_some() {
            return Err(Refusal::absent(format!(
                "{name}: this server does not accept files; send the values as texts"
            )));
        }
        pairs.push((name.to_owned(), content.to_owned()));
    }
}

/// The parameters of the header `Content-Disposition: form-data`.
fn disposition(line: &str) -> Option<&str> {
    let (name, value) = line.split_once(':')?;
    let (kind, parameters) = value.split_once(';')?;
    let is_form = name.trim().eq_ignore_ascii_case("content-disposition") && kind.trim() == "form-data";
    is_form.then_some(parameters)
}

/// A parameter of a header. A quoted one may have semicolons.
fn parameter<'a>(parameters: &'a str, wanted: &str) -> Option<&'a str> {
    let mut rest = parameters.trim_start();
    while let Some((name, after)) = rest.split_once('=') {
        let (value, behind) = match after.strip_prefix('"') {
            Some(quoted) => quoted.split_once('"')?,
            None => after.split_at(after.find(';').unwrap_or(after.len())),
        };
        if name.trim().eq_ignore_ascii_case(wanted) {
            return Some(value.trim());
        }
        rest = behind.trim_start().trim_start_matches(';').trim_start();
    }
    None
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn texts_are_read_and_files_refused() {
        assert_eq!(boundary("multipart/form-data; boundary=\"a b\""), Some("a b"));
        assert_eq!(boundary("Multipart/Form-Data;charset=utf-8;boundary=xy"), Some("xy"));
        assert_eq!((boundary("text/plain; boundary=x"), boundary("multipart/form-data")), (None, None));
        let part = |disposition: &str, text: &str| {
            format!("--xy\r\nContent-Disposition: form-data; {disposition}\r\n\r\n{text}\r\n")
        };
        let body =
            [part("name=\"cmd\"", "c"), part("name=\"c;state\"", "a\r\nb"), "--xy--\r\n".to_owned()].concat();
        let expected = [("cmd".to_owned(), "c".to_owned()), ("c;state".to_owned(), "a\r\nb".to_owned())];
        assert_eq!(pairs(body.as_bytes(), "xy").unwrap(), expected);
        let file = part("name=\"c;a\"; filename=\"x.png\"", "x") + "--xy--\r\n";
        assert_eq!(pairs(file.as_bytes(), "xy").unwrap_err().0.status, 501);
        for body in ["", "--xy\r\n", "--xy\r\nno: head\r\n\r\n", "--xy\r\n\r\n\r\nx\r\n--xy--"] {
            assert_eq!(pairs(body.as_bytes(), "xy").unwrap_err().0.status, 400, "{body:?}");
        }
    }
}
