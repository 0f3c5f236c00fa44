//! Claims of devices by users of customers.

use std::net::IpAddr;
use std::time::Instant;

use kv::{KvError, Sequence, WriteBatch};
use model::Value;
use serde::Deserialize;

use crate::attributes::{AttributeScope, Scope, read};
use crate::blocking_append::wait_durable_keys;
use crate::caller::{Action, Caller};
use crate::claims::limits::{CLAIM_DURATION_DEFAULT, CLAIM_DURATION_MAX, CLAIM_SECRET_BYTES_MAX};
use crate::claims::{CLAIMS, ClaimError, Claimed, Offer, claim_key};
use crate::clock::system_now;
use crate::device_messages::Attribute;
use crate::hub::Hub;
use crate::registry::{Device, DeviceChange, EntityId, RegistryError};

/// The server attribute that keeps a device from being claimed if it is not true.
const ALLOWED: &str = "claimingAllowed";
/// The server attribute with an offer that a user has made for the device.
const DATA: &str = "claimingData";

/// The offer of a device, and what must be deleted with it.
struct FoundOffer {
    offer: Option<Offer>,
    /// The offer is a record of its own.
    is_record: bool,
    /// The attributes about claiming that the device has.
    attributes: Vec<String>,
}

/// The value of the attribute [`DATA`].
#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct ClaimingData {
    #[serde(default)]
    secret_key: String,
    expiration_time: i64,
}

impl Hub {
    /// Lets users of customers claim a device with a secret, for the device that asks for it. An earlier offer ends. It may read the disk.
    /// The caller may ack when the store of keys is durable up to the returned sequence ([`kv_durable`](Self::kv_durable)).
    ///
    /// # Errors
    /// The device belongs to a customer or may not be claimed, a limit, or the store of keys failed.
    pub fn offer_claim(
        &self,
        device: &Device,
        secret: &str,
        duration_ms: Option<u64>,
    ) -> Result<Sequence, ClaimError> {
        let bytes = secret.len() as u64;
        within(
            "length of secretKey in bytes",
            bytes,
            CLAIM_SECRET_BYTES_MAX as u64,
            "CLAIM_SECRET_BYTES_MAX",
        )?;
        let duration_ms = duration_ms.unwrap_or(millis(CLAIM_DURATION_DEFAULT));
        within("durationMs", duration_ms, millis(CLAIM_DURATION_MAX), "CLAIM_DURATION_MAX")?;
        if device.customer.is_some() {
            return Err(ClaimError::Assigned { device: device.name.clone() });
        }
        let attributes = self.claim_attributes(device)?;
        if attributes.iter().any(|one| &*one.key == ALLOWED && one.value != Value::Bool(true)) {
            return Err(ClaimError::NotAllowed { device: device.name.clone() });
        }
        // The limit keeps the sum far from the end of the numbers.
        let expires_ms = now_ms().saturating_add_unsigned(duration_ms);
        let mut batch = WriteBatch::new();
        batch.put(CLAIMS, claim_key(device.tenant, device.id), Offer::new(secret, expires_ms).encode());
        Ok(self.kv.commit(&batch)?)
    }

