//! The subscriptions by queries of one session: their entities, and what the client has got of them.

use std::collections::{BTreeMap, BTreeSet, HashMap, HashSet};
use std::hash::{BuildHasher, RandomState};
use std::sync::Arc;
use std::time::Duration;

use hub::EntityId;
use hub::attributes::Changed;
use hub::entity_query::{EntityCountQuery, EntityDataQuery, EntityKey, KeyKind, TimedValue};
use hub::live::{Subscriber, Update, Updates};
use hub::registry::Entity;
use model::SeriesId;
use tokio::time::{Instant, sleep_until};

use super::alarm_queries::{AlarmAsk, AlarmSubscription};
use super::entity_read::EntityValues;
use super::query_commands::EntityDataCommand;
use super::subscriptions::by_series;
use super::update::{Data, bytes_of_value};
use super::update_filter::{SubscriptionKind, UpdateFilter, bytes_of, hash_of};
use crate::budget::{Charge, OverBudget, Share};
use crate::error::ApiError;
use crate::http::limits::{
    QUERIES_MAX, QUERY_REFRESH_FACTOR, QUERY_REFRESH_INTERVAL, SUBSCRIPTION_BYTES, UPDATE_BYTES_MAX,
};

/// All subscriptions by queries of a session, and the subscriber that collects their updates.
#[derive(Debug)]
pub(crate) struct Queries {
    subscriber: Subscriber,
    by_id: BTreeMap<i64, Query>,
    /// For each series the entities that write to it: the subscription and the index on its page.
    by_series: HashMap<SeriesId, Vec<(i64, usize)>>,
    /// The same for entities whose attributes the client wants live.
    by_entity: HashMap<EntityId, Vec<(i64, usize)>>,
    share: Arc<Share>,
    hashes: RandomState,
}

/// One subscription.
#[derive(Debug)]
pub(crate) enum Query {
    /// Of entities and their values.
    Entities(Box<EntitySubscription>),
    /// Of a number of entities.
    Count(CountSubscription),
    Alarms(Box<AlarmSubscription>),
}

/// A subscription of a page of entities.
#[derive(Debug)]
pub(crate) struct EntitySubscription {
    pub(crate) query: EntityDataQuery,
    /// The parts of the last command that live on.
    pub(crate) parts: EntityDataCommand,
    rows: Vec<Row>,
    /// The keys of attributes that the client wants live, sorted by kind.
    attributes: Arc<Vec<EntityKey>>,
    /// When the query runs again.
    due: Option<Instant>,
    _held: Charge,
}

/// An entity of a page.
#[derive(Debug)]
struct Row {
    entity: Entity,
    series: Option<SeriesId>,
    /// Latest values that the client has got, if it wants them live.
    latest: Option<UpdateFilter>,
    /// Values of the time series that the client has got, if it wants them live.
    points: Option<UpdateFilter>,
    /// For each live attribute the hash of what the client has got.
    attributes: Vec<Option<u64>>,
}

/// A row whose attributes the client wants live.
#[derive(Debug)]
pub(crate) struct LiveRow {
    /// The subscription.
    pub(crate) id: i64,
    index: usize,
    pub(crate) entity: Entity,
    pub(crate) keys: Arc<Vec<EntityKey>>,
}

/// A subscription of a number of entities.
#[derive(Debug)]
pub(crate) struct CountSubscription {
    pub(crate) query: EntityCountQuery,
    /// The number that the client has got.
    pub(crate) count: usize,
    due: Instant,
    _held: Charge,
}

/// What is new of one entity.
#[derive(Debug)]
pub(crate) struct RowChange<'a> {
    pub(crate) id: EntityId,
    /// The newest values, by key.
    pub(crate) latest: BTreeMap<&'a str, &'a Update>,
    /// New values of time series, by key, oldest first.
    pub(crate) points: BTreeMap<&'a str, Vec<&'a Update>>,
}

impl Queries {
    /// Without subscriptions. Their bytes are charged to `share`.
    pub(crate) fn new(subscriber: Subscriber, share: Arc<Share>) -> Self {
        let (by_id, by_series, by_entity) = (BTreeMap::new(), HashMap::new(), HashMap::new());
        Self { subscriber, by_id, by_series, by_entity, share, hashes: RandomState::new() }
    }

