//! The user of a query and the user's access to tables.

use std::fmt;
use std::sync::Arc;
use std::time::Duration;

use model::Namespace;
use store::{TableColumns, TagMatcher};

use crate::schema_names::CATALOG;

/// What a user may read of a table.
#[derive(Debug, Clone, Default)]
pub enum Access {
    /// Nothing: the table does not exist for this user.
    #[default]
    Nothing,
    /// The whole table.
    Everything,
    /// The series that satisfy all matchers. Other series do not exist for this user, not even as a count.
    Series(Vec<TagMatcher>),
}

type AccessRule = dyn Fn(&str) -> Access + Send + Sync;
type ExpectedTables = dyn Fn() -> Vec<TableColumns> + Send + Sync;

/// The user that runs a query. Times are UTC in every session.
#[derive(Clone)]
pub struct Session {
    user: Arc<str>,
    tenant: u128,
    namespace: Namespace,
    catalog: Arc<str>,
    access: Arc<AccessRule>,
    expected: Arc<ExpectedTables>,
    timeout: Option<Duration>,
}

impl Session {
    /// Creates a session of a user who may read every table of the default namespace.
    pub fn new(user: &str) -> Self {
        Self {
            user: user.into(),
            tenant: 0,
            namespace: Namespace::DEFAULT,
            catalog: CATALOG.into(),
            access: Arc::new(|_| Access::Everything),
            expected: Arc::new(Vec::new),
            timeout: None,
        }
    }

    /// Sets the tenant of the user. Tenants share the places for queries.
    #[must_use]
    pub fn of_tenant(self, tenant: u128) -> Self {
        Self { tenant, ..self }
    }

    /// Sets the namespace whose tables the user reads. Tables of other namespaces do not exist for the user.
    #[must_use]
    pub fn in_namespace(self, namespace: Namespace) -> Self {
        Self { namespace, ..self }
    }

    /// Sets the name of the catalog of these tables, which PostgreSQL calls the database.
    #[must_use]
    pub fn in_catalog(self, name: &str) -> Self {
        Self { catalog: name.into(), ..self }
    }

    /// Limits the user's access: `rule` returns, for the name of a table, what the user may read of it. The planner calls the rule,
    /// so it must answer from memory.
    #[must_use]
    pub fn with_access(self, rule: impl Fn(&str) -> Access + Send + Sync + 'static) -> Self {
        Self { access: Arc::new(rule), ..self }
    }

    /// Adds tables that exist for the user, without rows, until rows are written to them. The function is called when the store
    /// does not have a table that a query names, and when tables are listed.
    #[must_use]
    pub fn with_expected_tables(
        self,
        tables: impl Fn() -> Vec<TableColumns> + Send + Sync + 'static,
    ) -> Self {
        Self { expected: Arc::new(tables), ..self }
    }

    /// Sets a time limit for each query. It can shorten the limit of the engine, not extend it.
    #[must_use]
    pub fn with_timeout(self, timeout: Duration) -> Self {
        Self { timeout: Some(timeout), ..self }
    }

    /// The tenant of the user.
    pub(crate) fn tenant(&self) -> u128 {
        self.tenant
    }

    /// The user's name.
    pub fn user(&self) -> &str {
        &self.user
    }

    /// The namespace whose tables the user reads.
    pub fn namespace(&self) -> &Namespace {
        &self.namespace
    }

    /// The name of the catalog.
    pub(crate) fn catalog(&self) -> &str {
        &self.catalog
    }

    /// Returns what the user may read of a table.
    pub fn access(&self, table: &str) -> Access {
        (self.access)(table)
    }

    /// The tables that exist for the user even if the store does not have them.
    pub(crate) fn expected_tables(&self) -> Vec<TableColumns> {
        (self.expected)()
    }

    /// Returns the time limit of a query, given the engine's limit.
    pub(crate) fn timeout(&self, limit: Duration) -> Duration {
        self.timeout.map_or(limit, |timeout| timeout.min(limit))
    }
}

impl fmt::Debug for Session {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Session")
            .field("user", &self.user)
            .field("timeout", &self.timeout)
            .finish_non_exhaustive()
    }
}
