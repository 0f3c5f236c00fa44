//! Adds single devices. Those that are added at the same time share one transaction, and so one sync of the disk.

use std::collections::HashSet;
use std::sync::Arc;

use parking_lot::MutexGuard;
use rusqlite::Connection;
use uuid::Uuid;

use super::checks::{check_short, checked_info};
use super::creation_queue::{Outcome, Queued};
use super::entity::{NewDevice, Provisioned};
use super::error::RegistryError;
use super::handle::Registry;
use super::new_devices::{Kind, NewCredentials, Request, Wanted};
use super::provisioning::insert;

impl Registry {
    /// Adds a device. Waits for the disk: when this returns, the device survives a power cut.
    pub fn add_device(&self, tenant: Uuid, new: NewDevice<'_>) -> Result<Provisioned, RegistryError> {
        check_short("label", new.label)?;
        let kind = Kind {
            gateway: new.gateway,
            last_gateway: None,
            customer: new.customer,
            label: new.label.map(Into::into),
            additional_info: checked_info(new.additional_info)?,
            packages: new.packages,
        };
        let wanted = Wanted { name: new.name.to_owned(), credentials: new.credentials()? };
        let outcome = Outcome::default();
        let profile = new.profile.map(str::to_owned);
        self.creations.run(Queued { tenant, profile, wanted, kind, outcome }, |batch| {
            self.create(&mut self.writer.lock(), batch);
        })
    }

    /// Creates devices in one transaction and gives each its result.
    fn create(&self, writer: &mut MutexGuard<'_, Connection>, batch: Vec<Queued>) {
        let mut names = HashSet::new();
        let mut ids = HashSet::new();
        let (mut planned, mut later) = (Vec::new(), Vec::new());
        for queued in batch {
            let Queued { tenant, profile, wanted, kind, outcome } = queued;
            // A second device of a name or with the same credentials is refused once the first one is there.
            let is_new = names.insert((tenant, wanted.name.clone()))
                && wanted.credentials.as_ref().is_none_or(|new| ids.insert(new.id().to_owned()));
            if !is_new {
                later.push(Queued { tenant, profile, wanted, kind, outcome });
                continue;
            }
            let request = Request { tenant, profile: profile.as_deref(), existing_ok: false, kind };
            match self.plan(&request, std::iter::once(wanted)) {
                Ok(plan) => planned.extend(plan.into_iter().map(|new| (new, Arc::clone(&outcome)))),
                Err(refused) => *outcome.lock() = Some(Err(refused)),
            }
        }
        self.store(writer, planned);
        if !later.is_empty() {
            self.create(writer, later);
        }
    }

    /// Stores planned devices. If the transaction of all fails, each gets one of its own, and so an error of its own.
    fn store(&self, writer: &mut MutexGuard<'_, Connection>, planned: Vec<(Provisioned, Outcome)>) {
        let (devices, outcomes): (Vec<_>, Vec<_>) = planned.into_iter().unzip();
        if devices.is_empty() {
            return;
        }
        match self.commit(writer, "add devices", |transaction| insert(transaction, &devices)) {
            Ok(()) => {
                self.index.write().put_devices(&devices);
                for (device, outcome) in devices.into_iter().zip(outcomes) {
                    *outcome.lock() = Some(Ok(device));
                }
            }
            Err(error) if devices.len() == 1 => {
                if let Some(outcome) = outcomes.first() {
                    *outcome.lock() = Some(Err(error));
                }
            }
            Err(_) => {
                for one in devices.into_iter().zip(outcomes) {
                    self.store(writer, vec![one]);
                }
            }
        }
    }
}

impl NewDevice<'_> {
    fn credentials(&self) -> Result<Option<NewCredentials>, RegistryError> {
        match (self.token, self.credentials) {
            (Some(_), Some(_)) => {
                let reason = "must be absent if there are other credentials".into();
                Err(RegistryError::Invalid { what: "access token", reason })
            }
            (Some(token), None) => Ok(Some(NewCredentials::Token(token.to_owned()))),
            (None, credentials) => Ok(credentials.cloned().map(NewCredentials::Checked)),
        }
    }
}
