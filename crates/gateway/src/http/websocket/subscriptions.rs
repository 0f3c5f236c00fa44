//! The subscriptions of one session: their series and keys, and the values that the session has already sent.

use std::collections::{BTreeMap, HashMap, HashSet};
use std::hash::{BuildHasher, Hash, Hasher, RandomState};
use std::sync::Arc;

use hub::live::{Subscriber, Update, Updates};
use hub::registry::Device;
use model::{SeriesId, Timestamp, Value};
use uuid::Uuid;

use super::update::{Data, News, bytes_of_sample};
use crate::budget::{Charge, OverBudget, Share};
use crate::error::ApiError;
use crate::http::limits::{REMEMBERED_KEY_BYTES, SUBSCRIPTION_BYTES, SUBSCRIPTIONS_MAX, UPDATE_BYTES_MAX};

/// One subscription.
#[derive(Debug)]
struct Subscription {
    device: Arc<Device>,
    series: SeriesId,
    /// All keys when `None`.
    keys: Option<HashSet<String>>,
    kind: Kind,
    /// The newest value per key of the initial reply, until an update shows whether it repeats it: its time and its
    /// fingerprint, because a value may be long.
    replied: HashMap<String, (Timestamp, u64)>,
    /// For latest values: the time of the newest sent value per key. Older values that arrive late are history.
    newest: HashMap<String, Timestamp>,
    /// Bytes of the subscription and its keys.
    _named: Charge,
    /// Bytes of `newest`.
    newest_bytes: Charge,
    /// Bytes of `replied`.
    replied_bytes: Option<Charge>,
}

/// The kind of a subscription.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Kind {
    /// The latest value of each key: its time never goes back.
    Latest,
    /// All values from a time on, including late ones.
    History,
}

/// A summary of a subscription.
#[derive(Debug)]
pub(crate) struct Summary {
    pub(crate) id: i64,
    pub(crate) device: Uuid,
    pub(crate) series: SeriesId,
    pub(crate) keys: Option<Vec<String>>,
    pub(crate) kind: Kind,
}

/// All subscriptions of a session, and the subscriber that collects their updates.
#[derive(Debug)]
pub(crate) struct Subscriptions {
    subscriber: Subscriber,
    by_id: BTreeMap<i64, Subscription>,
    by_series: HashMap<SeriesId, Vec<i64>>,
    share: Arc<Share>,
    fingerprints: RandomState,
}

impl Subscriptions {
    /// Without subscriptions. Their bytes are charged to `share`.
    pub(crate) fn new(subscriber: Subscriber, share: Arc<Share>) -> Self {
        let (by_id, by_series) = (BTreeMap::new(), HashMap::new());
        Self { subscriber, by_id, by_series, share, fingerprints: RandomState::new() }
    }

    /// Adds a subscription, or replaces the one with the same id. It collects updates from now on, so a read after this call
    /// and the updates have no gap between them.
    pub(crate) fn add(
        &mut self,
        id: i64,
        device: Arc<Device>,
        series: SeriesId,
        keys: Option<&[String]>,
        kind: Kind,
    ) -> Result<(), ApiError> {
        self.remove(id);
        let named = self.share.hold(SUBSCRIPTION_BYTES + bytes_of(keys.into_iter().flatten()))?;
        let room = self.by_id.len() < SUBSCRIPTIONS_MAX && self.subscriber.watch(series);
        if !room {
            let message = format!(
                "this session has {SUBSCRIPTIONS_MAX} subscriptions, which is the limit; end some or open another one"
            );
            return Err(ApiError::busy(message));
        }
        let keys = keys.map(|keys| keys.iter().cloned().collect());
        let subscription = Subscription {
            device,
            series,
            keys,
            kind,
            replied: HashMap::new(),
            newest: HashMap::new(),
            _named: named,
            newest_bytes: self.share.hold(0)?,
            replied_bytes: None,
        };
        self.by_id.insert(id, subscription);
        self.by_series.entry(series).or_default().push(id);
        Ok(())
    }

