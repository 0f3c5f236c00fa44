//! Bounds request bodies in memory: in total, for each sender, and for all anonymous senders.

use std::collections::HashMap;
use std::sync::Arc;

use parking_lot::Mutex;
use uuid::Uuid;

/// The sender of a body.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub(crate) enum Sender {
    /// A sender without a session or token, such as one that logs in. All of them share one bound.
    Anonymous,
    /// A device, by its token.
    Device(Uuid),
    /// A user, by the session.
    User(Uuid),
}

/// Bounds of bytes in memory.
#[derive(Debug, Clone, Copy)]
pub(crate) struct BodyLimits {
    /// All senders together, without the anonymous ones.
    pub(crate) total: usize,
    pub(crate) device: usize,
    pub(crate) user: usize,
    /// All anonymous senders.
    pub(crate) anonymous: usize,
}

/// The bodies in memory of a door.
#[derive(Debug)]
pub(crate) struct Bodies {
    limits: BodyLimits,
    held: Mutex<ReservedBytes>,
}

#[derive(Debug, Default)]
struct ReservedBytes {
    total: usize,
    senders: HashMap<Sender, usize>,
}

/// An exceeded bound: its scope and its value.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct OverBodyLimit {
    pub(crate) whose: &'static str,
    pub(crate) limit: usize,
}

impl Bodies {
    pub(crate) fn new(limits: BodyLimits) -> Arc<Self> {
        Arc::new(Self { limits, held: Mutex::default() })
    }

    /// Opens the account of one body, without bytes.
    pub(crate) fn begin(self: &Arc<Self>, sender: Sender) -> HeldBytes {
        HeldBytes { bodies: Arc::clone(self), sender, bytes: 0 }
    }

    fn charge(&self, sender: Sender, bytes: usize) -> Result<(), OverBodyLimit> {
        let (whose, limit) = match sender {
            Sender::Anonymous => ("senders without a login", self.limits.anonymous),
            Sender::Device(_) => ("this device", self.limits.device),
            Sender::User(_) => ("this user", self.limits.user),
        };
        let mut held = self.held.lock();
        let own = held.senders.get(&sender).copied().unwrap_or_default() + bytes;
        if own > limit {
            return Err(OverBodyLimit { whose, limit });
        }
        // Anonymous senders do not use up the bytes of the others.
        let total = held.total + if sender == Sender::Anonymous { 0 } else { bytes };
        if total > self.limits.total {
            return Err(OverBodyLimit { whose: "all senders together", limit: self.limits.total });
        }
        held.total = total;
        held.senders.insert(sender, own);
        Ok(())
    }

    fn release(&self, sender: Sender, bytes: usize) {
        let mut held = self.held.lock();
        if sender != Sender::Anonymous {
            held.total -= bytes;
        }
        if let Some(own) = held.senders.get_mut(&sender) {
            *own -= bytes;
            if *own == 0 {
                held.senders.remove(&sender);
            }
        }
    }
}

/// Bytes of one body on the account of its sender, until this is dropped.
#[derive(Debug)]
pub(crate) struct HeldBytes {
    bodies: Arc<Bodies>,
    sender: Sender,
    bytes: usize,
}

impl HeldBytes {
    /// Adds bytes that arrived.
    pub(crate) fn add(&mut self, bytes: usize) -> Result<(), OverBodyLimit> {
        self.bodies.charge(self.sender, bytes)?;
        self.bytes += bytes;
        Ok(())
    }
}

impl Drop for HeldBytes {
    fn drop(&mut self) {
        if self.bytes > 0 {
            self.bodies.release(self.sender, self.bytes);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const LIMITS: BodyLimits = BodyLimits { total: 10, device: 6, user: 8, anonymous: 4 };

    #[test]
    fn each_sender_has_a_share_and_anonymous_senders_use_none_of_it() {
        let bodies = Bodies::new(LIMITS);
        let (device, other) = (Sender::Device(Uuid::from_u128(1)), Sender::Device(Uuid::from_u128(2)));
        let mut first = bodies.begin(device);
        first.add(5).unwrap();
        assert_eq!(first.add(2), Err(OverBodyLimit { whose: "this device", limit: 6 }));
        assert_eq!(bodies.begin(device).add(2).unwrap_err().whose, "this device", "in another request too");
        let mut second = bodies.begin(other);
        second.add(5).unwrap();
        assert_eq!(second.add(1), Err(OverBodyLimit { whose: "all senders together", limit: 10 }));
        let mut stranger = bodies.begin(Sender::Anonymous);
        stranger.add(4).unwrap();
        assert_eq!(bodies.begin(Sender::Anonymous).add(1).unwrap_err().limit, 4);
        drop((first, second, stranger));
        let held = bodies.held.lock();
        assert_eq!((held.total, held.senders.len()), (0, 0));
    }
}
