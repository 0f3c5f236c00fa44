//! Rows of a request.

use std::cell::Cell;

use hub::points::Points;
use model::{Timestamp, ValueRef};
use wire::prometheus::{NAME_LABEL, PrometheusError, TimeSeries, WriteRequest};

/// The field of a sample.
const VALUE: &str = "value";
/// Refused series that an answer names.
const NAMED_MAX: usize = 10;

/// What was not stored of a request.
#[derive(Debug, Default)]
pub(super) struct UnstoredSamples {
    /// Samples that are NaN: the marks of ended series, and quantiles without observations.
    pub(super) without_number: u64,
    /// The first reasons of refused series.
    pub(super) reasons: Vec<String>,
    /// Refused series.
    pub(super) refused: u64,
}

impl UnstoredSamples {
    fn refuse(&mut self, points: &mut Points, reason: String, payload: &[u8]) {
        points.refuse(&reason, payload);
        self.add(reason);
    }

    /// Counts a refused series.
    pub(super) fn add(&mut self, reason: String) {
        self.refused += 1;
        if self.reasons.len() < NAMED_MAX {
            self.reasons.push(reason);
        }
    }
}

/// Adds the samples of a request. The number of a row's item is that of its series.
///
/// # Errors
/// The request is malformed; then the caller must accept none of the points.
pub(super) fn collect(points: &mut Points, request: &[u8]) -> Result<UnstoredSamples, PrometheusError> {
    let mut left = UnstoredSamples::default();
    for (item, series) in (0_u32..).zip(WriteRequest::new(request)) {
        let series = series?;
        if series.histograms > 0 {
            let reason = "native histograms are not stored; set send_native_histograms: false".to_owned();
            left.refuse(points, reason, series.raw());
        }
        add(points, item, &series, &mut left);
    }
    Ok(left)
}

fn add(points: &mut Points, item: u32, series: &TimeSeries<'_>, left: &mut UnstoredSamples) {
    for sample in series.samples() {
        if sample.value.is_nan() {
            left.without_number += 1;
            continue;
        }
        if sample.value.is_infinite() {
            left.refuse(
                points,
                "a value is infinite; numbers of the store are finite".to_owned(),
                series.raw(),
            );
            continue;
        }
        let ts = sample.ms.checked_mul(1_000).map(Timestamp::from_micros);
        let added = match ts {
            None => Err("the time does not fit".to_owned()),
            Some(ts) => add_sample(points, item, series, ts, sample.value),
        };
        if let Err(reason) = added {
            left.refuse(points, reason, series.raw());
        }
    }
}

/// Adds a sample to the series of the labels. A label without a value is as good as none.
fn add_sample(
    points: &mut Points,
    item: u32,
    series: &TimeSeries<'_>,
    ts: Timestamp,
    value: f64,
) -> Result<(), String> {
    let fault = Cell::new(None);
    let key = || {
        let mut labels: Vec<(&str, &str)> =
            series.labels().flatten().filter(|(_, value)| !value.is_empty()).collect();
        labels.sort_unstable();
        let table = labels.iter().find(|(name, _)| *name == NAME_LABEL).map(|(_, value)| *value);
        if table.is_none() {
            fault.set(Some("a series has no label __name__"));
        }
        if labels.windows(2).any(|pair| pair[0].0 == pair[1].0) {
            fault.set(Some("a series has the same label twice"));
        }
        labels.retain(|(name, _)| *name != NAME_LABEL);
        // No table has an empty name, so a series with a fault is refused.
        (table.filter(|_| fault.get().is_none()).unwrap_or_default(), labels)
    };
    let added = points.add(item, ts, series.raw(), key, [(VALUE, ValueRef::F64(value))]);
    added.map_err(|refusal| match fault.get() {
        Some(fault) => fault.to_owned(),
        None => refusal.to_string(),
    })
}
