//! Files of descriptors.

use std::fs;
use std::path::Path;

use anyhow::{Context, bail};
use sensors::virtual_sensors::Descriptor;
use sensors::virtual_sensors::limits::DESCRIPTOR_BYTES_MAX;

/// The text of a descriptor. A file over the limit is not read.
pub(super) fn text(file: &Path) -> anyhow::Result<String> {
    let bytes = fs::metadata(file).with_context(|| format!("cannot read {}", file.display()))?.len();
    if bytes > DESCRIPTOR_BYTES_MAX as u64 {
        bail!(
            "{} has {bytes} bytes; a descriptor has at most {DESCRIPTOR_BYTES_MAX} (DESCRIPTOR_BYTES_MAX)",
            file.display()
        );
    }
    fs::read_to_string(file).with_context(|| format!("cannot read {}", file.display()))
}

/// A descriptor, with its file in the fault.
pub(super) fn descriptor(file: &Path) -> anyhow::Result<Descriptor> {
    Descriptor::parse(&text(file)?).with_context(|| format!("{} cannot be read", file.display()))
}
