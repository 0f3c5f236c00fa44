//! Writes histories as the text of an answer, on several threads.

use std::sync::atomic::{AtomicUsize, Ordering};

use hub::caller::Caller;
use hub::history::{Aggregation, HeldTextBytes, HistoryRequest, Reduction, check_intervals, check_values};
use hub::registry::Device;
use hub::{Hub, SeriesOwner};
use model::SeriesId;
use model::limits::READ_ROWS_MAX;

use super::columns_text::ColumnsText;
use super::groups::Group;
use super::history_text::HistoryText;
use crate::blocking::WorkerSet;
use crate::error::ApiError;
use crate::http::tools::json::{Entries, too_long};
use crate::http::tools::pieces::Pieces;

/// Devices of one piece of work: few, so all threads end at about the same time.
const DEVICES_AT_ONCE: usize = 8;
/// Pieces of work for groups with enough devices.
const PIECES_MIN: usize = 16;
/// The form of an answer.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Form {
    /// For each key a list of times and values, as in ThingsBoard.
    Lists {
        /// Whether numbers and booleans keep their JSON type and do not become text.
        strict: bool,
    },
    /// Each time once, and for each key its values.
    Columns,
}

/// Histories with the same request.
pub(crate) struct Histories<'a> {
    pub(crate) hub: &'a Hub,
    pub(crate) caller: &'a Caller,
    pub(crate) request: &'a HistoryRequest,
    pub(crate) form: Form,
    /// Longest answer.
    pub(crate) bytes_max: usize,
}

impl Histories<'_> {
    /// The history of one device or asset.
    pub(crate) fn of(&self, owner: &SeriesOwner<'_>, workers: &WorkerSet) -> Result<Pieces, ApiError> {
        self.write(owner, workers, self.bytes_max)
    }

    /// An object with the history of each device under its id.
    pub(crate) fn of_many(
        &self,
        devices: &[(&str, &Device)],
        workers: &WorkerSet,
    ) -> Result<Pieces, ApiError> {
        let written = AtomicUsize::new(0);
        let entry = |entries: &mut Entries, (id, device): (&str, &Device), workers: &WorkerSet| {
            let bytes_max = self.bytes_max.saturating_sub(written.load(Ordering::Relaxed));
            let text = self.write(&device.into(), workers, bytes_max)?;
            written.fetch_add(text.len() + id.len(), Ordering::Relaxed);
            entries.text_entry(id, text)
        };
        let pieces: Vec<_> = devices.chunks(DEVICES_AT_ONCE).collect();
        let single = WorkerSet::single();
        // A single piece is split by the keys of each device.
        let within = if pieces.len() > 1 { &single } else { workers };
        let parts = workers.run(pieces.len(), |piece| {
            let mut entries = Entries::default();
            pieces[piece].iter().try_for_each(|device| entry(&mut entries, *device, within))?;
            Ok::<_, ApiError>(entries)
        })?;
        Ok(Entries::object(parts))
    }

    /// An object with the aggregates of each group under its name, over all devices of the group. A device counts once.
    pub(crate) fn of_groups(&self, groups: &[Group], workers: &WorkerSet) -> Result<Pieces, ApiError> {
        let values = check_intervals(self.request, groups.len())?;
        let of_groups: Vec<_> = groups.iter().map(|group| self.series_of(group)).collect::<Result<_, _>>()?;
        let shares: Vec<_> = of_groups.iter().map(|series| shares(series, groups.len(), values)).collect();
        let pieces: Vec<&[SeriesId]> = shares.iter().flatten().copied().collect();
        let text = HeldTextBytes::default();
        let reduced = workers
            .run(pieces.len(), |piece| self.hub.reduce(self.caller, pieces[piece], self.request, &text))?;
        let mut reduced = reduced.into_iter();
        let mut entries = Entries::default();
        for (group, shares) in groups.iter().zip(&shares) {
            let of_group = reduced.by_ref().take(shares.len()).reduce(|mut one, other| {
                one.merge(other);
                one
            });
            let bytes_max = self.bytes_max.saturating_sub(entries.len() + group.name.len());
            let text = self.write_reduced(of_group.expect("BUG: a group has a share"), workers, bytes_max)?;
            entries.text_entry(&group.name, text)?;
        }
        Ok(Entries::object([entries]))
    }

    /// The series of a group's devices, each once, in their order in the store.
    fn series_of(&self, group: &Group) -> Result<Vec<SeriesId>, ApiError> {
        let found = group
            .devices
            .iter()
            .filter_map(|device| self.hub.find_series_of(self.caller, device).transpose());
        let mut series: Vec<SeriesId> = found.collect::<Result<_, _>>()?;
        series.sort_unstable();
        series.dedup();
        Ok(series)
    }

    fn write_reduced(
        &self,
        reduction: Reduction,
        workers: &WorkerSet,
        bytes_max: usize,
    ) -> Result<Pieces, ApiError> {
        let HistoryRequest { keys, order, .. } = self.request;
        let mut out = Pieces::default();
        match self.form {
            Form::Lists { strict } => {
                let mut text = HistoryText::new(keys.len(), strict, bytes_max);
                reduction.give(*order, &mut text);
                if text.is_over() {
                    return Err(too_long());
                }
                HistoryText::write([text], keys, &mut out);
            }
            Form::Columns => {
                let mut text = ColumnsText::new(keys.len(), bytes_max, workers);
                reduction.give_rows(keys, *order, &mut text);
                text.write(keys, &mut out)?;
            }
        }
        Ok(out)
    }

    fn write(
        &self,
        owner: &SeriesOwner<'_>,
        workers: &WorkerSet,
        bytes_max: usize,
    ) -> Result<Pieces, ApiError> {
        match self.form {
            Form::Lists { strict } => self.lists(owner, strict, workers, bytes_max),
            Form::Columns => self.columns(owner, workers, bytes_max),
        }
    }

    fn lists(
        &self,
        owner: &SeriesOwner<'_>,
        strict: bool,
        workers: &WorkerSet,
        bytes_max: usize,
    ) -> Result<Pieces, ApiError> {
        let series = self.hub.find_series_of(self.caller, owner)?;
        let requests = self.share_keys(workers);
        let written = AtomicUsize::new(0);
        let texts = workers.run(requests.len(), |number| {
            let request = &requests[number];
            let left = bytes_max.saturating_sub(written.load(Ordering::Relaxed));
            let mut text = HistoryText::new(request.keys.len(), strict, left);
            if let Some(series) = series {
                self.hub.history_into(self.caller, series, request, &mut text)?;
            }
            if text.is_over() {
                return Err(too_long());
            }
            written.fetch_add(text.bytes(), Ordering::Relaxed);
            Ok(text)
        })?;
        check_values(texts.iter().map(HistoryText::values).sum())?;
        let mut out = Pieces::default();
        HistoryText::write(texts, &self.request.keys, &mut out);
        Ok(out)
    }

    /// The request, split by keys if several threads are worth it.
    fn share_keys(&self, workers: &WorkerSet) -> Vec<HistoryRequest> {
        let request = self.request;
        let values_max = request.limit.saturating_mul(request.keys.len());
        let is_plain = request.aggregation == Aggregation::None;
        let threads = if is_plain { workers.threads_for(values_max) } else { 1 };
        let keys_each = request.keys.len().div_ceil(threads).max(1);
        let of_keys = |keys: &[String]| HistoryRequest { keys: keys.to_vec(), ..request.clone() };
        request.keys.chunks(keys_each).map(of_keys).collect()
    }

    fn columns(
        &self,
        owner: &SeriesOwner<'_>,
        workers: &WorkerSet,
        bytes_max: usize,
    ) -> Result<Pieces, ApiError> {
        let mut text = ColumnsText::new(self.request.keys.len(), bytes_max, workers);
        if let Some(series) = self.hub.find_series_of(self.caller, owner)? {
            self.hub.history_rows_into(self.caller, series, self.request, &mut text)?;
        }
        let mut out = Pieces::default();
        text.write(&self.request.keys, &mut out)?;
        Ok(out)
    }
}

