//! GSN's push: a client registers where it listens, and the server sends it an element after the other.
//!
//! `POST /streaming/{query}` registers; the same request again says that the client lives. `contact.rs` says where the server may send to, `registry.rs`
//! has the subscriptions and their limits, `delivery.rs` sends an element.

mod contact;
mod delivery;
mod registry;

use std::sync::Arc;
use std::time::Duration;

use axum::Extension;
use axum::extract::State;
use axum::http::{HeaderMap, HeaderValue, header};
use axum::response::{IntoResponse, Response};
use hub::clock::system_now;
use model::Timestamp;
use tokio::time::{Instant, sleep};

use self::contact::ContactPoint;
use self::delivery::{Delivery, Sent};
use self::registry::{Pushes, Subscription};
use super::super::limits::{PUSH_RETRY_PAUSE, PUSH_RETRY_PAUSE_MAX, PUSH_RETRY_TIMEOUT};
use super::super::live_rows::Login;
use super::super::refusal::Refusal;
use super::super::request_context::RequestContext;
use super::row_pages::RowPages;
use super::start_of;
use super::stream_path::StreamPath;
use super::text::structure;
use crate::acceptor::Stop;
use crate::http::tools::connection::Peer;
use crate::http::tools::route_list::Routes;
use crate::http::tools::state::HttpState;

/// The metrics label of a subscription whose client does not answer.
const UNREACHABLE: &str = "push_unreachable";

/// The routes of this folder. They share the subscriptions of the door.
pub(in super::super) fn routes() -> Routes {
    let routes = Routes::default()
        .post("/streaming/{query}", push)
        .post("/streaming/{query}/{start}", push_from_start);
    routes.sharing(Arc::<Pushes>::default())
}

/// `POST /streaming/{query}`: rows from now on.
async fn push(
    State(state): State<Arc<HttpState>>,
    Extension(pushes): Extension<Arc<Pushes>>,
    StreamPath { statement, .. }: StreamPath,
    Peer(peer): Peer,
    headers: HeaderMap,
    context: RequestContext,
) -> Result<Response, Refusal> {
    register(state, &pushes, &statement, system_now(), Login { params: context.params, headers, peer }).await
}

/// `POST /streaming/{query}/{start}`: rows later than a time.
async fn push_from_start(
    State(state): State<Arc<HttpState>>,
    Extension(pushes): Extension<Arc<Pushes>>,
    StreamPath { statement, start }: StreamPath,
    Peer(peer): Peer,
    headers: HeaderMap,
    context: RequestContext,
) -> Result<Response, Refusal> {
    register(state, &pushes, &statement, start_of(&start)?, Login { params: context.params, headers, peer })
        .await
}

/// Registers a client, and answers with the structure of the elements. A client that is registered gets an empty answer.
async fn register(
    state: Arc<HttpState>,
    pushes: &Arc<Pushes>,
    query: &str,
    after: Timestamp,
    login: Login,
) -> Result<Response, Refusal> {
    let peer = login.peer.map(|peer| peer.ip());
    let id = notification_id(login.params.text("notification-id"))?;
    let missing = || {
        Refusal::argument(
            "the parameter local-contact-point is missing: the URL at which the client takes elements",
        )
    };
    let contact = ContactPoint::parse(login.params.text("local-contact-point").ok_or_else(missing)?)?;
    // A stranger learns nothing, and causes no look-up of a name.
    login.caller(&state).await?;
    contact.address(peer, &state.options.gsn_push_targets).await.map_err(Refusal::argument)?;
    let following = RowPages::open(Arc::clone(&state), query, after, login).await?;
    let Some(subscription) = pushes.register(&id, &contact, peer)? else {
        return Ok(answer(String::new()));
    };
    let text = structure(following.selection());
    tokio::spawn(run(state, following, Delivery::new(contact, id, peer), subscription));
    Ok(answer(text))
}

fn answer(text: String) -> Response {
    ([(header::CONTENT_TYPE, HeaderValue::from_static("text/xml; charset=utf-8"))], text).into_response()
}

/// The number of a subscription, which the client has chosen.
fn notification_id(text: Option<&str>) -> Result<String, Refusal> {
    let id = text.map(str::trim).filter(|text| text.parse().is_ok_and(f64::is_finite));
    id.map(str::to_owned).ok_or_else(|| {
        Refusal::argument(
            "the parameter notification-id must be a number such as 0.25, which the client has chosen",
        )
    })
}

/// Sends all elements, until the client or the server ends it.
async fn run(
    state: Arc<HttpState>,
    mut following: RowPages,
    mut delivery: Delivery,
    subscription: Subscription,
) {
    let mut stop = state.stop.clone();
    let reason = tokio::select! {
        reason = send_all(&state, &mut following, &mut delivery) => reason,
        () = Stop::Drain.reached(&mut stop) => "the server stops".to_owned(),
    };
    tracing::info!(%reason, contact = %delivery.contact(), "a push of GSN has ended");
    drop(subscription);
}

/// Sends elements. Returns the reason of the end.
async fn send_all(state: &HttpState, following: &mut RowPages, delivery: &mut Delivery) -> String {
    loop {
        let page = match following.page().await {
            Ok(page) => page,
            Err(reason) => return reason,
        };
        for (element, micros) in page.elements() {
            match send(state, delivery, element).await {
                Ok(Sent::Taken) => following.taken(micros),
                Ok(Sent::Ended(status)) => return format!("the client answered with status {status}"),
                Err(error) => {
                    state.refused(UNREACHABLE);
                    let seconds = PUSH_RETRY_TIMEOUT.as_secs();
                    return format!("the client did not answer for {seconds} s: {error}");
                }
            }
        }
        if page.is_empty()
            && let Err(reason) = following.changed().await
        {
            return reason;
        }
    }
}

/// Sends an element, and tries again while the client does not answer.
async fn send(state: &HttpState, delivery: &mut Delivery, element: &[u8]) -> std::io::Result<Sent> {
    let deadline = Instant::now() + PUSH_RETRY_TIMEOUT;
    let mut pause: Duration = PUSH_RETRY_PAUSE;
    loop {
        let error = match delivery.send(element, &state.options.gsn_push_targets).await {
            Ok(sent) => return Ok(sent),
            Err(error) => error,
        };
        if Instant::now() + pause >= deadline {
            return Err(error);
        }
        sleep(pause).await;
        pause = (pause * 2).min(PUSH_RETRY_PAUSE_MAX);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_notification_has_a_number() {
        assert_eq!(notification_id(Some(" 0.123E-4 ")).unwrap(), "0.123E-4");
        for text in [None, Some(""), Some("NaN"), Some("a")] {
            assert_eq!(notification_id(text).unwrap_err().0.status, 400, "{text:?}");
        }
    }
}
