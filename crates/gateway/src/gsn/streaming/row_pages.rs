//! The rows of a sensor from a time on, page by page, for streams and pushes.

use std::ops::ControlFlow;
use std::sync::Arc;
use std::time::Instant;

use hub::caller::Caller;
use hub::live::LiveConnection;
use hub::registry::OWN_DATABASE;
use hub::sql::Reader;
use model::Timestamp;
use timeseries::{Source, SourceError};
use tokio::time::timeout;

use super::super::limits::{STREAM_KEEP_ALIVE, STREAM_PAGE_ROWS};
use super::super::live_rows::{LiveRows, Login};
use super::super::read::{Column, Selection};
use super::super::refusal::{Refusal, refused_task};
use super::super::sensor::Sensor;
use super::statement::Statement;
use super::text::Elements;
use crate::acceptor::Stop;
use crate::http::tools::state::HttpState;

/// A client that follows a sensor.
pub(super) struct RowPages {
    state: Arc<HttpState>,
    login: Login,
    caller: Caller,
    selection: Selection,
    live: LiveRows,
    _connection: LiveConnection,
    checked: Instant,
}

/// Some elements.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(super) struct Page {
    /// The text of all elements.
    pub(super) text: Vec<u8>,
    /// For each element, the end of its text and the time of its row in microseconds.
    ends: Vec<(usize, i64)>,
}

impl Page {
    pub(super) fn is_empty(&self) -> bool {
        self.ends.is_empty()
    }

    /// The elements with the times of their rows in microseconds.
    pub(super) fn elements(&self) -> impl Iterator<Item = (&[u8], i64)> {
        let begins = std::iter::once(0).chain(self.ends.iter().map(|(end, _)| *end));
        begins.zip(&self.ends).map(|(begin, (end, micros))| (&self.text[begin..*end], *micros))
    }

    /// The time of the last row in microseconds.
    pub(super) fn last(&self) -> Option<i64> {
        self.ends.last().map(|(_, micros)| *micros)
    }
}

impl RowPages {
    /// Begins with the rows later than a time.
    pub(super) async fn open(
        state: Arc<HttpState>,
        query: &str,
        after: Timestamp,
        login: Login,
    ) -> Result<Self, Refusal> {
        let caller = login.caller(&state).await?;
        let Statement { sensor, fields, conditions } = Statement::parse(query)?;
        let sensor = Sensor::named(&state.sensors, &caller, &sensor)?;
        sensor.check_operands(&conditions)?;
        let device = state.hub.device_by_name(&caller, sensor.device())?;
        let mut selection = Selection { conditions, after: Some(after), ..Selection::all(sensor) };
        if let Some(names) = fields {
            let columns = names.iter().map(|name| Ok(Column::of(selection.sensor.field(name)?)));
            selection.fields = columns.collect::<Result<_, Refusal>>()?;
        }
        let connection = state.hub.live_connection(&caller);
        let live = LiveRows::new(Arc::clone(&state.hub), caller.clone(), device, &connection);
        let checked = Instant::now();
        Ok(Self { state, login, caller, selection, live, _connection: connection, checked })
    }

    pub(super) const fn selection(&self) -> &Selection {
        &self.selection
    }

    /// The next elements; none if there are none yet. They come again until [`Self::taken`].
    ///
    /// # Errors
    /// The reason of the end: the login is not valid any more, or the store cannot read.
    pub(super) async fn page(&mut self) -> Result<Page, String> {
        if self.checked.elapsed() >= STREAM_KEEP_ALIVE {
            self.check().await?;
        }
        self.read().await.map_err(|refusal| refusal.0.message)
    }

    /// Continues behind a row.
    pub(super) fn taken(&mut self, micros: i64) {
        self.selection.after = Some(Timestamp::from_micros(micros));
    }

    /// Waits for rows. Returns whether there are any before the time of a keep-alive is over.
    ///
    /// # Errors
    /// The reason of the end: the login is not valid any more, or the server stops.
    pub(super) async fn changed(&mut self) -> Result<bool, String> {
        let mut stop = self.state.stop.clone();
        let has_rows = tokio::select! {
            waited = timeout(STREAM_KEEP_ALIVE, self.live.next()) => waited.is_ok(),
            () = Stop::Drain.reached(&mut stop) => return Err("the server stops".to_owned()),
        };
        if !has_rows {
            self.check().await?;
        }
        Ok(has_rows)
    }

    async fn check(&mut self) -> Result<(), String> {
        self.live.check(&self.state, &self.login).await?;
        self.checked = Instant::now();
        Ok(())
    }

    async fn read(&self) -> Result<Page, Refusal> {
        let database = self.state.hub.database(&self.caller, OWN_DATABASE)?;
        let selection = self.selection.clone();
        let read = move |source: &dyn Source| {
            let (mut elements, mut page) = (Elements::new(), Page::default());
            selection.read(source, &mut |row| {
                elements.push(&selection, &row, &mut page.text);
                page.ends.push((page.text.len(), row.micros));
                if page.ends.len() == STREAM_PAGE_ROWS {
                    ControlFlow::Break(())
                } else {
                    ControlFlow::Continue(())
                }
            })?;
            Ok::<_, SourceError>(page)
        };
        let reader = Reader::from(self.caller.clone());
        let page = self.state.hub.time_series(&reader, &database, read).await.map_err(refused_task)?;
        Ok(page.clone())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_page_knows_where_its_elements_end() {
        let page = Page { text: b"aabbb".to_vec(), ends: vec![(2, 10), (5, 20)] };
        let elements: Vec<_> = page.elements().collect();
        assert_eq!(elements, [(&b"aa"[..], 10), (&b"bbb"[..], 20)]);
        assert_eq!((page.last(), page.is_empty(), Page::default().last()), (Some(20), false, None));
    }
}
