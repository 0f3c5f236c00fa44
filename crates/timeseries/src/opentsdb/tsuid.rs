//! Texts that name one series: its metric and its tags in hexadecimal.
//!
//! OpenTSDB numbers names and a TSUID is three such numbers or more. Here names have no numbers, so a TSUID spells them: for the
//! metric and then for each tag name and value, in the order of the names, two bytes of length (big-endian) and the UTF-8 text. It is
//! the same on every server and needs no state.

use std::fmt::Write;

use super::{QueryError, Tags};

/// The text that names a series of a metric.
pub fn tsuid(metric: &str, tags: &[(String, String)]) -> String {
    let mut text = String::new();
    let names = tags.iter().flat_map(|(name, value)| [name.as_str(), value.as_str()]);
    for part in std::iter::once(metric).chain(names) {
        let _ = write!(text, "{:04X}", part.len() & 0xFFFF);
        for byte in part.bytes() {
            let _ = write!(text, "{byte:02X}");
        }
    }
    text
}

/// The metric and the tags of a series that a text names.
///
/// # Errors
/// [`QueryError::Invalid`]: the text is none that [`tsuid`] gives.
pub fn tsuid_parts(text: &str) -> Result<(String, Tags), QueryError> {
    let wrong = || QueryError::Invalid(format!("'{}' is not a TSUID of this server", shortened(text)));
    let mut parts = parts(text).ok_or_else(wrong)?.into_iter();
    let metric = parts.next().ok_or_else(wrong)?;
    let mut tags = Tags::new();
    while let Some(name) = parts.next() {
        tags.push((name, parts.next().ok_or_else(wrong)?));
    }
    Ok((metric, tags))
}

fn parts(text: &str) -> Option<Vec<String>> {
    let byte = |pair: &[u8]| u8::from_str_radix(std::str::from_utf8(pair).ok()?, 16).ok();
    let pairs = text.as_bytes().chunks(2).map(|pair| byte(pair).filter(|_| pair.len() == 2));
    let bytes: Vec<u8> = pairs.collect::<Option<_>>()?;
    let (mut rest, mut parts) = (bytes.as_slice(), Vec::new());
    while let Some((length, after)) = rest.split_first_chunk::<2>() {
        let (part, after) = after.split_at_checked(usize::from(u16::from_be_bytes(*length)))?;
        parts.push(String::from_utf8(part.to_vec()).ok()?);
        rest = after;
    }
    rest.is_empty().then_some(parts)
}

fn shortened(text: &str) -> String {
    text.chars().take(64).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_tsuid_names_its_series() {
        let tags = vec![("host".to_owned(), "wéb".to_owned()), ("zone".to_owned(), String::new())];
        let text = tsuid("cpu", &tags);
        assert!(text.starts_with("0003637075"));
        assert_eq!(tsuid_parts(&text).unwrap(), ("cpu".to_owned(), tags));
        for wrong in ["", "0", "000", "0001", "000363707", "+0", "zz", "000363707500046162"] {
            assert!(tsuid_parts(wrong).is_err(), "{wrong}");
        }
    }
}
