//! Pools of buffers and files for threads. Both sides of a comparison use the same ones, because the place of a buffer
//! in memory or of a file on disk changes the speed by more than the difference that the comparison looks for.

use std::collections::BTreeMap;
use std::io;
use std::sync::{Arc, Weak};

use parking_lot::Mutex;

/// One item per thread number, so that on a machine with several memory nodes no thread uses the memory of another
/// node.
#[derive(Debug)]
pub(super) struct Pool<T>(Mutex<BTreeMap<u32, T>>);

impl<T> Pool<T> {
    /// Lets thread `number` work with its item exclusively. A new item is created on first use, and while another
    /// thread of the same number uses it.
    pub(super) fn with_item<R>(
        &self,
        number: u32,
        make: impl FnOnce() -> io::Result<T>,
        work: impl FnOnce(&mut T) -> io::Result<R>,
    ) -> io::Result<R> {
        let free = self.0.lock().remove(&number);
        let mut item = free.map_or_else(make, Ok)?;
        let done = work(&mut item);
        // If two items of one number existed, the last one that is returned stays.
        let surplus = self.0.lock().insert(number, item);
        drop(surplus);
        done
    }
}

/// The pools in use by this process, by the kind of their items.
#[derive(Debug)]
pub(super) struct PoolRegistry<K, T>(Mutex<BTreeMap<K, Weak<Pool<T>>>>);

impl<K: Ord, T> PoolRegistry<K, T> {
    pub(super) const fn new() -> Self {
        Self(Mutex::new(BTreeMap::new()))
    }

    /// The pool of a kind. It is dropped with its last user.
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
    fn threads_of_one_number_take_turns_with_one_thing() {
        let known: PoolRegistry<&str, u32> = PoolRegistry::new();
        let (a, b) = (known.of("here"), known.of("here"));
        let next =
            |pool: &Pool<u32>, number, fresh| pool.with_item(number, || Ok(fresh), |item| Ok(*item)).unwrap();
        assert_eq!((next(&a, 0, 1), next(&b, 0, 2), next(&b, 1, 3), next(&a, 1, 4)), (1, 1, 3, 3));
        assert_eq!(next(&known.of("there"), 0, 5), 5);
        let both = a.with_item(0, || Ok(6), |item| Ok((*item, next(&b, 0, 7))));
        assert_eq!(both.unwrap(), (1, 7));
        assert_eq!((next(&a, 0, 8), a.0.lock().len()), (1, 2), "none is kept beyond one for each number");
        drop((a, b));
        assert_eq!(next(&known.of("here"), 0, 9), 9, "it went with its last users");
    }

    #[test]
    fn what_could_not_be_made_or_done_is_told_and_the_thing_stays() {
        let pool = PoolRegistry::new().of(());
        let failed = || io::Error::other("no");
        assert!(pool.with_item(0, || Err(failed()), |_: &mut u32| Ok(())).is_err());
        assert!(pool.with_item(0, || Ok(1), |_| Err::<(), _>(failed())).is_err());
        assert_eq!(pool.with_item(0, || Ok(2), |item| Ok(*item)).unwrap(), 1);
    }
}
