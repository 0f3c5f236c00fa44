//! The terms on which a device profile takes devices by the chain of their certificates. ThingsBoard's names.

use std::fmt;

use regex::Regex;
use serde::{Deserialize, Serialize};

use super::checks::{check_short, over_limit};
use super::error::RegistryError;
use super::limits::CERTIFICATE_BYTES_MAX;
use crate::certificate::Certificate;

/// The pattern of a profile that names none: the whole common name is the device's name.
const DEFAULT_PATTERN: &str = "(.*)";

/// An authority whose certificates name devices of a profile.
#[derive(Clone)]
pub struct CertificateChain {
    authority: Certificate,
    pattern: Regex,
    allow_new: bool,
}

/// The settings in the registry's file.
#[derive(Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
struct Stored {
    certificate_reg_ex_pattern: String,
    allow_create_new_devices_by_x509_certificate: bool,
}

impl PartialEq for CertificateChain {
    fn eq(&self, other: &Self) -> bool {
        self.authority == other.authority
            && self.pattern() == other.pattern()
            && self.allow_new == other.allow_new
    }
}

impl Eq for CertificateChain {}

impl fmt::Debug for CertificateChain {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("CertificateChain").field("pattern", &self.pattern()).finish_non_exhaustive()
    }
}

impl CertificateChain {
    /// The terms for an authority: its certificate as PEM or only its Base64, and the pattern of common names.
    ///
    /// # Errors
    /// The text is not a certificate of one authority, or the pattern has no group or is not a regular expression.
    pub fn new(authority: &str, pattern: Option<&str>, allow_new: bool) -> Result<Self, RegistryError> {
        over_limit("certificate's length in bytes", authority.len(), CERTIFICATE_BYTES_MAX)?;
        let invalid = |what, reason| RegistryError::Invalid { what, reason };
        let authority = Certificate::from_text(authority)
            .map_err(|reason| invalid("provisionDeviceSecret", reason.to_owned()))?;
        let pattern = pattern.filter(|text| !text.is_empty());
        check_short("certificateRegExPattern", pattern)?;
        let pattern = pattern.unwrap_or(DEFAULT_PATTERN);
        let wrong = |reason: String| invalid("certificateRegExPattern", reason);
        let pattern = Regex::new(pattern).map_err(|error| wrong(error.to_string()))?;
        if pattern.captures_len() < 2 {
            return Err(wrong("has no group in parentheses, which names the device".to_owned()));
        }
        Ok(Self { authority, pattern, allow_new })
    }

    /// The terms as the file has them.
    pub(super) fn stored(authority: &str, settings: &str) -> Result<Self, String> {
        let read: Stored = serde_json::from_str(settings).map_err(|error| error.to_string())?;
        let allow_new = read.allow_create_new_devices_by_x509_certificate;
        let chain = Self::new(authority, Some(&read.certificate_reg_ex_pattern), allow_new);
        chain.map_err(|error| error.to_string())
    }

    /// The settings for the file.
    pub(super) fn settings(&self) -> String {
        let stored = Stored {
            certificate_reg_ex_pattern: self.pattern().to_owned(),
            allow_create_new_devices_by_x509_certificate: self.allow_new,
        };
        serde_json::to_string(&stored).expect("BUG: a text and a flag can be written as JSON")
    }

    /// The certificate of the authority.
    pub fn authority(&self) -> &Certificate {
        &self.authority
    }

    /// The pattern whose first group finds the device's name in a common name.
    pub fn pattern(&self) -> &str {
        self.pattern.as_str()
    }

    /// Whether devices that are not there yet are added.
    pub fn allows_new(&self) -> bool {
        self.allow_new
    }

    /// Whether a certificate of a client may lead to the authority: one of them names it as its issuer, or is its own.
    pub fn may_have_issued(&self, chain: &[Certificate]) -> bool {
        chain.iter().any(|one| one.issuer == self.authority.subject || one.der == self.authority.der)
    }

    /// The device that a certificate names.
    pub fn device_name(&self, certificate: &Certificate) -> Option<String> {
        let common_name = certificate.common_name()?;
        let found = self.pattern.captures(&common_name)?.get(1)?.as_str().trim();
        (!found.is_empty()).then(|| found.to_owned())
    }
}

#[cfg(test)]
mod tests {
    use rcgen::{CertificateParams, DnType, KeyPair};

    use super::*;

    fn pem(common_name: &str) -> String {
        let mut params = CertificateParams::default();
        params.distinguished_name.push(DnType::CommonName, common_name);
        params.self_signed(&KeyPair::generate().unwrap()).unwrap().pem()
    }

    fn name(pattern: Option<&str>, common_name: &str) -> Option<String> {
        let chain = CertificateChain::new(&pem("authority"), pattern, true).unwrap();
        chain.device_name(&Certificate::from_text(&pem(common_name)).unwrap())
    }

    #[test]
    fn the_first_group_of_the_pattern_names_the_device() {
        assert_eq!(name(None, "pump 7").as_deref(), Some("pump 7"));
        assert_eq!(name(Some(""), "pump 7").as_deref(), Some("pump 7"));
        assert_eq!(name(Some(r"(.*)\.company\.com"), "pump.company.com").as_deref(), Some("pump"));
        assert_eq!(name(Some(r"(.*)\.company\.com"), "pump.other.com"), None);
        assert_eq!(name(Some("x( *)y"), "x  y"), None, "a blank is not a name");
    }

    #[test]
    fn a_pattern_needs_a_group_and_an_authority_a_certificate() {
        for (authority, pattern, reason) in [
            (pem("a"), ".*", "no group"),
            (pem("a"), "(", "unclosed group"),
            ("x".to_owned(), "(.*)", "not PEM text"),
        ] {
            let error = CertificateChain::new(&authority, Some(pattern), false).unwrap_err().to_string();
            assert!(error.contains(reason), "{error}");
        }
    }

    #[test]
    fn the_file_gives_back_what_it_got() {
        let chain = CertificateChain::new(&pem("a"), Some("(.*)x"), true).unwrap();
        let read = CertificateChain::stored(&chain.authority().to_text(), &chain.settings()).unwrap();
        assert_eq!(read, chain);
        assert!(CertificateChain::stored(&chain.authority().to_text(), "{}").is_err());
    }
}
