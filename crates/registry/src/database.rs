//! Databases: named groups of tables within a tenant, for the interfaces that know databases.

use model::{Namespace, Timestamp};
use uuid::Uuid;

use super::page::Listed;

/// The name of the database that every tenant has: the tenant's own tables, where its devices report.
pub const OWN_DATABASE: &str = "tacho";

/// A database that a client has created.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Database {
    /// Identity. It never comes again, so a database never inherits tables.
    pub id: Uuid,
    /// Tenant of the database.
    pub tenant: Uuid,
    /// Name, unique in the tenant.
    pub name: String,
    /// When it was added; whole milliseconds.
    pub created_at: Timestamp,
}

impl Database {
    /// The namespace of its tables.
    pub fn namespace(&self) -> Namespace {
        namespace_of_database(self.id)
    }
}

/// The namespace of the tables of a database.
pub fn namespace_of_database(id: Uuid) -> Namespace {
    Namespace::new(&id.simple().to_string()).expect("BUG: an id is a valid name")
}

impl Listed for Database {
    fn id(&self) -> Uuid {
        self.id
    }

    fn tenant(&self) -> Uuid {
        self.tenant
    }

    fn name(&self) -> &str {
        &self.name
    }

    fn created_at(&self) -> Timestamp {
        self.created_at
    }
}
