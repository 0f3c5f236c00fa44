//! Memory per series, and the time to create, open and select series: `cargo bench -p store-local --bench series
//! [-- series=1000000 parts=0 dir=<new temporary directory>]`.
//!
//! With `parts` each series has a row on each of this many days, and each day has a part, like a directory after months. The
//! benchmark keeps a `dir` that is given, so that `tacho serve --data DIR` can start on it; the store is `DIR/store`. As root
//! it drops the page cache before it opens the store, so that the open reads the disk.
//!
//! The series are `{device="dev-N", model=20 values, region=100 values}` of one table. Memory is the growth of the process while
//! it creates the series or opens a store with them; after the creation it includes buffers of the log. CPU is the time of the
//! calling thread, which other programs hardly disturb.

#![allow(clippy::unwrap_used, clippy::print_stdout, reason = "a benchmark prints and may panic")]

use std::path::Path;
use std::sync::Arc;
use std::time::{Duration, Instant};

use model::{Batch, SeriesId, SeriesKey, Timestamp, ValueRef};
use regex::Regex;
use store::{Durability, StoreError, TagMatcher, TagPredicate};
use store::{Maintenance, Reader, Writer, conformance};
use store_local::{LocalStore, Options, RealDisk};

const TABLE: &str = "telemetry";

fn main() {
    // A process of its own finds the heap as a server does.
    match std::env::var("SERIES_DIR") {
        Ok(dir) => reopen(Path::new(&dir), argument("series").map_or(SERIES, number)),
        Err(_) => {
            let temporary = tempfile::tempdir().unwrap();
            let dir = argument("dir").map_or(temporary.path().to_owned(), Into::into).join("store");
            std::fs::create_dir_all(&dir).unwrap();
            create(&dir, argument("series").map_or(SERIES, number), argument("parts").map_or(0, number));
            let mut program = std::process::Command::new(std::env::current_exe().unwrap());
            let status = program.args(std::env::args().skip(1)).env("SERIES_DIR", &dir).status();
            assert!(status.unwrap().success());
        }
    }
}

const SERIES: u64 = 1_000_000;

fn argument(name: &str) -> Option<String> {
    let of_name = |text: String| Some(text.strip_prefix(name)?.strip_prefix('=')?.to_owned());
    std::env::args().skip(1).find_map(of_name)
}

fn number(text: String) -> u64 {
    text.parse().unwrap()
}

fn open(dir: &Path) -> LocalStore {
    LocalStore::open(Arc::new(RealDisk), dir, Options::default()).unwrap().0
}

fn key(n: u64) -> SeriesKey {
    let (device, model, region) =
        (format!("dev-{n}"), format!("model-{}", n % 20), format!("r-{}", n * 7 % 100));
    SeriesKey::new(TABLE, &[("device", &device), ("model", &model), ("region", &region)]).unwrap()
}

fn create(dir: &Path, count: u64, parts: u64) {
    let store = open(dir);
    let before = rss_bytes();
    let keys_cpu = {
        let cpu = cpu_ns();
        (0..count.min(100_000)).for_each(|n| drop(std::hint::black_box(key(n))));
        (cpu_ns() - cpu) / count.min(100_000) as f64
    };
    let cpu = cpu_ns();
    let (mut spent, mut slowest, mut busy) = (Duration::ZERO, Duration::ZERO, Duration::ZERO);
    for n in 0..count {
        let key = key(n);
        loop {
            let begun = Instant::now();
            match store.series(&key) {
                Ok(id) => {
                    assert_eq!(id.0, n);
                    let took = begun.elapsed();
                    spent += took;
                    slowest = slowest.max(took);
                    break;
                }
                Err(StoreError::Busy { .. }) => {
                    std::thread::sleep(Duration::from_micros(200));
                    busy += begun.elapsed();
                }
                Err(error) => panic!("{error}"),
            }
        }
    }
    println!(
        "{count} series created: {:.2} M/s, {:.0} ns CPU each, the slowest {:.1} ms, {:.0} ms busy; {:.0} bytes each",
        count as f64 / spent.as_secs_f64() / 1e6,
        (cpu_ns() - cpu) / count as f64 - keys_cpu,
        spent_ms(slowest),
        spent_ms(busy),
        (rss_bytes() - before) / count as f64,
    );
    let key = key(count / 2);
    time("find by key", || store.find_series(&key).map_or(0, |_| 1));
    let begun = Instant::now();
    store.flush().unwrap();
    println!("flushed in {:.0} ms", spent_ms(begun.elapsed()));
    (0..parts).for_each(|day| write_day(&store, count, day));
    if parts > 0 {
        println!("{} parts after {parts} days", store.status().parts);
    }
    store.close().unwrap();
}

