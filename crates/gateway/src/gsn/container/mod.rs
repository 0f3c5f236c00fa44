//! `/gsn`: the sensors, their structures and their newest rows, by the number `REQUEST`.

mod document;
mod gml;
mod list;
mod one_shot;
mod structure;
#[cfg(test)]
mod tests;

use std::sync::Arc;

use axum::extract::State;
use axum::response::Response;

use self::document::{document, named};
use super::refusal::Refusal;
use super::request_context::RequestContext;
use crate::http::tools::state::HttpState;

pub(super) use self::list::push_sensor;

/// `GET /gsn` and `POST /gsn`.
pub(super) async fn answer(
    State(state): State<Arc<HttpState>>,
    context: RequestContext,
) -> Result<Response, Refusal> {
    let request = context.params.text("REQUEST").unwrap_or("0").trim().to_owned();
    match request.as_str() {
        "0" => list::list(&state, context).await,
        "113" => Ok(document(structure::structure(&named(&state, &context)?))),
        "114" => one_shot::rows(&state, context, false).await,
        "115" => Ok(document(structure::addressing(&named(&state, &context)?))),
        "116" => one_shot::rows(&state, context, true).await,
        "901" => gml::features(&state, context).await,
        other => Err(Refusal::argument(format!(
            "The requested operation is not supported: REQUEST is {other:?}; it must be 0, 113, 114, 115, 116 or 901"
        ))),
    }
}
