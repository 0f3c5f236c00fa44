//! Shared subscriptions: who gets a copy of a message, and with which identifiers.

use std::num::NonZeroU32;
use std::sync::Arc;

use kv::MemoryStore;

use super::tests::{durable, open, publish};
use super::*;

fn subscribe_with(broker: &Broker, attached: &Attached, filter: &str, identifier: u32) {
    let options = SubscriptionOptions {
        qos: Quality::AtLeastOnce,
        no_local: false,
        retain_as_published: false,
        identifier: NonZeroU32::new(identifier),
    };
    let request = Request { filter, options, retain_handling: RetainHandling::Never };
    let mut results = Vec::new();
    broker.subscribe(&attached.session, &[request], &mut results).unwrap();
    assert!(results[0].is_ok(), "{results:?}");
}

/// The identifiers of each copy that a connection gets now, in order.
fn identifiers(broker: &Broker, attached: &Attached) -> Vec<Vec<u32>> {
    let (mut found, mut acknowledged) = (Vec::new(), Acknowledged::default());
    let mut send = |packet: &Outgoing<'_>| {
        let Outgoing::Publish { identifiers, .. } = packet else { panic!("{packet:?}") };
        found.push(identifiers.to_vec());
        Sent::Yes
    };
    broker.deliver(attached, 0, &mut acknowledged, &mut send).unwrap();
    found.sort();
    found
}

#[test]
fn a_client_gets_a_copy_for_its_own_subscriptions_and_one_for_its_shared_subscription() {
    let kv = Arc::new(MemoryStore::new());
    let broker = open(&kv);
    let (attached, _) = durable(&broker, "c");
    subscribe_with(&broker, &attached, "$share/g/a/b", 1);
    subscribe_with(&broker, &attached, "a/b", 2);
    subscribe_with(&broker, &attached, "a/+", 3);
    publish(&broker, "a/b", "m", Quality::AtLeastOnce);
    assert_eq!(identifiers(&broker, &attached), [vec![1], vec![2, 3]]);
}

#[test]
fn a_client_in_two_groups_gets_a_copy_for_each() {
    let kv = Arc::new(MemoryStore::new());
    let broker = open(&kv);
    let (attached, _) = durable(&broker, "c");
    subscribe_with(&broker, &attached, "$share/g/t", 1);
    subscribe_with(&broker, &attached, "$share/h/t", 2);
    publish(&broker, "t", "m", Quality::AtLeastOnce);
    assert_eq!(identifiers(&broker, &attached), [vec![1], vec![2]]);
}
