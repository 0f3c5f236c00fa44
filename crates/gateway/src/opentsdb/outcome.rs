//! The outcome of the points of a body, and the answer that says it.

use axum::http::StatusCode;
use axum::response::{IntoResponse, Response};

use super::answers::{json_answer, refusal};
use super::limits::NAMED_BYTES_MAX;
use crate::error::ApiError;
use crate::http::tools::error_response::RefusalLabel;
use crate::http::tools::request::Params;

/// The points of a body: how many there are and were refused, and the first refused ones by name.
#[derive(Debug, Default)]
pub(super) struct Outcome {
    /// Points of the body.
    pub(super) points: u32,
    failed: u32,
    /// Points that were not on the disk in time. The store may have them.
    timeouts: u32,
    /// Elements of the array `errors`, with commas.
    errors: String,
}

/// Which answer the sender wants.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Wanted {
    /// No body unless points are refused.
    Status,
    /// The numbers of stored and refused points.
    Summary,
    /// The numbers, and the refused points with the reasons.
    Details,
    /// The same as a success, whatever is refused: HiTSDB's `ignoreErrors`.
    IgnoredErrors,
}

impl Wanted {
    /// The parameters count whatever their values are. `sync` changes nothing: every answer waits for the disk.
    pub(super) fn of(params: &Params) -> Self {
        if params.has("ignoreErrors") {
            return Self::IgnoredErrors;
        }
        match (params.has("details"), params.has("summary")) {
            (true, _) => Self::Details,
            (false, true) => Self::Summary,
            (false, false) => Self::Status,
        }
    }
}

impl Outcome {
    /// Adds a refused point: its JSON and the reason.
    pub(super) fn refuse(&mut self, point: &str, reason: &str) {
        self.failed += 1;
        self.name(point, reason);
    }

    /// Adds a point that was not on the disk in time, in OpenTSDB's words.
    pub(super) fn time_out(&mut self, point: &str) {
        self.timeouts += 1;
        self.name(point, "Write timedout");
    }

    fn name(&mut self, point: &str, reason: &str) {
        if self.errors.len() + point.len() > NAMED_BYTES_MAX {
            return;
        }
        let comma = if self.errors.is_empty() { "" } else { "," };
        let reason = serde_json::Value::from(reason);
        self.errors += &format!("{comma}{{\"datapoint\":{point},\"error\":{reason}}}");
    }

    pub(super) fn answer(&self, wanted: Wanted) -> Response {
        let (failed, timeouts) = (self.failed, self.timeouts);
        let success = self.points - failed - timeouts;
        let status = if success == self.points { StatusCode::OK } else { StatusCode::BAD_REQUEST };
        let mut numbers = format!("\"failed\":{failed},\"success\":{success}");
        if timeouts > 0 {
            numbers += &format!(",\"timeouts\":{timeouts}");
        }
        let mut response = match wanted {
            Wanted::Status | Wanted::IgnoredErrors if timeouts > 0 => refusal(&ApiError::argument(format!(
                "{timeouts} data points were not on the disk within sync_timeout; some of them may be stored, send them again"
            ))),
            Wanted::Status if failed == 0 => StatusCode::NO_CONTENT.into_response(),
            Wanted::Status => refusal(&ApiError::argument(format!(
                "{failed} data points are not stored, {success} are; append \"details\" to the request to see the reasons"
            ))),
            Wanted::Summary => json_answer(status, format!("{{{numbers}}}")),
            Wanted::Details => json_answer(status, format!("{{{numbers},\"errors\":[{}]}}", self.errors)),
            Wanted::IgnoredErrors => {
                json_answer(StatusCode::OK, format!("{{{numbers},\"ignoredErrors\":[{}]}}", self.errors))
            }
        };
        match (failed, timeouts) {
            (0, 0) => {}
            (0, _) => drop(response.extensions_mut().insert(RefusalLabel("timeout"))),
            _ => drop(response.extensions_mut().insert(RefusalLabel("point"))),
        }
        response
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn parameters_count_by_their_presence() {
        let wanted = |query| Wanted::of(&Params::parse(query));
        assert_eq!(wanted(""), Wanted::Status);
        assert_eq!(wanted("sync"), Wanted::Status);
        assert_eq!(wanted("summary"), Wanted::Summary);
        assert_eq!(wanted("summary=false&details%20"), Wanted::Details);
        assert_eq!(wanted("sync&details="), Wanted::Details);
        assert_eq!(wanted("details&ignoreErrors"), Wanted::IgnoredErrors);
    }

    #[test]
    fn refused_points_are_named_up_to_a_bound_and_all_counted() {
        let mut outcome = Outcome { points: 3, ..Outcome::default() };
        assert_eq!(outcome.answer(Wanted::Status).status(), StatusCode::NO_CONTENT);
        assert_eq!(outcome.answer(Wanted::Details).status(), StatusCode::OK);
        outcome.refuse("{\"metric\":1}", "a \"b\"");
        outcome.refuse(&" ".repeat(NAMED_BYTES_MAX), "too long");
        assert_eq!(outcome.errors, r#"{"datapoint":{"metric":1},"error":"a \"b\""}"#);
        assert_eq!((outcome.failed, outcome.points), (2, 3));
        assert_eq!(outcome.answer(Wanted::Summary).status(), StatusCode::BAD_REQUEST);
        assert_eq!(outcome.answer(Wanted::IgnoredErrors).status(), StatusCode::OK);
    }

    #[test]
    fn points_that_are_late_are_no_success() {
        let mut outcome = Outcome { points: 1, ..Outcome::default() };
        outcome.time_out("{}");
        for wanted in [Wanted::Status, Wanted::Summary, Wanted::Details, Wanted::IgnoredErrors] {
            assert_eq!(outcome.answer(wanted).status(), StatusCode::BAD_REQUEST, "{wanted:?}");
        }
    }
}
