//! The data points of a body.

use std::borrow::Cow;

use super::super::limits::MEMBERS_MAX;
use super::json::{Scanner, SyntaxError};
use super::point::{DataPoint, Scalar};

/// Reads the data points of a body, one at a time.
#[derive(Debug)]
pub struct Points<'a> {
    scanner: Scanner<'a>,
    next: Next,
    point: DataPoint<'a>,
}

/// The next item of the body.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Next {
    /// The only object of the body.
    Only,
    /// The first element of an array, or its end.
    First,
    /// A comma and another element, or the end of the array.
    Other,
    End,
}

impl<'a> Points<'a> {
    /// Begins with a body, an object or an array.
    ///
    /// # Errors
    /// For a body that is empty, is not UTF-8, or begins with something else. The messages are OpenTSDB's.
    pub fn new(body: &'a [u8]) -> Result<Self, SyntaxError> {
        // Tools of Windows write a byte order mark before UTF-8 text.
        let body = body.strip_prefix(b"\xef\xbb\xbf").unwrap_or(body);
        let text = std::str::from_utf8(body)
            .map_err(|error| SyntaxError { at: error.valid_up_to(), reason: "the body is not UTF-8" })?;
        let mut scanner = Scanner::new(text);
        let next = match scanner.peek() {
            b'{' => Next::Only,
            b'[' => Next::First,
            _ if scanner.is_at_end() => return Err(scanner.fault("Missing request content")),
            _ => return Err(scanner.fault("The JSON must start as an object or an array")),
        };
        if next == Next::First {
            scanner.take(b'[');
        }
        Ok(Self { scanner, next, point: DataPoint::default() })
    }

    /// The next data point, whatever its members are; `None` at the end.
    ///
    /// # Errors
    /// If the body is malformed here. What follows cannot be read.
    pub fn next_point(&mut self) -> Result<Option<&DataPoint<'a>>, SyntaxError> {
        let found = self.advance();
        if !matches!(found, Ok(true)) {
            self.next = Next::End;
        }
        Ok(found?.then_some(&self.point))
    }

    fn advance(&mut self) -> Result<bool, SyntaxError> {
        match self.next {
            Next::End => return Ok(false),
            Next::First if self.scanner.take(b']') => return self.end(),
            Next::Other if !self.scanner.take(b',') => {
                self.scanner.must(b']', "a comma or a closing bracket is missing")?;
                return self.end();
            }
            Next::Only | Next::First | Next::Other => {}
        }
        self.read_point()?;
        if self.next == Next::Only {
            self.end()?;
        } else {
            self.next = Next::Other;
        }
        Ok(true)
    }

    /// After the body there may be white space only: a second object would otherwise be lost without a word.
    fn end(&mut self) -> Result<bool, SyntaxError> {
        self.next = Next::End;
        if self.scanner.is_at_end() {
            Ok(false)
        } else {
            Err(self.scanner.fault("something follows the JSON"))
        }
    }

    fn read_point(&mut self) -> Result<(), SyntaxError> {
        let (scanner, point) = (&mut self.scanner, &mut self.point);
        clear(point);
        let first = scanner.peek();
        let start = scanner.at();
        match first {
            b'{' => read_members(scanner, point)?,
            b'n' if scanner.take_word("null") => point.is_null = true,
            _ => return Err(scanner.fault("a data point must be an object")),
        }
        point.text = scanner.since(start);
        Ok(())
    }
}

/// Empties a point and keeps the space of its lists.
fn clear(point: &mut DataPoint<'_>) {
    point.tags.clear();
    point.fields.clear();
    let (tags, fields) = (std::mem::take(&mut point.tags), std::mem::take(&mut point.fields));
    *point = DataPoint { tags, fields, ..DataPoint::default() };
}

fn read_members<'a>(scanner: &mut Scanner<'a>, point: &mut DataPoint<'a>) -> Result<(), SyntaxError> {
    scanner.must(b'{', "an object is missing")?;
    if scanner.take(b'}') {
        return Ok(());
    }
    loop {
        let name = scanner.string()?;
        scanner.must(b':', "a colon is missing")?;
        scanner.peek();
        let start = scanner.at();
        match &*name {
            "metric" => {
                point.metric = name_of(scalar(scanner)?);
                point.metric_text = scanner.since(start);
            }
            "timestamp" => point.timestamp = scalar(scanner)?,
            "value" => point.value = scalar(scanner)?,
            "tags" => {
                read_pairs(scanner, &mut point.tags, |scanner| Ok(name_of(scalar(scanner)?)))?;
                point.tags_text = scanner.since(start);
            }
            "fields" => read_pairs(scanner, &mut point.fields, scalar)?,
            _ => scanner.skip_value(0)?,
        }
        if !scanner.take(b',') {
            return scanner.must(b'}', "a comma or a closing brace is missing");
        }
    }
}

/// Reads an object, or `null` for none. A name that appears again replaces the one before.
fn read_pairs<'a, V>(
    scanner: &mut Scanner<'a>,
    pairs: &mut Vec<(Cow<'a, str>, V)>,
    value: impl Fn(&mut Scanner<'a>) -> Result<V, SyntaxError>,
) -> Result<(), SyntaxError> {
    pairs.clear();
    if scanner.take_word("null") {
        return Ok(());
    }
    scanner.must(b'{', "tags and fields must be objects")?;
    if scanner.take(b'}') {
        return Ok(());
    }
    loop {
        let name = scanner.string()?;
        scanner.must(b':', "a colon is missing")?;
        let value = value(scanner)?;
        match pairs.iter().position(|(known, _)| *known == name) {
            Some(index) => pairs[index].1 = value,
            // The names are compared with each other, so their number is bounded.
            None if pairs.len() >= MEMBERS_MAX => {
                return Err(scanner.fault("a point has too many tags or fields"));
            }
            None => pairs.push((name, value)),
        }
        if !scanner.take(b',') {
            return scanner.must(b'}', "a comma or a closing brace is missing");
        }
    }
}

fn scalar<'a>(scanner: &mut Scanner<'a>) -> Result<Scalar<'a>, SyntaxError> {
    Ok(match scanner.peek() {
        b'"' => Scalar::Text(scanner.string()?),
        b'-' | b'0'..=b'9' => {
            let number = scanner.number()?;
            match number.integer {
                Some(value) => Scalar::Integer { value, text: number.text },
                None => Scalar::Number(number.text),
            }
        }
        b't' if scanner.take_word("true") => Scalar::Bool(true),
        b'f' if scanner.take_word("false") => Scalar::Bool(false),
        b'n' if scanner.take_word("null") => Scalar::Absent,
        _ => return Err(scanner.fault("a string or a number is missing")),
    })
}

/// A name. OpenTSDB takes numbers and booleans for their text.
fn name_of(scalar: Scalar<'_>) -> Cow<'_, str> {
    match scalar {
        Scalar::Text(text) => text,
        Scalar::Integer { text, .. } | Scalar::Number(text) => Cow::Borrowed(text),
        Scalar::Bool(true) => Cow::Borrowed("true"),
        Scalar::Bool(false) => Cow::Borrowed("false"),
        Scalar::Absent => Cow::Borrowed(""),
    }
}
