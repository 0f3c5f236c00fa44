//! Forms with files: `multipart/form-data` (RFC 7578, RFC 2046), read piece by piece.

use memchr::memmem;

/// Longest head of a part in bytes.
const HEAD_BYTES_MAX: usize = 8 * 1024;
/// Longest boundary in bytes [RFC 2046 5.1.1].
const BOUNDARY_BYTES_MAX: usize = 70;

/// The boundary in a Content-Type such as `multipart/form-data; boundary=X`; `None` for another type.
pub fn boundary(content_type: &str) -> Option<&str> {
    let (kind, parameters) = content_type.split_once(';')?;
    let found = parameter(parameters, "boundary")?;
    let is_form = kind.trim().eq_ignore_ascii_case("multipart/form-data");
    (is_form && !found.is_empty() && found.len() <= BOUNDARY_BYTES_MAX).then_some(found)
}

/// Reads a form. The caller adds bytes as they come, and takes what is complete.
#[derive(Debug)]
pub struct Multipart {
    /// What is in front of every part: line end, two hyphens and the boundary.
    delimiter: Vec<u8>,
    buffer: Vec<u8>,
    state: State,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum State {
    /// Before the first delimiter.
    Preamble,
    /// Behind a delimiter.
    Delimiter,
    Head,
    Body,
    End,
}

/// What comes next in a form.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Event {
    /// A part begins.
    Part(PartHead),
    /// Bytes of the part.
    Data(Vec<u8>),
    /// The form is complete.
    End,
}

/// The head of a part.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct PartHead {
    /// The name of the field.
    pub name: String,
    /// The name of the file.
    pub file_name: Option<String>,
    /// The media type.
    pub content_type: Option<String>,
}