    /// Adds a subscription of entities; an earlier one with this id must have been removed. It collects updates from now on, so a
    /// read after this call and the updates have no gap between them. Returns the entities whose attributes the client wants live.
    pub(crate) fn put_entities(
        &mut self,
        id: i64,
        query: EntityDataQuery,
        parts: EntityDataCommand,
        entities: &[(Entity, Option<SeriesId>)],
    ) -> Result<Vec<EntityId>, ApiError> {
        self.check_room()?;
        let latest = parts.latest_cmd.as_ref().map(|part| {
            let keys = part.keys.iter().filter(|key| key.kind == KeyKind::TimeSeries);
            // An empty set watches no key; `None` would watch all keys.
            Arc::new(keys.map(|key| key.key.clone()).collect::<HashSet<String>>())
        });
        let points = parts
            .ts_cmd
            .as_ref()
            .map(|part| Arc::new(part.keys.iter().cloned().collect::<HashSet<String>>()));
        let named = bytes_of(latest.iter().chain(&points).flat_map(|keys| keys.iter()));
        let held = self.share.hold(SUBSCRIPTION_BYTES * (1 + entities.len()) + named)?;
        let filter = |keys: &Option<Arc<HashSet<String>>>, kind| {
            let filter =
                |keys: &Arc<HashSet<String>>| UpdateFilter::new(Some(Arc::clone(keys)), kind, &self.share);
            keys.as_ref().map(filter).transpose()
        };
        let mut attributes: Vec<EntityKey> = parts
            .latest_cmd
            .iter()
            .flat_map(|part| part.keys.iter().filter(|key| !key.kind.scopes().is_empty()).cloned())
            .collect();
        attributes.sort_unstable();
        attributes.dedup();
        let row = |(entity, series): &(Entity, Option<SeriesId>)| {
            let (entity, series) = (entity.clone(), *series);
            let (latest, points) =
                (filter(&latest, SubscriptionKind::Latest)?, filter(&points, SubscriptionKind::History)?);
            Ok(Row { entity, series, latest, points, attributes: vec![None; attributes.len()] })
        };
        let rows = entities.iter().map(row).collect::<Result<Vec<Row>, OverBudget>>()?;
        let due = query.page_link.dynamic.then(|| Instant::now() + QUERY_REFRESH_INTERVAL);
        let is_live = latest.is_some() || points.is_some();
        let of_attributes: Vec<EntityId> = match attributes.is_empty() {
            true => Vec::new(),
            false => rows.iter().map(|row| row.entity.id()).collect(),
        };
        let attributes = Arc::new(attributes);
        let subscription = EntitySubscription { query, parts, rows, attributes, due, _held: held };
        self.by_id.insert(id, Query::Entities(Box::new(subscription)));
        for (index, entity) in of_attributes.iter().enumerate() {
            self.by_entity.entry(*entity).or_default().push((id, index));
        }
        if is_live {
            self.watch(id, entities)?;
        }
        Ok(of_attributes)
    }

    fn watch(&mut self, id: i64, entities: &[(Entity, Option<SeriesId>)]) -> Result<(), ApiError> {
        for (index, (_, series)) in entities.iter().enumerate() {
            let Some(series) = *series else { continue };
            if !self.subscriber.watch(series) {
                let limit = hub::live::SERIES_PER_SUBSCRIBER_MAX;
                let message = format!(
                    "this session watches {limit} entities, which is the limit (SERIES_PER_SUBSCRIBER_MAX); end some subscriptions"
                );
                return Err(ApiError::busy(message));
            }
            self.by_series.entry(series).or_default().push((id, index));
        }
        Ok(())
    }

    /// Adds a subscription of a count; an earlier one with this id must have been removed. The query took `cost`.
    pub(crate) fn put_count(
        &mut self,
        id: i64,
        query: EntityCountQuery,
        count: usize,
        cost: Duration,
    ) -> Result<(), ApiError> {
        self.check_room()?;
        let held = self.share.hold(SUBSCRIPTION_BYTES)?;
        let subscription = CountSubscription { query, count, due: next_due(cost), _held: held };
        self.by_id.insert(id, Query::Count(subscription));
        Ok(())
    }

