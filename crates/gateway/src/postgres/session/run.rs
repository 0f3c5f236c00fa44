//! Runs statements of the door itself, and sends rows of queries.

use hub::sql::{Parameter, SqlAnswer};
use hub::sql_deletion::PreparedDeletion;
use pgwire::api::results::DataRowEncoder;
use pgwire::messages::PgWireBackendMessage as BackendMessage;
use pgwire::messages::extendedquery::PortalSuspended;
use pgwire::messages::response::{CommandComplete, TransactionStatus};

use super::super::error::PgError;
use super::super::limits::PORTALS_MAX;
use super::super::portal::{Portal, Rows};
use super::super::rows::Page;
use super::super::statement::Statement;
use super::super::values::Fields;
use super::super::wire::Ended;
use super::{Failed, Session, login_ended, no_login};

/// The state of a portal after some of its rows.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Progress {
    /// There are more rows.
    Suspended,
    /// All rows were sent: this many.
    Complete(usize),
}

impl Session {
    /// Runs a statement without rows, and sends its tag.
    pub(super) fn command(&mut self, statement: &Statement) -> Result<(), PgError> {
        let tag = match statement {
            Statement::Begin => {
                if self.transaction == TransactionStatus::Idle {
                    self.transaction = TransactionStatus::Transaction;
                }
                "BEGIN"
            }
            Statement::Commit => {
                // COMMIT of a failed transaction rolls it back. No statement in it changed anything.
                let failed = self.transaction == TransactionStatus::Error;
                self.end_transaction();
                if failed { "ROLLBACK" } else { "COMMIT" }
            }
            Statement::Rollback => {
                self.end_transaction();
                "ROLLBACK"
            }
            Statement::Savepoint(tag) => {
                if *tag == "ROLLBACK" && self.transaction == TransactionStatus::Error {
                    self.transaction = TransactionStatus::Transaction;
                }
                *tag
            }
            Statement::Set { tag, name, value } => {
                if let Some(told) = self.settings.set(name, value.as_deref())? {
                    self.push_setting(told)?;
                }
                *tag
            }
            Statement::ResetAll { tag } => {
                self.settings.reset();
                if *tag == "DISCARD ALL" {
                    self.statements.clear();
                    self.portals.clear();
                }
                *tag
            }
            Statement::Deallocate { name } => {
                match name {
                    None => self.statements.clear(),
                    Some(name) => {
                        self.statements.remove(name).ok_or_else(|| PgError::unknown_statement(name))?;
                    }
                }
                if name.is_none() { "DEALLOCATE ALL" } else { "DEALLOCATE" }
            }
            Statement::Close { cursor } => {
                match cursor {
                    None => self.portals.retain(|_, portal| !portal.is_cursor),
                    Some(name) => {
                        self.portals.remove(name).ok_or_else(|| PgError::unknown_cursor(name))?;
                    }
                }
                if cursor.is_none() { "CLOSE CURSOR ALL" } else { "CLOSE CURSOR" }
            }
            Statement::Ignored(tag) => *tag,
            other => {
                return Err(PgError::new(
                    "XX000",
                    format!("a bug, please report it: {other:?} is not a command"),
                ));
            }
        };
        self.complete(tag.to_owned())
    }

    /// After an error in a transaction, refuses all statements but its end.
    pub(super) fn check_transaction(&self, statement: &Statement) -> Result<(), PgError> {
        let ends =
            matches!(statement, Statement::Commit | Statement::Rollback | Statement::Savepoint("ROLLBACK"));
        if self.transaction != TransactionStatus::Error || ends || *statement == Statement::Empty {
            return Ok(());
        }
        let message = "current transaction is aborted, commands ignored until end of transaction block";
        Err(PgError::new("25P02", message))
    }

    pub(super) fn complete(&mut self, tag: String) -> Result<(), PgError> {
        self.wire.push(BackendMessage::CommandComplete(CommandComplete::new(tag)))
    }

    /// Sends one row with one text.
    pub(super) fn push_text_row(&mut self, text: &str, fields: &Fields) -> Result<(), PgError> {
        let mut encoder = DataRowEncoder::new(Fields::clone(fields));
        encoder.encode_field(&text)?;
        self.wire.push(BackendMessage::DataRow(encoder.take_row()))
    }

    /// The value of a setting.
    pub(super) fn setting(&self, name: &str) -> Result<String, PgError> {
        let unknown = || PgError::new("42704", format!("unrecognized configuration parameter {name:?}"));
        self.settings.get(name).ok_or_else(unknown)
    }

    /// Runs a portal's query, unless it runs already.
    pub(super) async fn start(&mut self, portal: &mut Portal) -> Result<(), Failed> {
        if portal.rows.is_none() {
            let Some(prepared) = portal.parsed.work.query().cloned() else {
                return Err(PgError::new("XX000", "a bug, please report it: a portal without a query").into());
            };
            let (hub, reader, parameters) = (self.hub.clone(), self.reader(), portal.parameters.clone());
            let answer = self.unless_cancelled(hub.run_sql(&prepared, parameters, &reader)).await??;
            portal.rows = Some(Rows::new(answer));
        }
        Ok(())
    }

