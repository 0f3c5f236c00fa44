//! Samples target and machine once a second while the load runs, at the seconds of the latency series: processes of
//! this machine from `/proc`, the machine itself, and the [`Source`]s of a driver, such as counters of its server.
//!
//! A source that cannot be read is reported once by name, and the run continues, so that a reader of the result knows
//! which figures are absent and why. A separate thread reads the sources, so a slow server does not delay the load.

mod host;
mod process;

use std::collections::BTreeMap;
use std::sync::{Arc, mpsc};
use std::thread::{self, JoinHandle};
use std::time::{Duration, Instant};

use parking_lot::Mutex;

use crate::engine::Event;
use crate::limits::TELEMETRY_SERIES_MAX;

pub use host::Host;
pub use process::{Process, has_name, is_local, listener_pid, server_pid};

const SECOND: Duration = Duration::from_secs(1);

/// The kind of a value.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ValueKind {
    /// A growing counter. The series contains its growth per second, with `_per_s` added to the name.
    Counter,
    /// A growing counter whose growth per second has the meaning of the name, such as a percentage of time.
    Share,
    /// A state. The series contains it unchanged.
    Gauge,
}

/// The values of one source at one moment.
pub type Readings = Vec<(String, ValueKind, f64)>;

/// A source of values that is read each second.
pub trait Source: Send {
    /// The prefix of its names, such as `target` or `mysql`.
    fn prefix(&self) -> &str;

    /// Reads the current values. The error states what is missing and why.
    fn read(&mut self) -> Result<Readings, String>;
}

/// The collected series.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Collected {
    /// Values by name and second.
    pub series: BTreeMap<String, BTreeMap<u64, f64>>,
    /// Sources that could not be read, and why; each once.
    pub notes: Vec<String>,
}

#[derive(Debug, Default)]
struct Operations {
    /// The start of the current segment, in seconds after the start of the load.
    offset: u64,
    completed: BTreeMap<u64, u64>,
}

/// Reads all sources each second from the start of the load.
#[derive(Debug)]
pub struct Collector {
    begin: Option<mpsc::Sender<Instant>>,
    began: Option<Instant>,
    stop: mpsc::Sender<()>,
    thread: Option<JoinHandle<Collected>>,
    operations: Arc<Mutex<Operations>>,
}

impl Collector {
    /// Starts the thread, which waits for the first segment.
    pub fn start(sources: Vec<Box<dyn Source>>) -> Self {
        let (begin, on_begin) = mpsc::channel();
        let (stop, on_stop) = mpsc::channel();
        let thread = thread::spawn(move || {
            let Ok(at) = on_begin.recv() else { return Collected::default() };
            collect(sources, at, &on_stop)
        });
        Self { begin: Some(begin), began: None, stop, thread: Some(thread), operations: Arc::default() }
    }

    /// Takes an event of the engine.
    pub fn on_event(&mut self, event: &Event) {
        match event {
            Event::Started { at, .. } => {
                let began = *self.began.get_or_insert(*at);
                if let Some(begin) = self.begin.take() {
                    // Without the thread there is nothing to start.
                    let _ = begin.send(*at);
                }
                self.operations.lock().offset = at.saturating_duration_since(began).as_secs();
            }
            Event::Second(second) => {
                let completed: u64 = second.classes.iter().map(|class| class.completed).sum();
                let mut operations = self.operations.lock();
                let at = operations.offset + second.index;
                *operations.completed.entry(at).or_default() += completed;
            }
            Event::Connecting(_) | Event::Note(_) | Event::Tick => {}
        }
    }

    /// Stops the thread and returns the series. It adds CPU time per operation.
    pub fn finish(mut self) -> Collected {
        drop(self.begin.take());
        let _ = self.stop.send(());
        let mut collected = self
            .thread
            .take()
            .map(|thread| thread.join().expect("BUG: telemetry panicked"))
            .unwrap_or_default();
        let operations = std::mem::take(&mut self.operations.lock().completed);
        collected.per_operation(&operations);
        collected
    }
}

impl Collected {
    fn add(&mut self, second: u64, name: &str, value: f64) {
        if let Some(series) = self.series.get_mut(name) {
            series.insert(second, value);
        } else if self.series.len() < TELEMETRY_SERIES_MAX {
            self.series.insert(name.to_owned(), BTreeMap::from([(second, value)]));
        } else {
            self.note(format!("there are more than {TELEMETRY_SERIES_MAX} series; the others are not kept"));
        }
    }

    fn note(&mut self, text: String) {
        if !self.notes.contains(&text) {
            self.notes.push(text);
        }
    }

    /// Adds CPU microseconds per operation for each process.
    fn per_operation(&mut self, operations: &BTreeMap<u64, u64>) {
        let of_processes: Vec<String> =
            self.series.keys().filter(|name| name.ends_with(".cpu_us_per_s")).cloned().collect();
        for name in of_processes {
            let figures: Vec<(u64, f64)> = self.series[&name]
                .iter()
                .filter_map(|(second, cpu_us)| {
                    let count = *operations.get(second).filter(|count| **count > 0)?;
                    Some((*second, cpu_us / count as f64))
                })
                .collect();
            let name = name.replace(".cpu_us_per_s", ".cpu_us_per_operation");
            figures.into_iter().for_each(|(second, value)| self.add(second, &name, value));
        }
    }
}

/// The previous reading of a source.
struct PreviousReading {
    at: Instant,
    counters: BTreeMap<String, f64>,
}

