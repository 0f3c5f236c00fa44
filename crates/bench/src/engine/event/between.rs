//! Tests of a worker's turn: what comes due while answers are read.

use std::io::Write as _;
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::sync::{Mutex, mpsc};
use std::time::Duration;

use super::connection::Phase;
use super::feed::Feed;
use super::poller::Interest;
use super::worker::Worker;
use crate::driver::{Answer, Completion, Judged, Moment, Opening, Protocol, Received, Started};
use crate::engine::{Connect, Plan, Shared};

/// Writes down what is done: `o` for a connection that is opened, `s` for an operation that is sent, `r` for an answer that is
/// read.
#[derive(Default)]
struct Diary(Mutex<String>);

impl Protocol for Diary {
    type Session = ();

    fn session(&self, _number: u32) {}

    fn open(&self, (): &mut (), _out: &mut Vec<u8>) -> Opening {
        self.0.lock().unwrap().push('o');
        Opening::Ready
    }

    fn window(&self, (): &()) -> usize {
        usize::MAX
    }

    fn start(&self, (): &mut (), _due: Moment, out: &mut Vec<u8>) -> Option<Started> {
        self.0.lock().unwrap().push('s');
        out.push(b'm');
        Some(Started { class: 0, answer: Answer::InOrder })
    }

    fn receive(
        &self,
        (): &mut (),
        bytes: &[u8],
        _out: &mut Vec<u8>,
        done: &mut impl FnMut(Completion<'_>),
    ) -> Result<Received, String> {
        self.0.lock().unwrap().push('r');
        done(Completion { answer: Answer::InOrder, judged: Judged::Good, bytes: 1 });
        Ok(Received { used: bytes.len(), ..Received::default() })
    }
}

/// Two open connections to each of which something was said, and one that rests between two connections.
fn plan(target: SocketAddr) -> Plan {
    Plan {
        target,
        sources: Vec::new(),
        groups: vec![3],
        classes: vec!["letter".to_owned()],
        threads: 1,
        part: (0, 1),
        open_rate: None,
        connect: Connect::default(),
        tick_us: 0,
        silence: Duration::ZERO,
        segments: Vec::new(),
    }
}

/// What one turn does when answers have come on connections 0 and 1, and an operation is due on `due`.
fn turn_with(due: u32) -> String {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let plan = plan(listener.local_addr().unwrap());
    let (diary, shared) = (Diary::default(), Shared::default());
    let mut worker = Worker::new(&diary, &plan, &shared, 0, &vec![0..3], mpsc::channel().0).unwrap();
    let servers = [0, 1].map(|index| {
        let stream = TcpStream::connect(plan.target).unwrap();
        let mut server = listener.accept().unwrap().0;
        server.write_all(b"m").unwrap();
        worker.poller.add(&stream, index, Interest::Read).unwrap();
        let connection = &mut worker.connections[index as usize];
        connection.begin(stream, false, Vec::new(), 0);
        connection.wants_write = false;
        connection.open(usize::MAX);
        server
    });
    worker.connections[2].phase = Phase::Resting;
    worker.feeds = vec![Feed::Sample { indices: vec![due], next: 0, gap_ns: 0 }];
    worker.due_until_ns = u64::MAX - 1;
    worker.due_ns = 0;
    worker.turn(1_000_000_000).unwrap();
    drop((worker, servers));
    diary.0.into_inner().unwrap()
}

#[test]
fn what_comes_due_while_answers_are_read_does_not_wait_for_all_of_them() {
    assert_eq!(turn_with(1), "rsr");
}

#[test]
fn a_connection_is_not_opened_again_amid_the_events_of_a_turn() {
    assert_eq!(turn_with(2), "rro");
}
