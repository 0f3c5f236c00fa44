//! One data point as its sender wrote it.

use std::borrow::Cow;

use super::number::{Number, parse_number};
use super::refusal::{Refusal, RefusalKind};
use super::series::{SeriesRules, check_series};
use super::timestamp::{Epoch, parse_timestamp};

/// A data point. Members of the JSON that are absent or `null` are empty here.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct DataPoint<'a> {
    /// The metric; empty if absent.
    pub metric: Cow<'a, str>,
    /// The timestamp.
    pub timestamp: Scalar<'a>,
    /// The value; absent in HiTSDB's form with fields.
    pub value: Scalar<'a>,
    /// The tags in the order of the JSON. A name that appears again replaces the one before.
    pub tags: Vec<(Cow<'a, str>, Cow<'a, str>)>,
    /// The fields in the order of the JSON.
    pub fields: Vec<(Cow<'a, str>, Scalar<'a>)>,
    /// The point's JSON.
    pub text: &'a str,
    pub(super) metric_text: &'a str,
    pub(super) tags_text: &'a str,
    pub(super) is_null: bool,
}

/// A string, number or boolean of the JSON.
#[derive(Debug, Clone, Default, PartialEq)]
pub enum Scalar<'a> {
    /// Absent or `null`.
    #[default]
    Absent,
    /// A whole number in the range of i64.
    Integer {
        /// The number.
        value: i64,
        /// Its JSON.
        text: &'a str,
    },
    /// The JSON of another number.
    Number(&'a str),
    /// A string.
    Text(Cow<'a, str>),
    /// A boolean.
    Bool(bool),
}

/// The value of a field in HiTSDB's form.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum FieldValue<'a> {
    /// A number.
    Number(Number),
    /// A text.
    Text(&'a str),
    /// A boolean.
    Bool(bool),
}

impl<'a> DataPoint<'a> {
    /// Time in microseconds since 1970 and value.
    ///
    /// # Errors
    /// In OpenTSDB's order: an empty metric, an invalid timestamp, an empty value, no tags, a value that is not a number, a
    /// timestamp out of range.
    pub fn timed_value(&self, epoch: Epoch) -> Result<(i64, Number), Refusal> {
        self.must_have_metric()?;
        let time = self.time(epoch);
        if self.value.is_empty() && !is_timestamp_refused_first(&time) {
            return Err(Refusal::new(RefusalKind::Value, "Empty value"));
        }
        let time = time?;
        self.must_have_tags()?;
        Ok((time, self.value.number()?))
    }

    /// Time in microseconds since 1970 of a point in HiTSDB's form, whose fields are checked. A string stays a string there.
    ///
    /// # Errors
    /// For an empty metric, an invalid timestamp, no tags, no fields, and a field without a value.
    pub fn fields_time(&self, epoch: Epoch) -> Result<i64, Refusal> {
        self.must_have_metric()?;
        let time = self.time(epoch)?;
        self.must_have_tags()?;
        if self.fields.is_empty() {
            return Err(Refusal::new(RefusalKind::Fields, "Missing fields"));
        }
        for (name, value) in &self.fields {
            value
                .field()
                .map_err(|refusal| Refusal::new(refusal.kind, format!("{refusal}, field: {name}")))?;
        }
        Ok(time)
    }

    /// Checks the names of the metric and the tags.
    ///
    /// # Errors
    /// For no or too many tags, and for an empty name or one with an illegal character.
    pub fn check_series(&self, rules: &SeriesRules) -> Result<(), Refusal> {
        check_series(&self.metric, &self.tags, rules)
    }

    /// The JSON of the metric and of the tags. Points with the same two texts belong to the same series; the reverse need not be
    /// true, for the tags may have another order.
    #[must_use]
    pub fn series_text(&self) -> (&'a str, &'a str) {
        (self.metric_text, self.tags_text)
    }

    fn must_have_metric(&self) -> Result<(), Refusal> {
        if self.is_null {
            return Err(Refusal::new(RefusalKind::Null, "Unexpected null datapoint encountered in set."));
        }
        if self.metric.is_empty() {
            return Err(Refusal::new(RefusalKind::Metric, "Metric name was empty"));
        }
        Ok(())
    }

    fn must_have_tags(&self) -> Result<(), Refusal> {
        if self.tags.is_empty() { Err(Refusal::new(RefusalKind::Tags, "Missing tags")) } else { Ok(()) }
    }

    fn time(&self, epoch: Epoch) -> Result<i64, Refusal> {
        match &self.timestamp {
            Scalar::Integer { value, .. } => epoch.micros(*value),
            Scalar::Number(text) => parse_timestamp(text, epoch),
            Scalar::Text(text) => parse_timestamp(text, epoch),
            Scalar::Absent | Scalar::Bool(_) => Err(Refusal::timestamp()),
        }
    }
}

/// OpenTSDB looks for a timestamp before it looks for a value, but checks the timestamp's range after it.
fn is_timestamp_refused_first(time: &Result<i64, Refusal>) -> bool {
    time.as_ref().is_err_and(|refusal| *refusal == Refusal::timestamp())
}

impl Scalar<'_> {
    /// True for what OpenTSDB calls an empty value: absent, `null` and `""`.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        match self {
            Self::Absent => true,
            Self::Text(text) => text.is_empty(),
            _ => false,
        }
    }

    /// The text that OpenTSDB sees: that of the string, or the JSON of a number or boolean.
    #[must_use]
    pub fn text(&self) -> &str {
        match self {
            Self::Absent => "",
            Self::Integer { text, .. } | Self::Number(text) => text,
            Self::Text(text) => text,
            Self::Bool(true) => "true",
            Self::Bool(false) => "false",
        }
    }

    /// The number.
    ///
    /// # Errors
    /// For what is not a finite number; see [`Number`].
    pub fn number(&self) -> Result<Number, Refusal> {
        match self {
            Self::Integer { value, .. } => Ok(Number::I64(*value)),
            other => parse_number(other.text()),
        }
    }

    /// The value of a field.
    ///
    /// # Errors
    /// For an absent value and a number that does not fit.
    pub fn field(&self) -> Result<FieldValue<'_>, Refusal> {
        match self {
            Self::Absent => Err(Refusal::new(RefusalKind::Value, "Empty value")),
            Self::Text(text) => Ok(FieldValue::Text(text)),
            Self::Bool(value) => Ok(FieldValue::Bool(*value)),
            Self::Integer { .. } | Self::Number(_) => self.number().map(FieldValue::Number),
        }
    }
}
