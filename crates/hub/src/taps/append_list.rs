//! A list that only grows. Readers take no lock.

use std::sync::OnceLock;

/// A list that only grows: a chain of nodes, each of which is set once.
#[derive(Debug)]
pub(super) struct AppendList<T>(Link<T>);

type Link<T> = OnceLock<Box<Node<T>>>;

#[derive(Debug)]
struct Node<T> {
    item: T,
    next: Link<T>,
}

impl<T> Default for AppendList<T> {
    fn default() -> Self {
        Self(OnceLock::new())
    }
}

impl<T> AppendList<T> {
    /// Adds an item at the end.
    pub(super) fn push(&self, item: T) {
        let mut node = Box::new(Node { item, next: OnceLock::new() });
        let mut link = &self.0;
        while let Err(not_set) = link.set(node) {
            // Another node is here, or has just come.
            node = not_set;
            link = &link.get().expect("BUG: a link that cannot be set has a node").next;
        }
    }

    /// The items, in the order in which they were added.
    pub(super) fn iter(&self) -> impl Iterator<Item = &T> {
        std::iter::successors(self.0.get(), |node| node.next.get()).map(|node| &node.item)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn items_keep_their_order_and_none_is_lost_between_threads() {
        let list = AppendList::default();
        assert_eq!(list.iter().count(), 0);
        std::thread::scope(|scope| {
            for thread in 0..4 {
                let list = &list;
                scope.spawn(move || (0..100).for_each(|at| list.push((thread, at))));
            }
        });
        assert_eq!(list.iter().count(), 400);
        for thread in 0..4 {
            let of_thread: Vec<i32> =
                list.iter().filter(|(from, _)| *from == thread).map(|(_, at)| *at).collect();
            assert_eq!(of_thread, (0..100).collect::<Vec<_>>());
        }
    }
}
