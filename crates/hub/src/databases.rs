//! Databases of the time-series interfaces: named groups of tables within a tenant. Every tenant has [`OWN_DATABASE`], its own
//! tables, where its devices report; clients create the others.

use std::sync::Arc;

use model::Namespace;

use crate::registry::{Database, OWN_DATABASE};

/// A database that a caller may use.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct OpenDatabase {
    name: String,
    namespace: Namespace,
}

impl OpenDatabase {
    /// The tenant's own one, with the namespace of the tenant.
    pub(crate) fn own(namespace: Namespace) -> Self {
        Self { name: OWN_DATABASE.to_owned(), namespace }
    }

    pub fn name(&self) -> &str {
        &self.name
    }

    /// The namespace of its tables.
    pub(crate) fn namespace(&self) -> &Namespace {
        &self.namespace
    }

    /// Whether it is the tenant's own one.
    pub fn is_own(&self) -> bool {
        self.name == OWN_DATABASE
    }
}

impl From<Arc<Database>> for OpenDatabase {
    fn from(database: Arc<Database>) -> Self {
        Self { name: database.name.clone(), namespace: database.namespace() }
    }
}
