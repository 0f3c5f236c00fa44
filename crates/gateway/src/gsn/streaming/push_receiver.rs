//! `PUT /streaming/`: a row that another server pushes to a virtual sensor of this one, which has registered there (`wrapper = "remote-push"`).

use std::sync::Arc;

use axum::extract::{Request, State};
use axum::http::StatusCode;
use virtual_sensors::PushAnswer;

use super::super::limits::FORM_BYTES_MAX;
use super::super::refusal::Refusal;
use crate::error::{ApiError, ErrorCode};
use crate::http::tools::bodies::Sender;
use crate::http::tools::request::{Params, read_body};
use crate::http::tools::state::HttpState;

/// Takes a row, and answers when it is durable: 200 asks for the next one, 429 for the same one again, and 300 for none any more.
pub(in super::super) async fn pushed(
    State(state): State<Arc<HttpState>>,
    request: Request,
) -> Result<StatusCode, Refusal> {
    // Nothing of a stranger is read on a server that does not accept pushes.
    if !state.sensors.takes_pushes() {
        return Err(unknown());
    }
    let body = read_body(request, FORM_BYTES_MAX, "", state.body_account(Sender::Anonymous)).await?;
    let form = std::str::from_utf8(&body.bytes);
    let params =
        Params::parse(form.map_err(|_| Refusal::argument("the form is not UTF-8 text; send it urlencoded"))?);
    let missing = |name| {
        Refusal::argument(format!(
            "the parameter {name} is missing or no number; a push has notification-id and data"
        ))
    };
    let number = params.text("notification-id").and_then(|text| text.trim().parse::<f64>().ok());
    let number = number.ok_or_else(|| missing("notification-id"))?;
    let data = params.text("data").ok_or_else(|| missing("data"))?.to_owned();
    match state.sensors.push_element(number, data).await {
        PushAnswer::Taken => Ok(StatusCode::OK),
        PushAnswer::Busy => Err(Refusal(ApiError::busy("the row is not stored yet; push it again"))),
        PushAnswer::Unknown => Err(unknown()),
    }
}

/// The answer that ends pushes.
fn unknown() -> Refusal {
    let (status, code) = (StatusCode::MULTIPLE_CHOICES, ErrorCode::NotFound);
    let reason = "no virtual sensor of this server has this notification-id";
    Refusal(ApiError::new(status, code, "push_unknown", reason))
}
