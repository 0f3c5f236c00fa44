//! The children of a node of the index by their text.

use std::collections::HashMap;

/// Up to this number children are a list. A list of some texts takes a third of the memory of a map, and is as fast.
const LIST_MAX: usize = 8;

/// Values by text. Most nodes have one child, a few have a hundred thousand.
#[derive(Debug)]
pub(super) enum Children<T> {
    List(Vec<(Box<str>, T)>),
    Map(HashMap<Box<str>, T>),
}

impl<T> Default for Children<T> {
    fn default() -> Self {
        Self::List(Vec::new())
    }
}

impl<T> Children<T> {
    pub(super) fn is_empty(&self) -> bool {
        match self {
            Self::List(list) => list.is_empty(),
            Self::Map(map) => map.is_empty(),
        }
    }

    pub(super) fn get(&self, text: &str) -> Option<&T> {
        match self {
            Self::List(list) => list.iter().find(|(known, _)| **known == *text).map(|(_, value)| value),
            Self::Map(map) => map.get(text),
        }
    }

    pub(super) fn get_mut(&mut self, text: &str) -> Option<&mut T> {
        match self {
            Self::List(list) => list.iter_mut().find(|(known, _)| **known == *text).map(|(_, value)| value),
            Self::Map(map) => map.get_mut(text),
        }
    }

    pub(super) fn values(&self) -> impl Iterator<Item = &T> {
        let (list, map) = match self {
            Self::List(list) => (Some(list), None),
            Self::Map(map) => (None, Some(map)),
        };
        let of_list = list.into_iter().flatten().map(|(_, value)| value);
        of_list.chain(map.into_iter().flat_map(HashMap::values))
    }

    pub(super) fn remove(&mut self, text: &str) {
        match self {
            Self::List(list) => list.retain(|(known, _)| **known != *text),
            Self::Map(map) => {
                map.remove(text);
            }
        }
    }
}

impl<T: Default> Children<T> {
    /// The value of a text. Adds an empty one if there is none.
    pub(super) fn get_or_default(&mut self, text: &str) -> &mut T {
        if let Self::List(list) = self
            && list.len() == LIST_MAX
            && list.iter().all(|(known, _)| **known != *text)
        {
            *self = Self::Map(std::mem::take(list).into_iter().collect());
        }
        match self {
            Self::Map(map) => map.entry(text.into()).or_default(),
            Self::List(list) => {
                let at = list.iter().position(|(known, _)| **known == *text).unwrap_or_else(|| {
                    list.reserve_exact(1);
                    list.push((text.into(), T::default()));
                    list.len() - 1
                });
                &mut list[at].1
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_list_and_a_map_answer_alike() {
        let mut children = Children::<usize>::default();
        let texts: Vec<String> = (0..3 * LIST_MAX).map(|n| n.to_string()).collect();
        for (n, text) in texts.iter().enumerate() {
            assert_eq!(*children.get_or_default(text), 0);
            *children.get_mut(text).unwrap() = n + 1;
            assert_eq!(*children.get_or_default(text), n + 1);
            assert_eq!(matches!(children, Children::List(_)), n < LIST_MAX);
            let found = texts.iter().filter(|text| children.get(text).is_some());
            assert_eq!(found.count(), n + 1);
            assert_eq!(children.values().count(), n + 1);
        }
        for text in &texts {
            assert!(!children.is_empty());
            children.remove(text);
            assert_eq!(children.get(text), None);
        }
        assert!(children.is_empty());
    }

    #[test]
    fn a_text_that_is_removed_leaves_the_others_of_a_list() {
        let mut children = Children::<u8>::default();
        for text in ["a", "b", "c"] {
            *children.get_or_default(text) = text.as_bytes()[0];
        }
        children.remove("b");
        children.remove("x");
        assert_eq!(
            (children.get("a"), children.get("b"), children.get("c")),
            (Some(&b'a'), None, Some(&b'c'))
        );
    }
}
