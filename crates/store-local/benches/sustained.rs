//! The write path under load without pause: `cargo bench -p store-local --bench sustained [-- NAME=VALUE ...]`.
//!
//! Rows of one f64 in batches, class fsync, as fast as the store takes them. Arguments and their defaults:
//! `seconds=60 series=1000000 rows=500 threads=1 order=shuffled tables=1 narrow=1 dir=<temporary directory> every=10`.
//! `order` is the order of the series in one round of samples: `shuffled` (each access to the state of a series is a cache
//! miss) or `sequential`. `tables` is the number of tables for the series; with `narrow=0` each table has parts of its own.
//!
//! The time to fill the batches belongs to the load and not to the store. The benchmark measures it with the CPU clock of the
//! thread and prints it separately. Values are random walks with two decimals. It prints a line every `every` seconds.

#![allow(clippy::unwrap_used, clippy::print_stdout, reason = "a benchmark prints and may panic")]

use std::collections::{BTreeMap, HashMap};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::{Duration, Instant};

use model::{Batch, SeriesId, SeriesKey, Timestamp, ValueRef};
use store::{Durability, Maintenance, StoreError, Writer};
use store_local::{Compacted, LocalStore, Observer, Options, RealDisk};

/// Batches that are filled before they are appended, so that reading the CPU clock costs nothing.
const RING: usize = 16;
/// Time between two samples of a series.
const SAMPLE_US: i64 = 10_000_000;
const BEGIN_US: i64 = 1_700_000_000_000_000;

struct Arguments(HashMap<String, String>);

impl Arguments {
    fn read() -> Self {
        let pairs = std::env::args().skip(1).filter(|argument| !argument.starts_with("--"));
        let pair = |text: String| {
            let (name, value) = text.split_once('=').expect("arguments have the form name=value");
            (name.to_owned(), value.to_owned())
        };
        Self(pairs.map(pair).collect())
    }

    fn number(&self, name: &str, default: u64) -> u64 {
        self.0.get(name).map_or(default, |text| text.parse().unwrap())
    }
}

#[derive(Default)]
struct Counters {
    points: AtomicU64,
    busy: AtomicU64,
    fill_ns: AtomicU64,
    syncs: AtomicU64,
    log_bytes: AtomicU64,
    flushes: AtomicU64,
    flush_us: AtomicU64,
    flushed_rows: AtomicU64,
    merged_rows: AtomicU64,
    stop: AtomicBool,
}

impl Observer for Counters {
    fn synced(&self, _duration: Duration, bytes: u64, _rows: u64) {
        self.syncs.fetch_add(1, Ordering::Relaxed);
        self.log_bytes.fetch_add(bytes, Ordering::Relaxed);
    }

    fn flushed(&self, duration: Duration, _parts: u64, rows: u64, _bytes: u64) {
        self.flushes.fetch_add(1, Ordering::Relaxed);
        self.flush_us.fetch_add(duration.as_micros() as u64, Ordering::Relaxed);
        self.flushed_rows.fetch_add(rows, Ordering::Relaxed);
    }

    fn compacted(&self, compacted: &Compacted) {
        self.merged_rows.fetch_add(compacted.rows, Ordering::Relaxed);
    }
}

fn main() {
    let arguments = Arguments::read();
    let root = arguments.0.get("dir").map_or_else(std::env::temp_dir, Into::into);
    std::fs::create_dir_all(&root).unwrap();
    let dir = tempfile::tempdir_in(root).unwrap();
    let counters = Arc::new(Counters::default());
    let narrow_parts = arguments.number("narrow", 1) != 0;
    let options = Options { observer: Some(counters.clone()), narrow_parts, ..Options::default() };
    let (store, _) = LocalStore::open(Arc::new(RealDisk), dir.path(), options).unwrap();

    let (begun, cpu) = (Instant::now(), process_cpu_ns());
    let series = make_series(&store, arguments.number("series", 1_000_000), arguments.number("tables", 1));
    println!(
        "{} new series: {:.2} us each, {:.2} us CPU, resident {} MB",
        series.len(),
        begun.elapsed().as_secs_f64() * 1e6 / series.len() as f64,
        (process_cpu_ns() - cpu) as f64 / 1e3 / series.len() as f64,
        resident_mb(),
    );

    let threads = arguments.number("threads", 1) as usize;
    let shuffled = arguments.0.get("order").is_none_or(|order| order == "shuffled");
    let rows = arguments.number("rows", 500) as usize;
    std::thread::scope(|scope| {
        for number in 0..threads {
            let mut walk = Walk::new(&series[number * series.len() / threads..][..series.len() / threads]);
            if shuffled {
                walk.shuffle();
            }
            let (store, counters) = (&store, &counters);
            let thread = std::thread::Builder::new().name(format!("appender-{number}"));
            thread.spawn_scoped(scope, move || append(store, walk, rows, counters)).unwrap();
        }
        let seconds = arguments.number("seconds", 60);
        report(&store, &counters, seconds, arguments.number("every", 10).min(seconds));
        counters.stop.store(true, Ordering::Relaxed);
    });
    store.close().unwrap();
}

