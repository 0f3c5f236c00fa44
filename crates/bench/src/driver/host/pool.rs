//! What threads work on: buffers, files. Both sides of a comparison that take turns work on the same ones: where in memory a buffer lies,
//! and where on the disk a file, makes it faster or slower than another by more than what is looked for.

use std::collections::BTreeMap;
use std::io;
use std::sync::{Arc, Weak};

use parking_lot::Mutex;

/// As many things as threads have worked at once.
#[derive(Debug)]
pub(super) struct Pool<T>(Mutex<Vec<T>>);

impl<T> Pool<T> {
    /// Works on a thing that nobody else has meanwhile; one is made where all are in use.
    pub(super) fn lend<R>(
        &self,
        make: impl FnOnce() -> io::Result<T>,
        work: impl FnOnce(&mut T) -> io::Result<R>,
    ) -> io::Result<R> {
        let free = self.0.lock().pop();
        let mut thing = free.map_or_else(make, Ok)?;
        let done = work(&mut thing);
        self.0.lock().push(thing);
        done
    }
}

/// The pools of this process that are in use, each by what its things have in common.
#[derive(Debug)]
pub(super) struct Known<K, T>(Mutex<BTreeMap<K, Weak<Pool<T>>>>);

impl<K: Ord, T> Known<K, T> {
    pub(super) const fn new() -> Self {
        Self(Mutex::new(BTreeMap::new()))
    }

    /// The pool of a kind; it goes with the last who has it.
    pub(super) fn of(&self, kind: K) -> Arc<Pool<T>> {
        let mut known = self.0.lock();
        known.retain(|_, pool| pool.strong_count() > 0);
        let shared = known.get(&kind).and_then(Weak::upgrade);
        shared.unwrap_or_else(|| {
            let made = Arc::new(Pool(Mutex::default()));
            known.insert(kind, Arc::downgrade(&made));
            made
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn who_takes_turns_has_one_thing_and_who_works_at_once_has_his_own() {
        let known: Known<&str, u32> = Known::new();
        let (a, b) = (known.of("here"), known.of("here"));
        let next = |pool: &Pool<u32>, fresh| pool.lend(|| Ok(fresh), |thing| Ok(*thing)).unwrap();
        assert_eq!((next(&a, 1), next(&b, 2), next(&known.of("there"), 3)), (1, 1, 3));
        let both = a.lend(|| Ok(4), |thing| Ok((*thing, next(&b, 5))));
        assert_eq!(both.unwrap(), (1, 5));
        drop((a, b));
        assert_eq!(next(&known.of("here"), 6), 6, "it went with its last users");
    }

    #[test]
    fn what_could_not_be_made_or_done_is_told_and_the_thing_stays() {
        let pool = Known::new().of(());
        let failed = || io::Error::other("no");
        assert!(pool.lend(|| Err(failed()), |_: &mut u32| Ok(())).is_err());
        assert!(pool.lend(|| Ok(1), |_| Err::<(), _>(failed())).is_err());
        assert_eq!(pool.lend(|| Ok(2), |thing| Ok(*thing)).unwrap(), 1);
    }
}
