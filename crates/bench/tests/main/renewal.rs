//! Tests of the event engine with connections that end during the load: closed in order, lost, one per operation, and a
//! server that is gone.

use std::io::{Read, Write};
use std::net::{Shutdown, SocketAddr, TcpListener};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::thread;
use std::time::Duration;

use load::engine::{Ended, Load, Outcome, Shared, event};
use load::protocol::{
    Answer, AnswerStatus, Completion, DueTime, Lifetime, Opening, Protocol, Received, Started,
};
use load::schedule::Arrivals;

use crate::plans;

/// Sends `m`. The answer is `m`, and `e` announces the end of the connection.
struct Letters {
    lifetime: Lifetime,
    window: usize,
    messages: u64,
}

#[derive(Debug, Default)]
struct Client {
    /// Messages that were begun for the first time.
    begun: u64,
    /// Messages that were begun on this connection and not answered.
    pending: u64,
    /// Messages to begin again.
    again: u64,
    repeated: u64,
}

impl Protocol for Letters {
    type Session = Client;

    fn session(&self, _number: u32) -> Client {
        Client::default()
    }

    fn lifetime(&self, _session: &Client) -> Lifetime {
        self.lifetime
    }

    fn open(&self, session: &mut Client, _out: &mut Vec<u8>) -> Opening {
        assert_eq!(session.pending, 0, "what was on the last connection is to begin again or has failed");
        Opening::Ready
    }

    fn window(&self, _session: &Client) -> usize {
        self.window
    }

    fn start(&self, session: &mut Client, _due: DueTime, out: &mut Vec<u8>) -> Option<Started> {
        if session.again > 0 {
            session.again -= 1;
            session.repeated += 1;
        } else if session.begun < self.messages {
            session.begun += 1;
        } else {
            return None;
        }
        session.pending += 1;
        out.push(b'm');
        Some(Started { class: 0, answer: Answer::InOrder })
    }