    /// Ends the subscription with this id, if there is one.
    pub(crate) fn remove(&mut self, id: i64) {
        let Some(Subscription { series, .. }) = self.by_id.remove(&id) else { return };
        if let Some(ids) = self.by_series.get_mut(&series) {
            ids.retain(|other| *other != id);
            if ids.is_empty() {
                self.by_series.remove(&series);
                self.subscriber.unwatch(series);
            }
        }
    }

    /// All subscriptions.
    pub(crate) fn all(&self) -> impl Iterator<Item = Summary> {
        self.by_id.iter().map(|(id, one)| Summary {
            id: *id,
            device: one.device.id,
            series: one.series,
            keys: one.keys.as_ref().map(|keys| keys.iter().cloned().collect()),
            kind: one.kind,
        })
    }

    /// Records the values of the initial reply.
    pub(crate) fn record_reply(&mut self, id: i64, data: &Data) -> Result<(), OverBudget> {
        let Some(subscription) = self.by_id.get_mut(&id) else { return Ok(()) };
        let bytes = bytes_of(data.keys());
        subscription.replied_bytes = None;
        subscription.replied_bytes = Some(self.share.hold(bytes)?);
        let newest = data.iter().filter_map(|(key, samples)| {
            let (ts, value) = samples.last()?;
            Some((key.clone(), (*ts, fingerprint(&self.fingerprints, value))))
        });
        subscription.replied = newest.collect();
        if subscription.kind == Kind::Latest {
            subscription.newest_bytes = self.share.hold(bytes)?;
            let times = subscription.replied.iter().map(|(key, (ts, _))| (key.clone(), *ts));
            subscription.newest = times.collect();
        }
        Ok(())
    }

    /// Forgets the values of initial replies: updates from the time of the replies have arrived by now.
    pub(crate) fn forget_replies(&mut self) {
        for subscription in self.by_id.values_mut() {
            subscription.replied = HashMap::new();
            subscription.replied_bytes = None;
        }
    }

    /// Waits for updates. The future may be dropped at any time.
    pub(crate) async fn next(&self) -> Updates {
        self.subscriber.next().await
    }

    /// The subscriptions of a series.
    pub(crate) fn of(&self, series: SeriesId) -> Vec<i64> {
        self.by_series.get(&series).cloned().unwrap_or_default()
    }

    /// The new values for a subscription in updates of its series, oldest first per key, split into messages of bounded length.
    /// Fails if the subscription would have to remember too many bytes.
    pub(crate) fn news<'a>(&mut self, id: i64, updates: &[&'a Update]) -> Result<Vec<News<'a>>, OverBudget> {
        let mut messages: Vec<News<'a>> = Vec::new();
        let Some(subscription) = self.by_id.get_mut(&id) else { return Ok(messages) };
        let mut bytes = UPDATE_BYTES_MAX;
        for update in updates {
            if !subscription.wants(update, &self.fingerprints)? {
                continue;
            }
            if bytes >= UPDATE_BYTES_MAX {
                messages.push(News::new());
                bytes = 0;
            }
            let message = messages.last_mut().expect("BUG: the first update begins a message");
            message.entry(update.key.as_str()).or_default().push(update);
            bytes += update.key.len() + bytes_of_sample(&update.value);
        }
        for message in &mut messages {
            // A stable sort: two values with one time keep their order.
            message.values_mut().for_each(|samples| samples.sort_by_key(|update| update.ts));
        }
        Ok(messages)
    }
}

/// Groups updates by series, in the order of the first update of each series.
pub(crate) fn by_series(updates: &[Arc<Update>]) -> Vec<(SeriesId, Vec<&Update>)> {
    let mut found: Vec<(SeriesId, Vec<&Update>)> = Vec::new();
    let mut indices: HashMap<SeriesId, usize> = HashMap::new();
    for update in updates {
        let index = *indices.entry(update.series).or_insert_with(|| {
            found.push((update.series, Vec::new()));
            found.len() - 1
        });
        found[index].1.push(update);
    }
    found
}

