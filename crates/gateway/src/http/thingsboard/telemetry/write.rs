//! Writes values for callers with the permission. Paths, parameters and answers are ThingsBoard's; the body is that of the
//! device API.

use std::sync::Arc;

use axum::extract::{Request, State};
use hub::caller::Action;
use hub::{Message, SeriesOwner};

use super::entity::series_owner;
use crate::error::ApiError;
use crate::http::tools::connection::Peer;
use crate::http::tools::messages::{BODY_SETTING, Stored, store_message};
use crate::http::tools::request::{PathOf, read_body};
use crate::http::tools::route_list::Routes;
use crate::http::tools::session::Session;
use crate::http::tools::state::HttpState;

/// The topic in dead letters of these requests.
const TOPIC: &str = "/api/plugins/telemetry/{entityType}/{entityId}/timeseries/{scope}";

/// The routes of this file.
pub(crate) fn routes() -> Routes {
    Routes::default()
        .post("/api/plugins/telemetry/{kind}/{id}/timeseries/{scope}", write)
        .post("/api/plugins/telemetry/{kind}/{id}/timeseries/{scope}/{ttl}", write_with_ttl)
}

/// `POST .../timeseries/{scope}`: 200 once the values are as durable as the device's profile requires. Any scope will do, as
/// in ThingsBoard.
async fn write(
    State(state): State<Arc<HttpState>>,
    session: Session,
    PathOf((kind, id, _scope)): PathOf<(String, String, String)>,
    Peer(peer): Peer,
    request: Request,
) -> Result<(), ApiError> {
    let owner = owner(&state, &session, &kind, &id);
    store(&state, &session, owner, Peer(peer), request).await
}

/// `POST .../timeseries/{scope}/{ttl}`. Values live as long as their table keeps them, so the only time to live is 0.
async fn write_with_ttl(
    State(state): State<Arc<HttpState>>,
    session: Session,
    PathOf((kind, id, _scope, ttl)): PathOf<(String, String, String, String)>,
    Peer(peer): Peer,
    request: Request,
) -> Result<(), ApiError> {
    let owner = check_ttl(&ttl).and_then(|()| owner(&state, &session, &kind, &id));
    store(&state, &session, owner, Peer(peer), request).await
}

async fn store(
    state: &HttpState,
    session: &Session,
    owner: Result<SeriesOwner<'static>, ApiError>,
    Peer(peer): Peer,
    request: Request,
) -> Result<(), ApiError> {
    let owner = owner?;
    let limit = state.options.body_bytes_max;
    let body = read_body(request, limit, BODY_SETTING, session.body_account(state)).await?;
    let sent = Message { owner, door: hub::Door::Http, topic: TOPIC, payload: &body.bytes };
    match store_message(&state.hub, &sent, peer).await? {
        Stored::Rows => Ok(()),
        Stored::Nothing => Err(ApiError::argument(
            "the body has no values; send {\"key\": value}, {\"ts\": milliseconds, \"values\": {...}} or an array of them",
        )),
    }
}

fn owner(
    state: &HttpState,
    session: &Session,
    kind: &str,
    id: &str,
) -> Result<SeriesOwner<'static>, ApiError> {
    session.check(Action::Write)?;
    series_owner(state, session, kind, id)
}

fn check_ttl(text: &str) -> Result<(), ApiError> {
    match text.parse::<u64>() {
        Ok(0) => Ok(()),
        Ok(seconds) => Err(ApiError::argument(format!(
            "a time to live of {seconds} s does not apply: values live as long as their table keeps them (`tacho table set`); use 0 or leave it out"
        ))),
        Err(_) => {
            Err(ApiError::argument(format!("the time to live is {text:?}; it must be a number of seconds")))
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_only_time_to_live_is_zero() {
        assert_eq!(check_ttl("0"), Ok(()));
        for (text, part) in
            [("60", "60 s does not apply"), ("-1", "number of seconds"), ("x", "number of seconds")]
        {
            let refusal = check_ttl(text).unwrap_err();
            assert!(refusal.message.contains(part), "{}", refusal.message);
        }
    }
}
