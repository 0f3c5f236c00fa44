//! Addresses of customers and tenants.

use serde::{Deserialize, Serialize};

use super::checks::check_short;
use super::error::RegistryError;
use super::page::SortProperty;

/// The addresses of a customer or a tenant (ThingsBoard's `ContactBased`). The registry stores it as JSON.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct Contact {
    pub country: Option<Box<str>>,
    pub state: Option<Box<str>>,
    pub city: Option<Box<str>>,
    pub address: Option<Box<str>>,
    pub address2: Option<Box<str>>,
    pub zip: Option<Box<str>>,
    pub phone: Option<Box<str>>,
    pub email: Option<Box<str>>,
}

impl Contact {
    pub(super) fn check(&self) -> Result<(), RegistryError> {
        let Self { country, state, city, address, address2, zip, phone, email } = self;
        for (what, text) in [
            ("country", country),
            ("state", state),
            ("city", city),
            ("address", address),
            ("address2", address2),
            ("zip", zip),
            ("phone", phone),
            ("email", email),
        ] {
            check_short(what, text.as_deref())?;
        }
        Ok(())
    }

    /// The text of a property that is an address; the outer `None` for others.
    pub(super) fn text(&self, property: SortProperty) -> Option<Option<&str>> {
        match property {
            SortProperty::Email => Some(self.email.as_deref()),
            SortProperty::City => Some(self.city.as_deref()),
            SortProperty::Country => Some(self.country.as_deref()),
            _ => None,
        }
    }

    /// The JSON text in the file; `None` without any address.
    pub(super) fn stored(&self) -> Option<String> {
        let json = || serde_json::to_string(self).expect("BUG: texts are always JSON");
        (*self != Self::default()).then(json)
    }
}
