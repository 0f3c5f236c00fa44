//! Bounds of packages of firmware and software.

use std::time::Duration;

/// Largest package in bytes.
pub const PACKAGE_BYTES_MAX: u64 = 256 * 1024 * 1024;
/// Bytes of all packages of one tenant.
pub const PACKAGES_BYTES_PER_TENANT_MAX: u64 = 2 * 1024 * 1024 * 1024;
/// Packages of one tenant. What describes them is in memory.
pub const PACKAGES_PER_TENANT_MAX: usize = 1_000;
/// Bytes of a package that one message or answer to a device has, if the device names a size.
pub const PACKAGE_CHUNK_BYTES_MAX: usize = 1024 * 1024;
/// Longest title, version, tag, name of a file or type of its content in bytes (ThingsBoard's columns).
pub const PACKAGE_TEXT_BYTES_MAX: usize = 255;
/// Longest address of a package that is elsewhere, in bytes.
pub const PACKAGE_URL_BYTES_MAX: usize = 512;
/// Bytes of one record of a package.
pub(crate) const PIECE_BYTES: usize = 64 * 1024;
/// Bytes of an upload that are written, and become durable, at once.
pub(crate) const UPLOAD_BATCH_BYTES: usize = 16 * PIECE_BYTES;
/// How long a change waits for a busy store.
pub(crate) const PACKAGE_BUSY_TIMEOUT: Duration = Duration::from_secs(5);
/// Rows about the packages of devices that are appended at once.
pub(crate) const STATE_ROWS_AT_ONCE: usize = 1_000;
