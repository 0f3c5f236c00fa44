//! Customers: parts of a tenant whose users see only what is assigned to them.

use model::Timestamp;
use uuid::Uuid;

use super::contact::Contact;
use super::page::{Listed, SortProperty};

/// A customer of a tenant.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Customer {
    /// Identity.
    pub id: Uuid,
    /// Tenant of the customer.
    pub tenant: Uuid,
    /// Title, unique in the tenant.
    pub title: String,
    pub contact: Contact,
    /// What clients keep with it: JSON text.
    pub additional_info: Option<Box<str>>,
    /// When it was added; whole milliseconds.
    pub created_at: Timestamp,
    /// Grows with each change.
    pub version: i64,
}

/// The properties of a customer that clients set.
#[derive(Debug, Clone, Default)]
pub struct CustomerFields<'a> {
    /// Title, unique in the tenant.
    pub title: &'a str,
    pub contact: Contact,
    /// What clients keep with it: JSON text.
    pub additional_info: Option<&'a str>,
}

impl Listed for Customer {
    fn id(&self) -> Uuid {
        self.id
    }

    fn tenant(&self) -> Uuid {
        self.tenant
    }

    fn name(&self) -> &str {
        &self.title
    }

    fn created_at(&self) -> Timestamp {
        self.created_at
    }

    fn text(&self, property: SortProperty) -> Option<&str> {
        self.contact.text(property).unwrap_or(Some(&self.title))
    }
}
