//! Measurement and tags of a line.

use std::borrow::Cow;

/// Characters that a backslash escapes in measurements and tags.
pub(super) const NAME_SPECIAL: &[u8] = b", =";
/// Characters that a backslash escapes in keys of fields.
pub(super) const KEY_SPECIAL: &[u8] = b", =\"";

/// Key and value of a tag.
pub type Tag<'a> = (Cow<'a, str>, Cow<'a, str>);

/// Measurement and tags as they were sent.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Series<'a> {
    pub(super) raw: &'a str,
    pub(super) measurement_end: usize,
    pub(super) escaped: bool,
}

/// A tag that appears twice in a line.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("duplicate tags")]
pub struct DuplicateTag;

impl<'a> Series<'a> {
    /// The bytes of the line up to its fields. Equal bytes are the same series; one series may have several forms (other orders
    /// of its tags, needless escapes).
    pub fn raw(&self) -> &'a str {
        self.raw
    }

    /// The measurement.
    pub fn measurement(&self) -> Cow<'a, str> {
        self.name(&self.raw[..self.measurement_end])
    }

    /// Keys and values of the tags, in the order of the line.
    pub fn tags(&self) -> impl Iterator<Item = Tag<'a>> + use<'a> {
        let (series, mut rest) = (*self, &self.raw[self.measurement_end..]);
        std::iter::from_fn(move || {
            let tag = rest.get(1..).filter(|tag| !tag.is_empty())?;
            let key = &tag[..unescaped_at(tag, b'=')];
            let value = &tag[key.len() + 1..];
            let value = &value[..unescaped_at(value, b',')];
            rest = &tag[key.len() + 1 + value.len()..];
            Some((series.name(key), series.name(value)))
        })
    }

    /// Keys and values of the tags, sorted by key.
    ///
    /// # Errors
    /// A key appears twice.
    pub fn sorted_tags(&self) -> Result<Vec<Tag<'a>>, DuplicateTag> {
        let mut tags: Vec<_> = self.tags().collect();
        tags.sort_unstable_by(|one, other| one.0.cmp(&other.0));
        if tags.windows(2).any(|pair| pair[0].0 == pair[1].0) { Err(DuplicateTag) } else { Ok(tags) }
    }

    fn name(&self, raw: &'a str) -> Cow<'a, str> {
        if self.escaped { Cow::Owned(unescaped(raw, NAME_SPECIAL)) } else { Cow::Borrowed(raw) }
    }
}

/// The offset of the first `end` that is not escaped; the length without one.
fn unescaped_at(text: &str, end: u8) -> usize {
    let bytes = text.as_bytes();
    let mut at = 0;
    while at < bytes.len() && bytes[at] != end {
        at += 1 + usize::from(is_escape(bytes, at, NAME_SPECIAL));
    }
    at.min(bytes.len())
}

fn is_escape(bytes: &[u8], at: usize, special: &[u8]) -> bool {
    bytes[at] == b'\\' && bytes.get(at + 1).is_some_and(|next| special.contains(next))
}

/// Removes the backslashes before `special` characters.
pub(super) fn unescaped(text: &str, special: &[u8]) -> String {
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
