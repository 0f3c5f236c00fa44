//! The subscriptions of one session: their series and keys, and the values that the session has already sent.

use std::collections::{BTreeMap, HashMap};
use std::hash::RandomState;
use std::sync::Arc;

use hub::live::{Subscriber, Update, Updates};
use model::SeriesId;
use uuid::Uuid;

use super::pending_read::ReadFrom;
use super::update::{Data, News, bytes_of_value};
use super::update_filter::{SubscriptionKind, UpdateFilter, bytes_of};
use crate::budget::{Charge, OverBudget, Share};
use crate::error::ApiError;
use crate::http::limits::{SUBSCRIPTION_BYTES, SUBSCRIPTIONS_MAX, UPDATE_BYTES_MAX};

#[derive(Debug)]
struct Subscription {
    device: Uuid,
    /// `None` until the device has reported for the first time.
    series: Option<SeriesId>,
    filter: UpdateFilter,
    /// Bytes of the subscription and its keys.
    _named: Charge,
}

/// A summary of a subscription.
#[derive(Debug)]
pub(crate) struct Summary {
    pub(crate) id: i64,
    pub(crate) device: Uuid,
    pub(crate) series: Option<SeriesId>,
    pub(crate) keys: Option<Vec<String>>,
    pub(crate) kind: SubscriptionKind,
}

/// All subscriptions of a session, and the subscriber that collects their updates.
#[derive(Debug)]
pub(crate) struct Subscriptions {
    subscriber: Subscriber,
    by_id: BTreeMap<i64, Subscription>,
    by_series: HashMap<SeriesId, Vec<i64>>,
    /// What subscriptions of devices without a series read when the series is there.
    unbound: BTreeMap<i64, (ReadFrom, Charge)>,
    share: Arc<Share>,
    hashes: RandomState,
}

impl Subscriptions {
    /// Without subscriptions. Their bytes are charged to `share`.
    pub(crate) fn new(subscriber: Subscriber, share: Arc<Share>) -> Self {
        let (by_id, by_series, unbound) = (BTreeMap::new(), HashMap::new(), BTreeMap::new());
        Self { subscriber, by_id, by_series, unbound, share, hashes: RandomState::new() }
    }

    /// Adds a subscription, or replaces the one with the same id. It collects updates from now on, so a read after this call
    /// and the updates have no gap between them. Without a series it collects none: see [`bind_later`](Self::bind_later).
    pub(crate) fn add(
        &mut self,
        id: i64,
        device: Uuid,
        series: Option<SeriesId>,
        keys: Option<&[String]>,
        kind: SubscriptionKind,
    ) -> Result<(), ApiError> {
        self.remove(id);
        let named = self.share.hold(SUBSCRIPTION_BYTES + bytes_of(keys.into_iter().flatten()))?;
        let room =
            self.by_id.len() < SUBSCRIPTIONS_MAX && series.is_none_or(|series| self.subscriber.watch(series));
        if !room {
            let message = format!(
                "this session has {SUBSCRIPTIONS_MAX} subscriptions, which is the limit; end some or open another one"
            );
            return Err(ApiError::busy(message));
        }
        let keys = keys.map(|keys| Arc::new(keys.iter().cloned().collect()));
        let filter = UpdateFilter::new(keys, kind, &self.share)?;
        let subscription = Subscription { device, series, filter, _named: named };
        self.by_id.insert(id, subscription);
        if let Some(series) = series {
            self.by_series.entry(series).or_default().push(id);
        }
        Ok(())
    }

    /// Notes what a subscription without a series must read when the series is there.
    /// Its keys count for the session; without room the subscription ends.
    pub(crate) fn bind_later(&mut self, id: i64, from: ReadFrom) -> Result<(), OverBudget> {
        match self.share.hold(bytes_of(from.keys().into_iter().flatten())) {
            Ok(held) => drop(self.unbound.insert(id, (from, held))),
            Err(over) => {
                self.remove(id);
                return Err(over);
            }
        }
        Ok(())
    }

