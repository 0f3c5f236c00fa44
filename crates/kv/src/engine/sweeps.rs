//! The spaces whose records expire, and the place of the sweep.

use std::collections::BTreeMap;
use std::ops::Bound;
use std::sync::Arc;

use crate::expiry::Expiry;
use crate::{Key, Space};

/// What the sweeper has to do.
#[derive(Default)]
pub(super) struct Sweeps {
    spaces: BTreeMap<Space, Arc<dyn Expiry>>,
    /// The next slice is behind this key of this space; `None` at the beginning.
    pub(super) place: Option<(Space, Option<Key>)>,
    /// A space was added: the pause ends.
    pub(super) added: bool,
    /// There is a thread that sweeps.
    pub(super) has_thread: bool,
}

impl Sweeps {
    /// Adds a space, or replaces its function.
    pub(super) fn add(&mut self, space: Space, expiry: Arc<dyn Expiry>) {
        self.added = true;
        self.place = None;
        self.spaces.insert(space, expiry);
    }

    /// The next slice.
    pub(super) fn next(&self) -> Option<(Space, Arc<dyn Expiry>, Option<Key>)> {
        let (begin, after) = match &self.place {
            Some((space, Some(key))) => (Bound::Included(*space), Some(key.clone())),
            Some((space, None)) => (Bound::Excluded(*space), None),
            None => (Bound::Unbounded, None),
        };
        let (space, expiry) = self.spaces.range((begin, Bound::Unbounded)).next()?;
        Some((*space, Arc::clone(expiry), after))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const SPACES: [Space; 2] = [Space::new("a"), Space::new("b")];

    #[test]
    fn a_sweep_goes_through_the_spaces_in_their_order() {
        let mut sweeps = Sweeps::default();
        assert!(sweeps.next().is_none());
        let never = |_: &[u8], _: &[u8], _: i64| false;
        SPACES.iter().for_each(|space| sweeps.add(*space, Arc::new(never)));
        let next = |sweeps: &Sweeps| sweeps.next().map(|(space, _, after)| (space, after));
        let key = Key::from_static(b"k");
        assert_eq!(next(&sweeps), Some((SPACES[0], None)));
        sweeps.place = Some((SPACES[0], Some(key.clone())));
        assert_eq!(next(&sweeps), Some((SPACES[0], Some(key))));
        sweeps.place = Some((SPACES[0], None));
        assert_eq!(next(&sweeps), Some((SPACES[1], None)));
        sweeps.place = Some((SPACES[1], None));
        assert_eq!(next(&sweeps), None);
        // A function that is replaced begins the sweep again.
        sweeps.add(SPACES[1], Arc::new(never));
        assert_eq!(next(&sweeps), Some((SPACES[0], None)));
    }
}