/// Splits the series of a group into pieces of work, at least one. The split does not depend on the number of threads, so the
/// same request gives the same sums of floats. All pieces together hold at most the values of one answer.
fn shares(series: &[SeriesId], groups: usize, values: u64) -> Vec<&[SeriesId]> {
    let wanted = PIECES_MIN.div_ceil(groups).min(series.len() / DEVICES_AT_ONCE);
    let held_max = READ_ROWS_MAX as u64 / values.max(1);
    let shares = wanted.min(usize::try_from(held_max).unwrap_or(usize::MAX)).max(1);
    match series.len().div_ceil(shares) {
        0 => vec![series],
        each => series.chunks(each).collect(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn large_groups_are_shared_as_far_as_memory_allows() {
        let series: Vec<SeriesId> = (0..1_000).map(SeriesId).collect();
        let lengths = |count: usize, groups, values| -> Vec<usize> {
            shares(&series[..count], groups, values).iter().map(|share| share.len()).collect()
        };
        assert_eq!(lengths(1_000, 1, 144), [63; 15].into_iter().chain([55]).collect::<Vec<_>>());
        assert_eq!(lengths(100, 10, 1_440), [50, 50]);
        assert_eq!(lengths(10, 10, 1_440), [10]);
        assert_eq!(lengths(1_000, 100, 144), [1_000]);
        assert_eq!(lengths(1_000, 1, 400_000), [500, 500]);
        assert_eq!(lengths(1_000, 1, READ_ROWS_MAX as u64), [1_000]);
        assert_eq!(lengths(0, 1, 0), [0]);
    }
}
