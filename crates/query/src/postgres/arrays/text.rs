//! The text form of arrays, as PostgreSQL reads and writes it (its manual, section 8.15.2): `{a,"b,c",NULL}`.

use std::sync::Arc;

use arrow_array::cast::AsArray;
use arrow_array::{Array, ArrayRef, BooleanArray, ListArray, StringArray};
use arrow_buffer::OffsetBuffer;
use arrow_schema::{DataType, Field, FieldRef};
use datafusion::arrow::compute::{CastOptions, cast_with_options};
use datafusion::common::{Result, ScalarValue};

use super::super::boolean_text::truth;
use crate::QueryError;
use crate::semantics::text;

/// Returns the elements of an array in text form. An array within an array is refused.
pub(super) fn elements(text: &str) -> Result<Vec<Option<String>>> {
    let wrong = |detail: &str| malformed(text, detail);
    let body = text.trim();
    if body.starts_with('[') {
        return Err(unsupported("array bounds such as [2:4]={...}"));
    }
    let body = body.strip_prefix('{').ok_or_else(|| wrong("it begins with {"))?;
    let mut reader = Reader { rest: body };
    let mut elements = Vec::new();
    reader.skip_blanks();
    if reader.take('}') {
        return reader.end().map(|()| elements).ok_or_else(|| wrong("there is text after the last }"));
    }
    loop {
        reader.skip_blanks();
        if reader.rest.starts_with('{') {
            return Err(unsupported("arrays of more than one dimension"));
        }
        elements.push(reader.element().ok_or_else(|| wrong("an element is empty or does not end"))?);
        if reader.take('}') {
            return reader.end().map(|()| elements).ok_or_else(|| wrong("there is text after the last }"));
        }
        if !reader.take(',') {
            return Err(wrong("a comma or } is missing"));
        }
    }
}

fn malformed(text: &str, detail: &str) -> datafusion::common::DataFusionError {
    QueryError::Value { message: format!("malformed array literal: {text:?}: {detail}"), sql_state: "22P02" }
        .into()
}

fn unsupported(what: &str) -> datafusion::common::DataFusionError {
    QueryError::Unsupported { message: format!("{what}; arrays here have one dimension and begin at 1") }
        .into()
}

struct Reader<'a> {
    rest: &'a str,
}

impl<'a> Reader<'a> {
    fn skip_blanks(&mut self) {
        self.rest = self.rest.trim_start_matches(|c: char| c.is_ascii_whitespace() || c == '\x0b');
    }

    fn take(&mut self, wanted: char) -> bool {
        self.skip_blanks();
        let rest = self.rest.strip_prefix(wanted);
        self.rest = rest.unwrap_or(self.rest);
        rest.is_some()
    }

    /// Whether only blanks are left.
    fn end(&mut self) -> Option<()> {
        self.skip_blanks();
        self.rest.is_empty().then_some(())
    }

    /// Reads an element up to its comma or brace; `Some(None)` is NULL.
    fn element(&mut self) -> Option<Option<String>> {
        if let Some(rest) = self.rest.strip_prefix('"') {
            return self.quoted(rest).map(Some);
        }
        // Blanks at the end are dropped, unless a backslash precedes them.
        let (mut text, mut length, mut is_escaped) = (String::new(), 0, false);
        let mut characters = self.rest.char_indices();
        loop {
            let (offset, character) = characters.next()?;
            match character {
                ',' | '}' => {
                    self.rest = &self.rest[offset..];
                    break;
                }
                '"' | '{' => return None,
                '\\' => {
                    text.push(characters.next()?.1);
                    (length, is_escaped) = (text.len(), true);
                }
                blank if blank.is_ascii_whitespace() => text.push(blank),
                other => {
                    text.push(other);
                    length = text.len();
                }
            }
        }
        text.truncate(length);
        if text.is_empty() {
            return None;
        }
        Some(if !is_escaped && text.eq_ignore_ascii_case("null") { None } else { Some(text) })
    }

    fn quoted(&mut self, text: &'a str) -> Option<String> {
        let mut value = String::new();
        let mut characters = text.char_indices();
        loop {
            let (offset, character) = characters.next()?;
            match character {
                '"' => {
                    self.rest = &text[offset + 1..];
                    return Some(value);
                }
                '\\' => value.push(characters.next()?.1),
                other => value.push(other),
            }
        }
    }
}

/// Converts texts to values of this type.
fn typed(texts: Vec<Option<String>>, data_type: &DataType) -> Result<ArrayRef> {
    if *data_type == DataType::Boolean {
        let said = |text: Option<String>| match text {
            None => Ok(None),
            Some(text) => truth(&text).map(Some).ok_or_else(|| QueryError::Value {
                sql_state: "22P02",
                message: format!("invalid input syntax for type boolean: {text:?}; write true or false"),
            }),
        };
        let values = texts.into_iter().map(said).collect::<Result<Vec<_>, _>>()?;
        return Ok(Arc::new(BooleanArray::from(values)));
    }
    let texts = StringArray::from(texts);
    let options = CastOptions { safe: false, ..CastOptions::default() };
    Ok(cast_with_options(&texts, data_type, &options)?)
}

/// Returns the array that a text stands for.
pub(crate) fn read(text: &str, element: &FieldRef) -> Result<ScalarValue> {
    let values = typed(elements(text)?, element.data_type())?;
    let offsets = OffsetBuffer::from_lengths([values.len()]);
    Ok(ScalarValue::List(Arc::new(ListArray::try_new(Arc::clone(element), offsets, values, None)?)))
}

