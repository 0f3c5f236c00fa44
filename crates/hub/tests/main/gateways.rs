//! Devices behind gateways.

use hub::device_messages::{DeviceOutbox, Interests, NotifyWake};
use hub::gateways::{Creation, CreationRefused};

use super::*;

const ALL: Interests = Interests { rpc: true, shared_attributes: true };

impl Fixture {
    fn gateway(&self, name: &str) -> Arc<Device> {
        let new = NewDevice { name, gateway: true, ..NewDevice::default() };
        self.hub.add_device(&self.administrator(), new).unwrap().device
    }

    async fn add_behind(&self, gateway: &Arc<Device>, names: &[&str]) -> Creation {
        let wake = NotifyWake::default();
        let names = names.iter().map(|name| (*name).to_owned()).collect();
        let creation = self.hub.add_devices_behind(gateway, names, None, Arc::new(wake.clone())).unwrap();
        wake.woken().await;
        creation
    }

    fn open_behind(&self, gateway: &Device, device: &Device, takes_over: bool) -> Option<DeviceOutbox> {
        let wake = Arc::new(NotifyWake::default());
        self.hub.open_outbox_behind(gateway, device, ALL, wake, takes_over)
    }

    fn set_shared(&self, device: &Device, value: i64) {
        let entries = [("s".to_owned(), Value::I64(value))];
        let scope = hub::attributes::Scope::Shared;
        self.hub.set_attributes(&self.administrator(), device, scope, &entries).unwrap();
    }
}

#[tokio::test]
async fn a_gateway_adds_devices_and_an_ordinary_device_does_not() {
    let fixture = fixture();
    let gateway = fixture.gateway("gateway");
    let created = fixture.add_behind(&gateway, &["a", "b"]).await;
    assert!(matches!(created.result(), Some(Ok(()))));
    let device = fixture.hub.device_behind(&gateway, "a").unwrap();
    assert_eq!((device.tenant, device.last_gateway), (gateway.tenant, Some(gateway.id)));
    let wake = Arc::new(NotifyWake::default());
    let refused = fixture.hub.add_devices_behind(&fixture.device, vec!["c".into()], None, wake).unwrap_err();
    assert_eq!(refused, CreationRefused::NotAGateway { device: "car".into() });
    assert!(fixture.hub.device_behind(&fixture.device, "a").is_none());
    let failed = fixture.add_behind(&gateway, &[""]).await;
    assert!(failed.result().unwrap().unwrap_err().to_string().contains("empty"));
}

#[tokio::test]
async fn one_connection_of_a_gateway_has_the_messages_of_a_device() {
    let fixture = fixture();
    let (old, new) = (fixture.gateway("old"), fixture.gateway("new"));
    fixture.add_behind(&old, &["a"]).await;
    let device = fixture.hub.device_behind(&old, "a").unwrap();
    let first = fixture.open_behind(&old, &device, false).unwrap();
    fixture.set_shared(&device, 1);
    assert_eq!(first.take(9).len(), 1);
    assert!(fixture.open_behind(&new, &device, false).is_none());
    let second = fixture.open_behind(&new, &device, true).unwrap();
    assert!(first.is_moved() && !second.is_moved());
    fixture.hub.set_interests(&first, ALL);
    fixture.set_shared(&device, 2);
    assert_eq!((first.take(9).len(), second.take(9).len()), (0, 1));
    drop(second);
    let third = fixture.open_behind(&old, &device, false).unwrap();
    fixture.set_shared(&device, 3);
    assert_eq!(third.take(9).len(), 1);
}
