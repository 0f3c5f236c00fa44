//! Calls of procedures of devices, for callers with the permission.

use std::time::Duration;

use bytes::Bytes;
use kv::WriteBatch;
use uuid::Uuid;

use crate::caller::{Action, Caller};
use crate::clock::system_now;
use crate::error::Error;
use crate::hub::Hub;
use crate::registry::Device;
use crate::rpc::limits::RPC_BUSY_TIMEOUT;
use crate::rpc::{Delivery, RpcCall, RpcError};

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
        caller.check(Action::Command)?;
        let device = self.own_device(caller, device)?;
        let now = system_now();
        call.check()?;
        call.check_wait(now)?;
        fits_schema(&device, &call)?;
        let wait = u64::try_from(call.expires_at.micros().saturating_sub(now.micros())).unwrap_or(0);
        let subject = format!("{} {}", device.name, call.method);
        let mut begun = self.calls.begin(device.id, call)?;
        self.metrics.rpc.calls.inc();
        let audited = self.audit_and_wait(caller, "call device", &subject);
        let called = tokio::time::timeout(Duration::from_micros(wait), begun.outcome());
        let ((), outcome) = tokio::join!(audited, called);
        match outcome {
            Ok(answer) => answer.map_err(RpcError::Unfit),
            Err(_) => {
                self.metrics.rpc.timeouts.inc();
                let device = device.id;
                Err(match begun.is_sent() {
                    true => RpcError::Timeout { device },
                    false => RpcError::NoConnection { device },
                })
            }
        }
    }

    /// Takes the answer of a device to a call. Returns whether the call waited for it; other answers are ignored. The answer to
    /// a stored call is durable when an empty batch after it is.
    ///
    /// # Errors
    /// The answer to a stored call cannot be stored. If the store is busy, the device can send it again.
    pub fn answer_call(&self, device: &Device, id: i32, answer: Bytes) -> Result<bool, Error> {
        if self.calls.answer(device.id, id, Ok(answer.clone())) {
            return Ok(true);
        }
        let stored = self.stored_calls.answer(device.id, id, &answer, system_now())?.is_some();
        if stored {
            self.send_waiting_calls(device.id);
        } else {
            self.metrics.rpc.late_answers.inc();
        }
        Ok(stored)
    }

    /// Like [`answer_call`](Self::answer_call), and waits until the answer to a stored call is durable.
    ///
    /// # Errors
    /// The errors of [`answer_call`](Self::answer_call), and the store failed before the answer was durable.
    pub async fn answer_call_and_wait(&self, device: &Device, id: i32, answer: Bytes) -> Result<bool, Error> {
        let waited = self.answer_call(device, id, answer)?;
        self.kv_commit_and_wait(&WriteBatch::new(), RPC_BUSY_TIMEOUT).await?;
        Ok(waited)
    }

    /// Ends a call that does not fit the schema of its device, so the door cannot send it. A caller that waits for an answer gets
    /// the reason.
    pub fn refuse_call(&self, device: &Device, id: i32, reason: &str) {
        if self.calls.answer(device.id, id, Err(reason.to_owned())) {
            return;
        }
        if let Err(error) = self.stored_calls.refuse(device.id, id, reason) {
            tracing::warn!(device = device.name, id, %error, "cannot store the refusal of a call");
        }
    }

    /// Takes the progress of a stored call from the door that sent it. Other calls have none.
    pub fn call_delivery(&self, device: &Device, id: i32, delivery: Delivery) {
        let changed = self.stored_calls.delivery(device.id, id, delivery).and_then(|again| match again {
            Some(call) => self.calls.send_stored(device.id, call),
            None => Ok(()),
        });
        if let Err(error) = changed {
            tracing::warn!(device = device.name, id, %error, "cannot store the progress of a call");
        }
        self.send_waiting_calls(device.id);
    }

    fn send_waiting_calls(&self, device: Uuid) {
        if let Err(error) = self.calls.send_without_room(device) {
            tracing::warn!(%device, %error, "cannot read the stored calls of a device");
        }
    }
}

/// Checks a call to a device that gets Protobuf. The door could not send one that does not fit.
pub(crate) fn fits_schema(device: &Device, call: &RpcCall) -> Result<(), RpcError> {
    let payloads = &device.profile.payloads;
    if !payloads.sends_protobuf() {
        return Ok(());
    }
    payloads.call(0, &call.method, &call.params).map(drop).map_err(RpcError::Unfit)
}
