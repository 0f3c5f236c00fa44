//! Calls of procedures of devices, for callers with the permission.

use bytes::Bytes;
use uuid::Uuid;

use crate::caller::{Action, Caller};
use crate::clock::system_now;
use crate::hub::Hub;
use crate::registry::Device;
use crate::rpc::{RpcCall, RpcError};

impl Hub {
    /// Calls a procedure of a device. Returns when a connection of the device has taken a one-way call (`None`), or with the
    /// device's answer to a two-way call, which is not checked. A caller that drops the future ends the call.
    ///
    /// # Errors
    /// See [`RpcError`].
    pub async fn call_device(
        &self,
        caller: &Caller,
        device: Uuid,
        call: RpcCall,
    ) -> Result<Option<Bytes>, RpcError> {
        caller.check(Action::ManageDevices)?;
        let device = self.own_device(caller, device)?;
        let now = system_now();
        call.check()?;
        call.check_wait(now)?;
        let wait = u64::try_from(call.expires_at.micros().saturating_sub(now.micros())).unwrap_or(0);
        let subject = format!("{} {}", device.name, call.method);
        let mut begun = self.calls.begin(device.id, call)?;
        self.metrics.rpc.calls.inc();
        let audited = self.audit_and_wait(caller, "call device", &subject);
        let called = tokio::time::timeout(std::time::Duration::from_micros(wait), begun.outcome());
        let ((), outcome) = tokio::join!(audited, called);
        outcome.map_err(|_| {
            self.metrics.rpc.timeouts.inc();
            let device = device.id;
            match begun.is_sent() {
                true => RpcError::Timeout { device },
                false => RpcError::NoConnection { device },
            }
        })
    }

    /// Takes the answer of a device to a call. Returns whether the call was still pending; other answers are ignored.
    pub fn answer_call(&self, device: &Device, id: i32, answer: Bytes) -> bool {
        self.calls.answer(device.id, id, answer)
    }
}
