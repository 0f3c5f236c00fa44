//! The interface of the registry, on real files.

mod credentials;
mod device;
mod file;
mod user;

use std::path::PathBuf;

use super::*;
use crate::permission::Role;

/// A registry in a directory of its own.
struct Fixture {
    directory: tempfile::TempDir,
}

impl Fixture {
    fn new() -> Self {
        Self { directory: tempfile::tempdir().unwrap() }
    }

    fn path(&self) -> PathBuf {
        self.directory.path().join("registry.db")
    }

    /// Opens it; the administrator's first password is settled at the first opening.
    fn open(&self) -> Registry {
        let (registry, first_start) = Registry::open(&self.path()).unwrap();
        if let Some(first_start) = first_start {
            first_start.keep(&registry, self.directory.path()).unwrap();
        }
        registry
    }
}

fn new_device(name: &str) -> NewDevice<'_> {
    NewDevice { name, ..NewDevice::default() }
}

fn page(page: usize, page_size: usize, filter: Option<&str>) -> PageRequest<'_> {
    PageRequest { page, page_size, filter, ..PageRequest::default() }
}

/// Every device with its credentials, sorted by name.
fn everything(registry: &Registry) -> Vec<(Device, Credentials)> {
    let all = registry.devices_page(registry.default_tenant(), page(0, 100_000, None), |_| true).unwrap();
    let with_credentials = |device: &std::sync::Arc<Device>| {
        (Device::clone(device), registry.credentials_of(device.id).unwrap())
    };
    all.data.iter().map(with_credentials).collect()
}
