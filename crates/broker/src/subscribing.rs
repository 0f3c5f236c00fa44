//! Sessions subscribe and unsubscribe.

use std::sync::Arc;

use kv::{Sequence, WriteBatch};
use parking_lot::RwLock;
use uuid::Uuid;

use super::broker::{Broker, SESSIONS, SUBSCRIPTIONS};
use super::error::BrokerError;
use super::index::{Subscriber, SubscriptionIndex};
use super::limits;
use super::record::{number_key, subscription_key};
use super::retained::RetainedCursor;
use super::session::{Session, SessionKey, State};
use super::subscription::{Quality, RetainHandling, SubscriptionOptions};
use model::topic::{group_of, is_too_deep, matches};

/// A subscription that a client asks for.
#[derive(Debug, Clone, Copy)]
pub struct Request<'a> {
    /// The topic filter; it is valid.
    pub filter: &'a str,
    /// Options of the subscription.
    pub options: SubscriptionOptions,
    /// When the session gets retained messages.
    pub retain_handling: RetainHandling,
}

impl Broker {
    /// Adds or replaces subscriptions of a session: all that the limits allow. `results` gets an entry for each request. The
    /// session has them durably when the engine has made the returned sequence durable.
    pub fn subscribe(
        &self,
        session: &Arc<Session>,
        requests: &[Request<'_>],
        results: &mut Vec<Result<(), BrokerError>>,
    ) -> Result<Option<Sequence>, BrokerError> {
        let mut state = session.state.lock();
        if state.has_ended {
            return Err(BrokerError::Ended);
        }
        results.clear();
        // No message finds the new subscriptions before the engine has them.
        let index = self.index_of(session.tenant);
        let mut index = index.write();
        let mut held = SubscriptionsSize::of(&state);
        let mut added = Vec::new();
        results.extend(requests.iter().map(|request| {
            let next = held.with(&state, request)?;
            let is_known = state.subscriptions.contains_key(request.filter);
            if !is_known && self.put_new(session, request, &mut index)? {
                added.push(request.filter);
            }
            held = next;
            Ok(())
        }));
        let accepted = || requests.iter().zip(&*results).filter(|(_, result)| result.is_ok()).map(|(r, _)| r);
        let mut sequence = None;
        if session.is_durable && accepted().next().is_some() {
            let mut write = WriteBatch::new();
            write.put(SESSIONS, number_key(session.id()), self.session_record(session, &state, 0));
            for request in accepted() {
                let key = subscription_key(session.id(), request.filter);
                write.put(SUBSCRIPTIONS, key, request.options.to_record());
            }
            match self.kv.commit(&write) {
                Ok(committed) => sequence = Some(committed),
                Err(error) => {
                    added.iter().for_each(|filter| self.remove_from(&mut index, session, filter));
                    return Err(error.into());
                }
            }
            state.is_recorded = true;
        }
        for request in accepted() {
            let is_new = state.subscriptions.insert(request.filter.into(), request.options).is_none();
            if !is_new {
                index.put(request.filter, Subscriber::new(session, request.options));
            }
            // A shared subscription gets no retained messages [MQTT5 4.8.2].
            let wants_retained = match request.retain_handling {
                RetainHandling::Always => true,
                RetainHandling::IfNew => is_new,
                RetainHandling::Never => false,
            };
            if wants_retained && group_of(request.filter).0.is_none() {
                state.retained.retain(|cursor| cursor.filter() != request.filter);
                state.retained.push(RetainedCursor::new(request.filter, request.options));
                for delivery in self.system_deliveries(request.filter, request.options) {
                    let has_room = state.queue.push_immediate(delivery);
                    self.metrics.dropped_immediate.inc_by(u64::from(!has_room));
                }
            }
        }
        session.signal(&state);
        Ok(sequence)
    }

    /// Adds a subscription that the session does not have, unless a limit refuses it. Returns whether this is the first request for it.
    fn put_new(
        &self,
        session: &Arc<Session>,
        request: &Request<'_>,
        index: &mut SubscriptionIndex,
    ) -> Result<bool, BrokerError> {
        let (max, actual) = (limits::MATCH_STEPS_MAX, index.cost_with(request.filter));
        // A start of the server keeps subscriptions above the limit. Others that cost no more are possible.
        if actual as usize > max && actual > index.cost() {
            let what = "too many steps for one message through the topic filters of the tenant";
            return Err(BrokerError::Limit { what, limit: "MATCH_STEPS_MAX", max, actual: actual as usize });
        }
        let is_first = index.put(request.filter, Subscriber::new(session, request.options));
        if is_first && let Err(error) = self.held_subscriptions.add(session, request.filter, &*self.shares) {
            index.remove(request.filter, session);
            return Err(error);
        }
        Ok(is_first)
    }

    pub(super) fn remove_from(&self, index: &mut SubscriptionIndex, session: &Session, filter: &str) {
        index.remove(filter, session);
        self.held_subscriptions.remove(session, filter);
    }

    /// Removes subscriptions of a session. `existed` gets an entry for each filter.
    pub fn unsubscribe<'a>(
        &self,
        session: &Arc<Session>,
        filters: impl Iterator<Item = &'a str> + Clone,
        existed: &mut Vec<bool>,
    ) -> Result<Option<Sequence>, BrokerError> {
        let mut state = session.state.lock();
        let mut sequence = None;
        if state.is_recorded {
            let mut write = WriteBatch::new();
            filters.clone().for_each(|filter| {
                write.delete(SUBSCRIPTIONS, subscription_key(session.id(), filter));
            });
            sequence = Some(self.kv.commit(&write)?);
        }
        let index = self.index_of(session.tenant);
        let mut index = index.write();
        existed.clear();
        for filter in filters {
            let known = state.subscriptions.remove(filter).is_some();
            if known {
                self.remove_from(&mut index, session, filter);
                state.retained.retain(|cursor| cursor.filter() != filter);
            }
            existed.push(known);
        }
        Ok(sequence)
    }

