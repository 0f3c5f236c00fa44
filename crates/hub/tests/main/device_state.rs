//! The state of devices on the reference key-value store.

use std::time::Instant;

use hub::attributes::Scope;
use hub::{AttributeError, DeviceState};

use super::*;

const LONG: Duration = Duration::from_secs(3_600);
/// Ends a test that waits in vain. No test waits this long otherwise.
const GUARD: Duration = Duration::from_secs(60);

/// Waits for a state of the device.
fn wait_for(
    hub: &Hub,
    caller: &Caller,
    device: &Device,
    wanted: impl Fn(&DeviceState) -> bool,
) -> DeviceState {
    let began = Instant::now();
    loop {
        let state = hub.device_state(caller, device).unwrap();
        if wanted(&state) && hub.is_device_active(device).unwrap() == state.active {
            return state;
        }
        assert!(began.elapsed() < GUARD, "{state:?}");
        std::thread::sleep(Duration::from_millis(5));
    }
}

fn server_attributes(hub: &Hub, caller: &Caller, device: &Device) -> Vec<(String, Value)> {
    let found = hub.attributes(caller, device, Scope::Server, None).unwrap();
    found.into_iter().map(|attribute| (attribute.key.to_string(), attribute.value)).collect()
}

/// A second hub on the same key-value store, as after a restart.
fn restarted(fixture: &Fixture) -> (Arc<Hub>, tempfile::TempDir) {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("registry.sqlite");
    let mut copy = fixture.hub.registry().copy().unwrap();
    std::io::copy(&mut copy, &mut std::fs::File::create(&path).unwrap()).unwrap();
    let (registry, _) = Registry::open(&path).unwrap();
    let store: Arc<dyn Store> = Arc::clone(&fixture.store) as _;
    let kv = Arc::clone(&fixture.kv) as _;
    let hub = Hub::start(store, kv, registry, IngestLimits::default(), Arc::new(Metrics::new())).unwrap();
    (hub, directory)
}

#[test]
fn a_device_that_never_connects_has_no_state() {
    let fixture = fixture();
    let (hub, caller) = (&fixture.hub, fixture.administrator());
    hub.start_device_states(LONG);
    assert_eq!(hub.device_state(&caller, &fixture.device).unwrap(), DeviceState::default());
    assert_eq!(server_attributes(hub, &caller, &fixture.device), []);
}

#[test]
fn a_connect_makes_a_device_active_and_a_disconnect_does_not_end_it() {
    let fixture = fixture();
    let (hub, caller, device) = (&fixture.hub, fixture.administrator(), &fixture.device);
    hub.start_device_states(LONG);
    let presence = hub.device_connected(device);
    let state = wait_for(hub, &caller, device, |state| state.active && state.last_connect_ms > 0);
    assert!(state.last_activity_ms >= state.last_connect_ms && state.last_disconnect_ms == 0, "{state:?}");
    let later = state.last_activity_ms + 5;
    presence.touch(later);
    let heard = hub.device_state(&caller, device).unwrap();
    assert_eq!(heard.last_activity_ms, later, "readers get the present time");
    let shown = server_attributes(hub, &caller, device);
    assert!(shown.contains(&("lastActivityTime".to_owned(), Value::I64(later))), "{shown:?}");
    presence.touch(later - 3_600_000);
    assert_eq!(hub.device_state(&caller, device).unwrap().last_activity_ms, later, "times never go back");
    drop(presence);
    let state = wait_for(hub, &caller, device, |state| state.last_disconnect_ms > 0);
    assert!(state.active, "{state:?}");
    let keys: Vec<String> = server_attributes(hub, &caller, device).into_iter().map(|(key, _)| key).collect();
    assert_eq!(keys, ["active", "lastActivityTime", "lastConnectTime", "lastDisconnectTime"]);
}

#[test]
fn silence_makes_a_device_inactive_and_a_request_active_again() {
    let fixture = fixture();
    let (hub, caller, device) = (&fixture.hub, fixture.administrator(), &fixture.device);
    hub.start_device_states(LONG);
    hub.device_heard(device);
    wait_for(hub, &caller, device, |state| state.active);
    let timeout = [("inactivityTimeout".to_owned(), Value::I64(1))];
    hub.set_attributes(&caller, device, Scope::Server, &timeout).unwrap();
    let silent = wait_for(hub, &caller, device, |state| !state.active && state.inactivity_alarm_ms > 0);
    assert!(silent.inactivity_alarm_ms > silent.last_activity_ms, "{silent:?}");
    assert_eq!(silent.timeout_ms, Some(1));
    // A longer timeout makes it active again.
    hub.delete_attributes(&caller, device, Scope::Server, &["inactivityTimeout".to_owned()]).unwrap();
    let again = wait_for(hub, &caller, device, |state| state.active && state.inactivity_alarm_ms == 0);
    assert_eq!(again.last_activity_ms, silent.last_activity_ms);
    hub.set_attributes(&caller, device, Scope::Server, &timeout).unwrap();
    wait_for(hub, &caller, device, |state| !state.active);
    let long = [("inactivityTimeout".to_owned(), Value::I64(3_600_000))];
    hub.set_attributes(&caller, device, Scope::Server, &long).unwrap();
    hub.device_heard(device);
    wait_for(hub, &caller, device, |state| state.active && state.last_activity_ms > silent.last_activity_ms);
}