    /// Adds a subscription of alarms; an earlier one with this id must have been removed. The client gets an answer with this hash;
    /// to find it took `cost`.
    pub(crate) fn put_alarms(&mut self, ask: AlarmAsk, sent: u64, cost: Duration) -> Result<(), ApiError> {
        self.check_room()?;
        let held = self.share.hold(SUBSCRIPTION_BYTES)?;
        let subscription = AlarmSubscription::new(ask, sent, cost, held);
        self.by_id.insert(subscription.ask.id, Query::Alarms(Box::new(subscription)));
        Ok(())
    }

    /// Whether an answer differs from the one that the client of a subscription of alarms has got. Records it.
    pub(crate) fn is_new_answer(&mut self, id: i64, hash: u64) -> bool {
        match self.by_id.get_mut(&id) {
            Some(Query::Alarms(subscription)) => std::mem::replace(&mut subscription.sent, hash) != hash,
            _ => false,
        }
    }

    /// Lets the subscriptions of alarms ask again soon.
    pub(crate) fn alarms_changed(&mut self) {
        for query in self.by_id.values_mut() {
            if let Query::Alarms(subscription) = query {
                subscription.changed();
            }
        }
    }

    /// What answers are hashed with.
    pub(crate) fn hashes(&self) -> RandomState {
        self.hashes.clone()
    }

    fn check_room(&self) -> Result<(), ApiError> {
        if self.by_id.len() >= QUERIES_MAX {
            let message = format!(
                "this session has {QUERIES_MAX} subscriptions by queries, which is the limit (QUERIES_MAX); end some or open another one"
            );
            return Err(ApiError::busy(message));
        }
        Ok(())
    }

    /// Ends the subscription with this id, if there is one. Returns the entities whose attributes it has watched.
    pub(crate) fn remove(&mut self, id: i64) -> Vec<EntityId> {
        let Some(Query::Entities(subscription)) = self.by_id.remove(&id) else { return Vec::new() };
        for series in subscription.rows.iter().filter_map(|row| row.series) {
            if forget(&mut self.by_series, series, id) {
                self.subscriber.unwatch(series);
            }
        }
        let entities = subscription.rows.iter().map(|row| row.entity.id());
        let mut watched = Vec::new();
        for entity in entities.filter(|_| !subscription.attributes.is_empty()) {
            forget(&mut self.by_entity, entity, id);
            watched.push(entity);
        }
        watched
    }

    /// The rows that changes of attributes are about.
    pub(crate) fn affected(&self, changes: &BTreeSet<Changed>) -> Vec<LiveRow> {
        let mut rows = BTreeMap::new();
        for (entity, scope) in changes {
            for (id, index) in self.by_entity.get(entity).into_iter().flatten() {
                let Some(Query::Entities(subscription)) = self.by_id.get(id) else { continue };
                let keys = &subscription.attributes;
                if keys.iter().any(|key| key.kind.scopes().contains(scope)) {
                    rows.insert((*id, *index), (subscription.rows[*index].entity.clone(), Arc::clone(keys)));
                }
            }
        }
        let row = |((id, index), (entity, keys))| LiveRow { id, index, entity, keys };
        rows.into_iter().map(row).collect()
    }

    /// The attributes of a row that are not what the client has got.
    pub(crate) fn changed_attributes(
        &mut self,
        row: &LiveRow,
        values: Vec<Option<TimedValue>>,
    ) -> Vec<(EntityKey, Option<TimedValue>)> {
        let mut changed = Vec::new();
        let Some(Query::Entities(subscription)) = self.by_id.get_mut(&row.id) else { return changed };
        let Some(sent) = subscription.rows.get_mut(row.index) else { return changed };
        for ((key, value), sent) in row.keys.iter().zip(values).zip(&mut sent.attributes) {
            let hash = value.as_ref().map(|timed_value| hash_of_timed_value(&self.hashes, timed_value));
            if *sent != hash {
                *sent = hash;
                changed.push((key.clone(), value));
            }
        }
        changed
    }

