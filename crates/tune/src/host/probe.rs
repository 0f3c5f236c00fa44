//! Observes the host.

use std::collections::BTreeMap;
use std::io;

use super::counters::Counters;
use super::files::HostFiles;
use super::{facts, settings};
use crate::observation::Observation;
use crate::rules::Product;
use crate::target::HostRole;

/// The file without which a host cannot be observed.
const RELEASE: &str = "/proc/sys/kernel/osrelease";

/// The host cannot be observed.
#[derive(Debug, thiserror::Error)]
#[error("cannot read {RELEASE}: only Linux with /proc can be looked at")]
pub struct ProbeError {
    source: io::Error,
}

/// Observes the host for the rules of `product`. Counters are compared with `before`, or with the start of the host.
pub fn observe(
    files: &dyn HostFiles,
    product: &Product,
    role: HostRole,
    before: Option<&Counters>,
) -> Result<Observation, ProbeError> {
    let release = files.read(RELEASE).map_err(|source| ProbeError { source })?;
    let groups = BTreeMap::from([("block device".to_owned(), settings::block_devices(files))]);
    Ok(Observation {
        variant: "linux".to_owned(),
        version: Some(release.trim().to_owned()),
        role: Some(role.name().to_owned()),
        settings: settings::read(files, product),
        facts: facts::read(files),
        counters: Counters::read(files).since(before),
        groups,
    })
}