/// About the bytes of keys in memory, each with a time.
pub(super) fn bytes_of<'a>(keys: impl IntoIterator<Item = &'a String>) -> usize {
    keys.into_iter().map(|key| key.len() + REMEMBERED_KEY_BYTES).sum()
}

/// A hash of a value. Different values almost never have the same one.
fn fingerprint(with: &RandomState, value: &Value) -> u64 {
    let mut hasher = with.build_hasher();
    std::mem::discriminant(value).hash(&mut hasher);
    match value {
        Value::Bool(value) => value.hash(&mut hasher),
        Value::I64(value) => value.hash(&mut hasher),
        Value::F64(value) => value.to_bits().hash(&mut hasher),
        Value::String(text) | Value::Json(text) => text.hash(&mut hasher),
    }
    hasher.finish()
}

impl Subscription {
    /// Whether the session must send the update.
    fn wants(&mut self, update: &Update, fingerprints: &RandomState) -> Result<bool, OverBudget> {
        if self.keys.as_ref().is_some_and(|keys| !keys.contains(&update.key)) {
            return Ok(false);
        }
        Ok(self.is_new(update, fingerprints) && self.advance(update)?)
    }

    /// Whether the update differs from the initial reply.
    fn is_new(&mut self, update: &Update, fingerprints: &RandomState) -> bool {
        match self.replied.get(&update.key) {
            None => true,
            // Older than the replied value, but the reply may not have contained it.
            Some((ts, _)) if update.ts < *ts => true,
            // The first update at or after the replied time decides. Later values with the same time are corrections.
            Some(_) => {
                let found = (update.ts, fingerprint(fingerprints, &update.value));
                self.replied.remove(&update.key) != Some(found)
            }
        }
    }

    /// Whether the update is not older than the newest sent value. Records its time.
    fn advance(&mut self, update: &Update) -> Result<bool, OverBudget> {
        if self.kind == Kind::History {
            return Ok(true);
        }
        match self.newest.get_mut(&update.key) {
            Some(newest) if update.ts < *newest => return Ok(false),
            Some(newest) => *newest = update.ts,
            None => {
                self.newest_bytes.grow(bytes_of([&update.key]))?;
                self.newest.insert(update.key.clone(), update.ts);
            }
        }
        Ok(true)
    }
}

#[cfg(test)]
mod tests {
    use hub::live::Live;
    use hub::registry::Profile;
    use hub::{Durability, Metrics};

    use super::*;
    use crate::budget::{Budget, Limit, Limits};
    use crate::http::limits::SUBSCRIPTION_BUDGET;

    fn device() -> Arc<Device> {
        let id = Uuid::from_u128(1);
        let (name, table) = ("default".to_owned(), "telemetry".try_into().unwrap());
        let profile = Arc::new(Profile {
            id,
            tenant: id,
            name,
            table,
            durability: Durability::Fsync,
            description: None,
            data: None,
            is_default: true,
            created_at: Timestamp::from_micros(0),
            version: 1,
        });
        Arc::new(Device {
            id,
            tenant: id,
            name: "d".into(),
            profile,
            created_at: Timestamp::from_micros(0),
            gateway: false,
            last_gateway: None,
            customer: None,
            label: None,
            additional_info: None,
            version: 1,
        })
    }

    fn subscriptions() -> Subscriptions {
        let live = Arc::new(Live::new(Arc::new(Metrics::new())));
        let share = Budget::new(SUBSCRIPTION_BUDGET).share(Uuid::nil());
        Subscriptions::new(live.connection(Uuid::nil()).subscriber(), share)
    }

    fn update(series: u64, key: &str, ts: i64, value: i64) -> Update {
        let (series, ts) = (SeriesId(series), Timestamp::from_micros(ts));
        Update { series, key: key.into(), ts, value: Value::I64(value) }
    }

    type Flat = Vec<(i64, String, Vec<(i64, Value)>)>;

