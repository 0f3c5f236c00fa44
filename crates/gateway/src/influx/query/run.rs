//! Runs the statements of a request, one after the other, while the client takes the answer.

use std::collections::VecDeque;
use std::sync::Arc;

use hub::OpenDatabase;
use hub::caller::Caller;
use hub::clock::system_now;
use hub::sql::{Reader, SqlError};
use hub::time_series::{ChunkSender, Chunks};
use std::ops::ControlFlow;
use timeseries::Source;
use timeseries::influxql::ast::{Listing, Select, Show, Statement};
use timeseries::influxql::{self, Context, Head, Limits, Value};

use super::super::limits::{QUERY_BUCKETS_MAX, QUERY_POINTS_MAX, QUERY_SERIES_MAX};
use super::answer_format::{Form, Format};
use super::changes::change;
use super::indent::Indenter;
use super::lists::list;
use super::refusal::error_of;
use super::request::QueryRequest;
use super::scope::{Scope, open};
use super::select_into::{write_rows, written_text};
use super::text::{ResultText, empty, failed, warning};
use crate::error::ApiError;
use crate::http::tools::state::HttpState;

/// The statements of a request while they run.
pub(super) struct Run {
    state: Arc<HttpState>,
    caller: Caller,
    database: String,
    policy: String,
    form: Form,
    read_only: bool,
    left: VecDeque<Statement>,
    /// The number of the statement that runs, or that is next.
    number: usize,
    reading: Option<Reading>,
    /// Whether a statement has failed. Those behind it do not run.
    has_failed: bool,
    /// Whether the answer has text of a result.
    begun: bool,
    has_ended: bool,
    indenter: Option<Indenter>,
}

/// A statement that reads tables.
struct Reading {
    chunks: Chunks<Vec<u8>, influxql::Error>,
    /// Whether rows of it were sent.
    has_rows: bool,
}

impl Run {
    pub(super) fn new(state: Arc<HttpState>, caller: Caller, request: QueryRequest) -> Self {
        let QueryRequest { statements, database, policy, form, read_only } = request;
        let pretty = form.format == Format::Json { pretty: true };
        Self {
            state,
            caller,
            database,
            policy,
            form,
            read_only,
            left: statements.into(),
            number: 0,
            reading: None,
            has_failed: false,
            begun: false,
            has_ended: false,
            indenter: pretty.then(Indenter::default),
        }
    }

    /// Whether the whole answer was given.
    pub(super) fn has_ended(&self) -> bool {
        self.has_ended
    }

    /// The next piece of the answer; `None` behind the last one.
    ///
    /// # Errors
    /// The server is too busy for the first statement. Every other error is part of the answer.
    pub(super) async fn next(&mut self) -> Result<Option<Vec<u8>>, ApiError> {
        if self.has_ended {
            return Ok(None);
        }
        let mut piece = Vec::new();
        while piece.is_empty() && !self.has_ended {
            piece = self.step().await?;
        }
        Ok(Some(match &mut self.indenter {
            Some(indenter) => indenter.indent(&piece),
            None => piece,
        }))
    }

    async fn step(&mut self) -> Result<Vec<u8>, ApiError> {
        if let Some(reading) = &mut self.reading {
            let Reading { chunks, has_rows } = reading;
            return match chunks.next().await {
                Some(Ok(text)) => {
                    let is_first = !std::mem::replace(has_rows, true);
                    Ok(self.result(text, is_first))
                }
                Some(Err(error)) => {
                    let has_rows = *has_rows;
                    self.fail(&error_of(error), has_rows)
                }
                None => {
                    self.done();
                    Ok(Vec::new())
                }
            };
        }
        let Some(statement) = self.left.pop_front() else {
            self.has_ended = true;
            return Ok(self.closing());
        };
        if self.has_failed {
            let text = failed(self.form, self.number, "not executed", false, self.begun);
            let text = self.result(text, true);
            self.done();
            return Ok(text);
        }
        match self.start(statement).await {
            Ok(None) => Ok(Vec::new()),
            Ok(Some(text)) => {
                let text = self.result(text, true);
                self.done();
                Ok(text)
            }
            Err(error) => self.fail(&error, false),
        }
    }

    fn done(&mut self) {
        self.reading = None;
        self.number += 1;
    }

    /// The text of a result, or of a part of it, with what is before it.
    fn result(&mut self, text: Vec<u8>, is_first: bool) -> Vec<u8> {
        if text.is_empty() {
            return text;
        }
        let before: &[u8] = match (self.form, is_first) {
            (Form { format: Format::Json { .. }, chunk: None, .. }, true) => match self.begun {
                true => b",",
                false => b"{\"results\":[",
            },
            _ => b"",
        };
        self.begun = true;
        [before, &text].concat()
    }