    /// Whether subscriptions wait for a series.
    pub(crate) fn has_unbound(&self) -> bool {
        !self.unbound.is_empty()
    }

    /// What a subscription that waited for its series must read.
    pub(crate) fn take_unbound(&mut self, id: i64) -> Option<ReadFrom> {
        self.unbound.remove(&id).map(|(from, _)| from)
    }

    /// Ends the subscription with this id, if there is one.
    pub(crate) fn remove(&mut self, id: i64) {
        self.unbound.remove(&id);
        let Some(Subscription { series: Some(series), .. }) = self.by_id.remove(&id) else { return };
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
            device: one.device,
            series: one.series,
            keys: one.filter.keys().map(|keys| keys.iter().cloned().collect()),
            kind: one.filter.kind(),
        })
    }

    /// Records the values of the initial reply.
    pub(crate) fn record_reply(&mut self, id: i64, data: &Data) -> Result<(), OverBudget> {
        match self.by_id.get_mut(&id) {
            Some(subscription) => subscription.filter.record(data, &self.share, &self.hashes),
            None => Ok(()),
        }
    }

    /// Forgets the values of initial replies from before the last call.
    pub(crate) fn forget_replies(&mut self) {
        self.by_id.values_mut().for_each(|subscription| subscription.filter.forget_old());
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
    /// Fails if the subscription would remember too many bytes.
    pub(crate) fn news<'a>(&mut self, id: i64, updates: &[&'a Update]) -> Result<Vec<News<'a>>, OverBudget> {
        let mut messages: Vec<News<'a>> = Vec::new();
        let Some(subscription) = self.by_id.get_mut(&id) else { return Ok(messages) };
        let mut bytes = UPDATE_BYTES_MAX;
        for update in updates {
            if !subscription.filter.wants(update, &self.hashes)? {
                continue;
            }
            if bytes >= UPDATE_BYTES_MAX {
                messages.push(News::new());
                bytes = 0;
            }
            let message = messages.last_mut().expect("BUG: the first update begins a message");
            message.entry(update.key.as_str()).or_default().push(update);
            bytes += update.key.len() + bytes_of_value(&update.value);
        }
        for message in &mut messages {
            // A stable sort: two values with one time keep their order.
            message.values_mut().for_each(|timed_values| timed_values.sort_by_key(|update| update.ts));
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

#[cfg(test)]
mod tests {
    use hub::Metrics;
    use hub::live::Live;
    use model::{Timestamp, Value};

    use super::*;
    use crate::budget::{Budget, Limit, Limits, Owner};
    use crate::http::limits::SUBSCRIPTION_BUDGET;

    fn subscriptions() -> Subscriptions {
        let live = Arc::new(Live::new(Arc::new(Metrics::new())));
        let share = Budget::new(SUBSCRIPTION_BUDGET).share(Owner::login(Uuid::nil()));
        Subscriptions::new(live.connection(Uuid::nil(), Uuid::nil()).subscriber(), share)
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
                for (key, timed_values) in all.news(id, &updates).unwrap().into_iter().flatten() {
                    let timed_values =
                        timed_values.iter().map(|update| (update.ts.micros(), update.value.clone()));
                    found.push((id, key.to_owned(), timed_values.collect()));
                }
            }
        }
        found
    }

    #[test]
    fn the_latest_value_never_goes_back_in_time() {
        let mut all = subscriptions();
        all.add(1, Uuid::nil(), Some(SeriesId(1)), None, SubscriptionKind::Latest).unwrap();
        let told = Data::from([("a".to_owned(), vec![(Timestamp::from_micros(10), Value::I64(2))])]);
        all.record_reply(1, &told).unwrap();
        let mut after = |updates: Vec<Update>| {
            sort_out(&mut all, updates)
                .into_iter()
                .flat_map(|(_, _, timed_values)| timed_values)
                .collect::<Vec<_>>()
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
        all.add(1, Uuid::nil(), Some(SeriesId(1)), None, SubscriptionKind::History).unwrap();
        all.add(2, Uuid::nil(), Some(SeriesId(1)), Some(&["b".to_owned()]), SubscriptionKind::History)
            .unwrap();
        all.add(3, Uuid::nil(), Some(SeriesId(2)), None, SubscriptionKind::History).unwrap();
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
        all.add(1, Uuid::nil(), Some(SeriesId(1)), None, SubscriptionKind::History).unwrap();
        let long = Value::String("x".repeat(UPDATE_BYTES_MAX / 2));
        let updates = (0..5).map(|ts| Update { value: long.clone(), ..update(1, "a", ts, 0) }).collect();
        let found = sort_out(&mut all, updates);
        let times = found.iter().map(|(.., timed_values)| timed_values.iter().map(|(ts, _)| *ts).collect());
        assert_eq!(times.collect::<Vec<Vec<i64>>>(), [vec![0, 1], vec![2, 3], vec![4]]);
    }

    #[test]
    fn all_values_of_the_initial_reply_are_sent_once() {
        let mut all = subscriptions();
        all.add(1, Uuid::nil(), Some(SeriesId(1)), None, SubscriptionKind::History).unwrap();
        let timed_values = [5, 10, 20].map(|ts| (Timestamp::from_micros(ts), Value::I64(ts)));
        all.record_reply(1, &Data::from([("a".to_owned(), timed_values.to_vec())])).unwrap();
        let updates = [5, 7, 10, 20, 30].map(|ts| update(1, "a", ts, ts)).into();
        let times: Vec<i64> = sort_out(&mut all, updates)
            .into_iter()
            .flat_map(|(_, _, timed_values)| timed_values.into_iter().map(|(ts, _)| ts))
            .collect();
        assert_eq!(times, [7, 30]);
    }

    #[test]
    fn only_a_repetition_of_the_initial_reply_is_dropped() {
        let mut all = subscriptions();
        all.add(1, Uuid::nil(), Some(SeriesId(1)), None, SubscriptionKind::History).unwrap();
        let told = Data::from([("a".to_owned(), vec![(Timestamp::from_micros(10), Value::I64(2))])]);
        let mut after = |updates: Vec<Update>| {
            all.record_reply(1, &told).unwrap();
            sort_out(&mut all, updates)
                .into_iter()
                .flat_map(|(_, _, timed_values)| timed_values)
                .collect::<Vec<_>>()
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
        all.add(1, Uuid::nil(), Some(SeriesId(1)), None, SubscriptionKind::History).unwrap();
        all.add(2, Uuid::nil(), Some(SeriesId(1)), None, SubscriptionKind::History).unwrap();
        all.add(1, Uuid::nil(), Some(SeriesId(2)), None, SubscriptionKind::History).unwrap();
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
            all.add(id, Uuid::nil(), Some(SeriesId(1)), None, SubscriptionKind::History).unwrap();
        }
        assert!(
            all.add(-1, Uuid::nil(), Some(SeriesId(1)), None, SubscriptionKind::History)
                .unwrap_err()
                .message
                .contains("limit")
        );
        assert!(
            all.add(5, Uuid::nil(), Some(SeriesId(1)), None, SubscriptionKind::History).is_ok(),
            "replacing one adds none"
        );
    }

    #[test]
    fn the_memory_of_subscriptions_is_bounded_and_released() {
        let live = Arc::new(Live::new(Arc::new(Metrics::new())));
        let limit = |name, bytes| Limit { name, bytes };
        let (share, login, total) = (limit("ONE", 10_000), limit("LOGIN", 20_000), limit("ALL", 20_000));
        let budget = Budget::new(Limits { what: "subscriptions", share, login, total });
        let subscriber = live.connection(Uuid::nil(), Uuid::nil()).subscriber();
        let mut all = Subscriptions::new(subscriber, budget.share(Owner::login(Uuid::nil())));
        let keys: Vec<String> = (0..20).map(|n| n.to_string()).collect();
        let mut add = |id| all.add(id, Uuid::nil(), Some(SeriesId(1)), Some(&keys), SubscriptionKind::Latest);
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
        all.add(1, Uuid::nil(), Some(SeriesId(1)), None, SubscriptionKind::Latest).unwrap();
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
