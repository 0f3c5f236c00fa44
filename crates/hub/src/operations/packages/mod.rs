//! Packages of firmware and software.

mod announcement;
mod assignment;
mod changes;
mod device;
mod upload;

pub use upload::PackageUpload;
