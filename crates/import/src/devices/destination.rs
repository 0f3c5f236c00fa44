//! The destination of devices' rows: a running server, or a data directory without one. It knows the table of a device.

use std::collections::BTreeMap;
use std::sync::Arc;

use anyhow::{Context, bail};
use clients::http::{RestClient, RestError, escaped};
use hub::bulk::{Columns, ImportRules, Importer, count_values};
use hub::registry::{NewDevice, Registry};
use model::{TableName, TimeRange};
use serde_json::{Value, json};
use store::Store;
use uuid::Uuid;

use crate::sink::{RowSink, ServerSink, WRITE_TIMEOUT};

/// The destination of devices' rows.
pub enum Destination {
    Server(RestClient),
    /// The store of a data directory.
    Directory {
        store: Arc<dyn Store>,
        /// The devices and their tables.
        registry: Box<Registry>,
        /// The tenant of the devices.
        tenant: Uuid,
    },
}

/// A device as the destination knows it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct KnownDevice {
    /// The table of its rows.
    pub table: String,
    /// Its id; `None` without a server.
    pub id: Option<String>,
    /// Whether this import has added it.
    pub is_new: bool,
}

/// A device is not there, and must not be added.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("cannot find the device \"{0}\"")]
pub struct UnknownDevice(
    /// Its name.
    pub String,
);

impl Destination {
    /// Finds a device. With `create` a missing device is added.
    pub fn device(&self, name: &str, create: bool) -> anyhow::Result<KnownDevice> {
        if let Some(known) = self.find(name)? {
            return Ok(known);
        }
        if !create {
            bail!(UnknownDevice(name.to_owned()));
        }
        let adding = || format!("cannot add the device \"{name}\"");
        match self {
            Self::Server(api) => {
                api.post("/api/device", &json!({ "name": name })).map(drop).with_context(adding)?;
            }
            Self::Directory { registry, tenant, .. } => {
                let new = NewDevice { name, ..NewDevice::default() };
                registry.add_device(*tenant, new).map(drop).with_context(adding)?;
            }
        }
        let known =
            self.find(name)?.with_context(|| format!("the device \"{name}\" was added and is gone"))?;
        Ok(KnownDevice { is_new: true, ..known })
    }

    fn find(&self, name: &str) -> anyhow::Result<Option<KnownDevice>> {
        match self {
            Self::Server(api) => {
                let path = format!("/api/tacho/import/device?name={}", escaped(name));
                let answer = match api.get(&path) {
                    Ok(answer) => answer,
                    Err(RestError::Status { status: 404, .. }) => return Ok(None),
                    Err(error) => {
                        return Err(error).with_context(|| format!("cannot look up the device \"{name}\""));
                    }
                };
                let table = answer["table"].as_str().map(str::to_owned);
                let table = table.ok_or_else(|| api.unexpected("GET", &path, "no table in the answer"))?;
                let id = answer["id"].as_str().map(str::to_owned);
                Ok(Some(KnownDevice { table, id, is_new: false }))
            }
            Self::Directory { registry, tenant, .. } => {
                let device = registry.device_by_name(*tenant, name);
                Ok(device.map(|device| KnownDevice {
                    table: device.profile.table.name().to_owned(),
                    id: None,
                    is_new: false,
                }))
            }
        }
    }

    /// The sink for rows of a table.
    pub fn sink(
        &self,
        table: &str,
        columns: Columns,
        rules: ImportRules,
        any_time: bool,
    ) -> anyhow::Result<Box<dyn RowSink + '_>> {
        Ok(match self {
            Self::Server(api) => Box::new(ServerSink::new(api, table, columns, any_time)),
            Self::Directory { store, registry, tenant } => Box::new(Importer::new(
                store.as_ref(),
                &TableName::new(&registry.namespace(*tenant), table)?,
                columns,
                rules,
                WRITE_TIMEOUT,
            )),
        })
    }

    /// The number of values of each key of a device in a time range. A server counts only the given keys.
    pub fn count(
        &self,
        device: &str,
        known: &KnownDevice,
        keys: &[&str],
        range: TimeRange,
    ) -> anyhow::Result<BTreeMap<String, u64>> {
        match (self, &known.id) {
            (Self::Server(api), Some(id)) => super::verify::counts_of(api, id, keys, range),
            (Self::Server(_), None) => bail!("the server did not say which device \"{device}\" is"),
            (Self::Directory { store, registry, tenant }, _) => {
                let table = TableName::new(&registry.namespace(*tenant), &known.table)?;
                Ok(count_values(store.as_ref(), &table, device, range)?)
            }
        }
    }

    /// Closes the store of a directory.
    pub fn close(self) -> anyhow::Result<()> {
        match self {
            Self::Server(_) => Ok(()),
            Self::Directory { store, .. } => store.close().context(
                "the rows were imported, but the store did not close cleanly; the next start recovers it",
            ),
        }
    }

    /// The destination in the JSON report.
    pub fn json(&self) -> Value {
        match self {
            Self::Server(api) => json!({ "server": api.base() }),
            Self::Directory { .. } => json!({ "server": null }),
        }
    }
}
