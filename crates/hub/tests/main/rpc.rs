//! Calls of procedures of devices.

use bytes::Bytes;
use hub::clock::system_now;
use hub::device_messages::{DeviceMessage, DeviceOutbox, Interests, NotifyWake, RpcRequest};
use hub::registry::RegistryError;
use hub::rpc::limits::{RPC_PARAMS_BYTES_MAX, RPC_PENDING_PER_DEVICE_MAX};
use hub::rpc::{RpcCall, RpcError};
use uuid::Uuid;

use super::*;
use store::Reader as _;

const RPC: Interests = Interests { rpc: true, shared_attributes: false };

/// A call that waits for as long as the test runs.
fn call(one_way: bool) -> RpcCall {
    ending(one_way, system_now().saturating_add_micros(600_000_000))
}

/// A call that nobody may wait for any more.
fn over(one_way: bool) -> RpcCall {
    ending(one_way, system_now())
}

fn ending(one_way: bool, expires_at: Timestamp) -> RpcCall {
    RpcCall { method: "reboot".to_owned(), params: r#"{"in":5}"#.to_owned(), one_way, expires_at }
}

type Calling = tokio::task::JoinHandle<Result<Option<Bytes>, RpcError>>;

impl Fixture {
    fn call(&self, device: &Device, call: RpcCall) -> Calling {
        let (hub, caller, device) = (Arc::clone(&self.hub), self.administrator(), device.id);
        tokio::spawn(async move { hub.call_device(&caller, device, call).await })
    }

    pub(super) fn connect(&self, device: &Device) -> Connection {
        let wake = NotifyWake::default();
        let outbox = self.hub.open_outbox(device, RPC, Arc::new(wake.clone()));
        Connection { outbox, wake }
    }

    fn other_device(&self) -> Arc<Device> {
        let new = NewDevice { name: "van", ..NewDevice::default() };
        self.hub.add_device(&self.administrator(), new).unwrap().device
    }

    /// Sends the answer of a device. Returns whether a call waited for it.
    pub(super) fn answer(&self, device: &Device, number: i32, answer: &'static str) -> bool {
        self.hub.answer_call(device, number, Bytes::from_static(answer.as_bytes())).unwrap()
    }

    /// Begins a two-way call and waits until it is pending. Returns the number of its request.
    async fn pending(&self, device: &Device, connection: &Connection) -> (Calling, i32) {
        let calling = self.call(device, call(false));
        (calling, id(&*connection.next().await))
    }
}

pub(super) struct Connection {
    pub(super) outbox: DeviceOutbox,
    wake: NotifyWake,
}

impl Connection {
    pub(super) async fn next(&self) -> Arc<DeviceMessage> {
        loop {
            if let Some(message) = self.outbox.take(1).pop() {
                return message;
            }
            self.wake.woken().await;
        }
    }
}

pub(super) fn request(message: &DeviceMessage) -> &RpcRequest {
    match message {
        DeviceMessage::RpcRequest(request) => request,
        other => panic!("{other:?}"),
    }
}

pub(super) fn id(message: &DeviceMessage) -> i32 {
    request(message).id
}

fn counted(fixture: &Fixture, line: &str) -> bool {
    fixture.hub.metrics_text().lines().any(|counted| counted == line)
}

#[tokio::test]
async fn a_one_way_call_is_done_when_a_connection_has_taken_it() {
    let fixture = fixture();
    let connection = fixture.connect(&fixture.device);
    let calling = fixture.call(&fixture.device, call(true));
    connection.wake.woken().await;
    assert!(!calling.is_finished());
    let message = connection.next().await;
    let taken = request(&message);
    assert_eq!((&*taken.method, &*taken.params, taken.one_way), ("reboot", r#"{"in":5}"#, true));
    assert_eq!(calling.await.unwrap().unwrap(), None);
    assert!(!fixture.answer(&fixture.device, taken.id, ""), "nobody waits for an answer");
    assert!(counted(&fixture, "tacho_rpc_late_answers_total 1") && counted(&fixture, "tacho_rpc_pending 0"));
}

#[tokio::test]
async fn a_two_way_call_gets_the_answer_of_its_device_and_no_other() {
    let fixture = fixture();
    let van = fixture.other_device();
    let (car, other) = (fixture.connect(&fixture.device), fixture.connect(&van));
    let (calling, number) = fixture.pending(&fixture.device, &car).await;
    let (calling_van, number_of_van) = fixture.pending(&van, &other).await;
    for foreign in [number, number_of_van + 1] {
        assert!(!fixture.answer(&van, foreign, "0"));
    }
    assert!(fixture.answer(&van, number_of_van, "2"));
    assert!(fixture.answer(&fixture.device, number, "1"));
    assert!(!fixture.answer(&fixture.device, number, "3"), "one answer counts");
    assert_eq!(calling.await.unwrap().unwrap().unwrap(), "1");
    assert_eq!(calling_van.await.unwrap().unwrap().unwrap(), "2");
    assert!(
        counted(&fixture, "tacho_rpc_late_answers_total 3") && counted(&fixture, "tacho_rpc_calls_total 2")
    );
}

#[tokio::test]
async fn a_call_of_an_absent_device_waits_until_it_connects() {
    let fixture = fixture();
    let calling = fixture.call(&fixture.device, call(true));
    while !counted(&fixture, "tacho_rpc_pending 1") {
        tokio::task::yield_now().await;
    }
    let wake = NotifyWake::default();
    let outbox = fixture.hub.open_outbox(&fixture.device, Interests::default(), Arc::new(wake.clone()));
    assert!(outbox.take(9).is_empty());
    fixture.hub.set_interests(&outbox, RPC);
    Connection { outbox, wake }.next().await;
    assert_eq!(calling.await.unwrap().unwrap(), None);
}

#[tokio::test]
async fn a_two_way_call_is_sent_again_to_a_connection_and_not_to_a_poll() {
    let fixture = fixture();
    let first = fixture.connect(&fixture.device);
    let (calling, number) = fixture.pending(&fixture.device, &first).await;
    drop(first);
    let wake = NotifyWake::default();
    assert!(fixture.hub.open_poll(&fixture.device, Arc::new(wake)).take(9).is_empty());
    let again = fixture.connect(&fixture.device);
    assert_eq!(id(&*again.next().await), number);
    fixture.answer(&fixture.device, number, "1");
    assert!(calling.await.unwrap().is_ok());
}

#[tokio::test]
async fn an_untaken_call_goes_to_the_next_poll() {
    let fixture = fixture();
    let poll = || fixture.hub.open_poll(&fixture.device, Arc::new(NotifyWake::default()));
    let left = poll();
    let calling = fixture.call(&fixture.device, call(true));
    while !counted(&fixture, "tacho_rpc_pending 1") {
        tokio::task::yield_now().await;
    }
    drop(left);
    assert_eq!(poll().take(9).len(), 1);
    assert!(calling.await.unwrap().is_ok());
}

#[tokio::test]
async fn the_error_says_whether_the_device_was_there_and_a_later_answer_is_ignored() {
    let fixture = fixture();
    let absent = fixture.call(&fixture.device, over(false)).await.unwrap();
    assert!(matches!(absent, Err(RpcError::NoConnection { .. })), "{absent:?}");
    let connection = fixture.connect(&fixture.device);
    let soon = ending(false, system_now().saturating_add_micros(200_000));
    let calling = fixture.call(&fixture.device, soon);
    let number = id(&*connection.next().await);
    let silent = calling.await.unwrap();
    assert!(matches!(silent, Err(RpcError::Timeout { .. })), "{silent:?}");
    assert!(!fixture.answer(&fixture.device, number, "1"));
    assert!(counted(&fixture, "tacho_rpc_late_answers_total 1") && counted(&fixture, "tacho_rpc_pending 0"));
    assert!(counted(&fixture, "tacho_rpc_timeouts_total 2"));
}

#[tokio::test]
async fn a_caller_that_leaves_ends_its_call() {
    let fixture = fixture();
    let connection = fixture.connect(&fixture.device);
    let (calling, number) = fixture.pending(&fixture.device, &connection).await;
    calling.abort();
    assert!(calling.await.unwrap_err().is_cancelled());
    assert!(!fixture.answer(&fixture.device, number, ""));
    assert!(counted(&fixture, "tacho_rpc_pending 0"));
}

#[tokio::test]
async fn pending_calls_are_bounded() {
    let fixture = fixture();
    let long = RpcCall { params: "1".repeat(RPC_PARAMS_BYTES_MAX + 1), ..call(true) };
    assert!(matches!(fixture.call(&fixture.device, long).await.unwrap(), Err(RpcError::TooLong { .. })));
    let calls: Vec<_> =
        (0..RPC_PENDING_PER_DEVICE_MAX).map(|_| fixture.call(&fixture.device, call(true))).collect();
    while !counted(&fixture, &format!("tacho_rpc_pending {RPC_PENDING_PER_DEVICE_MAX}")) {
        tokio::task::yield_now().await;
    }
    let refused = fixture.call(&fixture.device, call(true)).await.unwrap().unwrap_err().to_string();
    assert_eq!(
        refused,
        "100 calls of this device are pending, the limit is 100; try again when some have ended"
    );
    assert_eq!(fixture.connect(&fixture.device).outbox.take(200).len(), RPC_PENDING_PER_DEVICE_MAX);
    for calling in calls {
        assert!(calling.await.unwrap().is_ok());
    }
}

#[tokio::test]
async fn a_device_that_takes_nothing_refuses_long_calls() {
    let fixture = fixture();
    let connection = fixture.connect(&fixture.device);
    let long = || RpcCall { params: "1".repeat(RPC_PARAMS_BYTES_MAX), ..call(true) };
    let calls: Vec<_> = (0..3).map(|_| fixture.call(&fixture.device, long())).collect();
    while !counted(&fixture, "tacho_rpc_pending 3") {
        tokio::task::yield_now().await;
    }
    let refused = fixture.call(&fixture.device, long()).await.unwrap();
    assert!(matches!(refused, Err(RpcError::OutboxFull { .. })), "{refused:?}");
    assert_eq!(connection.outbox.take(9).len(), 3);
    for calling in calls {
        assert!(calling.await.unwrap().is_ok());
    }
}

#[tokio::test]
async fn a_call_needs_the_permission_and_leaves_a_row_in_the_audit_table() {
    let fixture = fixture();
    let hub = &fixture.hub;
    let public = Caller::public(fixture.device.tenant);
    let refused = hub.call_device(&public, fixture.device.id, call(true)).await;
    assert!(matches!(refused, Err(RpcError::Forbidden(_))), "{refused:?}");
    let stranger = Caller::local(Uuid::from_u128(5));
    let unknown = hub.call_device(&stranger, fixture.device.id, call(true)).await;
    assert!(matches!(unknown, Err(RpcError::Registry(RegistryError::Unknown { .. }))), "{unknown:?}");
    let connection = fixture.connect(&fixture.device);
    let calling = fixture.call(&fixture.device, call(true));
    connection.next().await;
    calling.await.unwrap().unwrap();
    let series = fixture.store.find_series(&SeriesKey::new(hub::AUDIT_TABLE, &[("login", "local")]).unwrap());
    let latest = hub.latest(&fixture.administrator(), series.unwrap(), None).unwrap();
    let value = |key: &str| latest.iter().find(|value| value.key == key).map(|value| value.value.clone());
    assert_eq!(value("act"), Some(Value::String("call device".into())));
    assert_eq!(value("subject"), Some(Value::String("car reboot".into())));
}