    /// The lists of updates for all subscriptions.
    fn sort_out(all: &mut Subscriptions, updates: Vec<Update>) -> Flat {
        let updates: Vec<_> = updates.into_iter().map(Arc::new).collect();
        let mut found = Vec::new();
        for (series, updates) in by_series(&updates) {
            for id in all.of(series) {
                for (key, samples) in all.news(id, &updates).unwrap().into_iter().flatten() {
                    let samples = samples.iter().map(|update| (update.ts.micros(), update.value.clone()));
                    found.push((id, key.to_owned(), samples.collect()));
                }
            }
        }
        found
    }

    #[test]
    fn the_latest_value_never_goes_back_in_time() {
        let mut all = subscriptions();
        all.add(1, device(), SeriesId(1), None, Kind::Latest).unwrap();
        let told = Data::from([("a".to_owned(), vec![(Timestamp::from_micros(10), Value::I64(2))])]);
        all.record_reply(1, &told).unwrap();
        let mut after = |updates: Vec<Update>| {
            sort_out(&mut all, updates).into_iter().flat_map(|(_, _, samples)| samples).collect::<Vec<_>>()
        };
        let value = Value::I64;
        // The values are older than the initial reply, then older than an update. The session still drops a repetition of the reply.
        assert_eq!(after(vec![update(1, "a", 9, 7), update(1, "a", 10, 2)]), []);
        assert_eq!(after(vec![update(1, "a", 30, 3), update(1, "a", 20, 4)]), [(30, value(3))]);
        assert_eq!(after(vec![update(1, "a", 29, 5)]), []);
        // A correction of the same time, and a key that the reply did not hold.
        assert_eq!(after(vec![update(1, "a", 30, 6), update(1, "b", 1, 1)]), [(30, value(6)), (1, value(1))]);
        assert_eq!(after(vec![update(1, "b", 0, 1)]), []);
        all.forget_replies();
        let mut after = |updates: Vec<Update>| sort_out(&mut all, updates).len();
        assert_eq!(after(vec![update(1, "a", 29, 5)]), 0);
        assert_eq!(after(vec![update(1, "a", 31, 5)]), 1);
    }

    #[test]
    fn updates_of_one_wake_become_one_list_per_subscription() {
        let mut all = subscriptions();
        all.add(1, device(), SeriesId(1), None, Kind::History).unwrap();
        all.add(2, device(), SeriesId(1), Some(&["b".to_owned()]), Kind::History).unwrap();
        all.add(3, device(), SeriesId(2), None, Kind::History).unwrap();
        let updates =
            vec![update(1, "a", 20, 2), update(1, "b", 20, 3), update(1, "a", 10, 1), update(9, "a", 1, 1)];
        let value = Value::I64;
        assert_eq!(
            sort_out(&mut all, updates),
            [
                (1, "a".to_owned(), vec![(10, value(1)), (20, value(2))]),
                (1, "b".to_owned(), vec![(20, value(3))]),
                (2, "b".to_owned(), vec![(20, value(3))]),
            ]
        );
    }

    #[test]
    fn long_updates_are_several_messages_in_the_order_of_arrival() {
        let mut all = subscriptions();
        all.add(1, device(), SeriesId(1), None, Kind::History).unwrap();
        let long = Value::String("x".repeat(UPDATE_BYTES_MAX / 2));
        let updates = (0..5).map(|ts| Update { value: long.clone(), ..update(1, "a", ts, 0) }).collect();
        let found = sort_out(&mut all, updates);
        let times = found.iter().map(|(.., samples)| samples.iter().map(|(ts, _)| *ts).collect());
        assert_eq!(times.collect::<Vec<Vec<i64>>>(), [vec![0, 1], vec![2, 3], vec![4]]);
    }

