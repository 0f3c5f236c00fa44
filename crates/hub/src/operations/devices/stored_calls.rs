//! Stored calls of procedures of devices, for callers with the permission.

use uuid::Uuid;

use super::calls::fits_schema;
use crate::caller::{Action, Caller};
use crate::clock::system_now;
use crate::error::Error;
use crate::hub::Hub;
use crate::registry::Page;
use crate::rpc::limits::{RPC_BUSY_TIMEOUT, RPC_INFO_BYTES_MAX, RPC_KEPT};
use crate::rpc::{RpcCall, RpcError, RpcStatus, StoredCall, StoredCalls, Storing};

/// The data to list of the stored calls of a device.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct StoredCallsRequest {
    /// Only calls with this status.
    pub status: Option<RpcStatus>,
    /// Whether they are sorted by their expiration and not by the time when they were stored.
    pub by_expiration: bool,
    /// Whether the latest comes first.
    pub descending: bool,
    /// Number of the page, from 0 on.
    pub page: usize,
    /// Calls of a page.
    pub page_size: usize,
}

impl Hub {
    /// Stores a call, and sends it to the device when it is connected. Returns the id of the call when the call is durable.
    ///
    /// # Errors
    /// See [`RpcError`].
    pub async fn store_call(
        &self,
        caller: &Caller,
        device: Uuid,
        call: RpcCall,
        storing: Storing,
    ) -> Result<Uuid, RpcError> {
        caller.check(Action::Command)?;
        let device = self.own_device(caller, device)?;
        call.check()?;
        fits_schema(&device, &call)?;
        let info = storing.additional_info.as_ref().map_or(0, String::len);
        if info > RPC_INFO_BYTES_MAX {
            let what = "bytes of additionalInfo";
            return Err(RpcError::TooLong { what, actual: info, limit: RPC_INFO_BYTES_MAX });
        }
        let number = self.calls.number(device.id);
        let owner = (device.tenant, device.id);
        let (id, batch) = self.stored_calls.reserve(owner, number, &call, &storing, system_now())?;
        let mut unsent = Unsent { calls: &self.stored_calls, id, sent: false };
        let committed = self.kv_commit_and_wait(&batch, RPC_BUSY_TIMEOUT).await;
        committed.inspect_err(|_| self.stored_calls.forget(id))?;
        self.metrics.rpc.calls.inc();
        self.audit_and_wait(caller, "store call of device", &format!("{} {}", device.name, call.method))
            .await;
        self.calls.send_stored(device.id, id)?;
        unsent.sent = true;
        Ok(id)
    }

    /// A stored call.
    ///
    /// # Errors
    /// [`RpcError::Unknown`], also for a call of a device that the caller does not see.
    pub fn stored_call(&self, caller: &Caller, id: Uuid) -> Result<StoredCall, RpcError> {
        caller.check(Action::Command)?;
        let call = self.stored_calls.call(caller.tenant(), id, system_now())?;
        call.filter(|call| self.sees_device(caller, call.device)).ok_or(RpcError::Unknown(id))
    }

    /// A page of the stored calls of a device.
    ///
    /// # Errors
    /// The device is unknown, or the key-value store failed.
    pub fn stored_calls_of(
        &self,
        caller: &Caller,
        device: Uuid,
        request: StoredCallsRequest,
    ) -> Result<Page<StoredCall>, RpcError> {
        caller.check(Action::Command)?;
        let device = self.own_device(caller, device)?;
        let now = system_now();
        let mut calls = self.stored_calls.calls_of(device.id, request.status, now)?;
        if request.by_expiration {
            calls.sort_by_key(|(_, expires_at)| *expires_at);
        }
        if request.descending {
            calls.reverse();
        }
        let Page { data: wanted, total_pages, total_elements, has_next } =
            Page::of(calls.into_iter(), request.page, request.page_size);
        let mut data = Vec::new();
        for (id, _) in wanted {
            data.extend(self.stored_calls.call(caller.tenant(), id, now)?);
        }
        Ok(Page { data, total_pages, total_elements, has_next })
    }

    /// Deletes a stored call. A connection that has it in its outbox still gets it.
    ///
    /// # Errors
    /// [`RpcError::Unknown`], also for a call of a device that the caller does not see.
    pub async fn delete_stored_call(&self, caller: &Caller, id: Uuid) -> Result<(), RpcError> {
        caller.check(Action::Command)?;
        self.stored_call(caller, id)?;
        let batch = self.stored_calls.delete(caller.tenant(), id)?.ok_or(RpcError::Unknown(id))?;
        self.kv_commit_and_wait(&batch, RPC_BUSY_TIMEOUT).await?;
        self.audit_and_wait(caller, "delete stored call", &id.to_string()).await;
        Ok(())
    }

    /// Ends stored calls whose time is over, and deletes those that ended long ago or whose device is gone. Returns their number.
    ///
    /// # Errors
    /// The key-value store failed.
    pub fn clean_stored_calls(&self) -> Result<usize, Error> {
        let is_there = |device| self.registry.device_by_id(device).is_some();
        Ok(self.stored_calls.clean(system_now(), RPC_KEPT, is_there)?)
    }
}

/// A call that is being stored. If its caller leaves meanwhile, the next connection of the device gets the call.
struct Unsent<'a> {
    calls: &'a StoredCalls,
    id: Uuid,
    sent: bool,
}

impl Drop for Unsent<'_> {
    fn drop(&mut self) {
        if !self.sent {
            self.calls.set_offered(self.id, false);
        }
    }
}
