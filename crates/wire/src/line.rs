//! The line protocol of InfluxDB: `measurement,tag=value field=value,field=value time`.
//!
//! Source of the format: the reference "Line protocol" of the InfluxDB v2 documentation. A measurement, and keys and values of
//! tags, end at an unescaped comma, blank or (keys) `=`. A backslash escapes these characters; any other backslash is literal.
//! Values of fields are floats, integers with the suffix `i` or `u`, `t T true True TRUE f F false False FALSE`, or text in double
//! quotes. Such text has the escapes `\"` and `\\` and may contain line breaks. The time counts since 1970 in a unit that is not
//! part of the line. Lines that begin with `#` are comments.

use std::borrow::Cow;

/// Bytes within which a quoted text must end. Otherwise the line ends at its first line break, so one missing quote does not
/// swallow a file.
pub const LINE_BYTES_MAX: usize = 1024 * 1024;

/// A line other than a comment.
#[derive(Debug, Clone, PartialEq)]
pub struct Line<'a> {
    /// The measurement.
    pub measurement: Cow<'a, str>,
    /// Keys and values of the tags, in the order of the line.
    pub tags: Vec<(Cow<'a, str>, Cow<'a, str>)>,
    /// Keys and values of the fields, at least one.
    pub fields: Vec<(Cow<'a, str>, LineValue<'a>)>,
    /// The time, in the unit that the sender chose.
    pub time: Option<i64>,
}

/// The value of a field.
#[derive(Debug, Clone, PartialEq)]
pub enum LineValue<'a> {
    /// A number.
    F64(f64),
    /// An integer, `i`.
    I64(i64),
    /// An unsigned integer, `u`.
    U64(u64),
    /// A boolean.
    Bool(bool),
    /// A text.
    Text(Cow<'a, str>),
}

/// A malformed line.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{reason} at byte {at}")]
pub struct LineError {
    /// Offset in the line, from 0.
    pub at: usize,
    /// The fault.
    pub reason: &'static str,
}

/// Length of the whole lines at the beginning of `text`, including line breaks.
pub fn whole_lines(text: &str) -> usize {
    let mut end = 0;
    while let Some(bytes) = line_bytes(&text.as_bytes()[end..]) {
        end += bytes;
    }
    end
}

/// The lines of a text, without comments and empty lines.
pub fn lines(text: &str) -> impl Iterator<Item = Result<Line<'_>, LineError>> {
    let mut rest = text;
    std::iter::from_fn(move || next_line(&mut rest))
}

/// Takes the next line off a text, skipping comments and empty lines.
pub fn next_line<'a>(rest: &mut &'a str) -> Option<Result<Line<'a>, LineError>> {
    while !rest.is_empty() {
        let (line, after) = rest.split_at(line_bytes(rest.as_bytes()).unwrap_or(rest.len()));
        *rest = after;
        let line = line.trim_end_matches(['\n', '\r']).trim_start_matches([' ', '\t']);
        if !line.is_empty() && !line.starts_with('#') {
            return Some(parse(line));
        }
    }
    None
}

/// Length of the first line with its line break; `None` without a whole line.
fn line_bytes(text: &[u8]) -> Option<usize> {
    let first_break = text.iter().position(|byte| *byte == b'\n')?;
    let is_comment = text.iter().find(|byte| !matches!(byte, b' ' | b'\t')) == Some(&b'#');
    if is_comment || !text[..first_break].contains(&b'"') {
        return Some(first_break + 1);
    }
    let (mut in_key, mut in_text, mut at) = (true, false, 0);
    while at < text.len().min(LINE_BYTES_MAX) {
        match text[at] {
            b'\\' if in_key || in_text => at += 1,
            b'\n' if !in_text => return Some(at + 1),
            b' ' if in_key && at > 0 => in_key = false,
            b'"' if in_text => in_text = false,
            b'"' if !in_key && text[at - 1] == b'=' => in_text = true,
            _ => {}
        }
        at += 1;
    }
    (text.len() >= LINE_BYTES_MAX).then_some(first_break + 1)
}

