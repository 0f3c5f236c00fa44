//! On which terms a device profile gives credentials to devices that ask for them. ThingsBoard's names.

use std::fmt;
use std::str::FromStr;
use std::sync::Arc;

use super::certificate_chain::CertificateChain;
use super::checks::check_short;
use super::error::RegistryError;

/// Which devices get credentials.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum ProvisionStrategy {
    /// None.
    #[default]
    Disabled,
    /// Those that are not there yet: they are added.
    AllowCreateNewDevices,
    /// Those that are there already.
    CheckPreProvisionedDevices,
    /// Those with a certificate of an authority. They ask for nothing; they log in.
    X509CertificateChain,
}

impl ProvisionStrategy {
    const ALL: [Self; 4] = [
        Self::Disabled,
        Self::AllowCreateNewDevices,
        Self::CheckPreProvisionedDevices,
        Self::X509CertificateChain,
    ];

    /// ThingsBoard's name.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Disabled => "DISABLED",
            Self::AllowCreateNewDevices => "ALLOW_CREATE_NEW_DEVICES",
            Self::CheckPreProvisionedDevices => "CHECK_PRE_PROVISIONED_DEVICES",
            Self::X509CertificateChain => "X509_CERTIFICATE_CHAIN",
        }
    }
}

impl FromStr for ProvisionStrategy {
    type Err = String;

    fn from_str(name: &str) -> Result<Self, String> {
        let found = Self::ALL.into_iter().find(|strategy| strategy.name() == name);
        found.ok_or_else(|| format!("{name:?}; the strategies are {}", Self::ALL.map(Self::name).join(", ")))
    }
}

/// The terms of a profile. They are secret, so their `Debug` output shows only the strategy.
#[derive(Clone, PartialEq, Eq, Default)]
pub struct ProvisionTerms {
    /// Which devices get credentials.
    pub strategy: ProvisionStrategy,
    /// What devices name the profile by; unique in the installation.
    pub key: Option<Box<str>>,
    /// What devices prove with that they may.
    pub secret: Option<Box<str>>,
    /// The authority of the strategy [`X509CertificateChain`](ProvisionStrategy::X509CertificateChain).
    pub chain: Option<Arc<CertificateChain>>,
}

impl fmt::Debug for ProvisionTerms {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("ProvisionTerms").field("strategy", &self.strategy).finish_non_exhaustive()
    }
}

impl ProvisionTerms {
    /// Terms from their texts. Empty ones count as none.
    ///
    /// # Errors
    /// The strategy needs a key and a secret, or a text is too long.
    pub fn new(
        strategy: ProvisionStrategy,
        key: Option<&str>,
        secret: Option<&str>,
    ) -> Result<Self, RegistryError> {
        let [key, secret] = [key, secret].map(|text| text.filter(|text| !text.is_empty()));
        check_short("provisionDeviceKey", key)?;
        check_short("provisionDeviceSecret", secret)?;
        if strategy != ProvisionStrategy::Disabled && (key.is_none() || secret.is_none()) {
            let reason = format!("{} needs provisionDeviceKey and provisionDeviceSecret", strategy.name());
            return Err(RegistryError::Invalid { what: "provisionType", reason });
        }
        Ok(Self { strategy, key: key.map(Into::into), secret: secret.map(Into::into), chain: None })
    }

    /// The terms of a profile whose devices have certificates of an authority. Key and secret are the authority's fingerprint and
    /// certificate, as in ThingsBoard.
    pub fn of_chain(chain: CertificateChain) -> Self {
        let (key, secret) = (chain.authority().fingerprint(), chain.authority().to_text());
        Self {
            strategy: ProvisionStrategy::X509CertificateChain,
            key: Some(key.into()),
            secret: Some(secret.into()),
            chain: Some(Arc::new(chain)),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_strategy_needs_a_key_and_a_secret() {
        let new = ProvisionStrategy::AllowCreateNewDevices;
        for (key, secret) in [(None, None), (Some("k"), None), (None, Some("s")), (Some("k"), Some(""))] {
            let refused = ProvisionTerms::new(new, key, secret).unwrap_err().to_string();
            assert!(refused.contains("ALLOW_CREATE_NEW_DEVICES needs"), "{refused}");
            assert!(ProvisionTerms::new(ProvisionStrategy::Disabled, key, secret).is_ok());
        }
        let long = "x".repeat(256);
        assert!(ProvisionTerms::new(new, Some(&long), Some("s")).is_err());
        let terms = ProvisionTerms::new(new, Some("the key"), Some("the secret")).unwrap();
        assert_eq!(format!("{terms:?}"), "ProvisionTerms { strategy: AllowCreateNewDevices, .. }");
        for strategy in ProvisionStrategy::ALL {
            assert_eq!(strategy.name().parse(), Ok(strategy));
        }
        assert!("X509".parse::<ProvisionStrategy>().unwrap_err().contains("DISABLED, ALLOW"));
    }
}
