//! Stored calls: they survive a restart and wait for their device until they expire.

use std::sync::Arc;
use std::time::Duration;

use kv::{Direction, KeyRange, KeyValueStore, KvError, Sequence, WriteBatch};
use model::Timestamp;
use parking_lot::{MappedMutexGuard, Mutex, MutexGuard};
use uuid::Uuid;

use super::error::RpcError;
use super::index::{Index, Offer};
use super::limits::RPC_CLEANED_MAX;
use super::record::{ANSWERS, CONTENTS, Content, HEADS, Head, StoredCall, Storing, raw};
use super::request::RpcCall;
use super::status::RpcStatus;
use crate::device_messages::{DeviceMessage, RpcRequest};

/// The stored calls. The heads are read when they are first needed.
pub(crate) struct StoredCalls {
    kv: Arc<dyn KeyValueStore>,
    index: Mutex<Option<Index>>,
}

impl std::fmt::Debug for StoredCalls {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("StoredCalls").finish_non_exhaustive()
    }
}

/// The progress of a stored call that a door reports.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Delivery {
    /// The door has sent it and waits for an ack of the device.
    Sent,
    /// The device has acked it, or the door sent it without an ack.
    Delivered,
    /// The device did not ack it in time.
    NotAcknowledged,
}

impl StoredCalls {
    pub(crate) fn new(kv: Arc<dyn KeyValueStore>) -> Self {
        Self { kv, index: Mutex::new(None) }
    }

    /// Whether an open call of the device has this number.
    pub(super) fn has_number(&self, device: Uuid, number: i32) -> bool {
        self.index().is_ok_and(|index| index.numbered(device, number).is_some())
    }

    /// Gives a new call an id and a place in memory. Returns the batch that stores it.
    pub(crate) fn reserve(
        &self,
        (tenant, device): (Uuid, Uuid),
        number: i32,
        call: &RpcCall,
        storing: &Storing,
        now: Timestamp,
    ) -> Result<(Uuid, WriteBatch), RpcError> {
        let content = Content {
            method: call.method.clone(),
            params: raw(&call.params),
            retries: storing.retries,
            additional_info: storing.additional_info.as_deref().map(raw),
        };
        let content = content.encode();
        let expired = call.expires_at <= now;
        let head = Head {
            tenant,
            device,
            created_ms: now.millis(),
            expires_ms: call.expires_at.millis(),
            status: if expired { RpcStatus::Expired } else { RpcStatus::Queued },
            one_way: call.one_way,
            number,
            retries_left: storing.retries_left(),
            bytes: content.len() as u64,
        };
        let mut index = self.index()?;
        let mut batch = WriteBatch::new();
        for victim in index.victims(tenant, device, head.bytes)? {
            index.remove(victim);
            delete(&mut batch, victim);
        }
        let id = Uuid::new_v4();
        batch.put(HEADS, key(id), head.encode()).put(CONTENTS, key(id), content);
        index.put(id, head, Offer::Storing);
        Ok((id, batch))
    }

    /// Forgets a call whose batch was refused.
    pub(crate) fn forget(&self, id: Uuid) {
        if let Ok(mut index) = self.index() {
            index.remove(id);
        }
    }

    /// Remembers whether the connections of the device have got the call.
    pub(crate) fn set_offered(&self, id: Uuid, had_room: bool) {
        if let Ok(mut index) = self.index() {
            index.set_offer(id, if had_room { Offer::Sent } else { Offer::NoRoom });
        }
    }

    /// The open calls of a device for a connection that subscribes; for a poll (`only_new`) the first that no connection has
    /// taken.
    pub(super) fn for_connection(
        &self,
        device: Uuid,
        only_new: bool,
        now: Timestamp,
    ) -> Result<Vec<(Uuid, Arc<DeviceMessage>)>, KvError> {
        let mut open = self.index()?.for_connection(device, now);
        if only_new {
            open.retain(|(_, head)| head.status == RpcStatus::Queued);
            open.truncate(1);
        }
        self.messages(open)
    }

    /// The open calls of a device for which its outboxes had no room.
    pub(super) fn without_room(
        &self,
        device: Uuid,
        now: Timestamp,
    ) -> Result<Vec<(Uuid, Arc<DeviceMessage>)>, KvError> {
        let open = self.index()?.without_room(device, now);
        self.messages(open)
    }

    fn messages(&self, calls: Vec<(Uuid, Head)>) -> Result<Vec<(Uuid, Arc<DeviceMessage>)>, KvError> {
        let mut messages = Vec::new();
        for (id, head) in calls {
            messages.extend(self.message(id, &head)?.map(|message| (id, message)));
        }
        Ok(messages)
    }

