//! Elements that other servers push to sources of virtual sensors.
//!
//! A source has a number, which it gives to the other server when it registers there. A client that knows the number may push, so it is a
//! credential: 53 random bits, which GSN can read as a number without loss.

use std::collections::HashMap;
use std::sync::Arc;

use parking_lot::Mutex;
use tokio::sync::{mpsc, oneshot};
use tokio::time::timeout;
use uuid::Uuid;

use crate::limits::{PUSH_TAKE_TIMEOUT, PUSHED_WAITING_MAX};

/// Bits of a number that a `double` holds exactly.
const NUMBER_BITS: u32 = 53;

/// The sources that take pushes, by their numbers.
#[derive(Debug, Default)]
pub(crate) struct Pushes(Mutex<HashMap<u64, mpsc::Sender<PushedElement>>>);

/// The end of pushes at a source. Its number means nothing any more when it is dropped.
#[derive(Debug)]
pub struct PushReceiver {
    pushes: Arc<Pushes>,
    number: u64,
    waiting: mpsc::Receiver<PushedElement>,
}

/// An element that another server has pushed. One that is dropped is pushed again.
#[derive(Debug)]
pub struct PushedElement {
    /// The element, as the other server has written it.
    pub data: String,
    stored: oneshot::Sender<()>,
}

/// The outcome of an element that another server pushes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum PushAnswer {
    /// Its rows are durable, or it cannot be read and is kept as a dead letter.
    Taken,
    /// It is not stored. The other server must push it again.
    Busy,
    /// No source has this number. The other server must not push to it any more.
    Unknown,
}

impl Pushes {
    /// A source with a number of its own.
    pub(crate) fn open(self: &Arc<Self>) -> PushReceiver {
        let number = (Uuid::new_v4().as_u128() as u64) & ((1 << NUMBER_BITS) - 1);
        let (sender, waiting) = mpsc::channel(PUSHED_WAITING_MAX);
        self.0.lock().insert(number, sender);
        PushReceiver { pushes: Arc::clone(self), number, waiting }
    }

    /// Whether there is no source.
    pub(crate) fn is_empty(&self) -> bool {
        self.0.lock().is_empty()
    }

    /// Gives an element to the source with a number, and waits until it is durable.
    pub(crate) async fn push(&self, number: f64, data: String) -> PushAnswer {
        let known = self.0.lock().get(&(number as u64)).cloned();
        let Some(sender) = known.filter(|_| number.fract() == 0.0) else { return PushAnswer::Unknown };
        let (stored, taken) = oneshot::channel();
        let take = async {
            // A source that ends drops its elements. The next push finds no source.
            sender.send(PushedElement { data, stored }).await.is_ok() && taken.await.is_ok()
        };
        match timeout(PUSH_TAKE_TIMEOUT, take).await {
            Ok(true) => PushAnswer::Taken,
            Ok(false) | Err(_) => PushAnswer::Busy,
        }
    }
}

impl PushReceiver {
    /// The number that the other server must give with each element.
    pub fn number(&self) -> u64 {
        self.number
    }

    /// The next element. The other server pushes it again until [`PushedElement::taken`].
    pub async fn next(&mut self) -> Option<PushedElement> {
        self.waiting.recv().await
    }
}

impl Drop for PushReceiver {
    fn drop(&mut self) {
        self.pushes.0.lock().remove(&self.number);
    }
}

impl PushedElement {
    /// Reports that the element is durable.
    pub fn taken(self) {
        // The other server may have gone; then it pushes the element again.
        let _ = self.stored.send(());
    }
}