/// Decodes one line.
fn parse(line: &str) -> Result<Line<'_>, LineError> {
    let mut cursor = Cursor { line, at: 0 };
    let measurement = cursor.name(b", ", "no measurement")?;
    let mut tags = Vec::new();
    while cursor.take(b',') {
        let key = cursor.name(b"=, ", "a tag without a name")?;
        cursor.must(b'=', "a tag without a value")?;
        tags.push((key, cursor.name(b", =", "a tag without a value")?));
    }
    cursor.must(b' ', "a line without fields")?;
    cursor.blanks();
    let mut fields = Vec::new();
    loop {
        let key = cursor.name(b"=, ", "a line without fields")?;
        cursor.must(b'=', "a field without a value")?;
        fields.push((key, cursor.value()?));
        if !cursor.take(b',') {
            break;
        }
    }
    let at = cursor.at;
    cursor.blanks();
    let time = cursor.rest().trim_end();
    if !time.is_empty() && at == cursor.at {
        return Err(LineError { at, reason: "a comma or a blank is missing" });
    }
    let time = match time {
        "" => None,
        time => Some(
            time.parse().map_err(|_| LineError { at: cursor.at, reason: "the time is no whole number" })?,
        ),
    };
    Ok(Line { measurement, tags, fields, time })
}

struct Cursor<'a> {
    line: &'a str,
    at: usize,
}

impl<'a> Cursor<'a> {
    fn rest(&self) -> &'a str {
        &self.line[self.at..]
    }

    fn take(&mut self, byte: u8) -> bool {
        let is_next = self.rest().as_bytes().first() == Some(&byte);
        self.at += usize::from(is_next);
        is_next
    }

    fn must(&mut self, byte: u8, reason: &'static str) -> Result<(), LineError> {
        self.take(byte).then_some(()).ok_or(LineError { at: self.at, reason })
    }

    fn blanks(&mut self) {
        while self.take(b' ') {}
    }

    /// A name up to one of the `ends`, at least one character.
    fn name(&mut self, ends: &[u8], reason: &'static str) -> Result<Cow<'a, str>, LineError> {
        let rest = self.rest();
        let bytes = rest.as_bytes();
        let (mut at, mut escaped) = (0, false);
        while at < bytes.len() && !ends.contains(&bytes[at]) {
            let is_escape = is_escape(bytes, at, b", =");
            escaped |= is_escape;
            at += 1 + usize::from(is_escape);
        }
        if at == 0 {
            return Err(LineError { at: self.at, reason });
        }
        self.at += at;
        Ok(match escaped {
            true => Cow::Owned(unescaped(&rest[..at], b", =")),
            false => Cow::Borrowed(&rest[..at]),
        })
    }

    fn value(&mut self) -> Result<LineValue<'a>, LineError> {
        if self.take(b'"') {
            return self.text().map(LineValue::Text);
        }
        let rest = self.rest();
        let text = &rest[..rest.find([',', ' ']).unwrap_or(rest.len())];
        let error =
            LineError { at: self.at, reason: "a value that is neither a number nor true, false or \"text\"" };
        self.at += text.len();
        scalar(text).ok_or(error)
    }

    /// A text after its opening quote.
    fn text(&mut self) -> Result<Cow<'a, str>, LineError> {
        let rest = self.rest();
        let bytes = rest.as_bytes();
        let (mut at, mut escaped) = (0, false);
        while at < bytes.len() && bytes[at] != b'"' {
            let is_escape = is_escape(bytes, at, b"\"\\");
            escaped |= is_escape;
            at += 1 + usize::from(is_escape);
        }
        if at >= bytes.len() {
            return Err(LineError { at: self.at, reason: "a text whose closing quote is missing" });
        }
        self.at += at + 1;
        Ok(match escaped {
            true => Cow::Owned(unescaped(&rest[..at], b"\"\\")),
            false => Cow::Borrowed(&rest[..at]),
        })
    }
}

fn is_escape(bytes: &[u8], at: usize, special: &[u8]) -> bool {
    bytes[at] == b'\\' && bytes.get(at + 1).is_some_and(|next| special.contains(next))
}

/// Removes the backslashes before `special` characters.
fn unescaped(text: &str, special: &[u8]) -> String {
    let bytes = text.as_bytes();
    let (mut plain, mut from, mut at) = (String::with_capacity(text.len()), 0, 0);
    while at < bytes.len() {
        if is_escape(bytes, at, special) {
            plain.push_str(&text[from..at]);
            from = at + 1;
            at += 1;
        }
        at += 1;
    }
    plain.push_str(&text[from..]);
    plain
}

