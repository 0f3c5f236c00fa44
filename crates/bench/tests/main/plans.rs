//! The common plans of the engine tests.

use std::net::SocketAddr;
use std::time::Duration;

use load::engine::{Connect, Load, Plan, Segment};

/// A segment of one load for one thread of one process; operations have one class.
pub(crate) fn plan(target: SocketAddr, connections: u32, load: Load, duration: Duration) -> Plan {
    Plan {
        target,
        elsewhere: Vec::new(),
        tls: None,
        sources: Vec::new(),
        groups: vec![connections],
        classes: vec!["operation".to_owned()],
        threads: 1,
        part: (0, 1),
        open_rate: None,
        connect: Connect::default(),
        tick_us: 0,
        busy_poll_us: 0,
        silence: Duration::from_secs(10),
        segments: vec![segment(load, duration)],
    }
}

/// One load without warm-up.
pub(crate) fn segment(load: Load, duration: Duration) -> Segment {
    Segment {
        name: "run".to_owned(),
        loads: vec![load],
        warmup: Duration::ZERO,
        duration,
        drain: Duration::from_secs(10),
    }
}