fn make_series(store: &LocalStore, count: u64, tables: u64) -> Vec<SeriesId> {
    let id = |number: u64| {
        let (table, host) = (format!("metric.{}", number % tables), format!("host-{number:07}"));
        let key = SeriesKey::new(table.as_str(), &[("host", &host), ("dc", "eu-1")]).unwrap();
        loop {
            match store.series(&key) {
                Ok(id) => return id,
                Err(StoreError::Busy { .. }) => std::thread::sleep(Duration::from_micros(200)),
                Err(error) => panic!("{error}"),
            }
        }
    };
    (0..count).map(id).collect()
}

/// One sample of each series after the other, again and again.
struct Walk {
    series: Vec<(SeriesId, i32)>,
    next: usize,
    ts: i64,
    random: u64,
}

impl Walk {
    fn new(series: &[SeriesId]) -> Self {
        let series = series.iter().map(|id| (*id, 2_000)).collect();
        Self { series, next: 0, ts: BEGIN_US, random: 0x9e37_79b9_7f4a_7c15 }
    }

    fn random(&mut self) -> u64 {
        self.random ^= self.random << 13;
        self.random ^= self.random >> 7;
        self.random ^= self.random << 17;
        self.random
    }

    fn shuffle(&mut self) {
        for index in (1..self.series.len()).rev() {
            let other = self.random() as usize % (index + 1);
            self.series.swap(index, other);
        }
    }

    fn fill(&mut self, batch: &mut Batch, rows: usize) {
        batch.clear();
        let mut builder = batch.builder();
        for _ in 0..rows {
            let step = (self.random() >> 32) as i32 % 100;
            let (id, hundredths) = &mut self.series[self.next];
            *hundredths += step;
            builder.field("value", ValueRef::F64(f64::from(*hundredths) / 100.0));
            builder.row(*id, Timestamp::from_micros(self.ts + (id.0 % 1000) as i64 * 1000));
            self.next += 1;
            if self.next == self.series.len() {
                self.next = 0;
                self.ts += SAMPLE_US;
            }
        }
        builder.finish();
    }
}

fn append(store: &LocalStore, mut walk: Walk, rows: usize, counters: &Counters) {
    let mut ring = vec![Batch::new(); RING];
    while !counters.stop.load(Ordering::Relaxed) {
        let begun_ns = thread_cpu_ns();
        ring.iter_mut().for_each(|batch| walk.fill(batch, rows));
        counters.fill_ns.fetch_add(thread_cpu_ns() - begun_ns, Ordering::Relaxed);
        for batch in &ring {
            loop {
                match store.append(batch, Durability::Fsync) {
                    Ok(_) => break,
                    Err(StoreError::Busy { .. }) => {
                        counters.busy.fetch_add(1, Ordering::Relaxed);
                        std::thread::sleep(Duration::from_micros(500));
                    }
                    Err(error) => panic!("{error}"),
                }
            }
            counters.points.fetch_add(batch.points() as u64, Ordering::Relaxed);
        }
    }
}

/// Sums at one moment.
struct Moment {
    at: Instant,
    points: u64,
    busy: u64,
    fill_ns: u64,
    written: u64,
    cpu_ns: u64,
    /// By thread name; of threads that still run.
    threads_ns: BTreeMap<String, u64>,
}

impl Moment {
    fn now(counters: &Counters) -> Self {
        let load = |counter: &AtomicU64| counter.load(Ordering::Relaxed);
        Self {
            at: Instant::now(),
            points: load(&counters.points),
            busy: load(&counters.busy),
            fill_ns: load(&counters.fill_ns),
            written: written_bytes(),
            cpu_ns: process_cpu_ns(),
            threads_ns: threads_cpu_ns(),
        }
    }
}

