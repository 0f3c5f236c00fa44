//! The content of a store at one point in time.

use crate::{Direction, Key, KeyRange, KvError, Space, Value};

/// The keys and values of a scan. After an error the scan ends.
pub type Scan = Box<dyn Iterator<Item = Result<(Key, Value), KvError>> + Send>;

/// The content of a store at one point in time.
pub trait Snapshot: Send {
    /// The spaces that were ever written, in order of their names.
    fn spaces(&self) -> Vec<Space>;

    /// The keys of a range with their values. The scan may outlive the snapshot.
    ///
    /// # Errors
    /// The errors of [`crate::KeyValueStore::get`].
    fn scan(&self, space: Space, range: &KeyRange, direction: Direction) -> Result<Scan, KvError>;
}