    /// Claims the device of a name for the customer of the caller. `peer` is the address of the client. Waits for the disk.
    ///
    /// # Errors
    /// The caller is not a user of a customer who may call devices, the device is unknown in the tenant, too many wrong secrets came
    /// from the address, or the server failed.
    pub fn claim_device(
        &self,
        caller: &Caller,
        peer: Option<IpAddr>,
        name: &str,
        secret: &str,
    ) -> Result<Claimed, ClaimError> {
        caller.check(Action::Command)?;
        let customer = caller.customer();
        let customer = customer.ok_or_else(|| ClaimError::NoCustomer { login: caller.login().to_owned() })?;
        let device = self.registry.device_by_name(caller.tenant(), name);
        let device = device.ok_or_else(|| RegistryError::unknown("device", name))?;
        let found = self.found_offer(&device)?;
        let Some(offer) = found.offer else {
            return Ok(if device.customer.is_some() { Claimed::Already } else { Claimed::Failure });
        };
        let began = Instant::now();
        let attempt = self.device_logins().begin(peer, &format!("claim {}", device.id), began)?;
        let is_right = offer.takes(secret, now_ms());
        attempt.end(is_right, began);
        if !is_right {
            if found.is_record {
                self.end_offer(&device)?;
            }
            return Ok(Claimed::Failure);
        }
        if device.customer.is_some() {
            self.end_offer(&device)?;
            return Ok(Claimed::Already);
        }
        let (customer, version) = (Some(Some(customer)), Some(device.version));
        let change = DeviceChange { name: &device.name, customer, version, ..DeviceChange::default() };
        let claimed = self.registry.change_device(device.id, change)?;
        self.end_offer(&claimed)?;
        if !found.attributes.is_empty() {
            self.delete_attributes(caller, &claimed, Scope::Server, &found.attributes)?;
        }
        self.audit_of(caller, "claim device", name, EntityId::device(claimed.id));
        Ok(Claimed::Success(claimed))
    }

    /// Ends the assignment of the device of a name, and its offer. A user of a customer may do it for the devices of the customer.
    /// Waits for the disk.
    ///
    /// # Errors
    /// The caller may not assign devices and is not a user of the device's customer, the device is unknown, or the server failed.
    pub fn reclaim_device(&self, caller: &Caller, name: &str) -> Result<(), ClaimError> {
        let action = if caller.customer().is_some() { Action::Command } else { Action::ManageDevices };
        caller.check(action)?;
        let device = self.device_by_name(caller, name)?;
        self.end_offer(&device)?;
        if device.customer.is_some() {
            let (customer, version) = (Some(None), Some(device.version));
            let change = DeviceChange { name, customer, version, ..DeviceChange::default() };
            self.registry.change_device(device.id, change)?;
        }
        self.audit_of(caller, "reclaim device", name, EntityId::device(device.id));
        Ok(())
    }

    /// The offer of a device: its own, or that of an attribute.
    fn found_offer(&self, device: &Device) -> Result<FoundOffer, ClaimError> {
        let attributes = self.claim_attributes(device)?;
        let record = self.kv.get(CLAIMS, &claim_key(device.tenant, device.id))?;
        let own = record.as_deref().and_then(Offer::decode);
        let of_data = attributes.iter().find(|one| &*one.key == DATA).and_then(offer_of);
        let attributes = attributes.iter().map(|one| one.key.to_string()).collect();
        Ok(FoundOffer { offer: own.or(of_data), is_record: own.is_some(), attributes })
    }

    fn claim_attributes(&self, device: &Device) -> Result<Vec<Attribute>, ClaimError> {
        let place = AttributeScope { owner: device.into(), scope: Scope::Server };
        Ok(read(&*self.kv, place, Some(&[ALLOWED, DATA].map(str::to_owned)))?)
    }

    fn end_offer(&self, device: &Device) -> Result<(), KvError> {
        let key = claim_key(device.tenant, device.id);
        if self.kv.get(CLAIMS, &key)?.is_none() {
            return Ok(());
        }
        let mut batch = WriteBatch::new();
        batch.delete(CLAIMS, key);
        wait_durable_keys(&*self.kv, self.kv.commit(&batch)?)
    }
}

/// The offer in the attribute [`DATA`]; `None` if it has another form.
fn offer_of(attribute: &Attribute) -> Option<Offer> {
    let (Value::String(text) | Value::Json(text)) = &attribute.value else { return None };
    let data: ClaimingData = serde_json::from_str(text).ok()?;
    Some(Offer::new(&data.secret_key, data.expiration_time))
}

fn within(what: &'static str, actual: u64, limit: u64, name: &'static str) -> Result<(), ClaimError> {
    match actual > limit {
        true => Err(ClaimError::OverLimit { what, actual, limit, name }),
        false => Ok(()),
    }
}

fn millis(duration: std::time::Duration) -> u64 {
    u64::try_from(duration.as_millis()).unwrap_or(u64::MAX)
}

fn now_ms() -> i64 {
    system_now().millis()
}
