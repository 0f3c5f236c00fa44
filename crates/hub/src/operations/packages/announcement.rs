//! What devices learn about their packages: shared attributes, and telemetry about the state of the update, with ThingsBoard's names.

use std::time::Instant;

use kv::Sequence;
use model::{Batch, Timestamp, Value, ValueRef};
use store::{Durability, StoreError};
use uuid::Uuid;

use crate::attributes::{AttributeError, AttributeScope, Change, Scope, removal, update_by_server};
use crate::blocking_append::{PAUSE, retry, wait_durable_keys};
use crate::clock::system_now;
use crate::hub::Hub;
use crate::ota::limits::{PACKAGE_BUSY_TIMEOUT, STATE_ROWS_AT_ONCE};
use crate::ota::{OtaError, Package};
use crate::registry::{Device, PackageKind};

/// The keys of shared attributes about a package, behind the prefix of its kind.
const KEYS: [&str; 7] = ["title", "version", "tag", "size", "checksum", "checksum_algorithm", "url"];

impl Hub {
    /// Sets the shared attributes of devices about their packages of some kinds, and appends rows about the state of the update for
    /// those that have one. Waits for the disk.
    ///
    /// # Errors
    /// The key-value store refused or failed.
    pub(super) fn announce(&self, devices: &[Uuid], kinds: &[PackageKind]) -> Result<(), OtaError> {
        let mut last = 0;
        for id in devices {
            let Some(device) = self.registry.device_by_id(*id) else { continue };
            for kind in kinds {
                last = last.max(self.announce_one(&device, *kind)?);
            }
        }
        wait_durable_keys(&*self.kv, last)?;
        for devices in devices.chunks(STATE_ROWS_AT_ONCE) {
            if let Err(error) = self.append_states(devices, kinds) {
                let count = devices.len();
                tracing::warn!(%error, count, "devices have other packages; rows about the state of their update are missing");
            }
        }
        Ok(())
    }

    fn announce_one(&self, device: &Device, kind: PackageKind) -> Result<Sequence, OtaError> {
        let place = AttributeScope { owner: device.into(), scope: Scope::Shared };
        let now = system_now();
        let now = Timestamp::from_millis(now.millis()).unwrap_or(now);
        // Each looks at the registry under the lock of the device, so the last one of several changes counts.
        let set =
            self.change_shared(place, |kv| update_by_server(kv, place, &self.wanted(device.id, kind), now));
        let keys = |wanted: &[(String, Value)]| -> Vec<String> {
            let all = KEYS.iter().map(|key| format!("{}_{key}", kind.prefix()));
            all.filter(|key| !wanted.iter().any(|(wanted, _)| wanted == key)).collect()
        };
        let removed =
            self.change_shared(place, |kv| removal(kv, place, &keys(&self.wanted(device.id, kind))));
        match (set, removed) {
            // It was deleted at this moment.
            (Err(AttributeError::Registry(_)), _) | (_, Err(AttributeError::Registry(_))) => Ok(0),
            (set, removed) => Ok(set?.max(removed?)),
        }
    }

    /// Changes shared attributes; waits while the key-value store is busy.
    fn change_shared(
        &self,
        place: AttributeScope<'_>,
        plan: impl Fn(&dyn kv::KeyValueStore) -> Result<Change, AttributeError>,
    ) -> Result<Sequence, AttributeError> {
        let began = Instant::now();
        let exists = || self.registry.device_by_id(place.owner.entity.id).is_some();
        loop {
            match self.attribute_writer.change(place, exists, &plan) {
                Err(error)
                    if error.blame() == store::Blame::Busy && began.elapsed() < PACKAGE_BUSY_TIMEOUT =>
                {
                    std::thread::sleep(PAUSE);
                }
                done => return done,
            }
        }
    }

    /// The attributes that a device is to have about its package of a kind; none without a package.
    fn wanted(&self, device: Uuid, kind: PackageKind) -> Vec<(String, Value)> {
        let Some(device) = self.registry.device_by_id(device) else { return Vec::new() };
        let package = device.packages().of(kind).and_then(|id| self.packages.get(device.tenant, id).ok());
        let Some(package) = package else { return Vec::new() };
        let entry = |(key, value): (&str, Value)| (format!("{}_{key}", kind.prefix()), value);
        attributes_of(&package).into_iter().map(entry).collect()
    }

    /// Appends a row for each device that has a package of one of the kinds: the package that it is to have, and that it has been told.
    fn append_states(&self, devices: &[Uuid], kinds: &[PackageKind]) -> Result<(), StoreError> {
        let mut batch = Batch::new();
        for id in devices {
            let Some(device) = self.registry.device_by_id(*id) else { continue };
            let packages = kinds.iter().filter_map(|kind| {
                let package = self.packages.get(device.tenant, device.packages().of(*kind)?).ok()?;
                Some((kind.prefix(), package))
            });
            let series = self.series_of(&*device)?;
            let ts = self.receipt_time();
            let mut row = batch.builder();
            let mut has_fields = false;
            for (prefix, package) in packages {
                has_fields = true;
                row.field(&format!("target_{prefix}_title"), ValueRef::String(&package.title));
                row.field(&format!("target_{prefix}_version"), ValueRef::String(&package.version));
                row.field(&format!("target_{prefix}_tag"), ValueRef::String(&package.tag));
                row.field(&format!("target_{prefix}_ts"), ValueRef::I64(ts.millis()));
                row.field(&format!("{prefix}_state"), ValueRef::String("INITIATED"));
            }
            if has_fields {
                row.row(series, ts);
                row.finish();
            }
        }
        if batch.is_empty() {
            return Ok(());
        }
        retry(Instant::now(), PACKAGE_BUSY_TIMEOUT, || self.ingest(&batch, Durability::Fsync)).map(drop)
    }
}

/// The attributes about a package, without the prefix.
fn attributes_of(package: &Package) -> Vec<(&'static str, Value)> {
    let text = |text: &str| Value::String(text.to_owned());
    let mut entries = vec![
        ("title", text(&package.title)),
        ("version", text(&package.version)),
        ("tag", text(&package.tag)),
    ];
    if let Some(url) = &package.url {
        entries.push(("url", text(url)));
    }
    if let Some(file) = &package.file {
        entries.push(("size", Value::I64(i64::try_from(file.bytes).unwrap_or(i64::MAX))));
        entries.push(("checksum", text(&file.checksum)));
        entries.push(("checksum_algorithm", text(file.algorithm.name())));
    }
    entries
}
