//! The cost of recording an operation: `cargo bench -p load`.

use divan::{Bencher, black_box};
use load::recorder::{Latency, Operation, Recorder, Window};

/// The operations of one iteration.
const COUNT: u64 = 1_000;

fn main() {
    divan::main();
}

fn operation(number: u64) -> Operation {
    // Lags of 6 us to 1.6 ms, pseudo-random, so that adjacent ones do not share a bucket.
    let wait_ns = 50_000 + number.wrapping_mul(0x9E37_79B9_7F4A_7C15) % 13_000_000;
    Operation { class: 0, intended_ns: number * 1_000, sent_ns: number * 1_000 + wait_ns / 8 }
}

/// One latency into one histogram.
#[divan::bench(counters = [divan::counter::ItemsCount::new(COUNT)])]
fn one_latency(bencher: Bencher<'_, '_>) {
    let operations: Vec<Operation> = (0..COUNT).map(operation).collect();
    let mut latency = Latency::new();
    bencher.bench_local(|| {
        for operation in &operations {
            latency.record_ns(black_box(operation.sent_ns - operation.intended_ns));
        }
    });
}

/// An operation from plan to answer: counts and three clocks, all in one second. All service times are equal.
#[divan::bench(counters = [divan::counter::ItemsCount::new(COUNT)])]
fn one_operation(bencher: Bencher<'_, '_>) {
    let operations: Vec<Operation> = (0..COUNT).map(operation).collect();
    let mut recorder = Recorder::new(Window { from_ns: 0, until_ns: u64::MAX }, 1);
    bencher.bench_local(|| {
        for operation in &operations {
            let operation = black_box(operation);
            recorder.planned(operation.intended_ns);
            recorder.sent(operation, 100);
            recorder.completed(operation, operation.sent_ns + 40_000, 4);
        }
    });
}
