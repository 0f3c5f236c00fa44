//! Reads a request.

use std::borrow::Cow;

use super::error::PrometheusError;
use super::proto::{Fields, Value};

/// The bits of the value by which Prometheus states that a series has ended: a NaN that no computation makes.
const STALE_MARKER: u64 = 0x7ff0_0000_0000_0002;

/// Whether the value is Prometheus's mark for the end of a series.
pub fn is_stale_marker(value: f64) -> bool {
    value.to_bits() == STALE_MARKER
}

/// A request; an iterator over its series. It ends after the first error.
#[derive(Debug)]
pub struct WriteRequest<'a> {
    fields: Option<Fields<'a>>,
}

/// One series of a request.
#[derive(Debug, Clone)]
pub struct TimeSeries<'a> {
    labels: Cow<'a, [u8]>,
    samples: Fields<'a>,
    /// Native histograms in the series.
    pub histograms: usize,
}

/// A value and its time.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Sample {
    /// The value; it may be a NaN or infinite.
    pub value: f64,
    /// Milliseconds since 1970.
    pub ms: i64,
}

/// Names and values of labels.
#[derive(Debug)]
pub struct Labels<'s> {
    fields: Fields<'s>,
}

impl<'a> WriteRequest<'a> {
    /// The series of an unpacked request.
    pub fn new(bytes: &'a [u8]) -> Self {
        Self { fields: Some(Fields::new(bytes, 0)) }
    }
}

impl<'a> Iterator for WriteRequest<'a> {
    type Item = Result<TimeSeries<'a>, PrometheusError>;

    fn next(&mut self) -> Option<Self::Item> {
        loop {
            let fields = self.fields.as_mut()?;
            let series = match fields.next() {
                Ok(Some((1, Value::Bytes(bytes)))) => TimeSeries::read(bytes, fields.base_of(bytes)),
                Ok(Some((1, _))) => Err(fields.fault("a series that is not a message")),
                Ok(Some(_)) => continue,
                Ok(None) => return None,
                Err(error) => Err(error),
            };
            if series.is_err() {
                self.fields = None;
            }
            return Some(series);
        }
    }
}

impl<'a> TimeSeries<'a> {
    fn read(bytes: &'a [u8], base: usize) -> Result<Self, PrometheusError> {
        let mut fields = Fields::new(bytes, base);
        let (mut labels_end, mut histograms, mut later_labels) = (0, 0, Vec::new());
        let mut from = 0;
        while let Some((number, value)) = fields.next()? {
            match (number, value) {
                (1, Value::Bytes(_)) if labels_end == from && later_labels.is_empty() => {
                    labels_end = fields.at()
                }
                (1, Value::Bytes(_)) => later_labels.extend_from_slice(&bytes[from..fields.at()]),
                (2, Value::Bytes(sample)) => drop(Sample::read(sample, fields.base_of(sample))?),
                (4, Value::Bytes(_)) => histograms += 1,
                (3, Value::Bytes(_)) => {}
                (1..=4, _) => return Err(fields.fault("a label or sample that is not a message")),
                _ => {}
            }
            from = fields.at();
        }
        // Every sender writes the labels first.
        let mut labels = Cow::Borrowed(&bytes[..labels_end]);
        if !later_labels.is_empty() {
            labels.to_mut().extend_from_slice(&later_labels);
        }
        let series = Self { labels, samples: Fields::new(bytes, base), histograms };
        for label in series.labels() {
            label?;
        }
        Ok(series)
    }

    /// The labels as they were sent. Equal bytes are the same series; one series may have several forms.
    pub fn raw(&self) -> &[u8] {
        &self.labels
    }

    /// Names and values of the labels, in the order of the request. No error: the reader of the request has seen them.
    pub fn labels(&self) -> Labels<'_> {
        Labels { fields: Fields::new(&self.labels, 0) }
    }

    /// The samples in the order of the request.
    pub fn samples(&self) -> impl Iterator<Item = Sample> + use<'a> {
        let mut fields = self.samples.clone();
        // The reader of the request has seen each of them, so there are no errors.
        std::iter::from_fn(move || {
            loop {
                match fields.next().ok()?? {
                    (2, Value::Bytes(sample)) => return Sample::read(sample, 0).ok(),
                    _ => continue,
                }
            }
        })
    }
}

impl Sample {
    #[inline]
    fn read(bytes: &[u8], base: usize) -> Result<Self, PrometheusError> {
        let mut fields = Fields::new(bytes, base);
        // A field that is not there has the default of its type.
        let mut sample = Self { value: 0.0, ms: 0 };
        while let Some(field) = fields.next()? {
            match field {
                (1, Value::Fixed64(bits)) => sample.value = f64::from_bits(bits),
                (2, Value::Varint(ms)) => sample.ms = ms.cast_signed(),
                (1 | 2, _) => return Err(fields.fault("a sample whose value or time has another type")),
                _ => {}
            }
        }
        Ok(sample)
    }
}

impl<'s> Iterator for Labels<'s> {
    type Item = Result<(&'s str, &'s str), PrometheusError>;

    fn next(&mut self) -> Option<Self::Item> {
        let label = match self.fields.next() {
            Ok(Some((_, Value::Bytes(bytes)))) => label(bytes, self.fields.base_of(bytes)),
            Ok(Some(_)) => Err(self.fields.fault("a label that is not a message")),
            Ok(None) => return None,
            Err(error) => Err(error),
        };
        Some(label)
    }
}

#[inline]
fn label(bytes: &[u8], base: usize) -> Result<(&str, &str), PrometheusError> {
    let mut fields = Fields::new(bytes, base);
    let (mut name, mut value) = ("", "");
    while let Some(field) = fields.next()? {
        let (number, Value::Bytes(text)) = field else {
            match field.0 {
                1 | 2 => return Err(fields.fault("a label whose name or value is not text")),
                _ => continue,
            }
        };
        let text = || std::str::from_utf8(text).map_err(|_| fields.fault("a label that is not UTF-8"));
        match number {
            1 => name = text()?,
            2 => value = text()?,
            _ => {}
        }
    }
    Ok((name, value))
}
