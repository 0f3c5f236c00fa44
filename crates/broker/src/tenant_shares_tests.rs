//! One tenant cannot take the room of the others.

use std::sync::Arc;

use kv::MemoryStore;
use uuid::Uuid;

use super::tests::{HOUR_S, TENANT, attach_request, open, publish, subscribe};
use super::*;

const OTHER: Uuid = Uuid::from_u128(20);
const OTHER_DEVICE: Uuid = Uuid::from_u128(21);

/// Each tenant may have half of what the others leave.
#[derive(Debug)]
struct Halves;

impl TenantShares for Halves {
    fn most(&self, _tenant: Uuid, _of: Shared, max: u64, others: u64) -> u64 {
        model::share_of(max, others, 2)
    }
}

/// Five of everything.
#[derive(Debug)]
struct Five;

impl TenantShares for Five {
    fn most(&self, _tenant: Uuid, _of: Shared, _max: u64, _others: u64) -> u64 {
        5
    }
}

fn broker(shares: Arc<dyn TenantShares>) -> Broker {
    let mut broker = open(&Arc::new(MemoryStore::new()));
    broker.shares = shares;
    broker
}

fn of_other(client_id: &str, expiry_s: u32) -> Attach<'_> {
    Attach { tenant: OTHER, device: OTHER_DEVICE, ..attach_request(client_id, true, expiry_s, 0) }
}

#[test]
fn sessions_are_refused_above_the_share() {
    let broker = broker(Arc::new(Five));
    let names: Vec<String> = (0..6).map(|n| n.to_string()).collect();
    let results: Vec<bool> =
        names.iter().map(|name| broker.attach(&attach_request(name, true, HOUR_S, 0)).is_ok()).collect();
    assert_eq!(results, [true, true, true, true, true, false]);
    let refusal = broker.attach(&attach_request("6", true, HOUR_S, 0)).unwrap_err().to_string();
    assert!(refusal.contains("sessionsMax") && refusal.ends_with("is 5"), "{refusal}");
    assert!(broker.attach(&of_other("0", HOUR_S)).is_ok(), "another tenant has its own share");
    let (used, most) = broker.tenant_use(TENANT);
    assert_eq!((used.sessions, most.sessions), (5, 5));
}

#[test]
fn subscriptions_are_refused_above_the_share() {
    let broker = broker(Arc::new(Five));
    let attached = broker.begin(&attach_request("c", true, 0, 0));
    for n in 0..5 {
        subscribe(&broker, &attached, &format!("t/{n}"), Quality::AtMostOnce);
    }
    // The same filter again is not another subscription.
    subscribe(&broker, &attached, "t/0", Quality::AtLeastOnce);
    let options = SubscriptionOptions {
        qos: Quality::AtMostOnce,
        no_local: false,
        retain_as_published: false,
        identifier: None,
    };
    let request = Request { filter: "t/5", options, retain_handling: RetainHandling::Never };
    let mut results = Vec::new();
    broker.subscribe(&attached.session, &[request], &mut results).unwrap();
    let refusal = results[0].as_ref().unwrap_err().to_string();
    assert!(refusal.contains("subscriptionsMax"), "{refusal}");
    assert_eq!(broker.tenant_use(TENANT).0.subscriptions, 5);
    subscribe(&broker, &broker.begin(&of_other("c", 0)), "t/5", Quality::AtMostOnce);
    broker.unsubscribe(&attached.session, ["t/0"].into_iter(), &mut Vec::new()).unwrap();
    subscribe(&broker, &attached, "t/5", Quality::AtMostOnce);
    broker.detach(&attached, 0, 0);
    assert_eq!((broker.tenant_use(TENANT).0.subscriptions, broker.tenant_use(OTHER).0.subscriptions), (0, 1));
}

#[test]
fn a_tenant_whose_clients_do_not_read_leaves_memory_for_another() {
    let mut broker = broker(Arc::new(Halves));
    broker.memory_bytes_max = 4 << 20;
    let silent: Vec<_> = (0..100)
        .map(|n| broker.begin(&attach_request(&n.to_string(), true, 0, 0)))
        .inspect(|attached| subscribe(&broker, attached, "t", Quality::AtLeastOnce))
        .collect();
    for _ in 0..limits::IMMEDIATE_MESSAGES_MAX {
        publish(&broker, "t", "x", Quality::AtLeastOnce);
    }
    let (used, _) = broker.tenant_use(TENANT);
    assert!((1 << 20..3 << 20).contains(&used.memory_bytes), "{used:?}");
    assert!(broker.is_memory_scarce(TENANT) && !broker.is_memory_scarce(OTHER));
    let reader = broker.begin(&of_other("r", 0));
    subscribe(&broker, &reader, "t", Quality::AtLeastOnce);
    let content = Content { topic: "t", payload: b"y", properties: &[], expires_at_ms: None };
    let message = broker.message(OTHER, content);
    let (qos, retain, tenant) = (Quality::AtLeastOnce, false, OTHER);
    let mut published = Published::default();
    let mut publications = vec![Publication { message, qos, retain, tenant, publisher: None }];
    broker.publish(&mut publications, &mut published).unwrap();
    assert!(published.dropped.is_empty(), "{published:?}");
    drop(publications);
    silent.iter().chain([&reader]).for_each(|attached| broker.detach(attached, 0, 0));
    assert_eq!(broker.memory.bytes(), 0);
    broker.memory.forget_tenants(&|tenant| tenant == TENANT);
    assert_eq!((broker.memory.bytes_of(TENANT), broker.memory.bytes_of(OTHER)), (0, 0));
}
