//! Calls of procedures of devices that are stored.

use hub::clock::system_now;
use hub::device_messages::NotifyWake;
use hub::rpc::limits::{RPC_PARAMS_BYTES_MAX, RPC_RETRIES_MAX};
use hub::rpc::{Delivery, RpcCall, RpcError, RpcStatus, StoredCall, Storing};
use hub::stored_calls::StoredCallsRequest;
use uuid::Uuid;

use super::rpc::{id, request};
use super::*;

fn call(one_way: bool) -> RpcCall {
    let expires_at = system_now().saturating_add_micros(600_000_000);
    RpcCall { method: "open".to_owned(), params: r#"{"door": 2}"#.to_owned(), one_way, expires_at }
}

fn all() -> StoredCallsRequest {
    StoredCallsRequest { status: None, by_expiration: false, descending: false, page: 0, page_size: 100 }
}

impl Fixture {
    async fn store(&self, call: RpcCall) -> Uuid {
        self.store_with(call, Storing::default()).await
    }

    async fn store_with(&self, call: RpcCall, storing: Storing) -> Uuid {
        self.hub.store_call(&self.administrator(), self.device.id, call, storing).await.unwrap()
    }

    fn stored(&self, id: Uuid) -> StoredCall {
        self.hub.stored_call(&self.administrator(), id).unwrap()
    }

    #[track_caller]
    fn is(&self, id: Uuid, status: RpcStatus) {
        assert_eq!(self.stored(id).status, status);
    }

    fn list(&self, request: StoredCallsRequest) -> Vec<Uuid> {
        let page = self.hub.stored_calls_of(&self.administrator(), self.device.id, request).unwrap();
        page.data.into_iter().map(|call| call.id).collect()
    }
}

#[tokio::test]
async fn a_two_way_call_waits_for_its_device_and_keeps_the_answer() {
    let fixture = fixture();
    let storing = Storing { retries: Some(2), additional_info: Some(r#"{"by":"me"}"#.to_owned()) };
    let stored = fixture.store_with(call(false), storing.clone()).await;
    fixture.is(stored, RpcStatus::Queued);
    let connection = fixture.connect(&fixture.device);
    let message = connection.next().await;
    let sent = request(&message);
    assert_eq!(
        (&*sent.method, &*sent.params, sent.one_way, sent.persistent),
        ("open", r#"{"door": 2}"#, false, true)
    );
    for (delivery, status) in [
        (Delivery::Sent, RpcStatus::Sent),
        (Delivery::Delivered, RpcStatus::Delivered),
        (Delivery::Sent, RpcStatus::Delivered),
    ] {
        fixture.hub.call_delivery(&fixture.device, sent.id, delivery);
        fixture.is(stored, status);
    }
    assert!(fixture.answer(&fixture.device, sent.id, r#"{"open": true}"#));
    assert!(!fixture.answer(&fixture.device, sent.id, "1"), "one answer counts");
    let found = fixture.stored(stored);
    assert_eq!((found.status, found.answer.as_deref()), (RpcStatus::Successful, Some(r#"{"open": true}"#)));
    assert_eq!((found.storing, found.params.as_str()), (storing, r#"{"door": 2}"#));
    assert!(fixture.connect(&fixture.device).outbox.take(9).is_empty(), "it has ended");
}

#[tokio::test]
async fn a_one_way_call_ends_when_the_device_has_it_and_an_answer_that_is_not_json_is_an_error() {
    let fixture = fixture();
    let connection = fixture.connect(&fixture.device);
    let one_way = fixture.store(call(true)).await;
    fixture.hub.call_delivery(&fixture.device, id(&*connection.next().await), Delivery::Delivered);
    fixture.is(one_way, RpcStatus::Delivered);
    let two_way = fixture.store(call(false)).await;
    let number = id(&*connection.next().await);
    assert!(fixture.answer(&fixture.device, number, "{oops"));
    assert_eq!(fixture.stored(two_way).answer.unwrap(), r#"{"error":"{oops"}"#);
    assert!(fixture.connect(&fixture.device).outbox.take(9).is_empty());
}

#[tokio::test]
async fn a_call_survives_a_restart_with_its_number() {
    let directory = tempfile::tempdir().unwrap();
    let kv = Arc::new(kv::MemoryStore::new());
    let start = || {
        let (registry, _) = Registry::open(&directory.path().join("registry.sqlite")).unwrap();
        let store = Arc::new(MemoryStore::new());
        Hub::start(store, Arc::clone(&kv) as _, registry, IngestLimits::default(), Arc::new(Metrics::new()))
            .unwrap()
    };
    let hub = start();
    let caller = Caller::local(hub.registry().default_tenant());
    let device = hub.add_device(&caller, NewDevice { name: "car", ..NewDevice::default() }).unwrap().device;
    let stored = hub.store_call(&caller, device.id, call(false), Storing::default()).await.unwrap();
    let outbox = |hub: &Hub| hub.open_poll(&device, Arc::new(NotifyWake::default()));
    let first = id(&outbox(&hub).take(1)[0]);
    drop(hub);
    let hub = start();
    assert_eq!(id(&outbox(&hub).take(1)[0]), first);
    assert!(hub.answer_call_and_wait(&device, first, "7".into()).await.unwrap());
    drop(hub);
    let hub = start();
    let found = hub.stored_call(&caller, stored).unwrap();
    assert_eq!((found.status, found.answer.as_deref()), (RpcStatus::Successful, Some("7")));
}

#[tokio::test]
async fn a_call_is_sent_when_it_is_durable() {
    let directory = tempfile::tempdir().unwrap();
    let (registry, _) = Registry::open(&directory.path().join("registry.sqlite")).unwrap();
    let kv = Arc::new(kv::MemoryStore::new());
    let store = Arc::new(MemoryStore::new());
    let hub =
        Hub::start(store, Arc::clone(&kv) as _, registry, IngestLimits::default(), Arc::new(Metrics::new()))
            .unwrap();
    let caller = Caller::local(hub.registry().default_tenant());
    let device = hub.add_device(&caller, NewDevice { name: "car", ..NewDevice::default() }).unwrap().device;
    let outbox = hub.open_poll(&device, Arc::new(NotifyWake::default()));
    kv.hold();
    let storing = {
        let (hub, caller, device) = (Arc::clone(&hub), caller.clone(), device.id);
        tokio::spawn(async move { hub.store_call(&caller, device, call(true), Storing::default()).await })
    };
    while hub.stored_calls_of(&caller, device.id, all()).unwrap().data.is_empty() {
        tokio::task::yield_now().await;
    }
    let later = hub.open_poll(&device, Arc::new(NotifyWake::default()));
    assert!(outbox.take(1).is_empty() && later.take(1).is_empty() && !storing.is_finished());
    kv.release();
    storing.await.unwrap().unwrap();
    assert_eq!((outbox.take(1).len(), later.take(1).len()), (1, 1));
}

#[tokio::test]
async fn a_call_without_an_ack_is_sent_again_and_fails_at_last() {
    let fixture = fixture();
    let connection = fixture.connect(&fixture.device);
    let stored = fixture.store_with(call(false), Storing { retries: Some(1), additional_info: None }).await;
    let number = id(&*connection.next().await);
    fixture.hub.call_delivery(&fixture.device, number, Delivery::NotAcknowledged);
    fixture.is(stored, RpcStatus::Timeout);
    assert_eq!(id(&*connection.next().await), number);
    fixture.hub.call_delivery(&fixture.device, number, Delivery::NotAcknowledged);
    fixture.is(stored, RpcStatus::Failed);
    assert!(fixture.stored(stored).answer.unwrap().contains("did not ack"));
    assert!(connection.outbox.take(1).is_empty());
    let many = fixture.store_with(call(false), Storing { retries: Some(99), additional_info: None }).await;
    for _ in 0..=RPC_RETRIES_MAX {
        fixture.hub.call_delivery(&fixture.device, id(&*connection.next().await), Delivery::NotAcknowledged);
    }
    fixture.is(many, RpcStatus::Failed);
}

#[tokio::test]
async fn an_expired_call_ends_and_the_calls_of_a_deleted_device_go() {
    let fixture = fixture();
    let at = |expires_at| RpcCall { expires_at, ..call(false) };
    let past = fixture.store(at(system_now())).await;
    let soon = fixture.store(at(system_now().saturating_add_micros(2_000))).await;
    let later = fixture.store(call(false)).await;
    fixture.is(past, RpcStatus::Expired);
    while fixture.stored(soon).status == RpcStatus::Queued {
        tokio::task::yield_now().await;
    }
    fixture.is(soon, RpcStatus::Expired);
    assert_eq!(fixture.connect(&fixture.device).outbox.take(9).len(), 1);
    assert_eq!(
        (fixture.hub.clean_stored_calls().unwrap(), fixture.hub.clean_stored_calls().unwrap()),
        (1, 0)
    );
    let expired = StoredCallsRequest { status: Some(RpcStatus::Expired), ..all() };
    assert_eq!(fixture.list(expired), [past, soon]);
    let old = fixture.store(at(Timestamp::from_micros(1))).await;
    assert_eq!(fixture.hub.clean_stored_calls().unwrap(), 1);
    let unknown = fixture.hub.stored_call(&fixture.administrator(), old);
    assert!(matches!(unknown, Err(RpcError::Unknown(id)) if id == old), "{unknown:?}");
    fixture.hub.delete_device(&fixture.administrator(), fixture.device.id).unwrap();
    assert_eq!(fixture.hub.clean_stored_calls().unwrap(), 3);
    assert!(fixture.hub.stored_call(&fixture.administrator(), later).is_err());
}

#[tokio::test]
async fn calls_without_room_follow_when_there_is_room() {
    let fixture = fixture();
    let connection = fixture.connect(&fixture.device);
    let long = format!("\"{}\"", "x".repeat(RPC_PARAMS_BYTES_MAX - 2));
    for _ in 0..6 {
        fixture.store(RpcCall { params: long.clone(), ..call(true) }).await;
    }
    let mut numbers = Vec::new();
    while numbers.len() < 6 {
        let number = id(&*connection.next().await);
        fixture.hub.call_delivery(&fixture.device, number, Delivery::Delivered);
        numbers.push(number);
    }
    assert!(numbers.is_sorted_by(|a, b| a < b), "{numbers:?}");
}

#[tokio::test]
async fn a_poll_gets_the_first_call_that_nobody_has() {
    let fixture = fixture();
    let poll = || fixture.hub.open_poll(&fixture.device, Arc::new(NotifyWake::default())).take(9);
    let (first, second) = (fixture.store(call(false)).await, fixture.store(call(false)).await);
    let taken = poll();
    assert_eq!(taken.len(), 1);
    fixture.hub.call_delivery(&fixture.device, id(&taken[0]), Delivery::Delivered);
    let next = poll();
    assert!(next.len() == 1 && id(&next[0]) != id(&taken[0]));
    fixture.hub.call_delivery(&fixture.device, id(&next[0]), Delivery::Delivered);
    assert!(poll().is_empty());
    let page =
        |page, descending| fixture.list(StoredCallsRequest { page, page_size: 1, descending, ..all() });
    assert_eq!((page(0, false), page(1, false)), (vec![first], vec![second]));
    assert_eq!(page(0, true), [second]);
    assert!(page(2, false).is_empty());
}

#[tokio::test]
async fn calls_belong_to_a_tenant_and_can_be_deleted() {
    let fixture = fixture();
    let stored = fixture.store(call(false)).await;
    let stranger = Caller::local(Uuid::from_u128(5));
    assert!(matches!(fixture.hub.stored_call(&stranger, stored), Err(RpcError::Unknown(_))));
    assert!(matches!(fixture.hub.delete_stored_call(&stranger, stored).await, Err(RpcError::Unknown(_))));
    assert!(matches!(
        fixture.hub.stored_calls_of(&stranger, fixture.device.id, all()),
        Err(RpcError::Registry(_))
    ));
    let public = Caller::public(fixture.device.tenant);
    assert!(matches!(fixture.hub.stored_call(&public, stored), Err(RpcError::Forbidden(_))));
    assert!(matches!(fixture.hub.delete_stored_call(&public, stored).await, Err(RpcError::Forbidden(_))));
    let refused = fixture.hub.store_call(&public, fixture.device.id, call(true), Storing::default()).await;
    assert!(matches!(refused, Err(RpcError::Forbidden(_))));
    fixture.hub.delete_stored_call(&fixture.administrator(), stored).await.unwrap();
    assert!(fixture.hub.stored_call(&fixture.administrator(), stored).is_err());
    assert!(fixture.connect(&fixture.device).outbox.take(9).is_empty());
}
