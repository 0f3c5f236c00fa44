//! Tests of one poll of a worker: operations that come due while it reads answers, and its waits.

use std::io::Write as _;
use std::iter;
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::sync::{Mutex, mpsc};
use std::thread;
use std::time::{Duration, Instant};

use super::connection::Phase;
use super::feed::Feed;
use super::poller::Interest;
use super::polling::LOOK_NS_MAX;
use super::worker::Worker;
use crate::engine::{AfterReopen, Close, Connect, Load, Plan, ReopenTrigger, Segment, Shared};
use crate::limits::SENDS_PER_POLL;
use crate::protocol::{Answer, AnswerStatus, Completion, DueTime, Opening, Protocol, Received, Started};

/// The distance of the two operations of a load: long enough for any machine.
const GAP: Duration = Duration::from_millis(500);

/// A protocol that records the order of events: `o` for an opened connection, `s` for a sent operation, `r` for an
/// answer that was read. Reading takes `reading`.
#[derive(Default)]
struct Diary {
    done: Mutex<String>,
    reading: Duration,
}

impl Diary {
    fn note(&self, what: char) {
        self.done.lock().unwrap().push(what);
    }
}

impl Protocol for Diary {
    type Session = ();

    fn session(&self, _number: u32) {}

    fn open(&self, (): &mut (), _out: &mut Vec<u8>) -> Opening {
        self.note('o');
        Opening::Ready
    }

    fn window(&self, (): &()) -> usize {
        usize::MAX
    }

    fn start(&self, (): &mut (), _due: DueTime, out: &mut Vec<u8>) -> Option<Started> {
        self.note('s');
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
        thread::sleep(self.reading);
        self.note('r');
        done(Completion { answer: Answer::InOrder, status: AnswerStatus::Good, bytes: 1 });
        Ok(Received { used: bytes.len(), ..Received::default() })
    }
}

/// Three connections, with ticks if `tick_us` is above zero.
fn plan(target: SocketAddr, tick_us: u32) -> Plan {
    Plan {
        target,
        elsewhere: Vec::new(),
        tls: None,
        sources: Vec::new(),
        groups: vec![3],
        classes: vec!["letter".to_owned()],
        threads: 1,
        part: (0, 1),
        open_rate: None,
        connect: Connect::default(),
        tick_us,
        busy_poll_us: 0,
        silence: Duration::from_secs(60),
        segments: Vec::new(),
    }
}

