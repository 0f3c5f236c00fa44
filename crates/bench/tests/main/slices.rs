//! Tests of two runs that alternate in slices, on both engines: the operations of one are answered before the other
//! sends, and both draw the same random numbers from the same seed.

use std::net::SocketAddr;
use std::sync::atomic::{AtomicI64, AtomicU64, Ordering};
use std::sync::{Arc, Mutex, mpsc};
use std::thread;
use std::time::Duration;

use clients::CancelHandle;
use load::engine::{
    AfterReopen, Close, Connect, Load, Outcome, Plan, ReopenTrigger, SegmentOutcome, Shared, Slice,
    SliceSource, event, threads,
};
use load::protocol::{
    Answer, AnswerStatus, Blocking, Completion, Done, DueTime, Failure, Opening, Protocol, Received, Started,
};

use crate::engine::echo;
use crate::plans;

const PAIRS: u64 = 12;
const CONNECTIONS: u32 = 3;
const SLICE: Duration = Duration::from_millis(20);

/// Counts the operations in flight of both sides.
#[derive(Debug, Default)]
struct Witness {
    in_flight: [AtomicI64; 2],
    overlaps: AtomicU64,
}

/// A connection with the numbers that it drew after each seed.
#[derive(Debug, Default)]
struct Client {
    number: u32,
    state: u64,
    drawn: Vec<(u64, Vec<u64>)>,
}

impl Client {
    fn draw(&mut self) {
        self.state =
            self.state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        self.drawn.last_mut().expect("a turn begins with its seed").1.push(self.state);
    }

    fn reseed(&mut self, seed: u64) {
        self.state = seed ^ (u64::from(self.number) << 40);
        self.drawn.push((seed, Vec::new()));
    }
}

/// One side, as a protocol of one letter and as a blocking client.
struct Side {
    index: usize,
    witness: Arc<Witness>,
}

impl Side {
    fn begins(&self) {
        self.witness.in_flight[self.index].fetch_add(1, Ordering::SeqCst);
        if self.witness.in_flight[1 - self.index].load(Ordering::SeqCst) != 0 {
            self.witness.overlaps.fetch_add(1, Ordering::SeqCst);
        }
    }

    fn ends(&self) {
        self.witness.in_flight[self.index].fetch_sub(1, Ordering::SeqCst);
    }
}

impl Protocol for Side {
    type Session = Client;

    fn session(&self, number: u32) -> Client {
        Client { number, ..Client::default() }
    }

    fn open(&self, _: &mut Client, _: &mut Vec<u8>) -> Opening {
        Opening::Ready
    }

    fn start(&self, client: &mut Client, _: DueTime, out: &mut Vec<u8>) -> Option<Started> {
        self.begins();
        client.draw();
        out.push(b'm');
        Some(Started { class: 0, answer: Answer::InOrder })
    }

    fn reseed(&self, client: &mut Client, seed: u64) {
        client.reseed(seed);
    }

    fn receive(
        &self,
        _: &mut Client,
        bytes: &[u8],
        _: &mut Vec<u8>,
        done: &mut impl FnMut(Completion<'_>),
    ) -> Result<Received, String> {
        for _ in bytes {
            self.ends();
            done(Completion { answer: Answer::InOrder, status: AnswerStatus::Good, bytes: 1 });
        }
        Ok(Received { used: bytes.len(), ..Received::default() })
    }
}

impl Blocking for Side {
    type Session = Client;

    fn open(&self, number: u32) -> Result<Client, String> {
        Ok(Client { number, ..Client::default() })
    }

    fn reopen(&self, _: &mut Client) -> Result<(), String> {
        Err("nothing was lost".to_owned())
    }

    fn cancel_handle(&self, _: &Client) -> Option<CancelHandle> {
        None
    }

    fn next(&self, client: &mut Client) -> Option<u16> {
        client.draw();
        Some(0)
    }

    fn run(&self, _: &mut Client, _: u16, _: DueTime) -> Result<Done, Failure> {
        self.begins();
        thread::sleep(Duration::from_micros(300));
        self.ends();
        Ok(Done::default())
    }

    fn reseed(&self, client: &mut Client, seed: u64) {
        client.reseed(seed);
    }

    fn close(&self, _: &mut Client) {}
}

#[derive(Debug)]
struct ChannelSource {
    slices: Mutex<mpsc::Receiver<Slice>>,
    over: mpsc::Sender<SegmentOutcome>,
}

impl SliceSource for ChannelSource {
    fn next(&self) -> Option<Slice> {
        self.slices.lock().unwrap().recv().ok()
    }

