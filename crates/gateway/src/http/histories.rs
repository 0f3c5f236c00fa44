//! Histories as the text of an answer, made by as many threads as have nothing else to do.

use std::sync::atomic::{AtomicUsize, Ordering};

use hub::Hub;
use hub::history::{Aggregation, HistoryRequest, check_values};
use hub::registry::Device;

use super::columns_text::ColumnsText;
use super::crew::Crew;
use super::error::ApiError;
use super::history_text::HistoryText;
use super::json::{Entries, too_long};
use super::limits::ANSWER_BYTES_MAX;
use super::pieces::Pieces;

/// Devices of one piece of work: few enough that threads end at about the same time.
const DEVICES_AT_ONCE: usize = 8;
/// Values that may come for which a thread is started; it takes about as long as writing a thousand of them.
pub(super) const VALUES_PER_THREAD_MIN: usize = 8 * 1024;

/// What an answer looks like.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Form {
    /// For each key a list of times and values, as ThingsBoard has it.
    Lists {
        /// Whether numbers and booleans are such in JSON and not text.
        strict: bool,
    },
    /// Each time once, and for each key its values.
    Columns,
}

/// Histories that are asked for alike.
pub(crate) struct Histories<'a> {
    pub(crate) hub: &'a Hub,
    pub(crate) request: &'a HistoryRequest,
    pub(crate) form: Form,
}

impl Histories<'_> {
    /// The history of one device.
    pub(crate) fn of(&self, device: &Device, crew: &Crew) -> Result<Pieces, ApiError> {
        self.write(device, crew, ANSWER_BYTES_MAX)
    }

    /// An object with the history of each device under its id.
    pub(crate) fn of_many(&self, devices: &[(&str, &Device)], crew: &Crew) -> Result<Pieces, ApiError> {
        let written = AtomicUsize::new(0);
        let entry = |entries: &mut Entries, (id, device): (&str, &Device), crew: &Crew| {
            let bytes_max = ANSWER_BYTES_MAX.saturating_sub(written.load(Ordering::Relaxed));
            let text = self.write(device, crew, bytes_max)?;
            written.fetch_add(text.len() + id.len(), Ordering::Relaxed);
            entries.text_entry(id, text)
        };
        let pieces: Vec<_> = devices.chunks(DEVICES_AT_ONCE).collect();
        let alone = Crew::alone();
        // One piece alone is shared within each device, where there may be enough keys.
        let within = if pieces.len() > 1 { &alone } else { crew };
        let parts = crew.make(pieces.len(), |piece| {
            let mut entries = Entries::default();
            pieces[piece].iter().try_for_each(|device| entry(&mut entries, *device, within))?;
            Ok(entries)
        })?;
        Ok(Entries::object(parts))
    }

    fn write(&self, device: &Device, crew: &Crew, bytes_max: usize) -> Result<Pieces, ApiError> {
        match self.form {
            Form::Lists { strict } => self.lists(device, strict, crew, bytes_max),
            Form::Columns => self.columns(device, crew, bytes_max),
        }
    }

    fn lists(
        &self,
        device: &Device,
        strict: bool,
        crew: &Crew,
        bytes_max: usize,
    ) -> Result<Pieces, ApiError> {
        let series = self.hub.find_series_of(device)?;
        let requests = self.share_keys(crew);
        let written = AtomicUsize::new(0);
        let texts = crew.make(requests.len(), |number| {
            let request = &requests[number];
            let left = bytes_max.saturating_sub(written.load(Ordering::Relaxed));
            let mut text = HistoryText::new(request.keys.len(), strict, left);
            if let Some(series) = series {
                self.hub.history_into(series, request, &mut text)?;
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

    /// The request with all keys, or requests with some of them each.
    fn share_keys(&self, crew: &Crew) -> Vec<HistoryRequest> {
        let request = self.request;
        let values_max = request.limit.saturating_mul(request.keys.len());
        let is_plain = request.aggregation == Aggregation::None;
        let threads = if is_plain { crew.threads().min(values_max / VALUES_PER_THREAD_MIN) } else { 1 };
        let keys_each = request.keys.len().div_ceil(threads.max(1)).max(1);
        let of_keys = |keys: &[String]| HistoryRequest { keys: keys.to_vec(), ..request.clone() };
        request.keys.chunks(keys_each).map(of_keys).collect()
    }

    fn columns(&self, device: &Device, crew: &Crew, bytes_max: usize) -> Result<Pieces, ApiError> {
        let mut text = ColumnsText::new(self.request.keys.len(), bytes_max, crew);
        if let Some(series) = self.hub.find_series_of(device)? {
            self.hub.history_rows_into(series, self.request, &mut text)?;
        }
        let mut out = Pieces::default();
        text.write(&self.request.keys, &mut out)?;
        Ok(out)
    }
}
