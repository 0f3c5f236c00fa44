//! Parts of MySQL's packets: numbers, texts, errors.

use crate::sql::link::SqlError;

/// Parses an error packet.
pub(super) fn refusal(packet: &[u8]) -> SqlError {
    let code = u16::from_le_bytes([packet.get(1).copied().unwrap_or(0), packet.get(2).copied().unwrap_or(0)]);
    let text = packet.get(3..).unwrap_or_default();
    // `#` and five characters of SQLSTATE, which are absent before the login.
    let text = if text.first() == Some(&b'#') { text.get(6..).unwrap_or_default() } else { text };
    SqlError::Refused { code: code.to_string(), message: String::from_utf8_lossy(text).into_owned() }
}

/// The error for a packet that violates the protocol.
pub(super) fn unexpected(what: &str) -> SqlError {
    SqlError::OtherProtocol(format!("{what} is not MySQL's protocol; is this a MySQL or MariaDB server?"))
}

/// Parses a length-encoded number. Returns it with its own length.
pub(super) fn number(bytes: &[u8]) -> Option<(u64, usize)> {
    let wide = |count: usize| {
        let mut number = [0; 8];
        number[..count].copy_from_slice(bytes.get(1..=count)?);
        Some((u64::from_le_bytes(number), count + 1))
    };
    match *bytes.first()? {
        0xfc => wide(2),
        0xfd => wide(3),
        0xfe => wide(8),
        0xfb | 0xff => None,
        small => Some((small.into(), 1)),
    }
}

/// Appends a length-encoded text.
pub(super) fn push_text(out: &mut Vec<u8>, text: &[u8]) {
    match text.len() {
        length @ 0..=250 => out.push(length as u8),
        length @ 251..=0xffff => {
            out.push(0xfc);
            out.extend_from_slice(&(length as u16).to_le_bytes());
        }
        length => {
            out.push(0xfd);
            out.extend_from_slice(&(length as u32).to_le_bytes()[..3]);
        }
    }
    out.extend_from_slice(text);
}

/// The values of a row of the text protocol.
pub(super) fn text_row(mut row: &[u8]) -> Vec<Option<String>> {
    let mut values = Vec::new();
    while let Some(first) = row.first() {
        if *first == 0xfb {
            values.push(None);
            row = &row[1..];
            continue;
        }
        let Some((length, head)) = number(row) else { break };
        let end = (head + length as usize).min(row.len());
        values.push(Some(String::from_utf8_lossy(&row[head..end]).into_owned()));
        row = &row[end..];
    }
    values
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lengths_are_read_as_they_are_written() {
        for length in [0_usize, 1, 250, 251, 252, 65_535, 65_536, 200_000] {
            let mut out = Vec::new();
            push_text(&mut out, &vec![b'x'; length]);
            let (read, head) = number(&out).unwrap();
            assert_eq!((read as usize, out.len()), (length, head + length));
        }
        assert_eq!(number(&[0xfe, 1, 0, 0, 0, 0, 0, 0, 1]), Some(((1 << 56) + 1, 9)));
        assert_eq!(number(&[0xfc, 1]), None);
        assert_eq!(number(&[0xfb]), None);
    }

    #[test]
    fn rows_of_text_have_nulls() {
        assert_eq!(text_row(b"\x02ab\xfb\x00"), [Some("ab".to_owned()), None, Some(String::new())]);
        assert_eq!(text_row(b"\x05ab"), [Some("ab".to_owned())], "a row that is cut short does not panic");
    }

    #[test]
    fn refusals_have_number_and_words() {
        let error = refusal(b"\xff\x15\x04#28000Access denied");
        assert_eq!(error.to_string(), "error 1045: Access denied");
        assert_eq!(refusal(b"\xff").code(), Some("0"));
    }
}
