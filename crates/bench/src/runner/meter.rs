//! Measures the cost of each segment: CPU time of the generator, the server and the machine, and memory of the server.

use std::fs;
use std::time::{Duration, Instant};

use load::engine::{Event, Segment, Shared};
use load::process::own_cpu;
use load::result::Cost;
use load::server_process::ServerProcess;

#[derive(Debug, Clone, Copy)]
struct Sample {
    at: Instant,
    completed: u64,
    /// CPU time without busy polling.
    generator: Duration,
    polled: Duration,
    server: Option<Duration>,
    machine: Option<Machine>,
}

/// Ticks of all processors since the start of the machine.
#[derive(Debug, Clone, Copy)]
struct Machine {
    total: u64,
    steal: u64,
}

/// The cost of one segment.
#[derive(Debug, Clone)]
pub(crate) struct Metered {
    pub(crate) began: Instant,
    pub(crate) cost: Cost,
    /// CPU time of this process without busy polling, seconds.
    pub(crate) generator_cpu_s: f64,
    /// The share of the processors' time that the hypervisor took.
    pub(crate) steal: Option<f64>,
}

/// Takes samples at the start and the end of the measured part of each segment.
#[derive(Debug)]
pub(crate) struct Meter<'a> {
    server: Option<ServerProcess>,
    plan: &'a [Segment],
    segment: usize,
    began: Instant,
    first: Option<Sample>,
    last: Option<Sample>,
    rss_max: Option<u64>,
    /// The latest value. The meter reads it at the start and the end of each segment and its measured part, and at the
    /// end of each second.
    rss_now: Option<u64>,
    connections: u32,
    /// Memory before the first connection, and with all connections and no load.
    rss_before: Option<u64>,
    rss_connected: Option<u64>,
    done: Vec<Metered>,
}

impl<'a> Meter<'a> {
    /// Must be called before the first of `connections` is opened.
    pub(crate) fn new(server: Option<ServerProcess>, plan: &'a [Segment], connections: u32) -> Self {
        Self {
            connections,
            rss_before: server.as_ref().and_then(ServerProcess::rss_bytes),
            rss_connected: None,
            server,
            plan,
            segment: 0,
            began: Instant::now(),
            first: None,
            last: None,
            rss_max: None,
            rss_now: None,
            done: Vec::new(),
        }
    }

    /// The index of the current segment.
    pub(crate) fn segment(&self) -> usize {
        self.segment
    }

    /// The start of the current segment's load.
    pub(crate) fn segment_began(&self) -> Instant {
        self.began
    }

    /// The server's memory, at most a second old.
    pub(crate) fn rss(&self) -> Option<u64> {
        self.rss_now
    }

    fn read_rss(&mut self) -> Option<u64> {
        self.rss_now = self.server.as_ref().and_then(ServerProcess::rss_bytes);
        self.rss_now
    }

    /// Takes an event of the engine.
    pub(crate) fn on_event(&mut self, event: &Event, shared: &Shared) {
        match event {
            Event::Connecting(_) => return,
            Event::Started { segment, at } => {
                self.close(shared);
                (self.segment, self.began) = (*segment, *at);
                let rss = self.read_rss();
                self.rss_connected = self.rss_connected.or(rss);
            }
            // Not at every tick: reading takes processor time from the load.
            Event::Second(_) => _ = self.read_rss(),
            Event::Note(_) | Event::Tick => {}
        }
        let plan = &self.plan[self.segment];
        let elapsed = self.began.elapsed();
        if self.first.is_none() && elapsed >= plan.warmup {
            self.read_rss();
            self.rss_max = self.rss_now;
            self.first = Some(self.sample(shared));
        } else if self.first.is_some() && self.last.is_none() {
            if elapsed >= plan.warmup.saturating_add(plan.duration) {
                self.read_rss();
                self.last = Some(self.sample(shared));
            }
            self.rss_max = self.rss_max.max(self.rss_now);
        }
    }

    /// Ends the last segment.
    pub(crate) fn finish(mut self, shared: &Shared) -> Vec<Metered> {
        self.close(shared);
        self.done
    }

    fn close(&mut self, shared: &Shared) {
        let Some(first) = self.first.take() else { return };
        if self.last.is_none() {
            // The segment may have ended within its first second.
            self.rss_max = self.rss_max.max(self.read_rss());
        }
        let last = self.last.take().unwrap_or_else(|| self.sample(shared));
        let operations = last.completed.saturating_sub(first.completed) as f64;
        let seconds = (last.at - first.at).as_secs_f64();
        let per_operation = |cpu: Duration| (operations > 0.0).then(|| cpu.as_secs_f64() * 1e6 / operations);
        let percent = |cpu: Duration| (seconds > 0.0).then(|| cpu.as_secs_f64() * 100.0 / seconds);
        let generator = last.generator.saturating_sub(first.generator);
        let polled = last.polled.saturating_sub(first.polled);
        let server = last.server.zip(first.server).map(|(last, first)| last.saturating_sub(first));
        let steal = last.machine.zip(first.machine).and_then(|(last, first)| {
            let total = last.total.saturating_sub(first.total);
            (total > 0).then(|| last.steal.saturating_sub(first.steal) as f64 / total as f64)
        });
        self.done.push(Metered {
            began: self.began,
            cost: Cost {
                generator_cpu_us_per_operation: per_operation(generator),
                generator_cpu_percent: percent(generator),
                generator_polling_percent: percent(polled).filter(|_| !polled.is_zero()),
                target_cpu_us_per_operation: server.and_then(per_operation),
                target_cpu_percent: server.and_then(percent),
                target_rss_bytes_max: self.rss_max.take(),
                target_rss_bytes_per_connection: self.rss_before.zip(self.rss_connected).map(
                    |(before, connected)| {
                        (connected as f64 - before as f64) / f64::from(self.connections.max(1))
                    },
                ),
            },
            generator_cpu_s: generator.as_secs_f64(),
            steal,
        });
    }

    fn sample(&self, shared: &Shared) -> Sample {
        let polled = shared.polled();
        Sample {
            at: Instant::now(),
            completed: shared.completed(),
            generator: own_cpu().saturating_sub(polled),
            polled,
            server: self.server.as_ref().and_then(ServerProcess::cpu),
            machine: fs::read_to_string("/proc/stat").ok().and_then(|text| machine(&text)),
        }
    }
}

/// Parses the line `cpu` of proc_stat(5): user nice system idle iowait irq softirq steal. Guest times are included in
/// user.
fn machine(stat: &str) -> Option<Machine> {
    let line = stat.lines().find_map(|line| line.strip_prefix("cpu "))?;
    let ticks: Vec<u64> = line.split_whitespace().map_while(|word| word.parse().ok()).take(8).collect();
    Some(Machine { total: ticks.iter().sum(), steal: *ticks.get(7)? })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn steal_is_the_eighth_number() {
        let machine = machine("cpu  10 20 30 40 50 60 70 80 1 2\ncpu0 1 1 1 1 1 1 1 1 0 0\n").unwrap();
        assert_eq!((machine.total, machine.steal), (360, 80));
        assert!(super::machine("cpu 1 2 3\n").is_none());
    }
}
