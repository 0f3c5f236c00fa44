//! A package of firmware or software.

use model::Timestamp;
use uuid::Uuid;

use super::checksum::ChecksumAlgorithm;
use super::error::OtaError;
use super::limits::{PACKAGE_TEXT_BYTES_MAX, PACKAGE_URL_BYTES_MAX};
use crate::registry::limits::ADDITIONAL_INFO_BYTES_MAX;
use crate::registry::{Listed, PackageKind};

/// A package without its bytes.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Package {
    /// Identity.
    pub id: Uuid,
    pub tenant: Uuid,
    /// The profile of the devices that may have it; `None` for devices of all profiles.
    pub profile: Option<Uuid>,
    pub kind: PackageKind,
    /// Title; with the version unique in the tenant.
    pub title: String,
    pub version: String,
    /// What devices report when they have it; title and version if the client named none.
    pub tag: String,
    /// Where devices find it, if the server has no bytes of it.
    pub url: Option<String>,
    /// What clients keep with it: JSON text.
    pub additional_info: Option<String>,
    /// Its bytes, if they were uploaded.
    pub file: Option<PackageFile>,
    /// When it was added; whole milliseconds.
    pub created_at: Timestamp,
}

/// The bytes of a package, without the bytes themselves.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PackageFile {
    /// Name of the file.
    pub name: String,
    /// Media type of its content.
    pub content_type: String,
    /// Its length.
    pub bytes: u64,
    /// The algorithm of the checksum.
    pub algorithm: ChecksumAlgorithm,
    /// The checksum in hexadecimal digits.
    pub checksum: String,
}

/// The properties of a package that clients set.
#[derive(Debug, Clone, Copy)]
pub struct PackageFields<'a> {
    /// The profile of the devices that may have it.
    pub profile: Option<Uuid>,
    pub kind: PackageKind,
    pub title: &'a str,
    pub version: &'a str,
    /// What devices report when they have it.
    pub tag: Option<&'a str>,
    /// Where devices find it.
    pub url: Option<&'a str>,
    /// What clients keep with it: JSON text.
    pub additional_info: Option<&'a str>,
}

impl PackageFields<'_> {
    /// The tag: that of the client, or title and version as in ThingsBoard.
    pub(crate) fn tag(&self) -> String {
        match self.tag.filter(|tag| !tag.is_empty()) {
            Some(tag) => tag.to_owned(),
            None => format!("{} {}", self.title, self.version),
        }
    }

    pub(crate) fn check(&self) -> Result<(), OtaError> {
        for (what, text) in [("title", self.title), ("version", self.version)] {
            if text.trim().is_empty() {
                return Err(OtaError::Invalid(format!("the {what} of the package is missing; name it")));
            }
            within(what, text.len(), PACKAGE_TEXT_BYTES_MAX, "PACKAGE_TEXT_BYTES_MAX")?;
        }
        let tag = self.tag().len();
        within("tag (or title and version)", tag, 2 * PACKAGE_TEXT_BYTES_MAX + 1, "PACKAGE_TEXT_BYTES_MAX")?;
        let url = self.url.map_or(0, str::len);
        within("url", url, PACKAGE_URL_BYTES_MAX, "PACKAGE_URL_BYTES_MAX")?;
        let info = self.additional_info.map_or(0, str::len);
        within("additionalInfo", info, ADDITIONAL_INFO_BYTES_MAX, "ADDITIONAL_INFO_BYTES_MAX")
    }
}

/// Refuses a text that is too long.
pub(crate) fn within(
    what: &'static str,
    actual: usize,
    limit: usize,
    name: &'static str,
) -> Result<(), OtaError> {
    match actual > limit {
        true => Err(OtaError::OverLimit { what, actual: actual as u64, limit: limit as u64, name }),
        false => Ok(()),
    }
}

impl Listed for Package {
    fn id(&self) -> Uuid {
        self.id
    }

    fn tenant(&self) -> Uuid {
        self.tenant
    }

    /// Title and version, which together are unique in the tenant.
    fn name(&self) -> &str {
        &self.title
    }

    fn created_at(&self) -> Timestamp {
        self.created_at
    }

    fn label(&self) -> Option<&str> {
        Some(&self.version)
    }
}
