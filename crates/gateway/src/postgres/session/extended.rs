//! The extended protocol: Parse, Bind, Describe, Execute, Close, Sync.

use std::sync::Arc;

use hub::sql::{Parameter, Prepared};
use pgwire::messages::PgWireBackendMessage as BackendMessage;
use pgwire::messages::data::{NoData, ParameterDescription, RowDescription};
use pgwire::messages::extendedquery::{BindComplete, CloseComplete, ParseComplete};
use pgwire::messages::response::{EmptyQueryResponse, TransactionStatus};
use wire::postgres::{Bind, Target, ValueFormat};

use super::super::error::PgError;
use super::super::limits::STATEMENTS_MAX;
use super::super::portal::{Parsed, Portal, Work, hold_statement};
use super::super::statement::{self, Statement};
use super::super::values::{self, description, fields, text_field};
use super::{Failed, Session};
use crate::statements::statements;

impl Session {
    /// Prepares a statement under a name. The next one replaces the statement without a name.
    pub(super) async fn parse(&mut self, name: String, text: &str, types: &[u32]) -> Result<(), Failed> {
        self.cancel.begin();
        let text = match statements(text).as_slice() {
            [] => "",
            [one] => *one,
            _ => {
                let message = "cannot insert multiple commands into a prepared statement";
                return Err(PgError::new("42601", message).into());
            }
        };
        let statement = statement::parse(text)?;
        self.check_transaction(&statement)?;
        if !name.is_empty() && self.statements.contains_key(&name) {
            return Err(PgError::new("42P05", format!("prepared statement {name:?} already exists")).into());
        }
        if self.statements.len() >= STATEMENTS_MAX && !self.statements.contains_key(&name) {
            let message = format!("{STATEMENTS_MAX} statements are prepared, the limit; deallocate some");
            return Err(PgError::new("54000", message).into());
        }
        if name.is_empty() {
            // The new statement replaces the unnamed one, whose bytes are released.
            self.statements.remove("");
        }
        let held = hold_statement(&self.held, text)?;
        let work = self.prepare(&statement, types).await?;
        self.statements.insert(name, Arc::new(Parsed::new(statement, work, types, held)?));
        self.wire.push(BackendMessage::ParseComplete(ParseComplete::new()))?;
        Ok(())
    }

    async fn prepare(&mut self, statement: &Statement, types: &[u32]) -> Result<Work, Failed> {
        let given: Vec<_> = types.iter().map(|number| values::data_type(*number)).collect();
        let (hub, reader) = (self.hub.clone(), self.reader());
        Ok(match (statement, statement.query()) {
            (Statement::Delete(text), _) => {
                let preparing = hub.prepare_sql_deletion(text, &given, &reader);
                Work::Deletion(self.unless_cancelled(preparing).await??)
            }
            (_, Some(query)) => {
                Work::Query(self.unless_cancelled(hub.prepare_sql(query, &given, &reader)).await??)
            }
            (_, None) => Work::None,
        })
    }

    /// Binds values to a statement.
    pub(super) fn bind(&mut self, bind: Bind) -> Result<(), PgError> {
        let parsed = self.statements.get(&bind.statement).cloned();
        let parsed = parsed.ok_or_else(|| PgError::unknown_statement(&bind.statement))?;
        self.check_transaction(&parsed.statement)?;
        if !bind.portal.is_empty() && self.portals.contains_key(&bind.portal) {
            return Err(PgError::new("42P03", format!("portal {:?} already exists", bind.portal)));
        }
        let (given, wanted) = (bind.parameters.len(), parsed.types.len());
        if given != wanted {
            let message =
                format!("bind message supplies {given} parameters, but the statement requires {wanted}");
            return Err(PgError::new("08P01", message));
        }
        let parameters = bind.parameters.iter().zip(&parsed.types).enumerate();
        let parameters =
            parameters.map(|(index, (bound, number))| values::parameter(index + 1, *number, bound));
        let parameters: Vec<_> = parameters.collect::<Result<_, _>>()?;
        let held = self.held.hold(parameters.iter().map(Parameter::weight).sum())?;
        self.keep_portal(bind.portal, Portal::new(parsed, parameters, bind.result_formats, held))?;
        self.wire.push(BackendMessage::BindComplete(BindComplete::new()))
    }