    /// The subscription with this id.
    pub(crate) fn get(&self, id: i64) -> Option<&Query> {
        self.by_id.get(&id)
    }

    /// The subscription of a count with this id.
    pub(crate) fn count(&mut self, id: i64) -> Option<&mut CountSubscription> {
        match self.by_id.get_mut(&id) {
            Some(Query::Count(subscription)) => Some(subscription),
            _ => None,
        }
    }

    /// Whether live entities wait for their series.
    pub(crate) fn has_unbound(&self) -> bool {
        self.by_id.values().any(|query| matches!(query, Query::Entities(one) if one.has_unbound()))
    }

    /// The subscriptions with live entities that wait for their series.
    pub(crate) fn unbound(&self) -> Vec<i64> {
        let waits = |query: &Query| matches!(query, Query::Entities(one) if one.has_unbound());
        self.by_id.iter().filter(|(_, query)| waits(query)).map(|(id, _)| *id).collect()
    }

    /// Lets the queries of all subscriptions of entities and alarms run again soon.
    pub(crate) fn refresh_all(&mut self) {
        self.alarms_changed();
        for query in self.by_id.values_mut() {
            if let Query::Entities(subscription) = query {
                subscription.due = Some(Instant::now());
            }
        }
    }

    /// Waits for updates. The future may be dropped at any time.
    pub(crate) async fn next(&self) -> Updates {
        self.subscriber.next().await
    }

    /// Waits until a query must run again; returns its id. The future may be dropped at any time.
    pub(crate) async fn due(&self) -> i64 {
        let due = self.by_id.iter().filter_map(|(id, query)| Some((query.due()?, *id)));
        match due.min() {
            Some((at, id)) => {
                sleep_until(at).await;
                id
            }
            None => std::future::pending().await,
        }
    }

    /// Sets when a query that took `cost` runs again.
    pub(crate) fn refreshed(&mut self, id: i64, cost: Duration) {
        match self.by_id.get_mut(&id) {
            Some(Query::Entities(one)) => one.due = one.query.page_link.dynamic.then(|| next_due(cost)),
            Some(Query::Count(one)) => one.due = next_due(cost),
            Some(Query::Alarms(one)) => one.asked(cost),
            None => {}
        }
    }

    /// Records the values of a reply: of the keys that the client wants live.
    pub(crate) fn record(
        &mut self,
        id: i64,
        keys: &[EntityKey],
        values: &[EntityValues],
    ) -> Result<(), OverBudget> {
        let Some(Query::Entities(subscription)) = self.by_id.get_mut(&id) else { return Ok(()) };
        let live = &subscription.attributes;
        let places: Vec<Option<usize>> = live.iter().map(|key| keys.binary_search(key).ok()).collect();
        for (row, values) in subscription.rows.iter_mut().zip(values) {
            for (sent, place) in row.attributes.iter_mut().zip(&places) {
                let timed_value = place.and_then(|place| values.latest[place].as_ref());
                *sent = timed_value.map(|timed_value| hash_of_timed_value(&self.hashes, timed_value));
            }
            if let Some(filter) = &mut row.latest {
                let is_live = |(key, _): &(&EntityKey, &Option<TimedValue>)| key.kind == KeyKind::TimeSeries;
                let live = keys.iter().zip(&values.latest).filter(is_live);
                let data: Data = live
                    .filter_map(|(key, timed_value)| Some((key.key.clone(), vec![timed_value.clone()?])))
                    .collect();
                filter.record(&data, &self.share, &self.hashes)?;
            }
            if let Some(filter) = &mut row.points {
                filter.record(&values.series, &self.share, &self.hashes)?;
            }
        }
        Ok(())
    }

    /// Forgets the values of replies from before the last call.
    pub(crate) fn forget_replies(&mut self) {
        for query in self.by_id.values_mut() {
            let Query::Entities(subscription) = query else { continue };
            for row in &mut subscription.rows {
                row.latest.iter_mut().chain(&mut row.points).for_each(UpdateFilter::forget_old);
            }
        }
    }

