//! The outbox of one connection of a device.

use std::collections::VecDeque;
use std::fmt;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU8, AtomicUsize, Ordering};

use model::Timestamp;
use parking_lot::Mutex;
use prometheus_client::metrics::gauge::Gauge;

use super::coalesce::coalesce;
use super::limits::{OUTBOX_BYTES_MAX, OUTBOX_MESSAGES_MAX};
use super::message::{DeviceMessage, MessageKind};
use crate::wake::Wake;

/// What a connection has subscribed to.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Interests {
    /// Changes of shared attributes.
    pub shared_attributes: bool,
    /// RPC requests.
    pub rpc: bool,
}

impl Interests {
    const ATTRIBUTES_BIT: u8 = 1;
    const RPC_BIT: u8 = 2;

    fn bits(self) -> u8 {
        let bit = |set: bool, bit: u8| if set { bit } else { 0 };
        bit(self.shared_attributes, Self::ATTRIBUTES_BIT) | bit(self.rpc, Self::RPC_BIT)
    }

    fn bit_of(kind: MessageKind) -> u8 {
        match kind {
            MessageKind::Attributes => Self::ATTRIBUTES_BIT,
            MessageKind::Rpc => Self::RPC_BIT,
        }
    }
}

/// What an outbox did with a message.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Put {
    /// It has the message.
    Taken,
    /// It has the message, and merged it with waiting ones.
    Coalesced,
    /// The connection has not subscribed to such messages.
    Unwanted,
    /// There is no room.
    Full,
}

/// The outbox of one connection. Idle, it takes about a hundred bytes.
pub(super) struct Outbox {
    wake: Arc<dyn Wake>,
    interests: AtomicU8,
    /// The connection is one of a gateway that speaks for the device.
    is_behind: bool,
    /// Another connection of a gateway speaks for the device now.
    is_moved: AtomicBool,
    content: Mutex<Content>,
}

#[derive(Debug, Default)]
struct Content {
    waiting: VecDeque<Arc<DeviceMessage>>,
    bytes: usize,
}

impl fmt::Debug for Outbox {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Outbox").field("content", &self.content).finish_non_exhaustive()
    }
}

impl Outbox {
    pub(super) fn new(interests: Interests, wake: Arc<dyn Wake>) -> Self {
        let interests = AtomicU8::new(interests.bits());
        let is_moved = AtomicBool::new(false);
        Self { wake, interests, is_behind: false, is_moved, content: Mutex::default() }
    }

    /// The outbox of a device behind a connection of a gateway, without interests.
    pub(super) fn behind(wake: Arc<dyn Wake>) -> Self {
        Self { is_behind: true, ..Self::new(Interests::default(), wake) }
    }

    /// Whether a connection of a gateway speaks for the device through this outbox.
    pub(super) fn speaks_for_device(&self) -> bool {
        self.is_behind && !self.is_moved()
    }

    /// Whether another connection of a gateway speaks for the device now.
    pub(super) fn is_moved(&self) -> bool {
        self.is_moved.load(Ordering::Acquire)
    }

    /// Another connection of a gateway speaks for the device from now on. Drops what waits.
    pub(super) fn move_away(&self, total: &TotalBytes) {
        self.is_moved.store(true, Ordering::Release);
        self.set_interests(Interests::default());
        self.clear(total);
    }

    /// Sets the interests. Returns whether the connection wants RPC requests now and did not before.
    pub(super) fn set_interests(&self, interests: Interests) -> bool {
        let interests = if self.is_moved() { Interests::default() } else { interests };
        let before = self.interests.swap(interests.bits(), Ordering::AcqRel);
        interests.rpc && before & Interests::RPC_BIT == 0
    }

    /// Adds a message, if there is room in this outbox and in all (`total`).
    pub(super) fn put(&self, message: &Arc<DeviceMessage>, total: &TotalBytes, now: Timestamp) -> Put {
        if self.interests.load(Ordering::Acquire) & Interests::bit_of(message.kind()) == 0 {
            return Put::Unwanted;
        }
        let (put, wakes) = {
            let mut content = self.content.lock();
            let was_empty = content.waiting.is_empty();
            (content.put(message, total, now), was_empty && !content.waiting.is_empty())
        };
        if wakes {
            self.wake.wake();
        }
        put
    }