/// Bytes that are not a form.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("the form cannot be read: {0}")]
pub struct MultipartError(&'static str);

impl Multipart {
    /// A form with a boundary.
    pub fn new(boundary: &str) -> Self {
        let delimiter = [b"\r\n--", boundary.as_bytes()].concat();
        // The first delimiter may be at the beginning, without a line end.
        Self { delimiter, buffer: b"\r\n".to_vec(), state: State::Preamble }
    }

    /// Adds bytes.
    pub fn push(&mut self, bytes: &[u8]) {
        self.buffer.extend_from_slice(bytes);
    }

    /// What comes next; `None` if more bytes must be added first.
    ///
    /// # Errors
    /// The bytes are not a form.
    pub fn next_event(&mut self) -> Result<Option<Event>, MultipartError> {
        loop {
            match self.state {
                State::Preamble => {
                    if self.take_data().1 {
                        self.state = State::Delimiter;
                    } else {
                        return Ok(None);
                    }
                }
                State::Delimiter => match self.after_delimiter()? {
                    Some(state) => self.state = state,
                    None => return Ok(None),
                },
                State::Head => return self.head(),
                State::Body => {
                    let (data, is_whole) = self.take_data();
                    if is_whole {
                        self.state = State::Delimiter;
                    }
                    if !data.is_empty() {
                        return Ok(Some(Event::Data(data)));
                    }
                    if !is_whole {
                        return Ok(None);
                    }
                }
                State::End => return Ok(Some(Event::End)),
            }
        }
    }

    /// The bytes before the next delimiter, and whether it was there; it is taken too.
    fn take_data(&mut self) -> (Vec<u8>, bool) {
        if let Some(at) = memmem::find(&self.buffer, &self.delimiter) {
            let rest = self.buffer.split_off(at + self.delimiter.len());
            let mut data = std::mem::replace(&mut self.buffer, rest);
            data.truncate(at);
            return (data, true);
        }
        // The end of the buffer may be the beginning of a delimiter.
        let sure = self.buffer.len().saturating_sub(self.delimiter.len() - 1);
        let rest = self.buffer.split_off(sure);
        (std::mem::replace(&mut self.buffer, rest), false)
    }

    fn after_delimiter(&mut self) -> Result<Option<State>, MultipartError> {
        if self.buffer.starts_with(b"--") {
            return Ok(Some(State::End));
        }
        let Some(end) = memmem::find(&self.buffer, b"\r\n") else {
            return match self.buffer.len() > HEAD_BYTES_MAX + "\r".len() {
                true => Err(MultipartError("a boundary is not the end of its line")),
                false => Ok(None),
            };
        };
        if end > HEAD_BYTES_MAX || !self.buffer[..end].iter().all(|byte| b" \t".contains(byte)) {
            return Err(MultipartError("a boundary is not the end of its line"));
        }
        // The line end stays: it is that of an empty head too.
        self.buffer.drain(..end);
        Ok(Some(State::Head))
    }

    fn head(&mut self) -> Result<Option<Event>, MultipartError> {
        let end = memmem::find(&self.buffer, b"\r\n\r\n");
        // A head is as long in one piece as in many.
        if end.unwrap_or(self.buffer.len().saturating_sub("\r\n\r".len())) > HEAD_BYTES_MAX {
            return Err(MultipartError("the head of a part is too long"));
        }
        let Some(end) = end else { return Ok(None) };
        let lines = String::from_utf8_lossy(&self.buffer[..end]).into_owned();
        self.buffer.drain(..end + 4);
        self.state = State::Body;
        let mut head = PartHead::default();
        let mut is_named = false;
        for line in lines.split("\r\n") {
            let Some((name, value)) = line.split_once(':') else { continue };
            if name.trim().eq_ignore_ascii_case("content-disposition") {
                let field = parameter(value, "name");
                is_named = field.is_some();
                head.name = field.unwrap_or_default().to_owned();
                head.file_name = parameter(value, "filename").map(str::to_owned);
            } else if name.trim().eq_ignore_ascii_case("content-type") {
                head.content_type = Some(value.trim().to_owned());
            }
        }
        match is_named {
            true => Ok(Some(Event::Part(head))),
            false => Err(MultipartError("a part has no name")),
        }
    }
}

/// A parameter such as `name="file"`, with or without quotes.
fn parameter<'a>(parameters: &'a str, wanted: &str) -> Option<&'a str> {
    let mut rest = parameters;
    loop {
        let (name, after) = rest.split_once('=')?;
        let name = name.rsplit(';').next().unwrap_or_default().trim();
        let (value, next) = match after.strip_prefix('"') {
            Some(quoted) => quoted.split_once('"')?,
            None => after.split_once(';').unwrap_or((after, "")),
        };
        if name.eq_ignore_ascii_case(wanted) {
            return Some(value.trim());
        }
        rest = next;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const FORM: &[u8] = b"preamble\r\n--X\r\nContent-Disposition: form-data; name=\"a\"\r\n\r\none\r\n\
        --X \r\ncontent-disposition: form-data; filename=\"f=1;x.bin\"; name=file\r\nContent-Type: a/b\r\n\r\n\
        two\r\n--\r\nXX\r\n--X--\r\nepilogue";

    /// What a form has, if it comes in pieces of a length.
    fn read(form: &[u8], piece: usize) -> Result<Vec<(PartHead, Vec<u8>)>, MultipartError> {
        let mut reader = Multipart::new("X");
        let mut parts: Vec<(PartHead, Vec<u8>)> = Vec::new();
        for bytes in form.chunks(piece) {
            reader.push(bytes);
            while let Some(event) = reader.next_event()? {
                match event {
                    Event::Part(head) => parts.push((head, Vec::new())),
                    Event::Data(data) => parts.last_mut().unwrap().1.extend(data),
                    Event::End => return Ok(parts),
                }
            }
        }
        Err(MultipartError("it has no end"))
    }

    #[test]
    fn a_form_is_the_same_in_pieces_of_any_length() {
        let field = PartHead { name: "a".into(), ..PartHead::default() };
        let (file_name, content_type) = (Some("f=1;x.bin".into()), Some("a/b".into()));
        let file = PartHead { name: "file".into(), file_name, content_type };
        let expected = vec![(field, b"one".to_vec()), (file, b"two\r\n--\r\nXX".to_vec())];
        for piece in 1..FORM.len() {
            assert_eq!(read(FORM, piece), Ok(expected.clone()), "{piece}");
        }
        let at_once = b"--X\r\nContent-Disposition: form-data; name=\"\"\r\n\r\n\r\n--X--";
        assert_eq!(read(at_once, 1_000), Ok(vec![(PartHead::default(), Vec::new())]));
        assert_eq!(read(b"--X--", 1), Ok(Vec::new()));
    }

    #[test]
    fn what_is_not_a_form_is_refused() {
        let long = [&b"--X\r\nA: "[..], &[b'a'; 10_000]].concat();
        for (form, part) in [
            (&b"--X\r\n\r\nno name\r\n--X--"[..], "no name"),
            (b"--Xy\r\n", "end of its line"),
            (&long, "too long"),
            (b"--X\r\nContent-Disposition: form-data; name=a\r\n\r\nopen", "no end"),
        ] {
            assert!(read(form, 7).unwrap_err().to_string().contains(part), "{part}");
        }
        let head = |bytes: usize| {
            let name = b"\r\nContent-Disposition: form-data; name=a\r\nA: ";
            let rest = vec![b'a'; bytes - name.len()];
            [b"--X", &name[..], &rest, b"\r\n\r\n\r\n--X--"].concat()
        };
        for piece in [1, 3, 1_000, 100_000] {
            assert!(read(&head(HEAD_BYTES_MAX), piece).is_ok(), "{piece}");
            assert!(read(&head(HEAD_BYTES_MAX + 1), piece).is_err(), "{piece}");
        }
    }

    #[test]
    fn the_boundary_comes_from_the_type() {
        assert_eq!(boundary("multipart/form-data; boundary=abc"), Some("abc"));
        assert_eq!(boundary("Multipart/Form-Data; charset=utf-8; Boundary=\"a b\""), Some("a b"));
        for other in [
            "text/plain",
            "multipart/mixed; boundary=a",
            "multipart/form-data; boundary=",
            "multipart/form-data",
        ] {
            assert_eq!(boundary(other), None, "{other}");
        }
    }
}
