//! The wrappers of this machine: `system-time`, `memory-usage`, `free-disk-space` and `multiformat`.

use std::hash::{BuildHasher, RandomState};
use std::time::Duration;

use model::ValueRef;
use tokio::time::{MissedTickBehavior, interval};

use super::failure::Failure;
use super::sink::ElementSink;

/// Something of this machine that has values at any time.
pub(super) trait Reading {
    /// The values of the present moment, which is given in milliseconds since 1970.
    fn values(&self, now_ms: i64) -> Result<Vec<(&'static str, ValueRef<'static>)>, Failure>;
}

/// Makes an element at each turn of the clock. Turns that were missed are left out.
pub(super) async fn read(
    reading: &impl Reading,
    period_ms: u64,
    sink: &mut ElementSink,
) -> Result<(), Failure> {
    let mut turns = interval(Duration::from_millis(period_ms));
    turns.set_missed_tick_behavior(MissedTickBehavior::Skip);
    loop {
        turns.tick().await;
        let ts = sink.hub().receipt_time();
        let values = reading.values(ts.millis())?;
        sink.connected();
        if let Err(reason) = sink.element(ts, values) {
            sink.refuse(&reason, b"");
        }
        sink.store(b"").await?;
    }
}

/// `system-time`. GSN has no field; a row needs one.
pub(super) struct Clock;

impl Reading for Clock {
    fn values(&self, now_ms: i64) -> Result<Vec<(&'static str, ValueRef<'static>)>, Failure> {
        Ok(vec![("clock", ValueRef::I64(now_ms))])
    }
}

/// `memory-usage`: the resident memory of this process, in bytes. `heap` is what it has allocated, `non_heap` are its files.
pub(super) struct Memory;

const STATUS: &str = "/proc/self/status";

impl Reading for Memory {
    fn values(&self, _: i64) -> Result<Vec<(&'static str, ValueRef<'static>)>, Failure> {
        let status = std::fs::read_to_string(STATUS);
        let status = status.map_err(|error| Failure::while_(format_args!("cannot read {STATUS}"), error))?;
        let (heap, non_heap) = memory(&status)
            .ok_or_else(|| Failure::new(format!("{STATUS} does not name the memory of the process")))?;
        Ok(vec![
            ("heap", ValueRef::I64(heap)),
            ("non_heap", ValueRef::I64(non_heap)),
            // Of the virtual machine of Java.
            ("pending_finalization_count", ValueRef::I64(0)),
        ])
    }
}

/// The anonymous memory and the memory of files, in bytes.
fn memory(status: &str) -> Option<(i64, i64)> {
    let bytes = |name: &str| {
        let line = status.lines().find_map(|line| line.strip_prefix(name))?;
        let kilobytes: i64 = line.trim().strip_suffix("kB")?.trim().parse().ok()?;
        Some(kilobytes * 1_024)
    };
    Some((bytes("RssAnon:")?, bytes("RssFile:")? + bytes("RssShmem:")?))
}

/// `free-disk-space`: that of the root file system, in units of 1,048,576 bytes.
pub(super) struct Disk;

impl Reading for Disk {
    fn values(&self, _: i64) -> Result<Vec<(&'static str, ValueRef<'static>)>, Failure> {
        let found = rustix::fs::statvfs("/");
        let found = found.map_err(|error| Failure::while_("cannot read the free space of /", error))?;
        let megabytes = found.f_bfree.saturating_mul(found.f_frsize) / (1024 * 1024);
        Ok(vec![("free_space", ValueRef::I64(i64::try_from(megabytes).unwrap_or(i64::MAX)))])
    }
}

/// `multiformat`: random readings of a temperature below 100 and a light below 1000.
pub(super) struct Random;

impl Reading for Random {
    fn values(&self, _: i64) -> Result<Vec<(&'static str, ValueRef<'static>)>, Failure> {
        // Each state has keys of its own, which nobody knows before.
        let random = |below: u64| (RandomState::new().hash_one(below) % below) as f64 / 10.0;
        Ok(vec![
            ("packet_type", ValueRef::I64(2)),
            ("temperature", ValueRef::F64(random(1_000))),
            ("light", ValueRef::F64(random(10_000))),
        ])
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_memory_of_a_process_is_read() {
        let status =
            "Name:\ttacho\nVmRSS:\t  99 kB\nRssAnon:\t  10 kB\nRssFile:\t   4 kB\nRssShmem:\t   1 kB\n";
        assert_eq!(memory(status), Some((10_240, 5_120)));
        assert_eq!(memory("Name: tacho\n"), None);
    }

    #[test]
    fn each_reading_has_the_fields_of_its_wrapper() {
        let names = |reading: &dyn Reading| {
            reading.values(7).unwrap().into_iter().map(|(name, _)| name).collect::<Vec<_>>().join(",")
        };
        assert_eq!(names(&Clock), "clock");
        assert_eq!(names(&Memory), "heap,non_heap,pending_finalization_count");
        assert_eq!(names(&Disk), "free_space");
        assert_eq!(names(&Random), "packet_type,temperature,light");
        let temperatures: Vec<_> = (0..9).map(|_| Random.values(0).unwrap()[1].1).collect();
        assert!(temperatures.iter().any(|one| *one != temperatures[0]), "{temperatures:?}");
    }
}