fn collect(mut sources: Vec<Box<dyn Source>>, at: Instant, on_stop: &mpsc::Receiver<()>) -> Collected {
    let mut collected = Collected::default();
    let mut last: Vec<Option<PreviousReading>> = sources.iter().map(|_| None).collect();
    let mut second = 0;
    read_all(&mut sources, &mut last, None, &mut collected);
    loop {
        let next = at + SECOND * (second + 1);
        match on_stop.recv_timeout(next.saturating_duration_since(Instant::now())) {
            Err(mpsc::RecvTimeoutError::Timeout) => {}
            Ok(()) | Err(mpsc::RecvTimeoutError::Disconnected) => return collected,
        }
        read_all(&mut sources, &mut last, Some(second.into()), &mut collected);
        // A source that takes longer than a second has no value for some seconds.
        second = (second + 1).max(u32::try_from(at.elapsed().as_secs()).unwrap_or(u32::MAX));
    }
}

fn read_all(
    sources: &mut [Box<dyn Source>],
    last: &mut [Option<PreviousReading>],
    second: Option<u64>,
    collected: &mut Collected,
) {
    for (source, last) in sources.iter_mut().zip(last) {
        let readings = match source.read() {
            Ok(readings) => readings,
            Err(why) => {
                *last = None;
                collected.note(format!("{}: {why}", source.prefix()));
                continue;
            }
        };
        let now = Instant::now();
        let mut counters = BTreeMap::new();
        for (name, kind, value) in readings {
            match (kind, second) {
                (ValueKind::Gauge, Some(second)) => {
                    collected.add(second, &format!("{}.{name}", source.prefix()), value);
                }
                (ValueKind::Gauge, None) => {}
                (ValueKind::Counter | ValueKind::Share, _) => {
                    let before = last.as_ref().and_then(|last| Some((last.at, *last.counters.get(&name)?)));
                    if let (Some(second), Some((at, before))) = (second, before)
                        // A smaller value means that the server was restarted.
                        && value >= before
                    {
                        let per_s = (value - before) / (now - at).as_secs_f64();
                        let unit = if kind == ValueKind::Counter { "_per_s" } else { "" };
                        collected.add(second, &format!("{}.{name}{unit}", source.prefix()), per_s);
                    }
                    counters.insert(name, value);
                }
            }
        }
        *last = Some(PreviousReading { at: now, counters });
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::recorder::{ClassSecond, Second};

    /// A source that grows by ten each time, then goes back once, then fails.
    struct Pretend(u32);

    impl Source for Pretend {
        fn prefix(&self) -> &str {
            "pretend"
        }

        fn read(&mut self) -> Result<Readings, String> {
            self.0 += 1;
            match self.0 {
                5 => Err("the server does not answer".to_owned()),
                n => {
                    let count = if n == 4 { 1.0 } else { f64::from(n) * 10.0 };
                    Ok(vec![
                        ("things".to_owned(), ValueKind::Counter, count),
                        ("level".to_owned(), ValueKind::Gauge, f64::from(n)),
                    ])
                }
            }
        }
    }

    #[test]
    fn counters_become_rates_and_gaps_stay_gaps() {
        let mut sources: Vec<Box<dyn Source>> = vec![Box::new(Pretend(0))];
        let mut last = vec![None];
        let mut collected = Collected::default();
        read_all(&mut sources, &mut last, None, &mut collected);
        for second in 0..6 {
            read_all(&mut sources, &mut last, Some(second), &mut collected);
        }
        let levels: Vec<u64> = collected.series["pretend.level"].keys().copied().collect();
        assert_eq!(levels, [0, 1, 2, 4, 5], "the fifth reading failed");
        let rates: Vec<u64> = collected.series["pretend.things_per_s"].keys().copied().collect();
        assert_eq!(rates, [0, 1, 5], "neither the restart nor the first reading after a gap has a rate");
        assert_eq!(collected.notes, ["pretend: the server does not answer"]);
    }

    #[test]
    fn cpu_time_is_divided_by_the_operations_of_its_second() {
        let mut collected = Collected::default();
        collected.add(0, "target.cpu_us_per_s", 500_000.0);
        collected.add(1, "target.cpu_us_per_s", 400_000.0);
        collected.add(2, "target.cpu_us_per_s", 1.0);
        collected.per_operation(&BTreeMap::from([(0, 1_000), (1, 2_000), (2, 0)]));
        let of = &collected.series["target.cpu_us_per_operation"];
        assert_eq!(of, &BTreeMap::from([(0, 500.0), (1, 200.0)]));
    }

    #[test]
    fn a_run_is_followed_from_its_first_segment() {
        let own = Process::new(std::process::id(), "generator").unwrap();
        let mut collector = Collector::start(vec![Box::new(own), Box::new(Host)]);
        collector.on_event(&Event::Started { segment: 0, at: Instant::now() });
        thread::sleep(Duration::from_millis(1_200));
        let mut second = Second::new(0, 1);
        second.classes[0] = ClassSecond { completed: 100, ..ClassSecond::default() };
        collector.on_event(&Event::Second(Box::new(second)));
        let collected = collector.finish();
        for name in ["generator.rss_bytes", "generator.open_files", "generator.cpu_us_per_operation"] {
            assert!(collected.series.get(name).is_some_and(|s| s.contains_key(&0)), "{name}: {collected:?}");
        }
        assert!(collected.series.contains_key("host.busy_percent"), "{collected:?}");
    }

    #[test]
    fn a_collector_that_never_began_ends() {
        assert_eq!(Collector::start(Vec::new()).finish(), Collected::default());
    }
}
