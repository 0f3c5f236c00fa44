//! The state that the connections of the HTTP door share.

use std::sync::Arc;
use std::time::Instant;

use hub::Hub;
use hub::caller::Caller;
use model::limits::{HISTORY_MEMORY_FACTOR, HISTORY_SHARE_MAX};
use tokio::sync::{OwnedSemaphorePermit, Semaphore};
use virtual_sensors::VirtualSensors;

use super::bodies::{Bodies, BodyLimits, HeldBytes, Sender};
use super::passwords::Passwords;
use super::polls::Polls;
use crate::acceptor::{Gate, StopSignal};
use crate::blocking::BlockingPool;
use crate::budget::Budget;
use crate::error::ApiError;
use crate::http::limits;
use crate::http::options::HttpOptions;

/// The state that all connections of the door share.
#[derive(Debug)]
pub(crate) struct HttpState {
    pub(crate) hub: Arc<Hub>,
    pub(crate) sensors: Arc<VirtualSensors>,
    pub(crate) options: HttpOptions,
    pub(crate) gate: Arc<Gate>,
    pub(crate) started: Instant,
    pub(crate) reads: BlockingPool,
    pub(crate) logins: BlockingPool,
    pub(crate) changes: BlockingPool,
    /// Adds single devices.
    pub(crate) creations: BlockingPool,
    pub(crate) attributes: BlockingPool,
    /// Right passwords of clients that log in with each request.
    pub(crate) passwords: Passwords,
    /// Devices that wait for a message.
    pub(crate) polls: Arc<Polls>,
    pub(crate) bodies: Arc<Bodies>,
    /// Bytes of answers in memory that clients have not taken yet.
    pub(crate) answers: Arc<Budget>,
    /// Bytes of subscriptions and watches of WebSockets.
    pub(crate) subscriptions: Arc<Budget>,
    /// Permits for checks, backups and exports.
    maintenance: Arc<Semaphore>,
    pub(crate) stop: StopSignal,
}

impl HttpState {
    pub(crate) fn new(
        hub: Arc<Hub>,
        sensors: Arc<VirtualSensors>,
        options: HttpOptions,
        gate: Arc<Gate>,
        stop: StopSignal,
    ) -> Self {
        // A body as large as the operator allows must fit into the share of a tenant, and so must a piece of an import.
        let memory = options.memory;
        let total =
            memory.of(limits::BODIES_BYTES_MAX).max(2 * options.body_bytes_max).max(limits::BODIES_BYTES_MIN);
        let bodies = BodyLimits {
            total,
            device: limits::DEVICE_BODIES_BYTES_MAX.max(options.body_bytes_max).min(total),
            user: limits::USER_BODIES_BYTES_MAX.min(total),
            anonymous: memory.of(limits::ANONYMOUS_BODIES_BYTES_MAX).max(limits::LOGIN_BODY_BYTES_MAX),
        };
        Self {
            sensors,
            started: Instant::now(),
            reads: BlockingPool::new("reads", limits::READS_AT_ONCE, limits::READS_WAITING_MAX),
            logins: BlockingPool::new("logins", limits::LOGINS_AT_ONCE, limits::LOGINS_WAITING_MAX),
            changes: BlockingPool::new("changes", limits::CHANGES_AT_ONCE, limits::CHANGES_WAITING_MAX),
            creations: BlockingPool::new(
                "new devices",
                limits::CREATIONS_AT_ONCE,
                limits::CREATIONS_WAITING_MAX,
            ),
            attributes: BlockingPool::new(
                "attributes",
                limits::ATTRIBUTES_AT_ONCE,
                limits::ATTRIBUTES_WAITING_MAX,
            ),
            passwords: Passwords::new(),
            polls: Polls::new(limits::POLLS_MAX, limits::POLLS_PER_DEVICE_MAX),
            bodies: Bodies::new(bodies, Arc::clone(hub.memory_pressure())),
            answers: Budget::new(limits::ANSWER_BUDGET.on(memory)),
            subscriptions: Budget::new(limits::SUBSCRIPTION_BUDGET.on(memory)),
            maintenance: Arc::new(Semaphore::new(limits::MAINTENANCE_AT_ONCE)),
            hub,
            options,
            gate,
            stop,
        }
    }

    /// The caller of a request without a login, if the server is open.
    pub(crate) fn open_caller(&self) -> Option<Caller> {
        self.options.open.map(|role| Caller::open(self.hub.registry().default_tenant(), role))
    }

    /// The account of a request's body.
    pub(crate) fn body_account(&self, sender: Sender) -> HeldBytes {
        self.bodies.begin(sender, self.hub.registry().tenant_count())
    }

    /// Longest answer with values.
    pub(crate) fn answer_bytes_max(&self) -> usize {
        self.options.memory.of(limits::ANSWER_BYTES_MAX)
    }

    /// Bytes that a history of at most `values` values takes while it is read. A value may be the longest text.
    pub(crate) fn history_bytes(&self, values: usize) -> u64 {
        let longest = values.saturating_mul(self.hub.limits().text_value_bytes_max);
        let answer = longest.min(self.answer_bytes_max()) as u64;
        let share = self.hub.memory_pressure().available() / HISTORY_SHARE_MAX;
        (answer * HISTORY_MEMORY_FACTOR).min(share)
    }

    /// Counts a refusal.
    pub(crate) fn refused(&self, label: &'static str) {
        self.hub.metrics().refused(self.options.door, label);
    }

    /// A permit to read all files; one job at a time may.
    pub(crate) fn maintenance_permit(&self) -> Result<OwnedSemaphorePermit, ApiError> {
        let permit = Arc::clone(&self.maintenance).try_acquire_owned();
        permit.map_err(|_| {
            ApiError::busy("a check, a backup or an export is under way; try again when it is done")
        })
    }
}
