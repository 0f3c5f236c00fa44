//! Tests of connections with a simulated clock: the causes of waits and the arrival times of answers do not depend on
//! the machine.

use std::cell::Cell;
use std::io::Write as _;
use std::net::{TcpListener, TcpStream};
use std::sync::mpsc;
use std::time::Duration;

use super::connection::{Connection, IoContext, SendCounts};
use super::reading::Answers;
use super::timestamped_reader::{TimestampedReader, ask_for_stamps};
use super::worker::Worker;
use crate::engine::{Connect, Load, Plan, Segment, Shared};
use crate::protocol::{
    Answer, AnswerStatus, Completion, DueTime, Lifetime, Opening, Protocol, Received, Started,
};
use crate::recorder::{Class, Recorder, Window};
use crate::schedule::Arrivals;

const MS: u64 = 1_000_000;

/// A protocol in which every message and every answer is one letter; one operation at a time.
struct Letters;

impl Protocol for Letters {
    type Session = ();

    fn session(&self, _number: u32) {}

    fn open(&self, (): &mut (), _out: &mut Vec<u8>) -> Opening {
        Opening::Ready
    }

    fn window(&self, (): &()) -> usize {
        1
    }

    fn answers_can_wait(&self) -> bool {
        true
    }

    fn start(&self, (): &mut (), _due: DueTime, out: &mut Vec<u8>) -> Option<Started> {
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
        for _ in bytes {
            done(Completion { answer: Answer::InOrder, status: AnswerStatus::Good, bytes: 1 });
        }
        Ok(Received { used: bytes.len(), ..Received::default() })
    }
}

/// An open connection, its server, and the simulated time.
struct Clocked {
    connection: Connection<()>,
    server: TcpStream,
    reader: TimestampedReader,
    recorder: Recorder,
    scratch: Vec<u8>,
    now_ns: Cell<u64>,
}

impl Clocked {
    fn new(by_kernel: bool) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let stream = TcpStream::connect(listener.local_addr().unwrap()).unwrap();
        if by_kernel {
            ask_for_stamps(&stream);
        }
        let mut connection = Connection::new(0, (), Lifetime::Run);
        connection.begin(stream, None, false, Vec::new(), 0);
        connection.open(1);
        connection.begin_segment(by_kernel);
        let window = Window { from_ns: 0, until_ns: u64::MAX };
        Self {
            connection,
            server: listener.accept().unwrap().0,
            reader: TimestampedReader::new(by_kernel),
            recorder: Recorder::new(window, 1),
            scratch: Vec::new(),
            now_ns: Cell::new(0),
        }
    }

    /// Sends what it can at this time. Returns the number of operations in flight.
    fn sends_at(&mut self, now_ms: u64) -> usize {
        self.now_ns.set(now_ms * MS);
        let Self { connection, recorder, scratch, now_ns, .. } = self;
        let mut context =
            IoContext { protocol: &Letters, recorder, scratch, now: &|| now_ns.get(), wall_ms: 0 };
        connection.pump(&mut context, &mut SendCounts::default()).unwrap();
        connection.in_flight()
    }

    /// Enqueues an operation that was due at another time.
    fn due(&mut self, intended_ms: u64, now_ms: u64) -> usize {
        self.recorder.planned(intended_ms * MS);
        self.connection.enqueue(intended_ms * MS);
        self.sends_at(now_ms)
    }

    /// Sends an answer at this time and reads it.
    fn answered_at(&mut self, now_ms: u64) {
        self.now_ns.set(now_ms * MS);
        self.server.write_all(b"m").unwrap();
        // The poll was a moment ago, so the kernel's timestamp cannot change the result.
        self.reader.note_poll(now_ms * MS);
        self.reader.note_poll(now_ms * MS);
        let Self { connection, reader, recorder, scratch, now_ns, .. } = self;
        let mut context =
            IoContext { protocol: &Letters, recorder, scratch, now: &|| now_ns.get(), wall_ms: 0 };
        let mut answers = Answers::default();
        connection.read(reader, &mut context, &mut answers).unwrap();
        assert_eq!((answers.completed, answers.received_ns), (1, now_ms * MS));
    }

    fn total(mut self) -> Class {
        self.recorder.take_second(0);
        self.recorder.total()
    }
}