    fn closing(&self) -> Vec<u8> {
        match (self.form, self.begun) {
            (Form { format: Format::Json { .. }, chunk: None, .. }, true) => b"]}\n".to_vec(),
            (Form { format: Format::Json { .. }, chunk: None, .. }, false) => b"{}\n".to_vec(),
            _ => Vec::new(),
        }
    }

    fn fail(&mut self, error: &ApiError, has_rows: bool) -> Result<Vec<u8>, ApiError> {
        let is_busy = error.retry_after_s.is_some();
        if is_busy && !self.begun && self.number == 0 {
            self.has_ended = true;
            return Err(error.clone());
        }
        self.state.refused(error.label);
        self.has_failed = true;
        let text = failed(self.form, self.number, &error.message, has_rows, self.begun);
        let text = self.result(text, !has_rows);
        self.done();
        Ok(text)
    }

    /// Runs a statement. Returns its result, or `None` if the statement reads tables and has started to.
    async fn start(&mut self, statement: Statement) -> Result<Option<Vec<u8>>, ApiError> {
        let scope = Scope { database: &self.database, policy: &self.policy };
        match statement {
            Statement::Select(select) => {
                let name = scope.of_select(&select).map_err(ApiError::argument)?;
                let database = open(&self.state.hub, &self.caller, name)?;
                let Some(target) = &select.into else {
                    self.read(&database, Query::Select(select))?;
                    return Ok(None);
                };
                let name = scope.of_target(target).map_err(ApiError::argument)?;
                let target = open(&self.state.hub, &self.caller, name)?;
                let written =
                    write_rows(&self.state, &self.caller, &database, &target, select, context()).await?;
                Ok(Some(written_text(written, ResultText::new(self.form, self.number, self.begun))))
            }
            Statement::Show(show) => self.show(show),
            Statement::Refused(words) => Err(ApiError::argument(format!(
                "{words} is not supported; docs/protocol/influx.md lists the statements that are"
            ))),
            statement => {
                let text = change(&self.state, &self.caller, scope, statement).await?;
                Ok(Some(match text.filter(|_| self.read_only) {
                    None => empty(self.form, self.number),
                    Some(statement) => {
                        let text = format!(
                            "deprecated use of '{statement}' in a read only context, please use a POST request instead"
                        );
                        warning(self.form, self.number, &text)
                    }
                }))
            }
        }
    }

    fn show(&mut self, show: Box<Show>) -> Result<Option<Vec<u8>>, ApiError> {
        let scope = Scope { database: &self.database, policy: &self.policy };
        let text = ResultText::new(self.form, self.number, self.begun);
        if let Some(listed) = list(&self.state.hub, &self.caller, &show, scope, text) {
            return listed.map(Some);
        }
        let name = scope.of_show(&show).map_err(ApiError::argument)?;
        let database = match open(&self.state.hub, &self.caller, name) {
            // InfluxDB lists no measurement of a database that it does not have.
            Err(_) if show.listing == Listing::Measurements => {
                return Ok(Some(empty(self.form, self.number)));
            }
            database => database?,
        };
        self.read(&database, Query::Show(show))?;
        Ok(None)
    }

    /// Starts a statement that reads tables.
    fn read(&mut self, database: &OpenDatabase, query: Query) -> Result<(), SqlError> {
        let context = context();
        let text = ResultText::new(self.form, self.number, self.begun);
        let reader = Reader::from(self.caller.clone());
        let run = move |source: &dyn Source, chunks: &ChunkSender<Vec<u8>>| {
            query.run(source, &context, text, chunks)
        };
        let chunks = self.state.hub.stream_time_series(&reader, database, run)?;
        self.reading = Some(Reading { chunks, has_rows: false });
        Ok(())
    }
}

/// A statement that reads tables.
enum Query {
    Select(Box<Select>),
    Show(Box<Show>),
}

impl Query {
    /// Runs the statement and sends its result, piece by piece.
    fn run(
        &self,
        source: &dyn Source,
        context: &Context,
        mut text: ResultText,
        chunks: &ChunkSender<Vec<u8>>,
    ) -> Result<(), influxql::Error> {
        let mut has_left = false;
        let mut visit = |head: &Head, row: Vec<Value>| {
            text.row(head, &row);
            has_left = text.is_full() && chunks.send(text.take()).is_err();
            if has_left { ControlFlow::Break(()) } else { ControlFlow::Continue(()) }
        };
        match self {
            Self::Select(select) => influxql::select(select, source, context, &mut visit)?,
            Self::Show(show) => influxql::show(show, source, context, &mut visit)?,
        }
        if !has_left {
            // It fails only if the client has left, too.
            let _ = chunks.send(text.end());
        }
        Ok(())
    }
}

/// The cost limits of the statement that begins now.
fn context() -> Context {
    let limits = Limits { points: QUERY_POINTS_MAX, buckets: QUERY_BUCKETS_MAX, series: QUERY_SERIES_MAX };
    Context { now: system_now().micros().saturating_mul(1_000), limits }
}
