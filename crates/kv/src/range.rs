//! Ranges of keys.

use std::ops::{Bound, Range};

use bytes::Bytes;

use crate::Key;

/// A half-open range of keys.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct KeyRange {
    from: Key,
    to: Option<Key>,
}

/// The order of a scan.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Direction {
    /// From the smallest key on.
    Ascending,
    /// From the largest key on.
    Descending,
}

impl KeyRange {
    /// All keys.
    pub const fn all() -> Self {
        Self { from: Bytes::new(), to: None }
    }

    /// The keys from `from` on, before `to`. The range is empty if `to` is not after `from`.
    pub fn new(from: impl Into<Key>, to: impl Into<Key>) -> Self {
        Self { from: from.into(), to: Some(to.into()) }
    }

    /// The keys from `from` on.
    pub fn starting_at(from: impl Into<Key>) -> Self {
        Self { from: from.into(), to: None }
    }

    /// The keys that begin with these bytes.
    pub fn prefix(prefix: impl Into<Key>) -> Self {
        let from = prefix.into();
        // The first key after all of them: the prefix without its trailing 0xff, with the last byte increased.
        let kept = from.iter().rposition(|byte| *byte != u8::MAX);
        let to = kept.map(|last| {
            let mut to = from[..=last].to_vec();
            to[last] += 1;
            to.into()
        });
        Self { from, to }
    }

    /// This range without the keys up to and including `key`: the rest after an ascending page that ended with `key`.
    #[must_use]
    pub fn after(self, key: &[u8]) -> Self {
        let next = [key, &[0]].concat();
        let from = if *next > *self.from { next.into() } else { self.from };
        Self { from, to: self.to }
    }

    /// The first key that the range may have.
    pub fn from(&self) -> &Key {
        &self.from
    }

    /// The first key after the range; `None` if it has no end.
    pub fn to(&self) -> Option<&Key> {
        self.to.as_ref()
    }

    /// Whether the range has the key.
    pub fn contains(&self, key: &[u8]) -> bool {
        *self.from <= *key && self.to.as_ref().is_none_or(|to| *key < **to)
    }

    /// Whether no key can be in the range.
    pub fn is_empty(&self) -> bool {
        self.to.as_ref().is_some_and(|to| *to <= self.from)
    }

    /// The range as bounds. Maps panic at bounds of an empty range ([`is_empty`](Self::is_empty)).
    pub fn bounds(&self) -> (Bound<&[u8]>, Bound<&[u8]>) {
        let to = self.to.as_deref().map_or(Bound::Unbounded, Bound::Excluded);
        (Bound::Included(&*self.from), to)
    }
}

impl<T: Into<Key>> From<Range<T>> for KeyRange {
    fn from(range: Range<T>) -> Self {
        Self::new(range.start, range.end)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_prefix_ends_before_the_next_prefix() {
        let range = KeyRange::prefix("ab");
        assert!(range.contains(b"ab") && range.contains(b"ab\xff\xff") && !range.contains(b"ac"));
        assert_eq!(KeyRange::prefix(vec![1, 0xff]).to().unwrap(), &Bytes::from(vec![2]));
        assert_eq!(KeyRange::prefix(vec![0xff, 0xff]).to(), None);
        assert_eq!(KeyRange::prefix(""), KeyRange::all());
    }

    #[test]
    fn the_rest_after_a_key_has_no_key_up_to_it() {
        let rest = KeyRange::prefix("a").after(b"ab");
        assert!(!rest.contains(b"ab") && rest.contains(b"ab\0") && !rest.contains(b"b"));
        assert_eq!(KeyRange::starting_at("m").after(b"a"), KeyRange::starting_at("m"));
        assert!(KeyRange::new("a", "b").after(b"b").is_empty());
    }
}