    /// Describes the parameters and columns of a statement, or the columns of a portal.
    pub(super) fn describe(&mut self, what: Target, name: &str) -> Result<(), PgError> {
        let (parsed, formats) = match what {
            Target::Statement => {
                let parsed = self.statements.get(name).cloned();
                (parsed.ok_or_else(|| PgError::unknown_statement(name))?, Vec::new())
            }
            Target::Portal => {
                let portal = self.portals.get(name).ok_or_else(|| PgError::unknown_cursor(name))?;
                (Arc::clone(&portal.parsed), portal.formats.clone())
            }
        };
        if what == Target::Statement {
            let types = ParameterDescription::new(parsed.types.clone());
            self.wire.push(BackendMessage::ParameterDescription(types))?;
        }
        match self.columns(&parsed, &formats)? {
            Some(columns) => self.wire.push(BackendMessage::RowDescription(columns)),
            None => self.wire.push(BackendMessage::NoData(NoData::new())),
        }
    }

    /// The columns of a statement; none for commands.
    fn columns(&self, parsed: &Parsed, formats: &[ValueFormat]) -> Result<Option<RowDescription>, PgError> {
        let of = |parsed: &Parsed| {
            let query = parsed.work.query();
            let fields = query.map(|prepared| fields(prepared.schema(), formats)).transpose()?;
            let headings = query.map(Prepared::headings).unwrap_or_default();
            Ok(fields.map(|fields| description(&fields, headings)))
        };
        match &parsed.statement {
            Statement::Query(_) => of(parsed),
            Statement::Show { name } => Ok(Some(description(&text_field(name), &[]))),
            Statement::Fetch { cursor, .. } => {
                of(&self.portals.get(cursor).ok_or_else(|| PgError::unknown_cursor(cursor))?.parsed)
            }
            _ => Ok(None),
        }
    }

    /// Sends some rows of a portal.
    pub(super) async fn execute(&mut self, name: &str, rows_max: usize) -> Result<(), Failed> {
        self.admit_statement()?;
        self.cancel.begin();
        let mut portal = self.take_portal(name)?;
        let parsed = Arc::clone(&portal.parsed);
        self.check_transaction(&parsed.statement)?;
        match &parsed.statement {
            Statement::Empty => {
                self.wire.push(BackendMessage::EmptyQueryResponse(EmptyQueryResponse::new()))?
            }
            Statement::Query(_) => {
                self.start(&mut portal).await?;
                if let Some(rows) = &mut portal.rows {
                    let fields = fields(rows.schema(), &portal.formats)?;
                    let progress = self.send_rows(rows, &fields, rows_max).await?;
                    self.push_progress("SELECT", progress)?;
                }
                // A finished portal returns no more rows.
                self.keep_portal(name.into(), portal)?;
            }
            Statement::Copy { options, .. } => {
                self.start(&mut portal).await?;
                if let Some(rows) = &mut portal.rows {
                    self.copy_out(rows, options).await?;
                }
            }
            Statement::Delete(_) => {
                let Work::Deletion(deletion) = &parsed.work else {
                    return Err(
                        PgError::new("XX000", "a bug, please report it: a DELETE without its plan").into()
                    );
                };
                self.delete(deletion, portal.parameters).await?;
            }
            Statement::Show { name } => {
                let value = self.setting(name)?;
                self.push_text_row(&value, &text_field(name))?;
                self.complete("SHOW".into())?;
            }
            Statement::Declare { cursor, binary, hold, .. } => {
                let formats = if *binary { vec![ValueFormat::Binary] } else { Vec::new() };
                let query = Parsed {
                    statement: Statement::Query(String::new()),
                    work: parsed.work.clone(),
                    types: parsed.types.clone(),
                    held: self.held.hold(parsed.held.bytes())?,
                };
                let declared = Portal::new(query.into(), portal.parameters, formats, portal.held);
                self.declare(cursor, *hold, declared)?;
            }
            Statement::Fetch { cursor, rows } => {
                let formats = portal.formats;
                self.fetch(cursor, *rows, Some(&formats)).await?;
            }
            Statement::Move { cursor, rows } => self.move_cursor(cursor, *rows).await?,
            command => self.command(command)?,
        }
        Ok(())
    }

    /// Closes a statement or portal, if it exists.
    pub(super) fn close(&mut self, what: Target, name: &str) -> Result<(), PgError> {
        match what {
            Target::Statement => drop(self.statements.remove(name)),
            Target::Portal => drop(self.portals.remove(name)),
        }
        self.wire.push(BackendMessage::CloseComplete(CloseComplete::new()))
    }

    /// Ends a sequence of messages. Outside of BEGIN it also ends the transaction.
    pub(super) fn sync(&mut self) -> Result<(), Failed> {
        self.skips_to_sync = false;
        if self.transaction == TransactionStatus::Idle {
            self.end_transaction();
        }
        self.ready()?;
        Ok(())
    }
}