    /// Runs a query that was not prepared.
    pub(super) async fn ask(&mut self, text: &str) -> Result<SqlAnswer, Failed> {
        let (hub, reader) = (self.hub.clone(), self.reader());
        Ok(self.unless_cancelled(hub.sql(text, Vec::new(), &reader)).await??)
    }

    /// Deletes the rows that a DELETE names, and sends its tag when the deletion is on the disk. From then on nothing cancels it.
    pub(super) async fn delete(
        &mut self,
        deletion: &PreparedDeletion,
        parameters: Vec<Parameter>,
    ) -> Result<(), Failed> {
        if self.transaction != TransactionStatus::Idle {
            let message =
                "DELETE cannot run inside a transaction block: it takes effect at once; turn autocommit on";
            return Err(PgError::new("25001", message).into());
        }
        let (hub, reader) = (self.hub.clone(), self.reader());
        let rows = self.unless_cancelled(hub.rows_to_delete(deletion, parameters, &reader)).await??;
        let work = move || hub.delete_named_rows(&reader, rows);
        let deleted = self.changes.run(work).await.map_err(PgError::pool)?;
        let deleted = deleted.map_err(PgError::from)?;
        self.complete(format!("DELETE {deleted}"))?;
        Ok(())
    }

    /// Sends up to `rows_max` rows. It takes the next batch after it has sent the last one.
    pub(super) async fn send_rows(
        &mut self,
        rows: &mut Rows,
        fields: &Fields,
        rows_max: usize,
    ) -> Result<Progress, Failed> {
        let mut sent = 0;
        loop {
            if !rows.is_at_hand() && !self.unless_cancelled(rows.advance()).await?? {
                return Ok(Progress::Complete(sent));
            }
            // Checks for one row more than it sends: otherwise the client would request more rows after the last one.
            if sent == rows_max {
                return Ok(Progress::Suspended);
            }
            if let Some(batch) = rows.take(rows_max - sent) {
                sent += batch.num_rows();
                self.send_page(Page::new(&batch, fields)).await?;
            }
        }
    }

    async fn send_page(&mut self, mut page: Page) -> Result<(), Failed> {
        for row in 0..page.rows() {
            self.wire.push_row(|out| page.write(row, out))?;
            if self.wire.is_full() {
                self.wire.flush().await.map_err(Ended::from)?;
                // Checks for cancellation between two packets, so a large batch does not delay it.
                self.unless_cancelled(std::future::ready(())).await?;
            }
        }
        Ok(())
    }

    /// Skips up to `rows_max` rows; returns their number.
    pub(super) async fn skip_rows(&mut self, rows: &mut Rows, rows_max: usize) -> Result<usize, Failed> {
        let mut skipped = 0;
        while skipped < rows_max && self.unless_cancelled(rows.advance()).await?? {
            skipped += rows.take(rows_max - skipped).map_or(0, |batch| batch.num_rows());
        }
        Ok(skipped)
    }

    pub(super) fn push_suspended(&mut self) -> Result<(), PgError> {
        self.wire.push(BackendMessage::PortalSuspended(PortalSuspended::new()))
    }

    /// Waits for `work`, unless the client cancels it or disconnects, or its login ends.
    pub(super) async fn unless_cancelled<T>(&mut self, work: impl Future<Output = T>) -> Result<T, Failed> {
        tokio::select! {
            // Cancellation takes precedence over finished work.
            biased;
            () = self.cancel.asked() => Err(PgError::cancelled().into()),
            () = login_ended(&mut self.login_changes, self.hub.registry(), self.reader.caller()) => {
                Err(no_login().into())
            }
            done = work => Ok(done),
            ended = self.wire.closed() => Err(ended.into()),
        }
    }

    /// Takes a cursor or portal out of the session. The caller puts it back while it has rows.
    pub(super) fn take_portal(&mut self, name: &str) -> Result<Portal, PgError> {
        self.portals.remove(name).ok_or_else(|| PgError::unknown_cursor(name))
    }

    pub(super) fn keep_portal(&mut self, name: String, portal: Portal) -> Result<(), PgError> {
        if self.portals.len() >= PORTALS_MAX && !self.portals.contains_key(&name) {
            let message = format!("{PORTALS_MAX} portals and cursors are open, the limit; close some");
            return Err(PgError::new("54000", message));
        }
        self.portals.insert(name, portal);
        Ok(())
    }

    /// Creates the cursor of a DECLARE. Its query runs at the first FETCH.
    pub(super) fn declare(&mut self, cursor: &str, hold: bool, mut portal: Portal) -> Result<(), PgError> {
        if self.transaction == TransactionStatus::Idle && !hold {
            let message = "DECLARE CURSOR without HOLD needs a transaction; send BEGIN first";
            return Err(PgError::new("25P01", message));
        }
        if self.portals.contains_key(cursor) {
            return Err(PgError::new("42P03", format!("cursor {cursor:?} already exists")));
        }
        (portal.is_cursor, portal.hold) = (true, hold);
        self.keep_portal(cursor.into(), portal)?;
        self.complete("DECLARE CURSOR".into())
    }
}
