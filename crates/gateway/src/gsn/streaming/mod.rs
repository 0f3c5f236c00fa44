//! `/streaming`: the rows of a sensor from a time on: an answer without an end, which GSN's wrapper `remote-rest` reads, or requests to the client
//! (`push`), which its wrapper `remote` takes. `pushed` takes such requests for the sensors of this server.

mod push;
mod push_receiver;
mod row_pages;
mod statement;
mod stream_path;
mod text;

use std::sync::Arc;

use axum::body::Body;
use axum::extract::State;
use axum::http::{HeaderMap, HeaderValue, header};
use axum::response::{IntoResponse, Response};
use bytes::Bytes;
use futures_util::stream;
use hub::clock::system_now;
use model::Timestamp;

use self::row_pages::RowPages;
use self::stream_path::StreamPath;
use self::text::{BEGIN, END, KEEP_ALIVE, structure};
use super::live_rows::Login;
use super::refusal::Refusal;
use super::time::parse_iso;
use crate::http::tools::connection::Peer;
use crate::http::tools::request::Params;
use crate::http::tools::state::HttpState;

pub(super) use self::push::routes as push_routes;
pub(super) use self::push_receiver::pushed;

/// `GET /streaming/{query}`: rows from now on.
pub(super) async fn from_now(
    State(state): State<Arc<HttpState>>,
    StreamPath { statement, .. }: StreamPath,
    Peer(peer): Peer,
    params: Params,
    headers: HeaderMap,
) -> Result<Response, Refusal> {
    answer(RowPages::open(state, &statement, system_now(), Login { params, headers, peer }).await?)
}

/// `GET /streaming/{query}/{start}`: rows later than a time.
pub(super) async fn from_start(
    State(state): State<Arc<HttpState>>,
    StreamPath { statement, start }: StreamPath,
    Peer(peer): Peer,
    params: Params,
    headers: HeaderMap,
) -> Result<Response, Refusal> {
    let login = Login { params, headers, peer };
    // A stranger learns nothing else.
    login.caller(&state).await?;
    answer(RowPages::open(state, &statement, start_of(&start)?, login).await?)
}

/// The time behind which rows are later than `start`: a time of ISO 8601, or milliseconds since 1970.
fn start_of(start: &str) -> Result<Timestamp, Refusal> {
    let millis = start.parse().ok().or_else(|| parse_iso(start)).ok_or_else(|| {
        Refusal::argument(format!(
            "{start:?} is not a time such as 2026-11-27T20:15:30.000Z (ISO 8601) or a number of milliseconds since 1970"
        ))
    })?;
    // Rows of the whole millisecond are not later.
    Ok(Timestamp::from_micros(i64::saturating_mul(millis, 1_000).saturating_add(999)))
}

fn answer(following: RowPages) -> Result<Response, Refusal> {
    let begin = Some(Bytes::from(format!("{BEGIN}{}", structure(following.selection()))));
    let rows = Rows { following, begin, ended: false };
    let pieces = stream::unfold(rows, |mut rows| async move {
        let piece = rows.next().await?;
        Some((Ok::<_, std::io::Error>(piece), rows))
    });
    let headers = [(header::CONTENT_TYPE, HeaderValue::from_static("text/xml; charset=utf-8"))];
    Ok((headers, Body::from_stream(pieces)).into_response())
}

/// The rows of a stream, piece by piece.
struct Rows {
    following: RowPages,
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
        loop {
            let page = self.following.page().await?;
            if let Some(last) = page.last() {
                self.following.taken(last);
                return Ok(Bytes::from(page.text));
            }
            if !self.following.changed().await? {
                return Ok(Bytes::from_static(KEEP_ALIVE.as_bytes()));
            }
        }
    }
}
