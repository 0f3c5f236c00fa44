//! GSN's push: this server registers at another one, which then sends each row of a virtual sensor to a route of this server.
//!
//! Invariants:
//! 1. The other server has its answer after the row is durable. A registration begins at the newest stored row, so no side needs a
//!    place of its own.
//! 2. An element that comes again replaces itself, or is left out.
//! 3. The registration is repeated. Another server that has forgotten it begins again where this server is.

mod duplicates;
mod element;

use hub::clock::system_now;
use model::Timestamp;
use tokio::time::{MissedTickBehavior, interval};
use virtual_sensors::{PushedElement, Remote};

use self::duplicates::NewestElements;
use super::multidata::basic;
use crate::limits::PUSH_RENEW_INTERVAL;
use crate::time::iso;
use crate::wrappers::failure::Failure;
use crate::wrappers::http::{Client, Request};
use crate::wrappers::sink::ElementSink;

/// Registers, and takes elements until the other server does not answer.
pub(super) async fn read(
    client: &Client,
    remote: &Remote,
    contact: &str,
    sink: &mut ElementSink,
) -> Result<(), Failure> {
    let start_ms = remote.start_ms.unwrap_or_else(|| sink.begun().millis());
    // All elements of the newest stored millisecond come again.
    let after_ms = sink.newest_time().await?.map_or(start_ms, |newest| newest.millis().saturating_sub(1));
    let mut received = NewestElements::after(after_ms);
    let pushes = sink.sensors().receive_pushes(sink.caller());
    let mut pushes = pushes.map_err(|error| Failure::while_("cannot take pushes", error))?;
    let mut turns = interval(PUSH_RENEW_INTERVAL);
    turns.set_missed_tick_behavior(MissedTickBehavior::Delay);
    // Rows are taken while a registration is under way: the other server may be slow to answer.
    let mut registering = None;
    loop {
        tokio::select! {
            _ = turns.tick(), if registering.is_none() => {
                let request = registration(remote, contact, pushes.number(), received.after_ms());
                registering = Some(Box::pin(client.send(request)));
            }
            answer = finished(&mut registering) => {
                registering = None;
                answer?.success(&remote.url)?;
                sink.connected();
            }
            pushed = pushes.next() => match pushed {
                Some(pushed) => take(pushed, &mut received, sink).await?,
                None => return Err(Failure::new("the server no longer accepts pushes")),
            },
        }
    }
}

/// The result of what is under way; never returns if nothing is.
async fn finished<F: Future + Unpin>(under_way: &mut Option<F>) -> F::Output {
    match under_way {
        Some(future) => future.await,
        None => std::future::pending().await,
    }
}

/// Stores an element, and then states that it is taken.
async fn take(
    pushed: PushedElement,
    received: &mut NewestElements,
    sink: &mut ElementSink,
) -> Result<(), Failure> {
    let text = pushed.data.as_str();
    if let Err(reason) = add(text, received, sink) {
        sink.refuse(&format!("a pushed element: {reason}"), text.as_bytes());
    }
    sink.store(text.as_bytes()).await?;
    pushed.taken();
    Ok(())
}

fn add(text: &str, received: &mut NewestElements, sink: &mut ElementSink) -> Result<(), String> {
    let Some(element) = element::read(text)? else { return Ok(()) };
    let limits = sink.hub().limits();
    let is_plausible = |ts| limits.plausible(system_now()).contains(ts);
    // A row with a time far in the future must not hide the rows after it.
    if !Timestamp::from_millis(element.ms).is_some_and(is_plausible) {
        return Err(format!(
            "the time {} ms is out of the range that the server takes (ingest.future_max_s)",
            element.ms
        ));
    }
    let Some(time) = received.time(element.ms, text) else { return Ok(()) };
    sink.element(time?, element.fields.iter().map(|(name, value)| (name.as_str(), value.as_ref())))
}

/// The request that registers, or states that this server still takes elements.
fn registration(remote: &Remote, contact: &str, number: u64, after_ms: i64) -> Request {
    let url = format!("{}/streaming/select%20*%20from%20{}/{}", remote.url, remote.sensor, iso(after_ms));
    let form = vec![("notification-id", number.to_string()), ("local-contact-point", contact.to_owned())];
    Request::PostForm { url, form, authorization: remote.login.as_ref().map(basic) }
}

#[cfg(test)]
mod tests {
    use virtual_sensors::RemoteInterface;

    use super::*;

    #[test]
    fn a_registration_has_the_number_the_contact_point_and_the_start() {
        let remote = Remote {
            url: "http://h:22001".to_owned(),
            interface: RemoteInterface::Multidata,
            sensor: "road".to_owned(),
            cafile: None,
            login: Some(("ann".to_owned(), "secret".to_owned())),
            start_ms: None,
            sampling_ms: 1,
            push_to: None,
        };
        let Request::PostForm { url, form, authorization } =
            registration(&remote, "http://me/streaming/", 7, 5)
        else {
            panic!("a form");
        };
        assert_eq!(url, "http://h:22001/streaming/select%20*%20from%20road/1970-01-01T00:00:00.005Z");
        assert_eq!(form[0], ("notification-id", "7".to_owned()));
        assert_eq!(form[1], ("local-contact-point", "http://me/streaming/".to_owned()));
        assert_eq!(authorization.unwrap(), "Basic YW5uOnNlY3JldA==");
    }
}