    /// Takes the first `max` messages that have not expired.
    pub(super) fn take(&self, max: usize, total: &TotalBytes, now: Timestamp) -> Vec<Arc<DeviceMessage>> {
        let mut content = self.content.lock();
        let mut taken = Vec::new();
        while taken.len() < max {
            let Some(message) = content.pop(total) else { break };
            if !message.has_expired(now) {
                taken.push(message);
            }
        }
        if content.waiting.is_empty() {
            content.waiting = VecDeque::new();
        }
        drop(content);
        for message in &taken {
            if let DeviceMessage::RpcRequest(request) = &**message {
                request.set_taken();
            }
        }
        taken
    }

    /// Drops what waits.
    pub(super) fn clear(&self, total: &TotalBytes) {
        let content = std::mem::take(&mut *self.content.lock());
        total.release(content.bytes);
    }
}

impl Content {
    fn put(&mut self, message: &Arc<DeviceMessage>, total: &TotalBytes, now: Timestamp) -> Put {
        if self.push(message, total) {
            return Put::Taken;
        }
        self.drop_expired(total, now);
        if self.push(message, total) {
            return Put::Taken;
        }
        match message.kind() {
            MessageKind::Attributes => self.merge(message, total),
            MessageKind::Rpc => Put::Full,
        }
    }

    fn push(&mut self, message: &Arc<DeviceMessage>, total: &TotalBytes) -> bool {
        let weight = message.weight();
        let fits = self.waiting.len() < OUTBOX_MESSAGES_MAX
            && self.bytes + weight <= OUTBOX_BYTES_MAX
            && total.add(weight);
        if fits {
            self.bytes += weight;
            self.waiting.push_back(Arc::clone(message));
        }
        fits
    }

    fn pop(&mut self, total: &TotalBytes) -> Option<Arc<DeviceMessage>> {
        let message = self.waiting.pop_front()?;
        let weight = message.weight();
        self.bytes -= weight;
        total.release(weight);
        Some(message)
    }

    fn drop_expired(&mut self, total: &TotalBytes, now: Timestamp) {
        self.waiting.retain(|message| !message.has_expired(now));
        let bytes = self.waiting.iter().map(|message| message.weight()).sum();
        total.release(self.bytes - bytes);
        self.bytes = bytes;
    }

    fn merge(&mut self, message: &Arc<DeviceMessage>, total: &TotalBytes) -> Put {
        let merged = coalesce(&self.waiting, message);
        let bytes: usize = merged.iter().map(|message| message.weight()).sum();
        let fits = merged.len() <= OUTBOX_MESSAGES_MAX && bytes <= OUTBOX_BYTES_MAX;
        if !fits || !total.add(bytes.saturating_sub(self.bytes)) {
            return Put::Full;
        }
        total.release(self.bytes.saturating_sub(bytes));
        *self = Self { waiting: merged, bytes };
        Put::Coalesced
    }
}

/// Bytes that wait in all outboxes.
#[derive(Debug)]
pub(super) struct TotalBytes {
    bytes: AtomicUsize,
    max: usize,
    shown: Gauge,
}

impl TotalBytes {
    /// At most `max` bytes; `shown` shows how many there are.
    pub(super) fn new(max: usize, shown: Gauge) -> Self {
        Self { bytes: AtomicUsize::new(0), max, shown }
    }

    fn add(&self, bytes: usize) -> bool {
        let grown = |held: usize| held.checked_add(bytes).filter(|held| *held <= self.max);
        let added = self.bytes.fetch_update(Ordering::Relaxed, Ordering::Relaxed, grown).is_ok();
        if added {
            self.shown.inc_by(bytes as i64);
        }
        added
    }

    fn release(&self, bytes: usize) {
        self.bytes.fetch_sub(bytes, Ordering::Relaxed);
        self.shown.dec_by(bytes as i64);
    }
}
