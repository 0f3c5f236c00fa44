//! Who asks, and what they may see.

use std::fmt;
use std::sync::Arc;
use std::time::Duration;

use store::{TableColumns, TagMatcher};

/// What a user may read of a table.
#[derive(Debug, Clone, Default)]
pub enum Access {
    /// Nothing; the table does not exist for this user.
    #[default]
    Nothing,
    /// All of it.
    Everything,
    /// The series that satisfy all matchers. Other series do not exist for this user, not even as a count.
    Series(Vec<TagMatcher>),
}

type AccessRule = dyn Fn(&str) -> Access + Send + Sync;
type ExpectedTables = dyn Fn() -> Vec<TableColumns> + Send + Sync;

/// Who runs a query. Times are UTC in every session.
#[derive(Clone)]
pub struct Session {
    user: Arc<str>,
    access: Arc<AccessRule>,
    expected: Arc<ExpectedTables>,
    timeout: Option<Duration>,
}

impl Session {
    /// A user who may read every table.
    pub fn new(user: &str) -> Self {
        Self {
            user: user.into(),
            access: Arc::new(|_| Access::Everything),
            expected: Arc::new(Vec::new),
            timeout: None,
        }
    }

    /// The same user, who may read of each table what `rule` says for its name. The rule is asked while a query is
    /// planned and must answer from memory.
    #[must_use]
    pub fn with_access(self, rule: impl Fn(&str) -> Access + Send + Sync + 'static) -> Self {
        Self { access: Arc::new(rule), ..self }
    }

    /// The same user, for whom these tables are there, without rows, as long as nobody has written to them. They are
    /// asked for when the store does not have a table that a query names, and when tables are listed.
    #[must_use]
    pub fn with_expected_tables(
        self,
        tables: impl Fn() -> Vec<TableColumns> + Send + Sync + 'static,
    ) -> Self {
        Self { expected: Arc::new(tables), ..self }
    }

    /// The same user, whose queries end after this time. It can shorten the limit of the engine, not extend it.
    #[must_use]
    pub fn with_timeout(self, timeout: Duration) -> Self {
        Self { timeout: Some(timeout), ..self }
    }

    /// The user's name.
    pub fn user(&self) -> &str {
        &self.user
    }

    /// What this user may read of a table.
    pub fn access(&self, table: &str) -> Access {
        (self.access)(table)
    }

    /// The tables that are there though the store may not have them.
    pub(crate) fn expected_tables(&self) -> Vec<TableColumns> {
        (self.expected)()
    }

    /// How long a query of this session may take, given the engine's limit.
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
