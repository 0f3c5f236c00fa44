//! `/streaming`: an answer without an end, with the rows of a sensor from a time on. It is what GSN's wrapper `remote-rest` reads.

mod statement;
mod text;

use std::ops::ControlFlow;
use std::sync::Arc;

use axum::body::Body;
use axum::extract::State;
use axum::http::{HeaderMap, HeaderValue, header};
use axum::response::{IntoResponse, Response};
use bytes::Bytes;
use futures_util::stream;
use hub::caller::Caller;
use hub::clock::system_now;
use hub::live::LiveConnection;
use hub::registry::OWN_DATABASE;
use hub::sql::Reader;
use hub::time_series::{Source, SourceError};
use model::Timestamp;
use tokio::time::timeout;

use self::statement::Statement;
use self::text::{END, Elements, KEEP_ALIVE, structure};
use super::asker::Asker;
use super::limits::{STREAM_KEEP_ALIVE, STREAM_PAGE_ROWS};
use super::live_rows::{LiveRows, Login};
use super::read::{Column, Selection};
use super::refusal::{Refusal, refused_task};
use super::sensor::Sensor;
use super::time::parse_iso;
use crate::acceptor::Stop;
use crate::http::connection::Peer;
use crate::http::request::{Params, PathOf};
use crate::http::state::HttpState;

/// `GET /streaming/{query}`: rows from now on.
pub(super) async fn from_now(
    State(state): State<Arc<HttpState>>,
    PathOf(query): PathOf<String>,
    peer: Peer,
    params: Params,
    headers: HeaderMap,
) -> Result<Response, Refusal> {
    open(state, &query, system_now(), login(peer, params, headers)).await
}

/// `GET /streaming/{query}/{start}`: rows later than a time.
pub(super) async fn from_start(
    State(state): State<Arc<HttpState>>,
    PathOf((query, start)): PathOf<(String, String)>,
    peer: Peer,
    params: Params,
    headers: HeaderMap,
) -> Result<Response, Refusal> {
    let login = login(peer, params, headers);
    let millis = parse_iso(&start).ok_or_else(|| {
        Refusal::argument(format!("{start:?} is no time such as 2026-11-27T20:15:30.000Z (ISO 8601)"))
    });
    // A stranger learns nothing else.
    login.caller(&state).await?;
    // Rows of the whole millisecond are not later.
    let start = Timestamp::from_micros(millis?.saturating_mul(1_000).saturating_add(999));
    open(state, &query, start, login).await
}

/// `POST /streaming/{query}`: GSN's push, for which the server calls its client.
pub(super) async fn push(Asker(_): Asker) -> Result<Response, Refusal> {
    Err(Refusal::absent(
        "this server calls no clients (push); read the rows with GET at the same address, or over the WebSocket /api/sensors/NAME/stream",
    ))
}

/// `POST /streaming/{query}/{start}`
pub(super) async fn push_from_start(asker: Asker) -> Result<Response, Refusal> {
    push(asker).await
}

fn login(Peer(peer): Peer, params: Params, headers: HeaderMap) -> Login {
    Login { params, headers, peer }
}

async fn open(
    state: Arc<HttpState>,
    query: &str,
    after: Timestamp,
    login: Login,
) -> Result<Response, Refusal> {
    let caller = login.caller(&state).await?;
    let Statement { sensor, fields, conditions } = Statement::parse(query)?;
    let sensor = Sensor::named(&state.hub, &caller, &sensor)?;
    sensor.check_operands(&conditions)?;
    let device = state.hub.device_by_name(&caller, sensor.device())?;
    let mut selection = Selection { conditions, after: Some(after), ..Selection::all(sensor) };
    if let Some(names) = fields {
        let columns = names.iter().map(|name| Ok(Column::of(selection.sensor.field(name)?)));
        selection.fields = columns.collect::<Result<_, Refusal>>()?;
    }
    let connection = state.hub.live_connection(&caller);
    let live = LiveRows::new(Arc::clone(&state.hub), caller.clone(), device, &connection);
    let begin = Some(Bytes::from(structure(&selection)));
    let rows = Rows { state, login, caller, selection, live, _connection: connection, begin, ended: false };
    let pieces = stream::unfold(rows, |mut rows| async move {
        let piece = rows.next().await?;
        Some((Ok::<_, std::io::Error>(piece), rows))
    });
    let headers = [(header::CONTENT_TYPE, HeaderValue::from_static("text/xml; charset=utf-8"))];
    Ok((headers, Body::from_stream(pieces)).into_response())
}

/// The rows of a stream, piece by piece.
struct Rows {
    state: Arc<HttpState>,
    login: Login,
    caller: Caller,
    selection: Selection,
    live: LiveRows,
    _connection: LiveConnection,
    begin: Option<Bytes>,
    ended: bool,
}

impl Rows {
    /// The next piece; `None` after the end.
    async fn next(&mut self) -> Option<Bytes> {
        if let Some(begin) = self.begin.take() {
            return Some(begin);
        }
        if self.ended {
            return None;
        }
        match self.rows_or_end().await {
            Ok(piece) => Some(piece),
            Err(reason) => {
                tracing::debug!(%reason, "the end of a stream of GSN");
                self.ended = true;
                Some(Bytes::from_static(END.as_bytes()))
            }
        }
    }

    /// Rows, or the sign that there are none; an error is the reason of the end.
    async fn rows_or_end(&mut self) -> Result<Bytes, String> {
        let mut stop = self.state.stop.clone();
        loop {
            let page = self.page().await.map_err(|refusal| refusal.0.message)?;
            if !page.is_empty() {
                return Ok(page);
            }
            let waited = tokio::select! {
                waited = timeout(STREAM_KEEP_ALIVE, self.live.next()) => waited.is_ok(),
                () = Stop::Drain.reached(&mut stop) => return Err("the server stops".to_owned()),
            };
            if !waited {
                self.live.check(&self.state, &self.login).await?;
                return Ok(Bytes::from_static(KEEP_ALIVE.as_bytes()));
            }
        }
    }

    /// The next rows.
    async fn page(&mut self) -> Result<Bytes, Refusal> {
        let database = self.state.hub.database(&self.caller, OWN_DATABASE)?;
        let selection = self.selection.clone();
        let read = move |source: &dyn Source| {
            let (mut elements, mut text) = (Elements::new(), Vec::new());
            let (mut last, mut rows) = (None, 0);
            selection.read(source, &mut |row| {
                elements.push(&selection, &row, &mut text);
                last = Some(row.micros);
                rows += 1;
                if rows == STREAM_PAGE_ROWS { ControlFlow::Break(()) } else { ControlFlow::Continue(()) }
            })?;
            Ok::<_, SourceError>((text, last))
        };
        let reader = Reader::from(self.caller.clone());
        let page = self.state.hub.time_series(&reader, &database, read).await.map_err(refused_task)?;
        let (text, last) = &*page;
        self.selection.after = last.map(Timestamp::from_micros).or(self.selection.after);
        Ok(Bytes::copy_from_slice(text))
    }
}
