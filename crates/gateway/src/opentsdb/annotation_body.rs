//! Annotations as requests name them: in parameters or in JSON.

use std::collections::BTreeMap;

use hub::annotations::{AnnotationChange, AnnotationDeletion};
use hub::clock::system_now;
use serde::{Deserialize, Deserializer, de};
use serde_json::Value;
use timeseries::opentsdb::{Tz, instant_millis};

use super::lenient::{flag, number, or_default, text};
use crate::error::ApiError;
use crate::http::tools::request::Params;

/// An annotation in JSON. Other members are ignored, as OpenTSDB does: an answer can be sent back.
#[derive(Debug, Default, Deserialize)]
#[serde(default, rename_all = "camelCase")]
pub(super) struct AnnotationBody {
    #[serde(deserialize_with = "text")]
    tsuid: Option<String>,
    #[serde(deserialize_with = "number")]
    start_time: Option<i64>,
    #[serde(deserialize_with = "number")]
    end_time: Option<i64>,
    #[serde(deserialize_with = "text")]
    description: Option<String>,
    #[serde(deserialize_with = "text")]
    notes: Option<String>,
    #[serde(deserialize_with = "texts")]
    custom: Option<BTreeMap<String, String>>,
}

impl From<AnnotationBody> for AnnotationChange {
    fn from(body: AnnotationBody) -> Self {
        Self {
            tsuid: body.tsuid.unwrap_or_default(),
            start_time: body.start_time.unwrap_or_default(),
            // OpenTSDB takes 0 and an empty text for what was not said.
            end_time: body.end_time.filter(|time| *time != 0),
            description: body.description,
            notes: body.notes,
            custom: body.custom,
        }
    }
}

/// The annotation that parameters name.
///
/// # Errors
/// A time is not valid, or there is no start.
pub(super) fn of_params(params: &Params) -> Result<AnnotationChange, ApiError> {
    let start = params.text("start_time").ok_or_else(|| ApiError::argument("Missing start time"))?;
    let text = |name| params.text(name).map(str::to_owned);
    Ok(AnnotationChange {
        tsuid: params.text("tsuid").unwrap_or_default().to_owned(),
        start_time: as_given(start)?,
        end_time: params.text("end_time").map(as_given).transpose()?,
        description: text("description"),
        notes: text("notes"),
        custom: None,
    })
}

/// A time of an annotation: a number as it was given, another text in seconds.
fn as_given(time: &str) -> Result<i64, ApiError> {
    let millis = instant(time)?;
    Ok(time.parse().unwrap_or(millis / 1_000))
}

/// The milliseconds of a time: seconds, milliseconds, a date in UTC, or relative to now.
pub(super) fn instant(time: &str) -> Result<i64, ApiError> {
    let instant = instant_millis(time, Tz::UTC, system_now().millis());
    instant.map_err(|error| ApiError::argument(error.to_string()))
}

/// A deletion of annotations in JSON. It is also the answer.
#[derive(Debug, Default, Deserialize)]
#[serde(default, rename_all = "camelCase")]
pub(super) struct DeletionBody {
    #[serde(deserialize_with = "or_default")]
    pub(super) tsuids: Vec<String>,
    #[serde(deserialize_with = "flag")]
    pub(super) global: bool,
    #[serde(deserialize_with = "text")]
    pub(super) start_time: Option<String>,
    #[serde(deserialize_with = "text")]
    pub(super) end_time: Option<String>,
}

impl DeletionBody {
    /// The deletion that parameters name.
    pub(super) fn of_params(params: &Params) -> Self {
        let text = |name| params.text(name).map(str::to_owned);
        Self {
            tsuids: params.list("tsuids").map(|tsuid| tsuid.trim().to_owned()).collect(),
            global: params.has("global"),
            start_time: text("start_time"),
            end_time: text("end_time"),
        }
    }