    #[test]
    fn only_a_repetition_of_the_initial_reply_is_dropped() {
        let mut all = subscriptions();
        all.add(1, device(), SeriesId(1), None, Kind::History).unwrap();
        let told = Data::from([("a".to_owned(), vec![(Timestamp::from_micros(10), Value::I64(2))])]);
        let mut after = |updates: Vec<Update>| {
            all.record_reply(1, &told).unwrap();
            sort_out(&mut all, updates).into_iter().flat_map(|(_, _, samples)| samples).collect::<Vec<_>>()
        };
        let value = Value::I64;
        assert_eq!(after(vec![update(1, "a", 10, 2)]), []);
        assert_eq!(after(vec![update(1, "a", 10, 2), update(1, "a", 10, 2)]), [(10, value(2))]);
        assert_eq!(after(vec![update(1, "a", 11, 2)]), [(11, value(2))]);
        assert_eq!(after(vec![update(1, "a", 9, 7), update(1, "a", 10, 2)]), [(9, value(7))]);
        // Another value replaced it in between: the client must end with the stored value.
        assert_eq!(
            after(vec![update(1, "a", 10, 1), update(1, "a", 10, 2)]),
            [(10, value(1)), (10, value(2))]
        );
    }

    #[test]
    fn the_last_subscription_of_a_series_stops_watching() {
        let mut all = subscriptions();
        all.add(1, device(), SeriesId(1), None, Kind::History).unwrap();
        all.add(2, device(), SeriesId(1), None, Kind::History).unwrap();
        all.add(1, device(), SeriesId(2), None, Kind::History).unwrap();
        assert!(sort_out(&mut all, vec![update(1, "a", 1, 1)]).iter().all(|(id, ..)| *id == 2));
        all.remove(2);
        assert!(all.by_series.keys().eq([&SeriesId(2)]));
        all.remove(2);
        all.remove(1);
        assert!(all.by_id.is_empty() && all.by_series.is_empty());
    }

    #[test]
    fn a_session_has_a_bounded_number_of_subscriptions() {
        let mut all = subscriptions();
        for id in 0..SUBSCRIPTIONS_MAX as i64 {
            all.add(id, device(), SeriesId(1), None, Kind::History).unwrap();
        }
        assert!(
            all.add(-1, device(), SeriesId(1), None, Kind::History).unwrap_err().message.contains("limit")
        );
        assert!(all.add(5, device(), SeriesId(1), None, Kind::History).is_ok(), "replacing one adds none");
    }

    #[test]
    fn the_memory_of_subscriptions_is_bounded_and_released() {
        let live = Arc::new(Live::new(Arc::new(Metrics::new())));
        let limit = |name, bytes| Limit { name, bytes };
        let (share, login, total) = (limit("ONE", 10_000), limit("LOGIN", 20_000), limit("ALL", 20_000));
        let budget = Budget::new(Limits { what: "subscriptions", share, login, total });
        let subscriber = live.connection(Uuid::nil()).subscriber();
        let mut all = Subscriptions::new(subscriber, budget.share(Uuid::nil()));
        let keys: Vec<String> = (0..20).map(|n| n.to_string()).collect();
        let mut add = |id| all.add(id, device(), SeriesId(1), Some(&keys), Kind::Latest);
        let added = (0..100).take_while(|id| add(*id).is_ok()).count();
        assert!((2..5).contains(&added), "{added}");
        let refused = add(99).unwrap_err();
        assert!(
            refused.status.as_u16() == 429 && refused.message.contains("ONE is 10000"),
            "{}",
            refused.message
        );
        (0..added as i64).for_each(|id| all.remove(id));
        assert_eq!(budget.total(), 0);
        // All keys of a device that invents one with every message.
        all.add(1, device(), SeriesId(1), None, Kind::Latest).unwrap();
        let mut sent = 0;
        let over = loop {
            let key = format!("key {sent}");
            match all.news(1, &[&update(1, &key, 1, 1)]) {
                Ok(_) => sent += 1,
                Err(over) => break over,
            }
        };
        assert!(sent > 50 && over.limit.name == "ONE", "{sent} {over}");
        drop(all);
        assert_eq!(budget.total(), 0);
    }
}