    /// Ends subscriptions of sessions without a connection that `is_permitted` refuses, by device, client identifier and filter.
    /// Returns their number. A busy engine leaves the rest for the next call.
    pub fn end_forbidden(
        &self,
        is_permitted: &dyn Fn(Uuid, &str, &str) -> bool,
    ) -> Result<usize, BrokerError> {
        // The lock is free again before the loop: a new connection needs it.
        let absent: Vec<_> = {
            let sessions = self.sessions.lock();
            sessions.all().into_iter().filter(|session| !session.is_connected()).collect()
        };
        let mut ended = 0;
        for session in absent {
            let SessionKey { device, client_id } = &session.key;
            let filters = self.filters(&session, "");
            let forbidden = filters.iter().filter(|filter| !is_permitted(*device, client_id, filter));
            let forbidden: Vec<&str> = forbidden.map(|filter| &**filter).collect();
            if !forbidden.is_empty() {
                self.unsubscribe(&session, forbidden.iter().copied(), &mut Vec::new())?;
                ended += forbidden.len();
            }
        }
        Ok(ended)
    }

    /// The filters of a session that begin with a text.
    pub fn filters(&self, session: &Session, begin: &str) -> Vec<Box<str>> {
        let state = session.state.lock();
        state.subscriptions.keys().filter(|filter| filter.starts_with(begin)).cloned().collect()
    }

    /// The highest QoS of the session's subscriptions that select a topic.
    pub fn subscribed_quality(&self, session: &Session, topic: &str) -> Option<Quality> {
        let state = session.state.lock();
        let selected = state.subscriptions.iter().filter(|(filter, _)| matches(filter, topic));
        selected.map(|(_, options)| options.qos).max()
    }

    /// The subscriptions of a tenant.
    pub(super) fn index_of(&self, tenant: Uuid) -> Arc<RwLock<SubscriptionIndex>> {
        if let Some(index) = self.indexes.read().get(&tenant) {
            return Arc::clone(index);
        }
        Arc::clone(self.indexes.write().entry(tenant).or_default())
    }
}

/// What the subscriptions of a session take.
#[derive(Clone, Copy)]
struct SubscriptionsSize {
    count: usize,
    bytes: usize,
}

impl SubscriptionsSize {
    fn of(state: &State) -> Self {
        let bytes = state.subscriptions.keys().map(|known| known.len()).sum();
        Self { count: state.subscriptions.len(), bytes }
    }

    /// The size with another subscription, if the limits allow it.
    fn with(self, state: &State, request: &Request<'_>) -> Result<Self, BrokerError> {
        let filter = request.filter;
        if is_too_deep(filter) {
            let what = "a topic filter with too many levels";
            let (max, actual) = (limits::TOPIC_LEVELS_MAX, filter.split('/').count());
            return Err(BrokerError::Limit { what, limit: "TOPIC_LEVELS_MAX", max, actual });
        }
        if state.subscriptions.contains_key(filter) {
            return Ok(self);
        }
        let (count, bytes) = (self.count + 1, self.bytes + filter.len());
        let max = limits::SUBSCRIPTIONS_PER_SESSION_MAX;
        if count > max {
            let what = "too many subscriptions of one session";
            let limit = "SUBSCRIPTIONS_PER_SESSION_MAX";
            return Err(BrokerError::Limit { what, limit, max, actual: count });
        }
        let max = limits::SUBSCRIPTION_BYTES_PER_SESSION_MAX;
        if bytes > max {
            let what = "too many bytes of topic filters of one session";
            let limit = "SUBSCRIPTION_BYTES_PER_SESSION_MAX";
            return Err(BrokerError::Limit { what, limit, max, actual: bytes });
        }
        Ok(Self { count, bytes })
    }
}