/// A row of each series, and their part.
fn write_day(store: &LocalStore, count: u64, day: u64) {
    let mut batch = Batch::new();
    for from in (0..count).step_by(500) {
        batch.clear();
        let mut rows = batch.builder();
        for series in from..(from + 500).min(count) {
            rows.field("speed", ValueRef::F64((series % 10_000 + day) as f64 / 100.0));
            let ts = 1_700_000_000_000_000 + (day * 86_400_000_000 + series) as i64;
            rows.row(SeriesId(series), Timestamp::from_micros(ts));
        }
        rows.finish();
        while let Err(error) = store.append(&batch, Durability::Os) {
            assert!(matches!(error, StoreError::Busy { .. }), "{error}");
            std::thread::sleep(Duration::from_micros(200));
        }
    }
    store.flush().unwrap();
}

fn reopen(dir: &Path, count: u64) {
    let dropped = std::fs::write("/proc/sys/vm/drop_caches", "3").is_ok();
    let before = rss_bytes();
    let (begun, cpu) = (Instant::now(), cpu_ns());
    let store = open(dir);
    println!(
        "opened {} in {:.0} ms, {:.0} ms CPU; {:.0} bytes each",
        if dropped { "from the disk" } else { "from what the kernel keeps of the files" },
        spent_ms(begun.elapsed()),
        (cpu_ns() - cpu) / 1e6,
        (rss_bytes() - before) / count as f64
    );
    assert_eq!(store.status().series, count);
    let matcher = |tag: &str, predicate| TagMatcher { tag: tag.to_owned(), predicate };
    let pattern = |pattern| TagPredicate::Matches(Regex::new(pattern).unwrap());
    let device = |n: u64| format!("dev-{n}");
    let region = || matcher("region", TagPredicate::Is("r-42".to_owned()));
    let model = || matcher("model", TagPredicate::Is("model-2".to_owned()));
    let cases = [
        ("device is", vec![matcher("device", TagPredicate::Is(device(count / 3)))]),
        ("region is", vec![region()]),
        ("region is, model is", vec![region(), model()]),
        ("region is not", vec![matcher("region", TagPredicate::IsNot("r-42".to_owned()))]),
        ("device one of 1000", vec![matcher("device", TagPredicate::OneOf((0..1000).map(device).collect()))]),
        (
            "device none of 1000",
            vec![matcher("device", TagPredicate::NoneOf((0..1000).map(device).collect()))],
        ),
        ("device matches 7$", vec![matcher("device", pattern("7$"))]),
        ("device matches ^dev-1.*9$", vec![matcher("device", pattern("^dev-1.*9$"))]),
        ("region matches 7$", vec![matcher("region", pattern("7$"))]),
        ("region is, device matches 7$", vec![region(), matcher("device", pattern("7$"))]),
        ("region present", vec![matcher("region", TagPredicate::Present)]),
        ("region absent", vec![matcher("region", TagPredicate::Absent)]),
        ("all", vec![]),
    ];
    let table = store.snapshot(&conformance::table(TABLE)).unwrap().unwrap();
    for (name, matchers) in cases {
        time(name, || table.select(&matchers).unwrap().len());
    }
}

/// The fastest of some runs.
fn time(name: &str, run: impl Fn() -> u64) {
    let mut found = 0;
    let timed = || {
        let begun = Instant::now();
        found = run();
        begun.elapsed()
    };
    let spent = std::iter::repeat_with(timed).take(9).min().unwrap();
    println!("{name}: {:.1} us, {found} found", spent.as_nanos() as f64 / 1e3);
}

fn spent_ms(spent: Duration) -> f64 {
    spent.as_secs_f64() * 1e3
}

/// The CPU time of the calling thread.
fn cpu_ns() -> f64 {
    let stat = std::fs::read_to_string("/proc/thread-self/schedstat").unwrap();
    stat.split(' ').next().unwrap().parse().unwrap()
}

fn rss_bytes() -> f64 {
    let statm = std::fs::read_to_string("/proc/self/statm").unwrap();
    let pages: f64 = statm.split(' ').nth(1).unwrap().parse().unwrap();
    pages * 4096.0
}
