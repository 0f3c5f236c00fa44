//! Snapshots and scans that can be taken back.
//!
//! They hold handles of fjall, and fjall cannot open a directory again while there are any. So the store keeps the handles of all open
//! snapshots and scans in its hands: it can drop them at any time, and their owners get [`KvError::Busy`].

use std::collections::HashMap;
use std::sync::Arc;

use parking_lot::Mutex;

use crate::KvError;

/// All open snapshots and scans.
#[derive(Default)]
pub(super) struct Readers {
    open: Mutex<Open>,
}

#[derive(Default)]
struct Open {
    next: u64,
    readers: HashMap<u64, Arc<dyn Revoke>>,
}

trait Revoke: Send + Sync {
    fn revoke(&self);
}

impl<T: Send> Revoke for Mutex<Option<T>> {
    fn revoke(&self) {
        drop(self.lock().take());
    }
}

impl Readers {
    /// Keeps the content of a reader until its handle is dropped.
    pub(super) fn hold<T: Send + 'static>(self: &Arc<Self>, content: T) -> Held<T> {
        let content = Arc::new(Mutex::new(Some(content)));
        let mut open = self.open.lock();
        let number = open.next;
        open.next += 1;
        open.readers.insert(number, Arc::clone(&content) as Arc<dyn Revoke>);
        drop(open);
        Held { content, number, readers: Arc::clone(self) }
    }

    /// Drops the contents of all readers. Waits for a reader that reads a record at the moment, and for no more.
    pub(super) fn revoke(&self) {
        loop {
            // A snapshot can begin a scan until its own content is dropped.
            let readers = std::mem::take(&mut self.open.lock().readers);
            if readers.is_empty() {
                return;
            }
            readers.values().for_each(|reader| reader.revoke());
        }
    }
}

/// The handle of a reader.
pub(super) struct Held<T> {
    content: Arc<Mutex<Option<T>>>,
    number: u64,
    readers: Arc<Readers>,
}

impl<T> Held<T> {
    /// Works with the content.
    ///
    /// # Errors
    /// [`KvError::Busy`] after it was taken back.
    pub(super) fn with<R>(&self, work: impl FnOnce(&mut T, &Arc<Readers>) -> R) -> Result<R, KvError> {
        match &mut *self.content.lock() {
            Some(content) => Ok(work(content, &self.readers)),
            None => Err(KvError::Busy {
                reason: "the key-value store was opened again after a lack of space, descriptors or memory; begin the read again"
                    .to_owned(),
            }),
        }
    }
}

impl<T> Drop for Held<T> {
    fn drop(&mut self) {
        self.readers.open.lock().readers.remove(&self.number);
    }
}
