//! Packages of firmware and software for devices (over the air), as in ThingsBoard.
//!
//! A package is first added without bytes, then its bytes are uploaded once and never change. A device has the packages that are its own, and
//! for a kind without one that of its profile. Shared attributes tell the device which package it has, and it reads the bytes in chunks.
//!
//! 1. The pieces of a package are durable before the record that states that the package has them; an upload that does not end leaves a
//!    package without bytes. The server deletes its pieces later.
//! 2. A package is deleted with its pieces in one batch, and only while no device and no profile has it.
//! 3. Before the registry gives a device or a profile another package, a record of the change is durable; it is deleted when the shared
//!    attributes are. After a crash the server sets the attributes again.

mod checksum;
mod error;
pub mod limits;
mod package;
mod packages;
mod record;
mod request;

pub(crate) use checksum::Checksum;
pub use checksum::ChecksumAlgorithm;
pub use error::OtaError;
pub(crate) use package::within;
pub use package::{Package, PackageFields, PackageFile};
pub(crate) use packages::Packages;
pub(crate) use record::{CHANGES, PACKAGES, PIECES, encode, key, piece_key, pieces_from};
pub use request::PackageRequest;
