//! Sessions that have ended: what is left of their queues, and what the engine still must delete.

use std::collections::VecDeque;
use std::sync::atomic::{AtomicUsize, Ordering};

use kv::WriteBatch;
use parking_lot::Mutex;
use uuid::Uuid;

use super::message::GroupMessage;
use super::queue::QueueRest;
use super::session::{Session, SessionKey};

/// A session that has ended.
#[derive(Debug)]
pub(super) struct EndedSession {
    pub(super) id: u64,
    pub(super) tenant: Uuid,
    pub(super) key: SessionKey,
    /// The engine has records of the session.
    pub(super) is_stored: bool,
    pub(super) rest: QueueRest,
    /// Entries of its queue in the engine with lower numbers are handled.
    pub(super) next_number: u64,
    /// Deletions of contents that no queue needs any more.
    pub(super) contents: WriteBatch,
}

impl EndedSession {
    /// A session that has ended in this process.
    pub(super) fn new(session: &Session, is_stored: bool, rest: QueueRest) -> Self {
        Self { is_stored, rest, ..Self::stored(session.id(), session.tenant, session.key.clone()) }
    }

    /// A message that has come to a session after its end.
    pub(super) fn with_message(session: &Session, message: GroupMessage) -> Self {
        let rest = QueueRest { in_memory: VecDeque::from([message]), ..QueueRest::default() };
        Self::new(session, false, rest)
    }

    /// A session that had ended before the engine was opened. It is not known which messages were sent.
    pub(super) fn stored(id: u64, tenant: Uuid, key: SessionKey) -> Self {
        let rest = QueueRest { sent_below: u64::MAX, ..QueueRest::default() };
        Self { id, tenant, key, is_stored: true, rest, next_number: 0, contents: WriteBatch::new() }
    }
}

impl EndedSession {
    /// A queue in the engine without a session.
    pub(super) fn without_record(id: u64) -> Self {
        Self::stored(id, Uuid::nil(), SessionKey { device: Uuid::nil(), client_id: "".into() })
    }
}

/// Ended sessions that are not finished, oldest first.
#[derive(Debug, Default)]
pub(super) struct EndedSessions {
    list: Mutex<VecDeque<EndedSession>>,
    len: AtomicUsize,
}

impl EndedSessions {
    pub(super) fn is_empty(&self) -> bool {
        self.len.load(Ordering::Acquire) == 0
    }

    pub(super) fn add(&self, ended: impl IntoIterator<Item = EndedSession>) {
        let mut list = self.list.lock();
        list.extend(ended);
        self.len.store(list.len(), Ordering::Release);
    }

    /// Takes one. The caller puts it back, behind the others, unless nothing is left of it.
    pub(super) fn take(&self) -> Option<EndedSession> {
        let mut list = self.list.lock();
        let first = list.pop_front();
        self.len.store(list.len(), Ordering::Release);
        first
    }
}
