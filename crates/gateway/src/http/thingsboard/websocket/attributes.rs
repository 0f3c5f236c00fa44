//! The subscriptions of attributes of one session, and the entities whose attributes it watches.

use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::hash::RandomState;
use std::sync::Arc;

use hub::attributes::{AttributeWatch, Changed, Changes, Scope, TooManyWatched};
use hub::caller::Caller;
use hub::registry::Entity;
use hub::{AttributeError, EntityId, Hub};
use model::{Timestamp, Value};

use super::update::Data;
use super::update_filter::{bytes_of, hash_of};
use crate::budget::{Charge, OverBudget, Share};
use crate::error::ApiError;
use crate::http::limits::{SUBSCRIPTION_BYTES, SUBSCRIPTIONS_MAX};

/// The entities whose attributes a session watches, for all of its subscriptions.
#[derive(Debug)]
pub(crate) struct WatchedAttributes {
    watch: AttributeWatch,
    /// How many subscriptions watch an entity.
    counts: HashMap<EntityId, usize>,
}

impl WatchedAttributes {
    /// Watches nothing yet.
    pub(crate) fn new(watch: AttributeWatch) -> Self {
        Self { watch, counts: HashMap::new() }
    }

    /// Watches an entity once more.
    pub(crate) fn add(&mut self, entity: EntityId) -> Result<(), TooManyWatched> {
        self.watch.watch(entity)?;
        *self.counts.entry(entity).or_default() += 1;
        Ok(())
    }

    /// Watches an entity once less.
    pub(crate) fn remove(&mut self, entity: EntityId) {
        if let Some(count) = self.counts.get_mut(&entity) {
            *count -= 1;
            if *count == 0 {
                self.counts.remove(&entity);
                self.watch.unwatch(entity);
            }
        }
    }

    /// Waits for changes. The future may be dropped at any time.
    pub(crate) async fn next(&self) -> Changes {
        self.watch.next().await
    }
}

/// The attributes that a subscription is about.
#[derive(Debug, Clone)]
pub(crate) struct Wanted {
    pub(crate) entity: Entity,
    pub(crate) scopes: Vec<Scope>,
    /// All keys when `None`.
    pub(crate) keys: Option<Vec<String>>,
}

impl Wanted {
    /// Reads the attributes. Of a key that several scopes have, it takes the value that was set last.
    pub(crate) fn read(&self, hub: &Hub, caller: &Caller) -> Result<Data, AttributeError> {
        let mut data = Data::new();
        for scope in &self.scopes {
            for found in hub.attributes(caller, &self.entity, *scope, self.keys.as_deref())? {
                let timed_values = data.entry(found.key.to_string()).or_default();
                if timed_values.first().is_none_or(|(ts, _)| *ts < found.ts) {
                    *timed_values = vec![(found.ts, found.value)];
                }
            }
        }
        Ok(data)
    }
}

/// All subscriptions of attributes of a session.
#[derive(Debug)]
pub(crate) struct AttributeSubscriptions {
    by_id: BTreeMap<i64, Subscription>,
    share: Arc<Share>,
    hashes: RandomState,
}

#[derive(Debug)]
struct Subscription {
    wanted: Wanted,
    /// What the client has got: by key the time and the hash of the value.
    sent: HashMap<String, (Timestamp, u64)>,
    held: Charge,
}

impl AttributeSubscriptions {
    /// Without subscriptions. Their bytes are charged to `share`.
    pub(crate) fn new(share: Arc<Share>) -> Self {
        Self { by_id: BTreeMap::new(), share, hashes: RandomState::new() }
    }

    /// Adds a subscription, or replaces the one with the same id. Changes are announced from now on, so a read after this call
    /// and the changes have no gap between them.
    pub(crate) fn add(
        &mut self,
        id: i64,
        wanted: Wanted,
        watched: &mut WatchedAttributes,
    ) -> Result<(), ApiError> {
        self.remove(id, watched);
        if self.by_id.len() >= SUBSCRIPTIONS_MAX {
            let message = format!(
                "this session has {SUBSCRIPTIONS_MAX} subscriptions of attributes, which is the limit (SUBSCRIPTIONS_MAX); end some or open another one"
            );
            return Err(ApiError::busy(message));
        }
        let held = self.share.hold(SUBSCRIPTION_BYTES + bytes_of(wanted.keys.iter().flatten()))?;
        watched.add(wanted.entity.id()).map_err(|over| ApiError::busy(over.to_string()))?;
        self.by_id.insert(id, Subscription { wanted, sent: HashMap::new(), held });
        Ok(())
    }

