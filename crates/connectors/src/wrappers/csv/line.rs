//! The cells of one line.

use std::borrow::Cow;

/// A line without its end, and the first one without a byte order mark.
pub(super) fn trimmed(text: &[u8], is_first: bool) -> &[u8] {
    let text = text.strip_suffix(b"\n").unwrap_or(text);
    let text = text.strip_suffix(b"\r").unwrap_or(text);
    match text.strip_prefix(b"\xef\xbb\xbf").filter(|_| is_first) {
        Some(text) => text,
        None => text,
    }
}

/// Splits a line. A cell in quotes may have separators, and two quotes for one; quotes end on their line, so that a line with a fault
/// does not spoil another one.
///
/// # Errors
/// A quote has no end, or text follows it.
pub(in crate::wrappers) fn split(
    line: &str,
    separator: char,
    quote: char,
) -> Result<Vec<Cow<'_, str>>, String> {
    let mut cells = Vec::new();
    let mut left = Some(line);
    while let Some(text) = left {
        let (cell, rest) = match text.trim_start_matches(' ').strip_prefix(quote) {
            Some(quoted) => quoted_cell(quoted, separator, quote, cells.len() + 1)?,
            None => match text.split_once(separator) {
                Some((cell, rest)) => (Cow::Borrowed(cell), Some(rest)),
                None => (Cow::Borrowed(text), None),
            },
        };
        cells.push(cell);
        left = rest;
    }
    Ok(cells)
}

fn quoted_cell(
    text: &str,
    separator: char,
    quote: char,
    number: usize,
) -> Result<(Cow<'_, str>, Option<&str>), String> {
    let mut cell = Cow::Borrowed("");
    let mut left = text;
    loop {
        let Some((before, after)) = left.split_once(quote) else {
            return Err(format!("the quote of column {number} has no end"));
        };
        if cell.is_empty() {
            cell = Cow::Borrowed(before);
        } else {
            cell.to_mut().push_str(before);
        }
        if let Some(after) = after.strip_prefix(quote) {
            cell.to_mut().push(quote);
            left = after;
            continue;
        }
        let rest = after.trim_start_matches(' ');
        return match rest.strip_prefix(separator) {
            Some(rest) => Ok((cell, Some(rest))),
            None if rest.is_empty() => Ok((cell, None)),
            None => Err(format!("text follows the quote of column {number}")),
        };
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn cells(line: &str) -> Result<Vec<String>, String> {
        Ok(split(line, ',', '"')?.into_iter().map(Cow::into_owned).collect())
    }

    #[test]
    fn cells_are_split_at_separators_outside_of_quotes() {
        assert_eq!(cells("1,,x y").unwrap(), ["1", "", "x y"]);
        assert_eq!(cells("\"a,b\", \"c\"\"d\" ,e").unwrap(), ["a,b", "c\"d", "e"]);
        assert_eq!(cells("\"\",\"\"\"\"").unwrap(), ["", "\""]);
        assert_eq!(cells("a,").unwrap(), ["a", ""]);
        assert_eq!(split("1\tü;2", '\t', '\'').unwrap(), ["1", "ü;2"]);
    }

    #[test]
    fn a_quote_without_end_is_named() {
        assert_eq!(cells("1,\"a").unwrap_err(), "the quote of column 2 has no end");
        assert_eq!(cells("\"a\"b,1").unwrap_err(), "text follows the quote of column 1");
    }

    #[test]
    fn the_end_of_a_line_and_a_mark_at_the_beginning_are_no_text() {
        assert_eq!(trimmed(b"a\r\n", false), b"a");
        assert_eq!(trimmed(b"\xef\xbb\xbfa\n", true), b"a");
        assert_eq!(trimmed(b"\n", true), b"");
    }
}
