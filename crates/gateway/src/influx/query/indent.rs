//! Indents JSON that comes in pieces, with four blanks for each level.

/// Where in a document the last piece ended.
#[derive(Debug, Default)]
pub(super) struct Indenter {
    depth: usize,
    in_text: bool,
    is_escaped: bool,
    /// An object or a list has begun, and has no member so far.
    just_opened: bool,
}

impl Indenter {
    /// The next piece, indented.
    pub(super) fn indent(&mut self, piece: &[u8]) -> Vec<u8> {
        let mut out = Vec::with_capacity(piece.len() * 2);
        for byte in piece {
            self.byte(*byte, &mut out);
        }
        out
    }

    fn byte(&mut self, byte: u8, out: &mut Vec<u8>) {
        if self.in_text {
            out.push(byte);
            self.in_text = self.is_escaped || byte != b'"';
            self.is_escaped = !self.is_escaped && byte == b'\\';
            return;
        }
        let closes = matches!(byte, b'}' | b']');
        match (std::mem::take(&mut self.just_opened), closes) {
            (true, false) => {
                self.depth += 1;
                self.line(out);
            }
            (false, true) => {
                self.depth = self.depth.saturating_sub(1);
                self.line(out);
            }
            _ => {}
        }
        out.push(byte);
        match byte {
            b'"' => self.in_text = true,
            b'{' | b'[' => self.just_opened = true,
            b',' => self.line(out),
            b':' => out.push(b' '),
            _ => {}
        }
    }

    fn line(&self, out: &mut Vec<u8>) {
        out.push(b'\n');
        out.extend(std::iter::repeat_n(b' ', 4 * self.depth));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn pieces_are_indented_as_one_text() {
        let value = serde_json::json!({"a": [1, [], {}, "x:,{\"\\"], "b": {"c": null}});
        let expected = "{\n    \"a\": [\n        1,\n        [],\n        {},\n        \"x:,{\\\"\\\\\"\n    ],\n    \"b\": {\n        \"c\": null\n    }\n}\n";
        let text = value.to_string() + "\n";
        for length in 1..text.len() {
            let mut indenter = Indenter::default();
            let out: Vec<u8> =
                text.as_bytes().chunks(length).flat_map(|piece| indenter.indent(piece)).collect();
            assert_eq!(String::from_utf8(out).unwrap(), expected, "{length}");
        }
    }
}
