//! The bounds on what one message costs.

use std::sync::Arc;
use std::time::Instant;

use kv::MemoryStore;
use uuid::Uuid;

use super::tests::{DEVICE, HOUR_S, TENANT, attach_request, durable, open, publish};
use super::*;

fn request(filter: &str) -> Request<'_> {
    let qos = Quality::AtMostOnce;
    let options = SubscriptionOptions { qos, no_local: false, retain_as_published: false, identifier: None };
    Request { filter, options, retain_handling: RetainHandling::Never }
}

/// Subscribes to filters. Returns how many are accepted, and the first refusal.
fn subscribe_all(broker: &Broker, attached: &Attached, filters: &[String]) -> (usize, Option<String>) {
    let requests: Vec<_> = filters.iter().map(|filter| request(filter)).collect();
    let mut results = Vec::new();
    broker.subscribe(&attached.session, &requests, &mut results).unwrap();
    let refusal = results.iter().find_map(|result| result.as_ref().err());
    (results.iter().filter(|result| result.is_ok()).count(), refusal.map(ToString::to_string))
}

/// `+` and letters by the bits of a number: a topic of letters visits two nodes for each node of the level above.
fn mixed(number: u32, levels: u32) -> String {
    let level = |bit| if number >> bit & 1 == 1 { "+" } else { "a" };
    (0..levels).map(level).collect::<Vec<_>>().join("/")
}

fn cost(broker: &Broker) -> usize {
    broker.index_of(TENANT).read().cost() as usize
}

#[test]
fn devices_cannot_make_a_message_dear_together() {
    let kv = Arc::new(MemoryStore::new());
    let broker = open(&kv);
    let (mut number, mut refusals) = (0, Vec::new());
    for device in 0..64 {
        let client = Attach { device: Uuid::from_u128(100 + device), ..attach_request("c", true, 0, 0) };
        let attached = broker.begin(&client);
        let filters: Vec<String> = (number..number + 512).map(|number| mixed(number, 17)).collect();
        number += 512;
        refusals.extend(subscribe_all(&broker, &attached, &filters).1);
    }
    assert!(
        refusals.iter().any(|text| text.contains("WILDCARD_LEVELS_PER_DEVICE_MAX is 1024")),
        "{refusals:?}"
    );
    assert!(refusals.iter().any(|text| text.contains("MATCH_STEPS_MAX is 4096")), "{refusals:?}");
    assert!(cost(&broker) <= limits::MATCH_STEPS_MAX);
    let began = Instant::now();
    publish(&broker, &["a"; 17].join("/"), "x", Quality::AtMostOnce);
    assert!(began.elapsed().as_millis() < 500, "{:?}", began.elapsed());
}

#[test]
fn one_device_leaves_room_for_the_others_of_its_tenant() {
    let kv = Arc::new(MemoryStore::new());
    let broker = open(&kv);
    let deep = |plus: usize| {
        let levels: Vec<&str> = (0..128).map(|at| if at == plus { "+" } else { "a" }).collect();
        levels.join("/")
    };
    let short = |plus: usize| [&"a/".repeat(plus)[..], "+", &"/a".repeat(7)].concat();
    let filters: Vec<String> =
        (0..120).flat_map(|plus| [short(plus), deep(plus), mixed(0x5555 ^ plus as u32, 17)]).collect();
    for session in 0..4 {
        let attached = broker.begin(&attach_request(&session.to_string(), true, 0, 0));
        subscribe_all(&broker, &attached, &filters);
    }
    assert!(cost(&broker) <= limits::MATCH_STEPS_MAX / 2 + 256, "{}", cost(&broker));
}

