//! Finds the end of a whole reply and classifies it, without building it.

use super::limits::DEPTH_MAX;
use super::token::{DecodeError, Token, token};

/// A complete reply.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Reply<'a> {
    /// Its value, or the header of its aggregate.
    pub head: Token<'a>,
    /// Nulls among the elements of its outermost aggregate.
    pub nulls: usize,
    /// The first error inside its aggregate, as in the answer to EXEC.
    pub inner_error: Option<&'a [u8]>,
    /// Its length in bytes, including pushes and attributes before it.
    pub consumed: usize,
}

/// The first reply in `bytes`; `None` when more bytes are needed. Out-of-band pushes and attributes before it are skipped.
pub fn reply(bytes: &[u8]) -> Result<Option<Reply<'_>>, DecodeError> {
    let mut offset = 0;
    loop {
        let Some((head, length)) = token(bytes, offset)? else { return Ok(None) };
        let mut found = Reply { head, nulls: 0, inner_error: None, consumed: offset + length };
        let elements = elements(head);
        if elements > 0 && !skip(bytes, &mut found, elements)? {
            return Ok(None);
        }
        if !matches!(head, Token::Push(_) | Token::Attribute(_)) {
            return Ok(Some(found));
        }
        offset = found.consumed;
    }
}

/// Elements that follow a header; the pairs of a map are two each.
fn elements(token: Token<'_>) -> usize {
    match token {
        Token::Array(count) | Token::Set(count) | Token::Push(count) => count,
        Token::Map(count) | Token::Attribute(count) => count * 2,
        _ => 0,
    }
}

/// Skips the elements of the outermost aggregate. `Ok(false)` when more bytes are needed.
fn skip<'a>(bytes: &'a [u8], found: &mut Reply<'a>, elements_count: usize) -> Result<bool, DecodeError> {
    // Elements left to skip, by depth.
    let mut left = [0_usize; DEPTH_MAX];
    let mut depth = 0;
    left[0] = elements_count;
    loop {
        while left[depth] == 0 {
            if depth == 0 {
                return Ok(true);
            }
            depth -= 1;
        }
        let offset = found.consumed;
        let Some((inner, length)) = token(bytes, offset)? else { return Ok(false) };
        found.consumed += length;
        // The content of an attribute is not an element.
        left[depth] -= usize::from(!matches!(inner, Token::Attribute(_)));
        match inner {
            Token::Null if depth == 0 => found.nulls += 1,
            Token::Error(text) => found.inner_error = found.inner_error.or(Some(text)),
            _ => {}
        }
        let below = elements(inner);
        if below > 0 {
            depth += 1;
            if depth == DEPTH_MAX {
                let what = "the nesting of a reply";
                return Err(DecodeError::TooLarge { what, offset, value: depth, limit: DEPTH_MAX - 1 });
            }
            left[depth] = below;
        }
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn the_end_of_a_reply_is_found() {
        let cases: [(&[u8], usize, usize); 6] = [
            (b"+OK\r\n", 0, 0),
            (b"*0\r\n", 0, 0),
            (b"*3\r\n$1\r\na\r\n$-1\r\n:5\r\n", 1, 0),
            (b"*2\r\n*2\r\n:1\r\n_\r\n%1\r\n+k\r\n*0\r\n", 0, 0),
            (b">2\r\n+message\r\n+x\r\n|1\r\n+ttl\r\n:3\r\n$2\r\nhi\r\n", 0, 27),
            (b"*2\r\n|1\r\n+ttl\r\n:3\r\n:1\r\n:2\r\n", 0, 0),
        ];
        for (bytes, nulls, _) in cases {
            let mut longer = bytes.to_vec();
            longer.extend_from_slice(b"+NEXT\r\n");
            let found = reply(&longer).unwrap().unwrap();
            assert_eq!((found.consumed, found.nulls), (bytes.len(), nulls), "{bytes:?}");
            for cut in 0..bytes.len() {
                assert_eq!(reply(&bytes[..cut]), Ok(None), "{cut} of {bytes:?}");
            }
        }
        let pushed = reply(cases[4].0).unwrap().unwrap();
        assert_eq!(pushed.head, Token::Bulk(b"hi"));
    }

    #[test]
    fn an_error_inside_is_found_and_nesting_is_bounded() {
        let found = reply(b"*2\r\n+OK\r\n-ERR inside\r\n").unwrap().unwrap();
        assert_eq!(found.inner_error, Some(&b"ERR inside"[..]));
        let deep = "*1\r\n".repeat(DEPTH_MAX + 1);
        assert!(matches!(reply(deep.as_bytes()), Err(DecodeError::TooLarge { .. })));
    }

    proptest! {
        #[test]
        fn any_bytes_are_read_without_a_panic(bytes in proptest::collection::vec(any::<u8>(), 0..200)) {
            let _ = reply(&bytes);
        }

        #[test]
        fn bulk_arrays_are_read_back(texts in proptest::collection::vec(proptest::option::of(proptest::collection::vec(any::<u8>(), 0..20)), 0..20)) {
            let mut out = Vec::new();
            super::super::write::array(&mut out, texts.len());
            for text in &texts {
                match text {
                    Some(text) => super::super::write::bulk(&mut out, text),
                    None => out.extend_from_slice(b"$-1\r\n"),
                }
            }
            let found = reply(&out).unwrap().unwrap();
            prop_assert_eq!(found.head, Token::Array(texts.len()));
            prop_assert_eq!(found.nulls, texts.iter().filter(|text| text.is_none()).count());
            prop_assert_eq!(found.consumed, out.len());
        }
    }
}