    /// The request of an open call; `None` if it is not open or not stored.
    pub(super) fn request(&self, id: Uuid) -> Result<Option<Arc<DeviceMessage>>, KvError> {
        let head = self.index()?.head(id).filter(|head| head.is_open()).cloned();
        head.map_or(Ok(None), |head| self.message(id, &head))
    }

    fn message(&self, id: Uuid, head: &Head) -> Result<Option<Arc<DeviceMessage>>, KvError> {
        let Some(content) = self.content(id)? else {
            // Its caller left before it was stored.
            self.forget(id);
            return Ok(None);
        };
        let expires_at = Timestamp::from_millis(head.expires_ms).unwrap_or(Timestamp::MAX);
        let params = content.params.get().into();
        let (request, _) =
            RpcRequest::new(head.number, content.method.into(), params, head.one_way, true, expires_at);
        Ok(Some(Arc::new(DeviceMessage::RpcRequest(request))))
    }

    /// Takes the progress of an open call. Returns whether the call is to be sent again.
    pub(crate) fn delivery(
        &self,
        device: Uuid,
        number: i32,
        delivery: Delivery,
    ) -> Result<Option<Uuid>, KvError> {
        let mut index = self.index()?;
        let Some(id) = index.numbered(device, number) else { return Ok(None) };
        let Some(head) = index.head(id).cloned() else { return Ok(None) };
        let (new, answer) = match delivery {
            // The ack may overtake the report that the door has sent it.
            Delivery::Sent if head.status == RpcStatus::Delivered => return Ok(None),
            Delivery::Sent => (head.with(RpcStatus::Sent), None),
            Delivery::Delivered => (head.with(RpcStatus::Delivered), None),
            Delivery::NotAcknowledged if head.retries_left == 0 => {
                let error = r#"{"error":"the device did not ack the call, and it is not sent again"}"#;
                (head.with(RpcStatus::Failed), Some(error))
            }
            Delivery::NotAcknowledged => {
                (Head { retries_left: head.retries_left - 1, ..head.with(RpcStatus::Timeout) }, None)
            }
        };
        let again = (new.status == RpcStatus::Timeout).then_some(id);
        self.change(&mut index, id, new, answer)?;
        Ok(again)
    }

    /// Takes the answer of a device. Returns the sequence of the batch that stores it; `None` if no open call has the number.
    pub(crate) fn answer(
        &self,
        device: Uuid,
        number: i32,
        answer: &[u8],
        now: Timestamp,
    ) -> Result<Option<Sequence>, KvError> {
        let mut index = self.index()?;
        let Some(id) = index.numbered(device, number) else { return Ok(None) };
        let Some(head) = index.head(id).filter(|head| head.is_open_at(now)).cloned() else { return Ok(None) };
        let text = String::from_utf8_lossy(answer);
        let answer = match serde_json::from_str::<&serde_json::value::RawValue>(&text) {
            Ok(_) => text.into_owned(),
            Err(_) if text.is_empty() => "null".to_owned(),
            Err(_) => serde_json::json!({ "error": text }).to_string(),
        };
        self.change(&mut index, id, head.with(RpcStatus::Successful), Some(&answer)).map(Some)
    }

    /// Ends an open call that the door cannot send.
    pub(crate) fn refuse(&self, device: Uuid, number: i32, reason: &str) -> Result<(), KvError> {
        let mut index = self.index()?;
        let Some(id) = index.numbered(device, number) else { return Ok(()) };
        let Some(head) = index.head(id).cloned() else { return Ok(()) };
        let error = serde_json::json!({ "error": reason }).to_string();
        self.change(&mut index, id, head.with(RpcStatus::Failed), Some(&error)).map(drop)
    }

    fn change(
        &self,
        index: &mut Index,
        id: Uuid,
        mut head: Head,
        answer: Option<&str>,
    ) -> Result<Sequence, KvError> {
        let mut batch = WriteBatch::new();
        if let Some(answer) = answer {
            head.bytes += answer.len() as u64;
            batch.put(ANSWERS, key(id), answer.to_owned());
        }
        batch.put(HEADS, key(id), head.encode());
        let sequence = self.kv.commit(&batch)?;
        index.set_head(id, head);
        Ok(sequence)
    }

    /// A call of a tenant.
    pub(crate) fn call(&self, tenant: Uuid, id: Uuid, now: Timestamp) -> Result<Option<StoredCall>, KvError> {
        let head = self.index()?.head(id).filter(|head| head.tenant == tenant).cloned();
        head.map_or(Ok(None), |head| self.read(id, &head, now))
    }

    /// The calls of a device with a status, or all of them, oldest first.
    pub(crate) fn calls_of(
        &self,
        device: Uuid,
        status: Option<RpcStatus>,
        now: Timestamp,
    ) -> Result<Vec<(Uuid, Timestamp)>, KvError> {
        let index = self.index()?;
        let wanted = |head: &Head| status.is_none_or(|status| head.status_at(now) == status);
        let calls = index.of_device(device).filter(|(_, head, _)| wanted(head));
        let expires = |head: &Head| Timestamp::from_millis(head.expires_ms).unwrap_or(Timestamp::MAX);
        Ok(calls.map(|(id, head, _)| (id, expires(head))).collect())
    }

