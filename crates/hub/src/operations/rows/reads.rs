//! Reads the values of devices and assets, for callers with the permission.
//!
//! A caller gets the series of devices and assets that it sees only ([`Hub::find_series_of`]), so a read of a series needs no second
//! check of what the caller sees.

use model::SeriesId;
use store::LatestValue;

use crate::caller::{Action, Caller};
use crate::error::Error;
use crate::history::{self, HeldTextBytes, History, HistoryRequest, Reduction, RowSink, ValueSink};
use crate::hub::Hub;
use crate::live::LiveConnection;
use crate::series_owner::SeriesOwner;

impl Hub {
    /// The series that a device or an asset writes to, if it has values. Creates nothing, so it also works on a store that
    /// accepts no writes.
    pub fn find_series_of<'a>(
        &self,
        caller: &Caller,
        owner: impl Into<SeriesOwner<'a>>,
    ) -> Result<Option<SeriesId>, Error> {
        let owner = owner.into();
        owner.check(caller, Action::Read)?;
        Ok(self.store.find_series(&owner.key_in(&owner.table)?))
    }

    /// Changes whenever a device gets its series. A reader that found none looks again then.
    pub fn new_series(&self) -> tokio::sync::watch::Receiver<u64> {
        self.live.new_series()
    }

    /// The newest values of a series, for all keys if `keys` is `None`. It may read files: call it on a thread that may
    /// block.
    pub fn latest(
        &self,
        caller: &Caller,
        series: SeriesId,
        keys: Option<&[String]>,
    ) -> Result<Vec<LatestValue>, Error> {
        caller.check(Action::Read)?;
        Ok(self.store.latest(series, keys)?)
    }

    /// The history of a series. It reads files: call it on a thread that may block.
    pub fn history(
        &self,
        caller: &Caller,
        series: SeriesId,
        request: &HistoryRequest,
    ) -> Result<History, Error> {
        caller.check(Action::Read)?;
        Ok(history::read(&*self.store, series, request)?)
    }

    /// Like [`history`](Self::history), value by value.
    pub fn history_into(
        &self,
        caller: &Caller,
        series: SeriesId,
        request: &HistoryRequest,
        sink: &mut impl ValueSink,
    ) -> Result<(), Error> {
        caller.check(Action::Read)?;
        Ok(history::read_into(&*self.store, series, request, sink)?)
    }

    /// Like [`history`](Self::history), row by row.
    pub fn history_rows_into(
        &self,
        caller: &Caller,
        series: SeriesId,
        request: &HistoryRequest,
        sink: &mut impl RowSink,
    ) -> Result<(), Error> {
        caller.check(Action::Read)?;
        Ok(history::read_rows_into(&*self.store, series, request, sink)?)
    }

    /// Aggregates several series: one value per key and interval.
    pub fn reduce(
        &self,
        caller: &Caller,
        series: &[SeriesId],
        request: &HistoryRequest,
        text: &HeldTextBytes,
    ) -> Result<Reduction, Error> {
        caller.check(Action::Read)?;
        Ok(Reduction::read(&*self.store, series, request, text)?)
    }

    /// Opens a connection for live subscribers of the caller. What it may subscribe to is decided by
    /// [`find_series_of`](Self::find_series_of).
    pub fn live_connection(&self, caller: &Caller) -> LiveConnection {
        self.live.connection(caller.user_id().unwrap_or_default(), caller.tenant())
    }
}