    /// The data to delete, and the time in milliseconds.
    ///
    /// # Errors
    /// It names no start, no series, or a time that is not valid.
    pub(super) fn checked(&self) -> Result<(AnnotationDeletion, (i64, i64)), ApiError> {
        let start = self.start_time.as_deref();
        // A deletion of everything must say so with the start 0.
        let start = start.ok_or_else(|| ApiError::argument("Missing the start time value"))?;
        if self.tsuids.is_empty() && !self.global {
            return Err(ApiError::argument("Missing the TSUIDs or global annotations flag"));
        }
        let from = instant(start)?;
        let to = self.end_time.as_deref().map_or_else(|| Ok(system_now().millis()), instant)?;
        if to < from {
            let message = "The end timestamp cannot be less than the start timestamp";
            return Err(ApiError::argument(message));
        }
        Ok((AnnotationDeletion { tsuids: self.tsuids.clone(), global: self.global }, (from, to)))
    }
}

/// Texts by names; numbers and truth values count as their texts.
pub(super) fn texts<'de, D: Deserializer<'de>>(
    deserializer: D,
) -> Result<Option<BTreeMap<String, String>>, D::Error> {
    let members = Option::<BTreeMap<String, Value>>::deserialize(deserializer)?;
    let text = |(name, value): (String, Value)| -> Result<(String, String), D::Error> {
        match value {
            Value::String(text) => Ok((name, text)),
            Value::Number(_) | Value::Bool(_) => Ok((name, value.to_string())),
            _ => Err(de::Error::custom(format!("the value of {name:?} is not text"))),
        }
    };
    members.map(|members| members.into_iter().map(text).collect()).transpose()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn change(json: &str) -> Option<AnnotationChange> {
        serde_json::from_str::<AnnotationBody>(json).ok().map(Into::into)
    }

    #[test]
    fn members_may_be_absent_or_have_another_type() {
        let full = change(
            r#"{"tsuid":"00","startTime":"5","endTime":6,"description":7,"notes":"n","custom":{"a":1,"b":"c"},"x":[]}"#,
        );
        let custom = BTreeMap::from([("a".to_owned(), "1".to_owned()), ("b".to_owned(), "c".to_owned())]);
        let expected = AnnotationChange {
            tsuid: "00".into(),
            start_time: 5,
            end_time: Some(6),
            description: Some("7".into()),
            notes: Some("n".into()),
            custom: Some(custom),
        };
        assert_eq!(full, Some(expected));
        let empty = change(r#"{"startTime":5,"endTime":0,"description":"","notes":null}"#).unwrap();
        assert!(!empty.is_change());
        for wrong in [r#"{"startTime":1.5}"#, r#"{"custom":[]}"#, r#"{"custom":{"a":{}}}"#, "7"] {
            assert_eq!(change(wrong), None, "{wrong}");
        }
    }

    #[test]
    fn parameters_name_an_annotation() {
        let of = |query| of_params(&Params::parse(query));
        let change = of("tsuid=00&start_time=1369141261000&end_time=2013/05/21-13:01:01&notes=n").unwrap();
        assert_eq!((change.start_time, change.end_time), (1_369_141_261_000, Some(1_369_141_261)));
        assert_eq!((change.tsuid.as_str(), change.notes.as_deref()), ("00", Some("n")));
        assert_eq!(of("tsuid=00").unwrap_err().message, "Missing start time");
        assert!(of("start_time=yesterday").is_err());
    }

    #[test]
    fn a_deletion_says_from_when_on_and_of_what() {
        let of = |query| DeletionBody::of_params(&Params::parse(query)).checked();
        let (deletion, times) = of("start_time=1&end_time=2&tsuids=00,%2001&global").unwrap();
        assert_eq!(deletion, AnnotationDeletion { tsuids: vec!["00".into(), "01".into()], global: true });
        assert_eq!(times, (1_000, 2_000));
        assert_eq!(of("global").unwrap_err().message, "Missing the start time value");
        assert!(of("start_time=1").unwrap_err().message.contains("TSUIDs"));
        assert!(of("start_time=3&end_time=2&global").is_err());
    }
}
