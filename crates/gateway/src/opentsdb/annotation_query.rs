//! The annotations that a query shows.

use std::fmt::Write;
use std::sync::Arc;

use hub::Hub;
use hub::annotations::limits::ANNOTATIONS_READ_MAX;
use hub::annotations::{Annotation, AnnotationError};
use hub::caller::Caller;
use serde_json::json;
use timeseries::opentsdb::{Query, QueryError, tsuid};

use super::query_request::AnswerForm;
use crate::http::tools::state::HttpState;

/// The annotations of the time of a query.
pub(super) struct QueryNotes {
    hub: Arc<Hub>,
    caller: Caller,
    form: AnswerForm,
    /// The first and the last millisecond.
    times: (i64, i64),
}

impl QueryNotes {
    pub(super) fn new(state: &HttpState, caller: &Caller, query: &Query, form: AnswerForm) -> Self {
        let (hub, caller) = (Arc::clone(&state.hub), caller.clone());
        Self { hub, caller, form, times: (query.start, query.end) }
    }

    /// The members of each answer with global annotations: JSON text, empty if there are none or they are not wanted.
    ///
    /// # Errors
    /// They cannot be read, or are too many.
    pub(super) fn global(&self) -> Result<String, QueryError> {
        if !self.form.global_annotations {
            return Ok(String::new());
        }
        Ok(member("globalAnnotations", &self.read("")?))
    }

    /// Whether any series has annotations that are wanted. Then it is worth looking for those of each series.
    ///
    /// # Errors
    /// They cannot be read.
    pub(super) fn annotates_series(&self) -> Result<bool, QueryError> {
        if self.form.no_annotations {
            return Ok(false);
        }
        let database = self.hub.own_database(&self.caller);
        self.hub.annotates_series(&self.caller, &database).map_err(unread)
    }

    /// The member of an answer with the annotations of its series, oldest first.
    ///
    /// # Errors
    /// They cannot be read, or are too many.
    pub(super) fn of_series(
        &self,
        metric: &str,
        series: &[Vec<(String, String)>],
    ) -> Result<String, QueryError> {
        let mut found = Vec::new();
        for tags in series {
            found.extend(self.read(&tsuid(metric, tags))?);
            if found.len() > ANNOTATIONS_READ_MAX {
                return Err(QueryError::OverLimit {
                    what: "annotations",
                    limit: ANNOTATIONS_READ_MAX as u64,
                });
            }
        }
        found.sort_by_key(|annotation| annotation.start_time);
        Ok(member("annotations", &found))
    }

    fn read(&self, tsuid: &str) -> Result<Vec<Annotation>, QueryError> {
        let database = self.hub.own_database(&self.caller);
        let (from, to) = self.times;
        self.hub.annotations(&self.caller, &database, tsuid, from..=to).map_err(unread)
    }
}

fn unread(error: AnnotationError) -> QueryError {
    QueryError::Invalid(format!("The annotations cannot be read: {error}"))
}

/// A member of an answer; nothing for no annotations, as in OpenTSDB.
fn member(name: &str, annotations: &[Annotation]) -> String {
    let mut text = String::new();
    if !annotations.is_empty() {
        // Writing to a text does not fail.
        let _ = write!(text, ",\"{name}\":{}", json!(annotations));
    }
    text
}