    fn over(&self, outcome: SegmentOutcome) {
        self.over.send(outcome).unwrap();
    }
}

fn plan(target: SocketAddr, load: Load) -> Plan {
    let mut plan = plans::plan(target, CONNECTIONS, load, Duration::from_secs(60));
    plan.segments[0].warmup = Duration::from_secs(60);
    plan
}

/// Alternates two sides in slices; the order changes from pair to pair.
fn alternate(engine: impl Fn(&Side, &Plan, &Shared) -> Outcome<Client> + Sync) {
    let witness = Arc::new(Witness::default());
    let target = echo(Duration::ZERO, usize::MAX);
    let outcomes = thread::scope(|scope| {
        let sides = [0, 1].map(|index| {
            let (to_side, slices) = mpsc::channel();
            let (over, from_side) = mpsc::channel();
            let (engine, side) = (&engine, Side { index, witness: Arc::clone(&witness) });
            let run = scope.spawn(move || {
                let shared = Shared::in_slices(Arc::new(ChannelSource { slices: Mutex::new(slices), over }));
                let load = Load::Closed { window: 1, pause: Duration::ZERO };
                engine(&side, &plan(target, load), &shared)
            });
            (to_side, from_side, run)
        });
        let mut completed = [0, 0];
        for pair in 0..PAIRS {
            for place in 0..2 {
                let index = (pair % 3 + place) as usize % 2;
                let slice = Slice { warmup: SLICE / 4, duration: SLICE, seed: 1_000 + pair };
                sides[index].0.send(slice).unwrap();
                let outcome = sides[index].1.recv().unwrap();
                assert_eq!(witness.in_flight[index].load(Ordering::SeqCst), 0, "all is answered");
                assert_eq!(outcome.measured, SLICE);
                completed[index] += outcome.recorder.total().counts.completed;
            }
        }
        sides
            .map(|(to_side, _, run)| {
                drop(to_side);
                run.join().unwrap()
            })
            .map(|outcome| (outcome, completed))
    });
    assert_eq!(witness.overlaps.load(Ordering::SeqCst), 0);
    for (index, (outcome, completed)) in outcomes.iter().enumerate() {
        let [segment] = &outcome.segments[..] else { panic!("its turns have one outcome") };
        assert_eq!(segment.measured, SLICE * PAIRS as u32);
        assert_eq!(segment.recorder.total().counts.completed, completed[index]);
        let drawn: usize =
            outcome.sessions.iter().flat_map(|client| &client.drawn).map(|(_, keys)| keys.len()).sum();
        assert_eq!(drawn as u64, segment.recorder.total().counts.sent);
    }
    let [(a, _), (b, _)] = &outcomes;
    let mut both = 0;
    for (of_a, of_b) in a.sessions.iter().zip(&b.sessions) {
        assert_eq!((of_a.drawn.len(), of_b.drawn.len()), (PAIRS as usize, PAIRS as usize));
        for ((seed_a, keys_a), (seed_b, keys_b)) in of_a.drawn.iter().zip(&of_b.drawn) {
            let common = keys_a.len().min(keys_b.len());
            both += common;
            assert_eq!((seed_a, &keys_a[..common]), (seed_b, &keys_b[..common]), "client {}", of_a.number);
        }
    }
    assert!(both > 0, "nothing was drawn");
}

#[test]
fn turns_of_the_event_engine_never_overlap_and_draw_the_same() {
    alternate(|side, plan, shared| event::run(side, plan, shared, |_| ()).unwrap());
}

/// The engine waits for operations in flight at the end of a slice, and each slice starts with all its connections.
#[test]
fn connects_of_a_closed_loop_are_over_when_their_turn_is() {
    let target = echo(Duration::ZERO, usize::MAX);
    let load =
        Load::Reopen { when: ReopenTrigger::Again, close: Close::Reset, class: 0, then: AfterReopen::Answer };
    let plan = Plan { connect: Connect { by_load: true, ..Connect::default() }, ..plan(target, load) };
    let (to_side, slices) = mpsc::channel();
    let (over, from_side) = mpsc::channel();
    let shared = Shared::in_slices(Arc::new(ChannelSource { slices: Mutex::new(slices), over }));
    let side = Side { index: 0, witness: Arc::default() };
    let sum = thread::scope(|scope| {
        let run = scope.spawn(|| event::run(&side, &plan, &shared, |_| ()).unwrap());
        let mut sum = 0;
        for seed in 1..=PAIRS {
            to_side.send(Slice { warmup: SLICE / 4, duration: SLICE, seed }).unwrap();
            let counts = from_side.recv().unwrap().recorder.total().counts;
            assert_eq!((counts.planned, counts.errors_total()), (counts.completed, 0), "{counts:?}");
            assert_eq!(side.witness.in_flight[0].load(Ordering::SeqCst), 0, "all is answered");
            sum += counts.completed;
        }
        drop(to_side);
        assert_eq!(run.join().unwrap().segments[0].recorder.total().counts.completed, sum);
        sum
    });
    // A connect and a request each.
    assert!(sum > PAIRS * u64::from(4 * CONNECTIONS), "connections were not opened again: {sum}");
}

#[test]
fn turns_of_the_thread_engine_never_overlap_and_draw_the_same() {
    alternate(|side, plan, shared| threads::run(side, plan, shared, |_| ()).unwrap());
}