    /// Ends the subscription with this id, if there is one.
    pub(crate) fn remove(&mut self, id: i64, watched: &mut WatchedAttributes) {
        if let Some(subscription) = self.by_id.remove(&id) {
            watched.remove(subscription.wanted.entity.id());
        }
    }

    /// The subscriptions that changes are about.
    pub(crate) fn affected(&self, changes: &BTreeSet<Changed>) -> Vec<(i64, Wanted)> {
        let is_affected = |Subscription { wanted, .. }: &Subscription| {
            wanted.scopes.iter().any(|scope| changes.contains(&(wanted.entity.id(), *scope)))
        };
        let found = self.by_id.iter().filter(|(_, one)| is_affected(one));
        found.map(|(id, one)| (*id, one.wanted.clone())).collect()
    }

    /// All subscriptions.
    pub(crate) fn all(&self) -> Vec<(i64, EntityId)> {
        self.by_id.iter().map(|(id, one)| (*id, one.wanted.entity.id())).collect()
    }

    /// What of the present attributes the client has not got. A deleted one has an empty text at the time 0, as in ThingsBoard.
    /// Fails if the subscription would remember too many bytes.
    pub(crate) fn news(&mut self, id: i64, mut present: Data) -> Result<Data, OverBudget> {
        let Some(subscription) = self.by_id.get_mut(&id) else { return Ok(Data::new()) };
        let hash = |timed_values: &Vec<(Timestamp, Value)>| {
            timed_values.first().map(|(ts, value)| (*ts, hash_of(&self.hashes, value)))
        };
        let now: HashMap<String, (Timestamp, u64)> = present
            .iter()
            .filter_map(|(key, timed_values)| Some((key.clone(), hash(timed_values)?)))
            .collect();
        let named = bytes_of(subscription.wanted.keys.iter().flatten());
        subscription.held = self.share.hold(SUBSCRIPTION_BYTES + named + bytes_of(now.keys()))?;
        present.retain(|key, _| subscription.sent.get(key) != now.get(key));
        for key in subscription.sent.keys().filter(|key| !now.contains_key(*key)) {
            present.insert(key.clone(), vec![(Timestamp::from_micros(0), Value::String(String::new()))]);
        }
        subscription.sent = now;
        Ok(present)
    }
}

#[cfg(test)]
mod tests {
    use uuid::Uuid;

    use super::*;
    use crate::budget::{Budget, Owner};
    use crate::http::limits::SUBSCRIPTION_BUDGET;

    #[test]
    fn only_new_values_and_deletions_are_news() {
        let share = Budget::new(SUBSCRIPTION_BUDGET).share(Owner::login(Uuid::nil()));
        let mut all = AttributeSubscriptions::new(Arc::clone(&share));
        let entity = Entity::User(Arc::default());
        let wanted = Wanted { entity, scopes: vec![Scope::Server], keys: None };
        let subscription =
            Subscription { wanted, sent: HashMap::new(), held: share.hold(SUBSCRIPTION_BYTES).unwrap() };
        all.by_id.insert(1, subscription);
        let data = |pairs: &[(&str, i64, i64)]| -> Data {
            let entry = |(key, ts, value): &(&str, i64, i64)| {
                ((*key).to_owned(), vec![(Timestamp::from_micros(*ts), Value::I64(*value))])
            };
            pairs.iter().map(entry).collect()
        };
        let both = data(&[("a", 1, 1), ("b", 1, 2)]);
        assert_eq!(all.news(1, both.clone()).unwrap(), both);
        assert_eq!(all.news(1, both).unwrap(), Data::new());
        let changed = data(&[("a", 2, 1), ("b", 1, 2)]);
        assert_eq!(all.news(1, changed).unwrap(), data(&[("a", 2, 1)]));
        let deleted = all.news(1, data(&[("a", 2, 1)])).unwrap();
        assert_eq!(deleted["b"], [(Timestamp::from_micros(0), Value::String(String::new()))]);
        assert_eq!(all.news(1, data(&[("a", 2, 1)])).unwrap(), Data::new());
    }
}
