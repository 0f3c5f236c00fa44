//! The index of subscriptions against a list of all filters.

use std::sync::Arc;

use proptest::prelude::*;
use uuid::Uuid;

use super::index::{Subscriber, SubscriptionIndex};
use super::session::{Session, SessionKey, State};
use super::subscription::{Quality, SubscriptionOptions};
use model::topic::matches;

fn session(id: u64) -> Arc<Session> {
    let key = SessionKey { device: Uuid::nil(), client_id: id.to_string().into() };
    Arc::new(Session::new(id, Uuid::nil(), key, false, State::default()))
}

const OPTIONS: SubscriptionOptions = SubscriptionOptions {
    qos: Quality::AtMostOnce,
    no_local: false,
    retain_as_published: false,
    identifier: None,
};

fn level() -> impl Strategy<Value = &'static str> {
    prop_oneof![Just("a"), Just("b"), Just(""), Just("$x"), Just("c")]
}

fn topic() -> impl Strategy<Value = String> {
    proptest::collection::vec(level(), 1..4).prop_map(|levels| levels.join("/"))
}

fn filter() -> impl Strategy<Value = String> {
    let level = prop_oneof![3 => level(), 2 => Just("+")];
    (proptest::collection::vec(level, 1..4), proptest::bool::ANY).prop_map(|(mut levels, all)| {
        if all {
            levels.push("#");
        }
        levels.join("/")
    })
}

proptest! {
    #[test]
    fn the_index_finds_what_a_comparison_with_every_filter_finds(
        changes in proptest::collection::vec((0_u64..4, filter(), proptest::bool::weighted(0.7)), 0..40),
        topics in proptest::collection::vec(topic(), 1..10),
    ) {
        let sessions: Vec<_> = (0..4).map(session).collect();
        let mut index = SubscriptionIndex::default();
        let mut model: Vec<(u64, String)> = Vec::new();
        for (id, filter, add) in changes {
            model.retain(|known| *known != (id, filter.clone()));
            if add {
                let expected = index.cost_with(&filter);
                index.put(&filter, Subscriber::new(&sessions[id as usize], OPTIONS));
                prop_assert_eq!(index.cost(), expected);
                model.push((id, filter));
            } else {
                index.remove(&filter, &sessions[id as usize]);
            }
        }
        prop_assert_eq!(index.len(), model.len());
        for topic in topics {
            let (visits, cost) = index.visits_and_cost(&topic);
            prop_assert_eq!(index.cost(), cost);
            prop_assert!(visits <= cost, "{} visits {} nodes", topic, visits);
            let mut found: Vec<u64> = index.matches(&topic, |_| true).iter().map(|found| found.session.id()).collect();
            found.sort_unstable();
            let mut expected: Vec<u64> =
                model.iter().filter(|(_, filter)| matches(filter, &topic)).map(|(id, _)| *id).collect();
            expected.sort_unstable();
            expected.dedup();
            prop_assert_eq!(found, expected, "{}", topic);
        }
        for (id, filter) in &model {
            index.remove(filter, &sessions[*id as usize]);
        }
        prop_assert_eq!((index.len(), index.cost()), (0, 1));
        prop_assert!(index.is_empty(), "nodes without subscriptions are freed");
    }
}

#[test]
fn members_of_a_group_take_turns_and_a_connected_one_is_preferred() {
    let mut index = SubscriptionIndex::default();
    for id in 0..3 {
        index.put("$share/g/t", Subscriber { session: session(id), options: OPTIONS });
    }
    let select = |index: &SubscriptionIndex, connected: &[u64]| {
        let found = index.matches("t", |session| connected.contains(&session.id()));
        assert_eq!(found.len(), 1);
        found[0].session.id()
    };
    let mut turns: Vec<u64> = (0..3).map(|_| select(&index, &[0, 1, 2])).collect();
    turns.sort_unstable();
    assert_eq!(turns, [0, 1, 2]);
    assert!((0..5).all(|_| select(&index, &[1]) == 1));
    assert!((0..5).all(|_| select(&index, &[]) < 3));
}