    fn read(&self, id: Uuid, head: &Head, now: Timestamp) -> Result<Option<StoredCall>, KvError> {
        let Some(content) = self.content(id)? else { return Ok(None) };
        let answer = self.kv.get(ANSWERS, id.as_bytes())?;
        let time = |millis| Timestamp::from_millis(millis).unwrap_or(Timestamp::MAX);
        Ok(Some(StoredCall {
            id,
            tenant: head.tenant,
            device: head.device,
            created_at: time(head.created_ms),
            expires_at: time(head.expires_ms),
            status: head.status_at(now),
            one_way: head.one_way,
            method: content.method,
            params: content.params.get().to_owned(),
            storing: Storing {
                retries: content.retries,
                additional_info: content.additional_info.map(|info| info.get().to_owned()),
            },
            answer: answer.map(|answer| String::from_utf8_lossy(&answer).into_owned()),
        }))
    }

    fn content(&self, id: Uuid) -> Result<Option<Content>, KvError> {
        let Some(content) = self.kv.get(CONTENTS, id.as_bytes())? else { return Ok(None) };
        serde_json::from_slice(&content).map(Some).map_err(|error| damaged(CONTENTS, id.as_bytes(), &error))
    }

    /// Deletes a call of a tenant from memory. Returns the batch that deletes its records; `None` if there is no such call.
    pub(crate) fn delete(&self, tenant: Uuid, id: Uuid) -> Result<Option<WriteBatch>, KvError> {
        let mut index = self.index()?;
        if index.head(id).is_none_or(|head| head.tenant != tenant) {
            return Ok(None);
        }
        index.remove(id);
        let mut batch = WriteBatch::new();
        delete(&mut batch, id);
        Ok(Some(batch))
    }

    /// Ends calls whose time is over, and deletes calls whose device is gone or whose time was over for `kept`. Returns how
    /// many it ended or deleted.
    pub(crate) fn clean(
        &self,
        now: Timestamp,
        kept: Duration,
        is_there: impl Fn(Uuid) -> bool,
    ) -> Result<usize, KvError> {
        let mut index = self.index()?;
        let oldest_ms = now.millis().saturating_sub(kept.as_millis() as i64);
        let (mut old, mut over) = (Vec::new(), Vec::new());
        for (id, head) in index.all() {
            if !is_there(head.device) || head.expires_ms <= oldest_ms {
                old.push(id);
            } else if head.is_open() && !head.is_open_at(now) {
                over.push((id, head.with(RpcStatus::Expired)));
            }
        }
        // The next cleaning continues.
        old.truncate(RPC_CLEANED_MAX);
        over.truncate(RPC_CLEANED_MAX);
        let mut batch = WriteBatch::new();
        old.iter().for_each(|id| delete(&mut batch, *id));
        for (id, head) in &over {
            batch.put(HEADS, key(*id), head.encode());
        }
        if !batch.is_empty() {
            self.kv.commit(&batch)?;
        }
        let count = old.len() + over.len();
        old.into_iter().for_each(|id| index.remove(id));
        over.into_iter().for_each(|(id, head)| index.set_head(id, head));
        Ok(count)
    }

    fn index(&self) -> Result<MappedMutexGuard<'_, Index>, KvError> {
        let mut guard = self.index.lock();
        if guard.is_none() {
            *guard = Some(load(&*self.kv)?);
        }
        Ok(MutexGuard::map(guard, |index| index.as_mut().expect("BUG: the index was loaded above")))
    }
}

fn load(kv: &dyn KeyValueStore) -> Result<Index, KvError> {
    let mut index = Index::default();
    for record in kv.scan(HEADS, &KeyRange::all(), Direction::Ascending)? {
        let (id, head) = record?;
        let head = serde_json::from_slice(&head).map_err(|error| damaged(HEADS, &id, &error))?;
        let id = Uuid::from_slice(&id).map_err(|error| damaged(HEADS, &id, &error))?;
        index.put(id, head, Offer::Sent);
    }
    Ok(index)
}

fn key(id: Uuid) -> Vec<u8> {
    id.as_bytes().to_vec()
}

fn delete(batch: &mut WriteBatch, id: Uuid) {
    for space in [HEADS, CONTENTS, ANSWERS] {
        batch.delete(space, key(id));
    }
}

fn damaged(space: kv::Space, key: &[u8], error: &dyn std::fmt::Display) -> KvError {
    let key = key.iter().map(|byte| format!("{byte:02x}")).collect::<String>();
    KvError::Corrupt { path: format!("{space}/{key}").into(), reason: error.to_string() }
}