/// Returns the arrays that texts stand for.
pub(super) fn read_all(texts: &ArrayRef, element: &FieldRef) -> Result<ArrayRef> {
    let texts = cast_with_options(texts, &DataType::Utf8, &CastOptions::default())?;
    let read_row = |text: Option<&str>| match text {
        Some(text) => read(text, element),
        None => ScalarValue::try_new_null(&DataType::List(Arc::clone(element))),
    };
    let lists = texts.as_string::<i32>().iter().map(read_row).collect::<Result<Vec<_>>>()?;
    if lists.is_empty() {
        return Ok(arrow_array::new_empty_array(&DataType::List(Arc::clone(element))));
    }
    ScalarValue::iter_to_array(lists)
}

/// Writes arrays as text. Elements are written as a cast to text writes them.
pub(super) fn write_all(lists: &ListArray) -> Result<ArrayRef> {
    let texts = element_texts(lists.values())?;
    let texts = texts.as_string::<i32>();
    let write_row = |row: usize| {
        if lists.is_null(row) {
            return None;
        }
        let range = lists.value_offsets()[row] as usize..lists.value_offsets()[row + 1] as usize;
        let mut text = String::from("{");
        for (number, index) in range.enumerate() {
            if number > 0 {
                text.push(',');
            }
            match texts.is_null(index) {
                true => text.push_str("NULL"),
                false => write_element(texts.value(index), &mut text),
            }
        }
        text.push('}');
        Some(text)
    };
    Ok(Arc::new((0..lists.len()).map(write_row).collect::<StringArray>()))
}

fn element_texts(values: &ArrayRef) -> Result<ArrayRef> {
    let options = CastOptions { safe: false, ..CastOptions::default() };
    match values.data_type() {
        DataType::Boolean => {
            let letter = |value: Option<bool>| value.map(|value| if value { "t" } else { "f" });
            Ok(Arc::new(values.as_boolean().iter().map(letter).collect::<StringArray>()))
        }
        DataType::List(_) => Err(unsupported("arrays of more than one dimension")),
        data_type if text::differs(data_type) => {
            Ok(cast_with_options(&text::texts(values)?, &DataType::Utf8, &options)?)
        }
        _ => Ok(cast_with_options(values, &DataType::Utf8, &options)?),
    }
}

/// Quotes an element that would otherwise be read differently.
fn write_element(text: &str, out: &mut String) {
    let is_special = |c: char| matches!(c, '{' | '}' | ',' | '"' | '\\' | '\x0b') || c.is_ascii_whitespace();
    if !text.is_empty() && !text.eq_ignore_ascii_case("null") && !text.contains(is_special) {
        out.push_str(text);
        return;
    }
    out.push('"');
    for character in text.chars() {
        if matches!(character, '"' | '\\') {
            out.push('\\');
        }
        out.push(character);
    }
    out.push('"');
}

/// Returns the field of the elements of arrays of this type.
pub(crate) fn element_field(data_type: DataType) -> FieldRef {
    Arc::new(Field::new_list_field(data_type, true))
}

#[cfg(test)]
mod tests {
    use arrow_schema::TimeUnit;

    use super::*;

    fn read_texts(text: &str) -> Result<Vec<Option<String>>, String> {
        elements(text).map_err(|error| QueryError::from(error).to_string())
    }

    #[test]
    fn arrays_are_parsed_as_in_postgresql() {
        for (text, expected) in [
            ("{}", vec![]),
            (" { } ", vec![]),
            ("{a,b}", vec![Some("a"), Some("b")]),
            ("{ a b , c }", vec![Some("a b"), Some("c")]),
            (r#"{"a,b","c\"d\\",""}"#, vec![Some("a,b"), Some("c\"d\\"), Some("")]),
            (r#"{NULL,null,"NULL",\NULL}"#, vec![None, None, Some("NULL"), Some("NULL")]),
            (r"{a\,b,\ c\ }", vec![Some("a,b"), Some(" c ")]),
            ("{ä,😀}", vec![Some("ä"), Some("😀")]),
        ] {
            let expected: Vec<_> = expected.into_iter().map(|text| text.map(str::to_owned)).collect();
            assert_eq!(read_texts(text), Ok(expected), "{text}");
        }
    }

    #[test]
    fn invalid_arrays_are_refused() {
        for text in
            ["", "a", "{", "{a", "{a,}", "{,a}", "{a}b", "{\"a", "{a\"b\"}", "{\"a\"b}", "{a b{c}}", "{\\"]
        {
            assert!(read_texts(text).unwrap_err().contains("malformed array literal"), "{text}");
        }
        for text in ["{{1},{2}}", "[2:3]={1,2}"] {
            assert!(read_texts(text).unwrap_err().contains("one dimension"), "{text}");
        }
    }

    #[test]
    fn elements_have_types_and_are_written_back() {
        let times = DataType::Timestamp(TimeUnit::Microsecond, Some("UTC".into()));
        for (text, data_type, written) in [
            ("{1, -2 ,NULL}", DataType::Int64, "{1,-2,NULL}"),
            ("{t,off,NULL}", DataType::Boolean, "{t,f,NULL}"),
            (r#"{"a b",c,""}"#, DataType::Utf8, r#"{"a b",c,""}"#),
        ] {
            let ScalarValue::List(list) = read(text, &element_field(data_type)).unwrap() else {
                panic!("{text}")
            };
            let texts = write_all(&list).unwrap();
            assert_eq!(texts.as_string::<i32>().value(0), written);
        }
        read("{2026-01-15 08:00:00+00}", &element_field(times)).unwrap();
        for (text, data_type) in [("{x}", DataType::Int64), ("{maybe}", DataType::Boolean)] {
            assert!(read(text, &element_field(data_type)).is_err(), "{text}");
        }
    }
}
