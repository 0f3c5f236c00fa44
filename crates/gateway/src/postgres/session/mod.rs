//! One client after its login: messages in their order, each answered before the next is looked at.
//!
//! After an error in the extended protocol everything up to the next Sync is left out, as the protocol demands.

mod copy;
mod extended;
mod run;
mod simple;

use std::collections::HashMap;
use std::sync::Arc;
use std::time::Duration;

use hub::Hub;
use hub::caller::Caller;
use hub::registry::Registry;
use hub::sql::{Reader, SqlError};
use pgwire::messages::PgWireBackendMessage as BackendMessage;
use pgwire::messages::response::{ReadyForQuery, TransactionStatus};
use pgwire::messages::startup::ParameterStatus;
use tokio::sync::watch;
use tokio::time::timeout;
use wire::postgres::Message;

use super::cancel::CancelHandle;
use super::error::PgError;
use super::portal::{Parsed, Portal};
use super::settings::Settings;
use super::state::PostgresState;
use super::statement_error::StatementError;
use super::wire::{Ended, Wire};
use crate::acceptor::{Gate, Stop, StopSignal};
use crate::blocking::BlockingPool;
use crate::budget::{OverBudget, Owner, Share};
use crate::key_expiry::key_expired;

/// A logged-in client.
#[derive(Debug)]
pub(super) struct Session {
    pub(super) wire: Wire,
    hub: Arc<Hub>,
    gate: Arc<Gate>,
    /// Deletions of all sessions.
    changes: Arc<BlockingPool>,
    reader: Reader,
    settings: Settings,
    cancel: CancelHandle,
    idle_timeout: Option<Duration>,
    /// Signals that logins may have ended.
    login_changes: watch::Receiver<u64>,
    /// Bytes of statements and portals.
    held: Arc<Share>,
    statements: HashMap<String, Arc<Parsed>>,
    portals: HashMap<String, Portal>,
    transaction: TransactionStatus,
    /// There was an error since the last Sync.
    skips_to_sync: bool,
}

/// The failure of a message.
#[derive(Debug, thiserror::Error)]
enum Failed {
    /// The session sends the error and continues.
    #[error("{}", .0.message)]
    Refused(PgError),
    #[error(transparent)]
    Ended(#[from] Ended),
}

impl From<PgError> for Failed {
    fn from(error: PgError) -> Self {
        Self::Refused(error)
    }
}

impl From<SqlError> for Failed {
    fn from(error: SqlError) -> Self {
        Self::Refused(error.into())
    }
}

impl From<OverBudget> for Failed {
    fn from(over: OverBudget) -> Self {
        Self::Refused(over.into())
    }
}

impl From<StatementError> for Failed {
    fn from(error: StatementError) -> Self {
        Self::Refused(error.into())
    }
}

impl Session {
    pub(super) fn new(
        wire: Wire,
        state: &PostgresState,
        reader: Reader,
        settings: Settings,
        cancel: CancelHandle,
    ) -> Self {
        Self {
            login_changes: state.hub.session_changes(),
            wire,
            hub: Arc::clone(&state.hub),
            gate: Arc::clone(&state.gate),
            changes: Arc::clone(&state.changes),
            held: state.statements.share(Owner::of(&state.hub, reader.caller())),
            reader,
            settings,
            cancel,
            idle_timeout: state.options.idle_timeout,
            statements: HashMap::new(),
            portals: HashMap::new(),
            transaction: TransactionStatus::Idle,
            skips_to_sync: false,
        }
    }

    /// Serves until the client leaves or the door stops.
    pub(super) async fn run(&mut self, stop: &mut StopSignal) -> Result<(), Ended> {
        self.ready()?;
        loop {
            let next = match self.next(stop).await {
                Ok(message) => self.check_login().map(|()| message),
                Err(ended) => Err(ended),
            };
            let message = match next {
                Ok(message) => message,
                Err(Ended::Refused(error)) => {
                    self.wire.refuse(error).await?;
                    return Ok(());
                }
                Err(ended) => return Err(ended),
            };
            if message == Message::Terminate {
                return Ok(());
            }
            match self.answer(message).await {
                Ok(()) => {}
                Err(Failed::Refused(error)) if error.is_fatal => {
                    self.wire.refuse(error).await?;
                    return Ok(());
                }
                Err(Failed::Refused(error)) => {
                    self.push_error(error)?;
                    self.skips_to_sync = true;
                }
                Err(Failed::Ended(ended)) => return Err(ended),
            }
        }
    }