fn report(store: &LocalStore, counters: &Counters, seconds: u64, every: u64) {
    let first = Moment::now(counters);
    let mut last = Moment::now(counters);
    for second in 1..=seconds {
        let due = first.at + Duration::from_secs(second);
        std::thread::sleep(due.saturating_duration_since(Instant::now()));
        if second.is_multiple_of(every) {
            let now = Moment::now(counters);
            print!("{second:>5} s ");
            line(store, counters, &last, &now);
            last = now;
        }
    }
    print!("  total ");
    let end = Moment::now(counters);
    line(store, counters, &first, &end);
    let load = |counter: &AtomicU64| counter.load(Ordering::Relaxed);
    println!(
        "{} syncs, {:.2} log bytes per point, {} flushes of {:.0} ms, each of {} rows; highest resident {} MB",
        load(&counters.syncs),
        load(&counters.log_bytes) as f64 / load(&counters.points).max(1) as f64,
        load(&counters.flushes),
        load(&counters.flush_us) as f64 / 1e3 / load(&counters.flushes).max(1) as f64,
        load(&counters.flushed_rows) / load(&counters.flushes).max(1),
        status_kb("VmHWM:") / 1024,
    );
    let compacting_ns = end.threads_ns.get("store-compact").copied().unwrap_or(0);
    let merged = load(&counters.merged_rows);
    // The current merge counts for the time, but not yet for the rows.
    println!(
        "merges made parts of {merged} rows, {:.0} ns CPU each",
        compacting_ns as f64 / merged.max(1) as f64
    );
}

fn line(store: &LocalStore, counters: &Counters, from: &Moment, to: &Moment) {
    let points = (to.points - from.points).max(1) as f64;
    let spent = (to.at - from.at).as_secs_f64();
    let fill = (to.fill_ns - from.fill_ns) as f64 / points;
    let cpu = (to.cpu_ns - from.cpu_ns) as f64 / points;
    let status = store.status();
    let flushed = counters.flushed_rows.load(Ordering::Relaxed).max(1) as f64;
    print!("{:>9.0} points/s, {:>4.0} ns CPU per point (+ {fill:.0} filling)", points / spent, cpu - fill);
    for (name, ns) in &to.threads_ns {
        let mut each = (ns - from.threads_ns.get(name).unwrap_or(&0)) as f64 / points;
        if name.starts_with("appender") {
            each -= fill; // printed apart
        }
        if each >= 0.5 {
            print!(", {name} {each:.0}");
        }
    }
    println!(
        "; {} busy, {} parts, {:.2} bytes per point in parts, {:.1} written, memtable {} MB, resident {} MB",
        to.busy - from.busy,
        status.parts,
        status.part_bytes as f64 / flushed,
        (to.written - from.written) as f64 / points,
        status.memtable_bytes >> 20,
        resident_mb(),
    );
}

fn thread_cpu_ns() -> u64 {
    let time = rustix::time::clock_gettime(rustix::time::ClockId::ThreadCPUTime);
    time.tv_sec as u64 * 1_000_000_000 + time.tv_nsec as u64
}

fn process_cpu_ns() -> u64 {
    let time = rustix::time::clock_gettime(rustix::time::ClockId::ProcessCPUTime);
    time.tv_sec as u64 * 1_000_000_000 + time.tv_nsec as u64
}

fn threads_cpu_ns() -> BTreeMap<String, u64> {
    let mut threads = BTreeMap::new();
    for task in std::fs::read_dir("/proc/self/task").unwrap() {
        let path = task.unwrap().path();
        let read = |name: &str| std::fs::read_to_string(path.join(name));
        // A thread may end between the two reads.
        let (Ok(name), Ok(stat)) = (read("comm"), read("schedstat")) else { continue };
        let ns: u64 = stat.split_whitespace().next().unwrap().parse().unwrap();
        let name = name
            .trim()
            .split_once('-')
            .filter(|(word, _)| *word == "appender")
            .map_or(name.trim(), |(word, _)| word);
        *threads.entry(name.to_owned()).or_default() += ns;
    }
    threads
}

fn status_kb(name: &str) -> u64 {
    let status = std::fs::read_to_string("/proc/self/status").unwrap();
    let line = status.lines().find(|line| line.starts_with(name)).unwrap();
    line.split_whitespace().nth(1).unwrap().parse().unwrap()
}

fn resident_mb() -> u64 {
    status_kb("VmRSS:") / 1024
}

/// Bytes that this process has written to the disk.
fn written_bytes() -> u64 {
    let io = std::fs::read_to_string("/proc/self/io").unwrap();
    let line = io.lines().find(|line| line.starts_with("write_bytes:")).unwrap();
    line.split_whitespace().nth(1).unwrap().parse().unwrap()
}