#[test]
fn a_device_has_a_limited_number_of_subscriptions_and_gets_room_back() {
    let kv = Arc::new(MemoryStore::new());
    let broker = open(&kv);
    let filters: Vec<String> = (0..limits::SUBSCRIPTIONS_PER_SESSION_MAX).map(|n| format!("{n}/+")).collect();
    let sessions: Vec<_> = (0..16).map(|n| durable(&broker, &n.to_string()).0).collect();
    for attached in &sessions {
        assert_eq!(subscribe_all(&broker, attached, &filters), (filters.len(), None));
    }
    let passing = broker.begin(&attach_request("passing", true, 0, 0));
    let (accepted, refusal) = subscribe_all(&broker, &passing, &filters[..1]);
    assert_eq!(accepted, 0);
    assert!(refusal.unwrap().contains("SUBSCRIPTIONS_PER_DEVICE_MAX is 16384"));
    // Known ones may change.
    assert_eq!(subscribe_all(&broker, &sessions[0], &filters), (filters.len(), None));
    broker
        .unsubscribe(&sessions[0].session, filters[..1].iter().map(String::as_str), &mut Vec::new())
        .unwrap();
    assert_eq!(subscribe_all(&broker, &passing, &filters[..2]).0, 1);
    broker.detach(&sessions[1], 0, 0);
    assert_eq!(subscribe_all(&broker, &passing, &filters).0, filters.len());
    broker.detach(&passing, 0, 0);
    for attached in &sessions {
        broker.detach(attached, 0, 0);
    }
    assert!(broker.held_subscriptions.is_empty());
    assert_eq!(cost(&broker), 1);
}

#[test]
fn a_device_has_a_limited_number_of_filters_with_several_wildcards() {
    let kv = Arc::new(MemoryStore::new());
    let broker = open(&kv);
    let (attached, _) = durable(&broker, "c");
    let filters: Vec<String> = (0..300).map(|n| format!("$share/g/{n}/+/+/#")).collect();
    let (accepted, refusal) = subscribe_all(&broker, &attached, &filters);
    assert_eq!(accepted, limits::WILDCARD_SUBSCRIPTIONS_PER_DEVICE_MAX);
    assert!(refusal.unwrap().contains("WILDCARD_SUBSCRIPTIONS_PER_DEVICE_MAX is 256"));
    drop(broker);
    // A restart counts again.
    let broker = open(&kv);
    let (attached, _) = durable(&broker, "c");
    assert_eq!(subscribe_all(&broker, &attached, &filters[256..]).0, 0);
    broker.unsubscribe(&attached.session, filters.iter().map(String::as_str), &mut Vec::new()).unwrap();
    assert_eq!(subscribe_all(&broker, &attached, &filters).0, 256);
}

#[test]
fn what_the_engine_refuses_leaves_no_trace() {
    let kv = Arc::new(MemoryStore::new());
    let broker = open(&kv);
    let (attached, _) = durable(&broker, "c");
    kv.set_busy(Some("full"));
    let requests = [request("a/+/b"), request("a/+/b"), request("+/+")];
    assert!(broker.subscribe(&attached.session, &requests, &mut Vec::new()).unwrap_err().is_busy());
    assert_eq!((cost(&broker), broker.subscriptions()), (1, 0));
    assert!(broker.held_subscriptions.is_empty());
    kv.set_busy(None);
    broker.subscribe(&attached.session, &requests, &mut Vec::new()).unwrap();
    assert_eq!(broker.subscriptions(), 2);
}

#[test]
fn a_restart_keeps_subscriptions_above_the_limits() {
    let kv = Arc::new(MemoryStore::new());
    let broker = open(&kv);
    let (attached, _) = durable(&broker, "c");
    subscribe_all(&broker, &attached, &["kept".to_owned()]);
    let record = request("").options.to_record();
    let mut write = kv::WriteBatch::new();
    for number in 0..4_096 {
        let key = record::subscription_key(attached.session.id(), &mixed(number, 13));
        write.put(super::broker::SUBSCRIPTIONS, key, record.clone());
    }
    kv::KeyValueStore::commit(&*kv, &write).unwrap();
    drop(broker);
    let broker = open(&kv);
    assert_eq!(broker.subscriptions(), 4_097);
    assert!(cost(&broker) > limits::MATCH_STEPS_MAX);
    let client = Attach { device: Uuid::from_u128(9), ..attach_request("other", true, 0, 0) };
    let other = broker.begin(&client);
    let filters = ["cheap".to_owned(), "dear/a".to_owned(), ["+"; 20].join("/")];
    let (accepted, refusal) = subscribe_all(&broker, &other, &filters);
    assert_eq!(accepted, 2, "{refusal:?}");
    let client = attach_request("c", true, HOUR_S, 0);
    assert_eq!(client.device, DEVICE);
    broker.attach(&client).unwrap();
    assert_eq!(subscribe_all(&broker, &other, &filters).0, 3, "the session has ended");
}