    /// What is new for each subscription, split into messages of bounded length. Fails if a subscription would
    /// remember too many bytes.
    pub(crate) fn changes<'a>(
        &mut self,
        updates: &'a [Arc<Update>],
    ) -> Result<Vec<(i64, Vec<RowChange<'a>>)>, OverBudget> {
        let mut changes: BTreeMap<i64, Messages<'a>> = BTreeMap::new();
        for (series, updates) in by_series(updates) {
            for (id, index) in self.by_series.get(&series).into_iter().flatten() {
                let Some(Query::Entities(subscription)) = self.by_id.get_mut(id) else { continue };
                let Some(row) = subscription.rows.get_mut(*index) else { continue };
                let (change, bytes) = row.change(&updates, &self.hashes)?;
                if bytes > 0 {
                    changes.entry(*id).or_default().push(change, bytes);
                }
            }
        }
        let flat =
            |(id, messages): (i64, Messages<'a>)| messages.done.into_iter().map(move |rows| (id, rows));
        Ok(changes.into_iter().flat_map(flat).collect())
    }
}

/// Changes of one subscription as messages.
#[derive(Debug, Default)]
struct Messages<'a> {
    done: Vec<Vec<RowChange<'a>>>,
    bytes: usize,
}

impl<'a> Messages<'a> {
    fn push(&mut self, change: RowChange<'a>, bytes: usize) {
        if self.done.is_empty() || self.bytes >= UPDATE_BYTES_MAX {
            self.done.push(Vec::new());
            self.bytes = 0;
        }
        self.bytes += bytes;
        self.done.last_mut().expect("BUG: the first change begins a message").push(change);
    }
}

impl Query {
    fn due(&self) -> Option<Instant> {
        match self {
            Self::Entities(subscription) => subscription.due,
            Self::Count(subscription) => Some(subscription.due),
            Self::Alarms(subscription) => Some(subscription.due),
        }
    }
}

impl EntitySubscription {
    /// The entities of the page.
    pub(crate) fn page(&self) -> impl Iterator<Item = (&Entity, Option<SeriesId>)> {
        self.rows.iter().map(|row| (&row.entity, row.series))
    }

    fn has_unbound(&self) -> bool {
        self.rows.iter().any(|row| row.series.is_none() && (row.latest.is_some() || row.points.is_some()))
    }
}

impl Row {
    /// What is new in updates of its series, and about how long it is as text.
    fn change<'a>(
        &mut self,
        updates: &[&'a Update],
        hashes: &RandomState,
    ) -> Result<(RowChange<'a>, usize), OverBudget> {
        let (latest, points) = (BTreeMap::new(), BTreeMap::new());
        let mut change: RowChange<'a> = RowChange { id: self.entity.id(), latest, points };
        let mut bytes = 0;
        for update in updates {
            let length = update.key.len() + bytes_of_value(&update.value);
            if let Some(filter) = &mut self.latest
                && filter.wants(update, hashes)?
            {
                change.latest.insert(&update.key, update);
                bytes += length;
            }
            if let Some(filter) = &mut self.points
                && filter.wants(update, hashes)?
            {
                change.points.entry(&update.key).or_default().push(update);
                bytes += length;
            }
        }
        // A stable sort: two values with one time keep their order.
        change.points.values_mut().for_each(|timed_values| timed_values.sort_by_key(|update| update.ts));
        Ok((change, bytes))
    }
}

/// Forgets the rows of a subscription. Returns whether none is left.
fn forget<K: Eq + std::hash::Hash>(rows: &mut HashMap<K, Vec<(i64, usize)>>, of: K, id: i64) -> bool {
    let Some(left) = rows.get_mut(&of) else { return false };
    left.retain(|(other, _)| *other != id);
    let is_empty = left.is_empty();
    if is_empty {
        rows.remove(&of);
    }
    is_empty
}

fn hash_of_timed_value(hashes: &RandomState, (ts, value): &TimedValue) -> u64 {
    hashes.hash_one((ts, hash_of(hashes, value)))
}

/// When a query that took `cost` runs again: long queries run less often.
fn next_due(cost: Duration) -> Instant {
    Instant::now() + QUERY_REFRESH_INTERVAL.max(cost * QUERY_REFRESH_FACTOR)
}
