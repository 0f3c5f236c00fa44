//! What was refused of a request, as dead letters.

use super::limits::{DEAD_LETTER_BYTES_MAX, DEAD_LETTERS_PER_REQUEST_MAX};
use crate::dead_letter::DeadLetter;
use crate::metrics::Door;

/// The refused items of one request: the first ones, and the number of the others.
#[derive(Debug)]
pub(crate) struct DeadLetters {
    door: Door,
    kept: Vec<(String, Vec<u8>)>,
    more: usize,
}

impl DeadLetters {
    pub(crate) fn new(door: Door) -> Self {
        Self { door, kept: Vec::new(), more: 0 }
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.kept.is_empty()
    }

    pub(crate) fn add(&mut self, reason: &str, payload: &[u8]) {
        if self.kept.len() >= DEAD_LETTERS_PER_REQUEST_MAX {
            self.more += 1;
            return;
        }
        let payload = &payload[..payload.len().min(DEAD_LETTER_BYTES_MAX)];
        self.kept.push((reason.to_owned(), payload.to_vec()));
    }

    /// Hands each dead letter to `add`; the last one counts those that were not kept.
    pub(crate) fn each(&self, topic: &str, mut add: impl FnMut(DeadLetter<'_>)) {
        let door = self.door.name();
        for (reason, payload) in &self.kept {
            add(DeadLetter { door, topic, reason, payload });
        }
        if self.more > 0 {
            let reason = format!("{} more items of the request were refused", self.more);
            add(DeadLetter { door, topic, reason: &reason, payload: b"" });
        }
    }
}