    fn receive(
        &self,
        session: &mut Client,
        bytes: &[u8],
        _out: &mut Vec<u8>,
        done: &mut impl FnMut(Completion<'_>),
    ) -> Result<Received, String> {
        for byte in bytes {
            if *byte == b'm' {
                session.pending -= 1;
                done(Completion { answer: Answer::InOrder, status: AnswerStatus::Good, bytes: 1 });
            }
            if *byte == b'e' || self.lifetime == Lifetime::OnDemand {
                session.again += std::mem::take(&mut session.pending);
                return Ok(Received { used: bytes.len(), ready: false, over: true });
            }
        }
        Ok(Received { used: bytes.len(), ready: false, over: false })
    }

    fn lost(&self, session: &mut Client) {
        (session.pending, session.again) = (0, 0);
    }
}

/// A server that answers a number of letters per connection, sends `last` and closes it. It accepts a number of
/// connections.
fn server(answers: usize, last: &'static [u8], connections: usize) -> (SocketAddr, Arc<AtomicU64>) {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let address = listener.local_addr().unwrap();
    let accepted = Arc::new(AtomicU64::new(0));
    let counter = Arc::clone(&accepted);
    thread::spawn(move || {
        for mut stream in listener.incoming().take(connections).flatten() {
            counter.fetch_add(1, Ordering::Relaxed);
            thread::spawn(move || {
                let mut letter = [0];
                for _ in 0..answers {
                    if !matches!(stream.read(&mut letter), Ok(1)) || stream.write_all(&letter).is_err() {
                        return;
                    }
                }
                // The connection breaks after a letter has arrived, so that a message is known to be in flight.
                if last.is_empty() {
                    let _ = stream.read(&mut letter);
                }
                let _ = stream.write_all(last);
                if !last.is_empty() {
                    // Servers do this: closing with unread letters would reset the connection and lose the answers.
                    let _ = stream.shutdown(Shutdown::Write);
                    while matches!(stream.read(&mut letter), Ok(1..)) {}
                }
            });
        }
    });
    (address, accepted)
}

fn run(letters: &Letters, target: SocketAddr, load: Load, duration: Duration) -> Outcome<Client> {
    let plan = plans::plan(target, 1, load, duration);
    event::run(letters, &plan, &Shared::default(), |_| ()).unwrap()
}

const LONG: Duration = Duration::from_secs(300);

#[test]
fn what_a_connection_did_not_answer_before_its_end_is_begun_again_on_the_next() {
    let (address, accepted) = server(3, b"e", usize::MAX);
    let letters = Letters { lifetime: Lifetime::Renewed, window: 4, messages: 40 };
    let outcome = run(&letters, address, Load::Closed { window: 4, pause: Duration::ZERO }, LONG);
    let counts = outcome.segments[0].recorder.total().counts;
    assert_eq!((counts.planned, counts.sent, counts.completed, counts.errors_total()), (40, 40, 40, 0));
    let client = &outcome.sessions[0];
    assert!(client.begun == 40 && client.repeated > 0, "{client:?}");
    assert!(accepted.load(Ordering::Relaxed) >= 40 / 3);
}

#[test]
fn what_is_lost_with_its_connection_has_failed_and_the_others_continue() {
    let (address, _) = server(3, b"", usize::MAX);
    let letters = Letters { lifetime: Lifetime::Renewed, window: 1, messages: 20 };
    let outcome = run(&letters, address, Load::Closed { window: 1, pause: Duration::ZERO }, LONG);
    let counts = outcome.segments[0].recorder.total().counts;
    assert_eq!((counts.planned, counts.completed, counts.failed), (20, 15, 5), "{counts:?}");
    assert_eq!(outcome.segments[0].ended, Ended::Finished);
    assert!(outcome.segments[0].first_loss_s.is_some());
}

#[test]
fn a_connection_for_each_operation_is_opened_when_it_is_due() {
    let (address, accepted) = server(1, b"", usize::MAX);
    let letters = Letters { lifetime: Lifetime::OnDemand, window: 1, messages: u64::MAX };
    let load = Load::Open { rate: 100.0, arrivals: Arrivals::Fixed, timer_us: 0, seed: 1 };
    let outcome = run(&letters, address, load, Duration::from_millis(400));
    let total = outcome.segments[0].recorder.total();
    let counts = &total.counts;
    assert_eq!((counts.planned, counts.completed, counts.errors_total()), (40, 40, 0), "{counts:?}");
    assert_eq!(accepted.load(Ordering::Relaxed), 40);

    let letters = Letters { messages: 40, ..letters };
    let outcome = run(&letters, address, Load::Closed { window: 1, pause: Duration::ZERO }, LONG);
    let total = outcome.segments[0].recorder.total();
    assert_eq!((total.counts.planned, total.counts.completed), (40, 40), "{:?}", total.counts);
    // In a closed loop an operation is due, and counts as sent, when its connection is begun: both times include the
    // handshake.
    let clocks = &total.clocks;
    for q in [0.0, 0.5, 1.0] {
        assert_eq!(clocks.response.quantile_us(q), clocks.service.quantile_us(q));
    }
    assert!(clocks.lag.quantile_us(1.0) <= 1);
}

#[test]
fn a_server_that_listens_no_more_is_gone() {
    let (address, _) = server(1, b"", 2);
    let letters = Letters { lifetime: Lifetime::OnDemand, window: 1, messages: u64::MAX };
    let outcome = run(&letters, address, Load::Closed { window: 1, pause: Duration::ZERO }, LONG);
    let segment = &outcome.segments[0];
    assert_eq!((segment.ended, segment.recorder.total().counts.completed), (Ended::AllLost, 2));
    let errors = &segment.recorder.unclassed().errors;
    assert!(errors.keys().any(|what| what.contains("refused")), "{errors:?}");
}
