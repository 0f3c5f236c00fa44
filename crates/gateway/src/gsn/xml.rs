//! Text in XML, as Apache's `StringEscapeUtils` of GSN writes it.

/// Appends a text. What is not ASCII becomes a number, so the encoding of the document does not matter. Characters that XML does not
/// have become blanks.
pub(super) fn escape(text: &str, out: &mut Vec<u8>) {
    for letter in text.chars() {
        match letter {
            '&' => out.extend_from_slice(b"&amp;"),
            '<' => out.extend_from_slice(b"&lt;"),
            '>' => out.extend_from_slice(b"&gt;"),
            '"' => out.extend_from_slice(b"&quot;"),
            '\'' => out.extend_from_slice(b"&apos;"),
            '\t' | '\n' | '\r' | ' '..='~' => out.push(letter as u8),
            '\0'..='\u{1f}' | '\u{fffe}' | '\u{ffff}' => out.push(b' '),
            other => out.extend_from_slice(format!("&#{};", u32::from(other)).as_bytes()),
        }
    }
}

pub(super) fn escaped(text: &str) -> String {
    let mut out = Vec::new();
    escape(text, &mut out);
    String::from_utf8(out).unwrap_or_default()
}

/// A text for a comment, which ends at two hyphens.
pub(super) fn comment(text: &str) -> String {
    escaped(text).replace("--", "- -")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn texts_are_escaped() {
        assert_eq!(escaped("a<b> & \"c\" 'd'"), "a&lt;b&gt; &amp; &quot;c&quot; &apos;d&apos;");
        assert_eq!(escaped("Zürich \u{1f600}\u{1}\n"), "Z&#252;rich &#128512; \n");
        assert_eq!(comment("a--b"), "a- -b");
    }
}