/// The events of two open connections, each with an answer to read, and one connection between two lifetimes.
fn diary_of(reading: Duration, tick_us: u32, run: impl FnOnce(&mut Worker<'_, Diary>)) -> String {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let plan = plan(listener.local_addr().unwrap(), tick_us);
    let (diary, shared) = (Diary { reading, ..Diary::default() }, Shared::default());
    let share = iter::once(0..3).collect();
    let mut worker = Worker::new(&diary, &plan, &shared, 0, &share, mpsc::channel().0).unwrap();
    let servers = [0, 1].map(|index| {
        let stream = TcpStream::connect(plan.target).unwrap();
        let mut server = listener.accept().unwrap().0;
        server.write_all(b"m").unwrap();
        worker.poller.add(&stream, index, Interest::Read).unwrap();
        let connection = &mut worker.connections[index as usize];
        connection.begin(stream, None, false, Vec::new(), 0);
        connection.wants_write = false;
        connection.open(usize::MAX);
        server
    });
    worker.connections[2].phase = Phase::BetweenConnections;
    run(&mut worker);
    drop((worker, servers));
    diary.done.into_inner().unwrap()
}

/// The events of the operations of a sample that are due one nanosecond apart: the first before the poll, the others
/// during it.
fn poll_with(indices: &[u32], also: impl FnOnce(&mut Worker<'_, Diary>)) -> String {
    diary_of(Duration::ZERO, 0, |worker| {
        worker.feeds = vec![Feed::Sample { indices: indices.to_vec(), next: 0, gap_ns: 1 }];
        worker.due_until_ns = u64::MAX - 1;
        worker.enqueue_due(0);
        worker.send_dirty().unwrap();
        also(worker);
    })
}

/// The events of a load of two operations. The second comes due while the worker reads the answer to the first.
fn load_with(tick_us: u32, duration: Duration) -> String {
    let load = Load::Sample { every: 1, over: 2 * GAP };
    let segment = Segment {
        name: "run".to_owned(),
        loads: vec![load],
        warmup: Duration::ZERO,
        duration,
        drain: Duration::ZERO,
    };
    diary_of(GAP, tick_us, |worker| {
        worker.epoch = Instant::now();
        worker.load(&segment).unwrap();
    })
}

#[test]
fn what_comes_due_while_answers_are_read_does_not_wait_for_all_of_them() {
    assert_eq!(poll_with(&[0, 1], |worker| worker.poll_once(0).unwrap()), "srsr");
    assert_eq!(load_with(0, 4 * GAP), "srsr");
}

#[test]
fn what_follows_ticks_waits_for_the_next() {
    assert_eq!(load_with(1_000, 3 * GAP), "srrs");
}

#[test]
fn nothing_is_sent_that_is_due_after_the_end_of_its_load() {
    assert_eq!(load_with(0, GAP / 2), "srr");
}

#[test]
fn a_connection_is_not_opened_again_within_the_events_of_a_pass() {
    assert_eq!(poll_with(&[0, 2], |worker| worker.poll_once(0).unwrap()), "srro");
    let load =
        Load::Reopen { when: ReopenTrigger::Once, close: Close::Fin, class: 0, then: AfterReopen::Keep };
    diary_of(Duration::ZERO, 0, |worker| {
        worker.feeds = vec![Feed::new(load, &(0..3), 3, 0, |_| true)];
        worker.due_until_ns = u64::MAX - 1;
        let mut left = 9;
        worker.enqueue_operations(0, &mut left);
        assert_eq!((left, worker.due_ns), (9, u64::MAX));
    });
}

#[test]
fn an_operation_without_room_in_the_window_is_not_held_before_all_answers_are_read() {
    let done = poll_with(&[0, 1], |worker| {
        worker.connections[1].window = 0;
        worker.poll_once(0).unwrap();
        assert_eq!(worker.connections[1].able_ns, 0, "its lag counts from when it was due");
    });
    assert_eq!(done, "srrs");
}

#[test]
fn a_pass_that_is_behind_sends_that_many_and_then_reads() {
    let done = poll_with(&vec![1; 3 * SENDS_PER_POLL], |worker| worker.poll_once(0).unwrap());
    let sends = "s".repeat(SENDS_PER_POLL);
    assert_eq!(done, format!("sr{sends}r"));
}

/// The result of a wait of `timeout`, and the time that the worker polled. It polls during the last millisecond.
fn waited(timeout: Duration, also: impl FnOnce(&mut Worker<'_, Diary>)) -> (usize, Duration) {
    let mut waited = (0, Duration::ZERO);
    diary_of(Duration::ZERO, 0, |worker| {
        (worker.busy_poll_ns, worker.is_next_due) = (1_000_000, true);
        also(worker);
        waited.0 = worker.await_ready(timeout.as_nanos() as u64).unwrap();
        waited.1 = worker.shared.polled();
    });
    waited
}

#[test]
fn polling_is_the_last_part_of_a_wait_and_only_what_found_nothing() {
    let (ready, polled) = waited(Duration::from_secs(9), |_| ());
    assert_eq!((ready, polled), (2, Duration::ZERO), "answers have come");
    let read_all = |worker: &mut Worker<'_, Diary>| worker.poll_once(0).unwrap();
    let (ready, polled) = waited(Duration::from_millis(3), read_all);
    let most = Duration::from_nanos(1_000_000 + 2 * LOOK_NS_MAX);
    assert!(ready == 0 && polled > Duration::ZERO && polled <= most, "{ready} {polled:?}");
    let asleep = |worker: &mut Worker<'_, Diary>| {
        read_all(worker);
        worker.is_next_due = false;
    };
    assert_eq!(waited(Duration::from_millis(1), asleep), (0, Duration::ZERO), "nothing is due then");
}

#[test]
fn a_load_polls_before_its_operations_and_sleeps_where_none_is_to_come() {
    let polled = |load: Load| {
        let mut polled = Duration::ZERO;
        let duration = Duration::from_millis(30);
        let (name, warmup, drain) = ("run".to_owned(), Duration::ZERO, Duration::ZERO);
        let segment = Segment { name, loads: vec![load], warmup, duration, drain };
        diary_of(Duration::ZERO, 0, |worker| {
            worker.poll_once(0).unwrap();
            worker.busy_poll_ns = 1_000_000;
            worker.epoch = Instant::now();
            worker.load(&segment).unwrap();
            polled = worker.shared.polled();
        });
        polled
    };
    assert!(polled(Load::Sample { every: 1, over: Duration::from_millis(40) }) > Duration::ZERO);
    assert_eq!(polled(Load::Idle), Duration::ZERO);
}
