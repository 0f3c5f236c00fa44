//! The subscriptions of a door.

use std::collections::HashMap;
use std::net::IpAddr;
use std::sync::Arc;

use parking_lot::Mutex;

use super::super::super::limits::{PUSHES_MAX, PUSHES_PER_PEER_MAX};
use super::super::super::refusal::Refusal;
use super::contact::{ContactPoint, peer_text};
use crate::error::ApiError;

/// A client's number and where it takes elements.
type Key = (String, ContactPoint);

/// The subscriptions, each with the address of its client.
#[derive(Debug, Default)]
pub(super) struct Pushes(Mutex<HashMap<Key, Option<IpAddr>>>);

/// A subscription, until this is dropped.
#[derive(Debug)]
pub(super) struct Subscription {
    pushes: Arc<Pushes>,
    key: Key,
}

impl Pushes {
    /// Adds a subscription; `None` if it exists.
    pub(super) fn register(
        self: &Arc<Self>,
        id: &str,
        contact: &ContactPoint,
        peer: Option<IpAddr>,
    ) -> Result<Option<Subscription>, Refusal> {
        let key = (id.to_owned(), contact.clone());
        let mut known = self.0.lock();
        if known.contains_key(&key) {
            return Ok(None);
        }
        if known.len() >= PUSHES_MAX {
            return Err(Refusal(ApiError::busy(format!(
                "the server sends to {PUSHES_MAX} subscriptions, which is the limit (PUSHES_MAX); try again, or read the rows with GET"
            ))));
        }
        let own = known.values().filter(|other| **other == peer).count();
        if own >= PUSHES_PER_PEER_MAX {
            return Err(Refusal(ApiError::busy(format!(
                "the server sends to {PUSHES_PER_PEER_MAX} subscriptions of {}, which is the limit (PUSHES_PER_PEER_MAX)",
                peer_text(peer)
            ))));
        }
        known.insert(key.clone(), peer);
        Ok(Some(Subscription { pushes: Arc::clone(self), key }))
    }
}

impl Drop for Subscription {
    fn drop(&mut self) {
        self.pushes.0.lock().remove(&self.key);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn subscriptions_have_limits_and_end() {
        let pushes = Arc::new(Pushes::default());
        let contact = ContactPoint::parse("http://h/").unwrap();
        let peer = Some("10.0.0.1".parse().unwrap());
        let register = |number: usize, peer| pushes.register(&number.to_string(), &contact, peer);
        let mut held: Vec<Subscription> =
            (0..PUSHES_PER_PEER_MAX).map(|number| register(number, peer).unwrap().unwrap()).collect();
        assert!(register(0, peer).unwrap().is_none());
        assert_eq!(register(1_000, peer).unwrap_err().0.status, 429);
        let other = register(1_000, None).unwrap();
        assert!(other.is_some());
        held.pop();
        assert!(register(2_000, peer).unwrap().is_some());
    }
}
