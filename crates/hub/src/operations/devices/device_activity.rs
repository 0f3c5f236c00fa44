//! The state of devices: what doors report of it, and what callers read.

use std::time::Duration;

use kv::KvError;
use model::{Timestamp, Value};
use uuid::Uuid;

use crate::attributes::{AttributeError, Owner, Scope};
use crate::caller::{Action, Caller};
use crate::device_messages::Attribute;
use crate::device_state::{
    ACTIVE_DEVICES, DevicePresence, DeviceState, INACTIVITY_TIMEOUT, LAST_ACTIVITY_TIME, StateThread,
    active_key, is_kept,
};
use crate::hub::Hub;
use crate::registry::{Device, EntityKind};
use crate::visible::check_device;

impl Hub {
    /// Begins to write the states of devices. Devices without an inactivity timeout of their own have this one.
    pub fn start_device_states(&self, inactivity_timeout: Duration) {
        self.device_states.set_timeout(inactivity_timeout);
        let start = || {
            StateThread::start(
                self.device_states.clone(),
                self.registry.clone(),
                self.kv.clone(),
                self.attribute_writer.clone(),
            )
        };
        self.state_thread.lock().get_or_insert_with(start);
    }

    /// A device has connected. The door touches the presence for each packet, and drops it when the connection ends.
    pub fn device_connected(&self, device: &Device) -> DevicePresence {
        self.device_states.connect(device)
    }

    /// A device without a connection was heard, for example by an HTTP request.
    pub fn device_heard(&self, device: &Device) {
        self.device_states.touch(device);
    }

    /// Whether a device is active. It reads no disk, except in the first seconds after the start.
    ///
    /// # Errors
    /// The key-value store failed.
    pub fn is_device_active(&self, device: &Device) -> Result<bool, KvError> {
        match self.device_states.is_active(device.id) {
            Some(active) => Ok(active),
            None => Ok(self.kv.get(ACTIVE_DEVICES, &active_key(device.tenant, device.id))?.is_some()),
        }
    }

    /// The state of a device. It may read the disk.
    ///
    /// # Errors
    /// The caller lacks the permission, or the key-value store failed.
    pub fn device_state(&self, caller: &Caller, device: &Device) -> Result<DeviceState, AttributeError> {
        check_device(caller, device, Action::Read)?;
        let mut state = DeviceState::read(&*self.kv, device.into())?;
        state.active = self.is_device_active(device)?;
        let last_ms = self.device_states.last_activity_ms(device.id);
        state.last_activity_ms = state.last_activity_ms.max(last_ms.unwrap_or(0));
        Ok(state)
    }

    /// Puts the present time of the last activity into attributes of a device. The stored one is behind by up to a minute.
    pub(crate) fn show_last_activity(
        &self,
        owner: Owner<'_>,
        scope: Scope,
        keys: Option<&[String]>,
        found: &mut [Attribute],
    ) {
        let is_asked = keys.is_none_or(|keys| keys.iter().any(|key| key == LAST_ACTIVITY_TIME));
        if owner.entity.kind != EntityKind::Device || scope != Scope::Server || !is_asked {
            return;
        }
        let Some(last_ms) = self.device_states.last_activity_ms(owner.entity.id) else { return };
        let stored = found.iter_mut().find(|attribute| &*attribute.key == LAST_ACTIVITY_TIME);
        // Before the first one is stored, it is not shown: the state appears as a whole.
        if let Some(stored) = stored
            && !matches!(stored.value, Value::I64(millis) if millis >= last_ms)
        {
            stored.value = Value::I64(last_ms);
            stored.ts = Timestamp::from_millis(last_ms).unwrap_or(stored.ts);
        }
    }

    /// Refuses a user's change of attributes that the server keeps.
    pub(crate) fn check_kept<'k>(
        owner: Owner<'_>,
        scope: Scope,
        mut keys: impl Iterator<Item = &'k str>,
    ) -> Result<(), AttributeError> {
        if owner.entity.kind != EntityKind::Device || scope != Scope::Server {
            return Ok(());
        }
        match keys.find(|key| is_kept(key)) {
            Some(key) => Err(AttributeError::Kept { entity: owner.to_string(), key: key.to_owned() }),
            None => Ok(()),
        }
    }

    /// Follows a change of attributes, which may be the inactivity timeout of a device.
    pub(crate) fn follow_timeout<'k>(
        &self,
        owner: Owner<'_>,
        scope: Scope,
        mut keys: impl Iterator<Item = &'k str>,
    ) {
        if scope == Scope::Server
            && owner.entity.kind == EntityKind::Device
            && keys.any(|key| key == INACTIVITY_TIMEOUT)
        {
            self.device_states.reload(owner.entity.id);
        }
    }

    /// Forgets the state of a deleted device.
    pub(crate) fn forget_state(&self, device: Uuid) {
        self.device_states.forget(device);
    }

    /// Stores what is known of the states, and ends their thread. [`close`](Self::close) calls it.
    pub fn stop_device_states(&self) {
        if let Some(thread) = self.state_thread.lock().take() {
            thread.stop();
        }
    }
}
