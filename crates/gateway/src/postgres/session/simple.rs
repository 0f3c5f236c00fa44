//! The simple protocol: one text with any number of statements, and answers in text form.

use pgwire::messages::PgWireBackendMessage as BackendMessage;
use pgwire::messages::response::EmptyQueryResponse;
use wire::postgres::ValueFormat;

use super::super::error::PgError;
use super::super::portal::{Parsed, Portal, Rows, Work, hold_statement};
use super::super::statement::{self, Statement};
use super::super::values::{description, fields, text_field};
use super::run::Progress;
use super::{Failed, Session};
use crate::statements::statements;

impl Session {
    /// Runs the statements of a text until one fails.
    pub(super) async fn query(&mut self, text: &str) -> Result<(), Failed> {
        self.cancel.begin();
        // A simple query ends the portal without a name, and an unfinished extended one.
        self.portals.remove("");
        let all = statements(text);
        if all.is_empty() {
            self.wire.push(BackendMessage::EmptyQueryResponse(EmptyQueryResponse::new()))?;
        }
        for one in all {
            match self.statement(one).await {
                Ok(()) => {}
                Err(Failed::Refused(error)) if !error.is_fatal => {
                    self.push_error(error)?;
                    break;
                }
                Err(failed) => return Err(failed),
            }
        }
        self.ready()?;
        Ok(())
    }

    async fn statement(&mut self, text: &str) -> Result<(), Failed> {
        self.admit_statement()?;
        let statement = statement::parse(text)?;
        self.check_transaction(&statement)?;
        match statement {
            Statement::Empty => {}
            Statement::Query(text) => {
                let mut rows = Rows::new(self.ask(&text).await?);
                let fields = fields(rows.schema(), &[])?;
                self.wire.push(BackendMessage::RowDescription(description(&fields, rows.headings())))?;
                let progress = self.send_rows(&mut rows, &fields, usize::MAX).await?;
                self.push_progress("SELECT", progress)?;
            }
            Statement::Copy { query, options } => {
                let mut rows = Rows::new(self.ask(&query).await?);
                self.copy_out(&mut rows, &options).await?;
            }
            Statement::Delete(text) => {
                let (hub, reader) = (self.hub.clone(), self.reader());
                let preparing = hub.prepare_sql_deletion(&text, &[], &reader);
                let deletion = self.unless_cancelled(preparing).await??;
                self.delete(&deletion, Vec::new()).await?;
            }
            Statement::Show { name } => {
                let (fields, value) = (text_field(&name), self.setting(&name)?);
                self.wire.push(BackendMessage::RowDescription(description(&fields, &[])))?;
                self.push_text_row(&value, &fields)?;
                self.complete("SHOW".into())?;
            }
            Statement::Declare { cursor, query, binary, hold } => {
                let (held, reader) = (hold_statement(&self.held, &query)?, self.reader());
                let hub = self.hub.clone();
                let prepared = self.unless_cancelled(hub.prepare_sql(&query, &[], &reader)).await??;
                let parsed = Parsed::new(Statement::Query(query), Work::Query(prepared), &[], held)?;
                let formats = if binary { vec![ValueFormat::Binary] } else { Vec::new() };
                self.declare(
                    &cursor,
                    hold,
                    Portal::new(parsed.into(), Vec::new(), formats, self.held.hold(0)?),
                )?;
            }
            Statement::Fetch { cursor, rows } => self.fetch(&cursor, rows, None).await?,
            Statement::Move { cursor, rows } => self.move_cursor(&cursor, rows).await?,
            command => self.command(&command)?,
        }
        Ok(())
    }

    /// Sends rows of a cursor. `formats` are those of the extended protocol, which has described them already.
    pub(super) async fn fetch(
        &mut self,
        cursor: &str,
        rows_max: usize,
        formats: Option<&[ValueFormat]>,
    ) -> Result<(), Failed> {
        let mut portal = self.take_portal(cursor)?;
        self.start(&mut portal).await?;
        let Some(rows) = &mut portal.rows else { return Err(PgError::unknown_cursor(cursor).into()) };
        let fields = fields(rows.schema(), formats.unwrap_or(&portal.formats))?;
        if formats.is_none() {
            self.wire.push(BackendMessage::RowDescription(description(&fields, rows.headings())))?;
        }
        let progress = self.send_rows(rows, &fields, rows_max).await?;
        self.keep_portal(cursor.into(), portal)?;
        let fetched = if progress == Progress::Suspended { Progress::Complete(rows_max) } else { progress };
        self.push_progress("FETCH", fetched)?;
        Ok(())
    }

    pub(super) async fn move_cursor(&mut self, cursor: &str, rows_max: usize) -> Result<(), Failed> {
        let mut portal = self.take_portal(cursor)?;
        self.start(&mut portal).await?;
        let skipped = match &mut portal.rows {
            Some(rows) => self.skip_rows(rows, rows_max).await?,
            None => 0,
        };
        self.keep_portal(cursor.into(), portal)?;
        self.complete(format!("MOVE {skipped}"))?;
        Ok(())
    }

    pub(super) fn push_progress(&mut self, tag: &str, progress: Progress) -> Result<(), PgError> {
        match progress {
            Progress::Suspended => self.push_suspended(),
            Progress::Complete(rows) => self.complete(format!("{tag} {rows}")),
        }
    }
}