    /// The next message. Nothing stays unsaid while it is waited for.
    async fn next(&mut self, stop: &mut StopSignal) -> Result<Message, Ended> {
        if self.wire.is_full() {
            self.wire.flush().await?;
        }
        let (wire, limit, changes) = (&mut self.wire, self.idle_timeout, &mut self.login_changes);
        let (registry, caller) = (self.hub.registry(), self.reader.caller());
        let reading = async {
            let Some(limit) = limit else { return wire.message().await };
            timeout(limit, wire.message()).await.unwrap_or_else(|_| {
                let message = format!("nothing came for {} s", limit.as_secs());
                Err(Ended::Refused(PgError::fatal("57P05", message)))
            })
        };
        tokio::select! {
            // The session answers a received message before it ends.
            biased;
            message = reading => message,
            () = login_ended(changes, registry, caller) => Err(Ended::Refused(no_login())),
            () = Stop::Drain.reached(stop) => Err(Ended::Refused(PgError::fatal("57P01", "the server is stopping"))),
        }
    }

    /// Refuses to continue when the user was deleted, or has a new password or role.
    fn check_login(&self) -> Result<(), Ended> {
        let checked = self.hub.registry().check_caller(self.reader.caller());
        checked.map_err(|_| Ended::Refused(no_login()))
    }

    async fn answer(&mut self, message: Message) -> Result<(), Failed> {
        if self.skips_to_sync && message != Message::Sync {
            return Ok(());
        }
        match message {
            Message::Query(text) => return self.query(&text).await,
            Message::Parse { name, text, types } => self.parse(name, &text, &types).await?,
            Message::Bind(bind) => self.bind(bind)?,
            Message::Describe { what, name } => self.describe(what, &name)?,
            Message::Execute { portal, rows_max } => self.execute(&portal, rows_max).await?,
            Message::Close { what, name } => self.close(what, &name)?,
            Message::Flush => self.wire.flush().await.map_err(Ended::from)?,
            Message::Sync => self.sync()?,
            Message::Copy => {}
            Message::Password(_) => return Err(PgError::new("08P01", "a password after the login").into()),
            Message::Terminate => {}
        }
        Ok(())
    }

    /// Admits a statement, unless it is one too many in this second.
    fn admit_statement(&self) -> Result<(), PgError> {
        self.gate.admit_request().map_err(|exceeded| {
            self.gate.refused(&exceeded, Some(self.wire.peer()));
            PgError::new("53400", exceeded.to_string())
        })
    }

    /// Announces that the session is ready for the next statement.
    fn ready(&mut self) -> Result<(), Ended> {
        let ready = BackendMessage::ReadyForQuery(ReadyForQuery::new(self.transaction));
        self.wire.push(ready).map_err(Ended::Refused)
    }

    /// Sends an error. An open transaction becomes a failed one.
    fn push_error(&mut self, error: PgError) -> Result<(), Ended> {
        if self.transaction == TransactionStatus::Transaction {
            self.transaction = TransactionStatus::Error;
        }
        self.wire.push(error.response()).map_err(Ended::Refused)
    }

    fn push_setting(&mut self, (name, value): (&'static str, String)) -> Result<(), PgError> {
        self.wire.push(BackendMessage::ParameterStatus(ParameterStatus::new(name.into(), value)))
    }

    /// Ends the transaction, explicit or not, and its portals except cursors WITH HOLD.
    fn end_transaction(&mut self) {
        self.transaction = TransactionStatus::Idle;
        self.portals.retain(|_, portal| portal.hold);
    }

    /// The reader for queries, with the session's statement timeout.
    fn reader(&self) -> Reader {
        self.reader.clone().with_timeout(self.settings.statement_timeout())
    }
}

/// Returns when the caller's login has ended.
async fn login_ended(changes: &mut watch::Receiver<u64>, registry: &Registry, caller: &Caller) {
    loop {
        tokio::select! {
            changed = changes.changed() => changed.expect("BUG: the registry lives as long as the door"),
            () = key_expired(registry, caller) => return,
        }
        if registry.check_caller(caller).is_err() {
            return;
        }
    }
}

fn no_login() -> PgError {
    PgError::fatal(
        "57P01",
        "the login has ended: its user was changed, or its key has expired; connect again",
    )
}