#[test]
fn the_state_continues_after_a_restart() {
    let fixture = fixture();
    let (hub, caller, device) = (&fixture.hub, fixture.administrator(), &fixture.device);
    hub.start_device_states(LONG);
    let presence = hub.device_connected(device);
    let before = wait_for(hub, &caller, device, |state| state.active);
    let last = before.last_activity_ms + 7;
    presence.touch(last);
    // The first server ends without a word: what it had stored is there.
    let (second, _directory) = restarted(&fixture);
    let device = second.registry().device_by_id(device.id).unwrap();
    assert!(second.is_device_active(&device).unwrap(), "before the states are read");
    second.start_device_states(LONG);
    let state = wait_for(&second, &caller, &device, |state| state.active);
    // The thread stores the last activity with the first state, or before the touch.
    let stored = before.last_activity_ms..=last;
    assert!(stored.contains(&state.last_activity_ms), "{state:?}");
    // It stops in order: the last activity is stored.
    drop(presence);
    wait_for(hub, &caller, &device, |state| state.last_disconnect_ms > 0);
    let (third, _other) = restarted(&fixture);
    third.start_device_states(Duration::from_millis(1));
    let silent = wait_for(&third, &caller, &device, |state| !state.active && state.inactivity_alarm_ms > 0);
    assert!(stored.contains(&silent.last_activity_ms), "{silent:?}");
}

#[test]
fn an_orderly_stop_stores_the_last_activity() {
    let fixture = fixture();
    let (hub, caller, device) = (&fixture.hub, fixture.administrator(), &fixture.device);
    hub.start_device_states(LONG);
    let presence = hub.device_connected(device);
    let last = wait_for(hub, &caller, device, |state| state.active).last_activity_ms + 11;
    presence.touch(last);
    drop(presence);
    hub.stop_device_states();
    let (second, _directory) = restarted(&fixture);
    let device = second.registry().device_by_id(device.id).unwrap();
    let state = second.device_state(&caller, &device).unwrap();
    assert_eq!((state.active, state.last_activity_ms), (true, last));
    assert!(state.last_disconnect_ms > 0, "{state:?}");
}

#[test]
fn users_do_not_write_what_the_server_keeps() {
    let fixture = fixture();
    let (hub, caller, device) = (&fixture.hub, fixture.administrator(), &fixture.device);
    for key in ["active", "lastConnectTime", "lastDisconnectTime", "lastActivityTime", "inactivityAlarmTime"]
    {
        let entries = [("site".to_owned(), Value::Bool(true)), (key.to_owned(), Value::I64(1))];
        let refused = hub.set_attributes(&caller, device, Scope::Server, &entries).unwrap_err();
        assert!(
            matches!(refused, AttributeError::Kept { .. }) && refused.to_string().contains(key),
            "{refused}"
        );
        hub.delete_attributes(&caller, device, Scope::Server, &[key.to_owned()]).unwrap_err();
        // In another scope it is a name as any other.
        hub.set_attributes(&caller, device, Scope::Shared, &entries).unwrap();
    }
    assert_eq!(server_attributes(hub, &caller, device), []);
}

#[test]
fn a_deleted_device_leaves_no_state() {
    let fixture = fixture();
    let (hub, caller, device) = (&fixture.hub, fixture.administrator(), &fixture.device);
    hub.start_device_states(LONG);
    let presence = hub.device_connected(device);
    wait_for(hub, &caller, device, |state| state.active);
    hub.delete_device(&caller, device.id).unwrap();
    presence.touch(i64::MAX / 2);
    drop(presence);
    hub.stop_device_states();
    let snapshot = kv::KeyValueStore::snapshot(&*fixture.kv).unwrap();
    for space in ["attributes", "active_devices"].map(|name| kv::Space::named(name).unwrap()) {
        let keys = snapshot.scan(space, &kv::KeyRange::all(), kv::Direction::Ascending).unwrap();
        assert_eq!(keys.count(), 0, "{space:?}");
    }
}