fn what_waits_for_the_window_is_late_by_the_server(by_kernel: bool) {
    let mut one = Clocked::new(by_kernel);
    assert_eq!(one.due(0, 0), 1);
    assert_eq!(one.due(10, 10), 1, "the window is full");
    one.answered_at(20);
    assert_eq!(one.sends_at(20), 1, "the second goes as soon as there is room");
    // The generator polls late, but could not have sent the operation earlier.
    assert_eq!(one.due(22, 25), 1);
    one.answered_at(40);
    assert_eq!(one.sends_at(40), 1);
    one.answered_at(60);
    assert_eq!(one.sends_at(60), 0);
    let total = one.total();
    assert_eq!(total.counts.completed, 3);
    let clocks = &total.clocks;
    assert_eq!(clocks.lag.count_above_us(10), 0, "the wait is not the generator's");
    assert_eq!(clocks.service.count_above_us(20_500), 0, "nor is it in the service time");
    assert_eq!(clocks.response.count_above_us(29_500), 2, "both that waited: 30 and 38 ms");
    assert_eq!(clocks.response.count_above_us(37_500), 1);
}

#[test]
fn what_waits_for_the_window_is_late_by_the_server_not_by_the_generator() {
    what_waits_for_the_window_is_late_by_the_server(false);
}

#[test]
fn so_it_is_where_the_kernel_says_when_an_answer_came() {
    what_waits_for_the_window_is_late_by_the_server(true);
}

#[test]
fn what_was_due_on_a_free_connection_is_late_by_the_generator() {
    let mut one = Clocked::new(false);
    assert_eq!(one.due(0, 0), 1);
    assert_eq!(one.due(10, 10), 1, "the window is full");
    one.answered_at(20);
    assert_eq!(one.sends_at(20), 1);
    one.answered_at(30);
    assert_eq!(one.sends_at(30), 0, "nothing waits any more");
    assert_eq!(one.due(61, 65), 1, "due at 61, and the generator comes at 65");
    one.answered_at(70);
    let clocks = one.total().clocks;
    assert_eq!((clocks.lag.count_above_us(10), clocks.lag.count_above_us(3_900)), (1, 1));
    assert_eq!(clocks.lag.count_above_us(4_100), 0);
}

/// A plan of two segments; two connections have one load, a third has another.
fn plan(segments: [[Load; 2]; 2]) -> Plan {
    let segment = |loads: [Load; 2]| Segment {
        name: "run".to_owned(),
        loads: loads.to_vec(),
        warmup: Duration::ZERO,
        duration: Duration::ZERO,
        drain: Duration::ZERO,
    };
    Plan {
        target: ([127, 0, 0, 1], 1).into(),
        elsewhere: Vec::new(),
        tls: None,
        sources: Vec::new(),
        groups: vec![2, 1],
        classes: vec!["letter".to_owned()],
        threads: 1,
        part: (0, 1),
        open_rate: None,
        connect: Connect::default(),
        tick_us: 0,
        busy_poll_us: 0,
        silence: Duration::ZERO,
        segments: segments.map(segment).to_vec(),
    }
}

#[test]
fn the_kernel_times_only_answers_that_nothing_waits_for() {
    let open = Load::Open { rate: 1.0, arrivals: Arrivals::Poisson, seed: 1, timer_us: 0 };
    let closed = Load::Closed { window: 1, pause: Duration::ZERO };
    for (segments, asked, first, second) in [
        ([[open, closed], [closed, Load::Idle]], [true; 3], [true, true, false], [false, false, true]),
        ([[open, closed], [open, closed]], [true, true, false], [true, true, false], [true, true, false]),
        ([[closed, closed], [closed, closed]], [false; 3], [false; 3], [false; 3]),
    ] {
        let (plan, shared) = (plan(segments), Shared::default());
        let mut worker =
            Worker::new(&Letters, &plan, &shared, 0, &vec![0..2, 2..3], mpsc::channel().0).unwrap();
        assert_eq!([0, 1, 2].map(|index| worker.asks_for_stamps(index)), asked, "{segments:?}");
        for (segment, expected) in plan.segments.iter().zip([first, second]) {
            worker.begin_connections(&segment.loads);
            assert_eq!([0, 1, 2].map(|index| worker.connections[index].by_kernel), expected, "{segment:?}");
        }
    }
}
