//! What a line of the InfluxDB line protocol costs to parse, with two 64-bit hashes of its series: `cargo bench -p wire`.

use std::fmt::Write as _;
use std::hash::{BuildHasher, Hasher};

use divan::counter::{BytesCount, ItemsCount};
use divan::{Bencher, black_box};
use foldhash::quality::FixedState;
use wire::line::Lines;

const LINES: usize = 500;

fn main() {
    divan::main();
}

fn hash(state: &FixedState, bytes: &[u8]) -> u64 {
    let mut hasher = state.build_hasher();
    hasher.write(bytes);
    hasher.finish()
}

fn read(bencher: Bencher<'_, '_>, body: &str) {
    let (one, two) = (FixedState::with_seed(1), FixedState::with_seed(2));
    bencher.counter(ItemsCount::new(LINES)).counter(BytesCount::of_str(body)).bench(|| {
        let (mut lines, mut sum) = (Lines::new(black_box(body.as_bytes())), 0_u64);
        while let Some(line) = lines.next_line() {
            let line = line.expect("a good line");
            let raw = line.series.raw().as_bytes();
            sum ^= hash(&one, raw)
                ^ hash(&two, raw)
                ^ line.time.unwrap_or_default() as u64
                ^ line.fields.len() as u64;
        }
        sum
    });
}

/// One number, as the scenario of many timelines sends it.
#[divan::bench]
fn one_number(bencher: Bencher<'_, '_>) {
    let mut body = String::new();
    for line in 0..LINES {
        let _ = writeln!(body, "metric{line:04},tagk=tagv value={}.5 17000000{line:05}", line % 100);
    }
    read(bencher, &body);
}

/// Ten tags and ten numbers, as an agent sends a processor.
#[divan::bench]
fn ten_numbers(bencher: Bencher<'_, '_>) {
    let mut body = String::new();
    for line in 0..LINES {
        let _ = write!(
            body,
            "cpu,hostname=host_{line},region=eu-west-1,datacenter=eu-west-1b,rack=42,os=Ubuntu16.10,arch=x64,team=NYC,service=7,service_version=0,service_environment=production "
        );
        for field in 0..10 {
            let _ =
                write!(body, "{}usage_{field}={}i", if field == 0 { "" } else { "," }, (line * field) % 100);
        }
        let _ = writeln!(body, " 1451606400000{line:06}");
    }
    read(bencher, &body);
}

/// A text with an escape and a line break.
#[divan::bench]
fn text(bencher: Bencher<'_, '_>) {
    let mut body = String::new();
    for line in 0..LINES {
        let _ = writeln!(
            body,
            "log,host=h{line} message=\"a line of a log, \\\"quoted\\\",\nand its second half: {line}\" 1"
        );
    }
    read(bencher, &body);
}
