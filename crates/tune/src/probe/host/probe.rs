//! Samples of the host.

use std::collections::BTreeMap;

use super::files::HostFiles;
use super::{counters, facts, settings};
use crate::probe::contract::{Identity, Probe, Sample, Start};
use crate::probe::error::{ProbeError, StatementError};
use crate::rules::Product;
use crate::statement::Statement;
use crate::target::HostRole;

/// The rules of the host.
const PRODUCT: &str = "linux";
/// The file without which a host cannot be observed.
const RELEASE: &str = "/proc/sys/kernel/osrelease";
/// A text that each start of the machine makes again.
const BOOT_ID: &str = "/proc/sys/kernel/random/boot_id";

/// The probe of a host.
#[derive(Debug)]
pub struct HostProbe<F> {
    files: F,
    identity: Identity,
    product: &'static Product,
}

impl<F: HostFiles> HostProbe<F> {
    /// The probe of the host with these files. The error states that it is not Linux.
    pub fn new(files: F, role: HostRole) -> Result<Self, ProbeError> {
        let release = files.read(RELEASE).map_err(|source| ProbeError::Host { path: RELEASE, source })?;
        let title = match role {
            HostRole::Server => "This machine as the host of a server",
            HostRole::Generator => "This machine as the host of a load generator",
        };
        let identity = Identity {
            product: PRODUCT,
            title: title.to_owned(),
            variant: "linux".to_owned(),
            version: Some(release.trim().to_owned()),
            role: Some(role.name().to_owned()),
        };
        Ok(Self {
            files,
            identity,
            product: Product::named(PRODUCT).expect("BUG: there are no rules of Linux"),
        })
    }

    /// A sample with the settings that the rules of another product read.
    pub(in crate::probe) fn sample_for(&mut self, product: &Product) -> Result<Sample, ProbeError> {
        let mut sample = self.sample()?;
        sample.settings.extend(settings::read(&self.files, product));
        Ok(sample)
    }
}

impl<F: HostFiles> Probe for HostProbe<F> {
    fn identity(&self) -> &Identity {
        &self.identity
    }

    fn sample(&mut self) -> Result<Sample, ProbeError> {
        let (counters, uptime_s) = counters::read(&self.files);
        let disks = settings::block_devices(&self.files);
        Ok(Sample {
            settings: settings::read(&self.files, self.product),
            facts: facts::read(&self.files),
            counters,
            groups: BTreeMap::from([("block device".to_owned(), disks)]),
            uptime_s,
            ..Sample::default()
        })
    }

    fn carry_out(&mut self, statement: &Statement) -> Result<(), StatementError> {
        let Statement::Write { path, text } = statement else {
            return Err(StatementError::Other(statement.clone()));
        };
        self.files.write(path, text).map_err(|error| StatementError::of_file(&error))
    }

    fn start(&mut self) -> Result<Option<Start>, ProbeError> {
        Ok(self.files.read(BOOT_ID).ok().map(|id| Start::Id(id.trim().to_owned())))
    }
}
