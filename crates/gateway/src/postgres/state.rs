//! The state that the connections of the PostgreSQL door share.

use std::sync::Arc;

use hub::Hub;

use super::cancel::Cancels;
use super::limits;
use super::options::PostgresOptions;
use crate::acceptor::Gate;
use crate::blocking::BlockingPool;
use crate::budget::Budget;

/// The state that all connections of the door share.
#[derive(Debug)]
pub(super) struct PostgresState {
    pub(super) hub: Arc<Hub>,
    pub(super) options: PostgresOptions,
    pub(super) gate: Arc<Gate>,
    pub(super) logins: BlockingPool,
    /// Deletions.
    pub(super) changes: Arc<BlockingPool>,
    pub(super) cancels: Arc<Cancels>,
    /// Bytes of prepared statements and bound values.
    pub(super) statements: Arc<Budget>,
}

impl PostgresState {
    pub(super) fn new(hub: Arc<Hub>, options: PostgresOptions, gate: Arc<Gate>) -> Self {
        let logins = BlockingPool::new("logins", limits::LOGINS_AT_ONCE, limits::LOGINS_WAITING_MAX);
        let changes = BlockingPool::new("changes", limits::CHANGES_AT_ONCE, limits::CHANGES_WAITING_MAX);
        let statements = Budget::new(limits::STATEMENT_BUDGET.on(options.memory));
        Self { hub, options, gate, logins, changes: Arc::new(changes), cancels: Arc::default(), statements }
    }

    /// Counts a refusal.
    pub(super) fn refused(&self, label: &'static str) {
        self.hub.metrics().refused(hub::Door::Postgres, label);
    }
}