fn scalar(text: &str) -> Option<LineValue<'static>> {
    match text {
        "t" | "T" | "true" | "True" | "TRUE" => return Some(LineValue::Bool(true)),
        "f" | "F" | "false" | "False" | "FALSE" => return Some(LineValue::Bool(false)),
        _ => {}
    }
    if let Some(digits) = text.strip_suffix('i') {
        return digits.parse().ok().map(LineValue::I64);
    }
    if let Some(digits) = text.strip_suffix('u') {
        return digits.parse().ok().map(LineValue::U64);
    }
    // Rust also parses "inf" and "nan", which the protocol does not allow.
    let number: f64 = text.parse().ok()?;
    number.is_finite().then_some(LineValue::F64(number))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn one(text: &str) -> Result<Line<'_>, LineError> {
        let mut all = lines(text);
        let line = all.next().expect("a line");
        assert_eq!(all.next(), None, "{text}");
        line
    }

    #[test]
    fn a_line_has_a_measurement_tags_fields_and_a_time() {
        let line =
            one("weather,site=north,sensor=s1 temp=21.5,wet=t,n=-3i,m=7u,note=\"a b\" 1465839830100400200")
                .unwrap();
        assert_eq!(line.measurement, "weather");
        assert_eq!(line.tags, [("site".into(), "north".into()), ("sensor".into(), "s1".into())]);
        let fields = [
            ("temp".into(), LineValue::F64(21.5)),
            ("wet".into(), LineValue::Bool(true)),
            ("n".into(), LineValue::I64(-3)),
            ("m".into(), LineValue::U64(7)),
            ("note".into(), LineValue::Text("a b".into())),
        ];
        assert_eq!(line.fields, fields);
        assert_eq!(line.time, Some(1_465_839_830_100_400_200));
        assert_eq!(one("m f=1e3").unwrap().time, None);
    }

    #[test]
    fn backslashes_escape_special_characters() {
        let line =
            one(r#"my\ table\,x,ta\=g=a\,b\ c,path=C:\dir fi\ eld="say \"yes\" \\ C:\dir",g=1"#).unwrap();
        assert_eq!(line.measurement, "my table,x");
        assert_eq!(line.tags, [("ta=g".into(), "a,b c".into()), ("path".into(), r"C:\dir".into())]);
        assert_eq!(line.fields[0], ("fi eld".into(), LineValue::Text(r#"say "yes" \ C:\dir"#.into())));
        assert_eq!(line.fields.len(), 2);
    }

    #[test]
    fn lines_end_at_breaks_outside_of_texts_and_comments_are_left_out() {
        let text = "# c \"x\nm f=\"one\ntwo\" 1\r\n\n  # more\nm,t=\"q f=2 2\nm f=3";
        let read: Vec<_> = lines(text).map(Result::unwrap).collect();
        assert_eq!(read.len(), 3);
        assert_eq!(read[0].fields[0].1, LineValue::Text("one\ntwo".into()));
        assert_eq!((read[0].time, read[1].tags[0].1.as_ref(), read[2].time), (Some(1), "\"q", None));
        assert_eq!(whole_lines(text), text.len() - "m f=3".len());
        assert_eq!(whole_lines("m f=\"one\ntwo"), 0, "the text may end in what comes next");
    }

    #[test]
    fn a_forgotten_quote_does_not_swallow_a_file() {
        let mut text = "m f=\"open 1\n".to_owned();
        while text.len() <= LINE_BYTES_MAX {
            text.push_str("m f=1 2\n");
        }
        let read: Vec<_> = lines(&text).collect();
        assert_eq!(read[0].as_ref().unwrap_err().reason, "a text whose closing quote is missing");
        assert!(read[1..].iter().all(Result::is_ok));
        assert_eq!(read.len(), text.lines().count());
    }

    #[test]
    fn errors_have_their_position() {
        for (text, at, reason) in [
            (",t=1 f=1", 0, "no measurement"),
            ("m", 1, "a line without fields"),
            ("m,t f=1", 3, "a tag without a value"),
            ("m,t= f=1", 4, "a tag without a value"),
            ("m,=x f=1", 2, "a tag without a name"),
            ("m f", 3, "a field without a value"),
            ("m f=", 4, "a value that is neither a number nor true, false or \"text\""),
            ("m f=nan", 4, "a value that is neither a number nor true, false or \"text\""),
            ("m f=9223372036854775808i", 4, "a value that is neither a number nor true, false or \"text\""),
            ("m f=\"x\"y 1", 7, "a comma or a blank is missing"),
            ("m f=1 12:30", 6, "the time is no whole number"),
            ("m f=\"x", 5, "a text whose closing quote is missing"),
        ] {
            assert_eq!(one(text), Err(LineError { at, reason }), "{text}");
        }
    }

    proptest::proptest! {
        #[test]
        fn any_text_gives_lines_or_errors(text in ".{0,200}") {
            let bytes = whole_lines(&text);
            proptest::prop_assert!(text.is_char_boundary(bytes));
            lines(&text).for_each(drop);
        }
    }
}
