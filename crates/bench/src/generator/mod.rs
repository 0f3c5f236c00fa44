//! The fleet of the ThingsBoard scenario: devices that publish at QoS 1, as one segment on the event engine.

use std::net::SocketAddr;
use std::time::Duration;

use wire::mqtt::QoS;

use crate::driver::mqtt::{Config, Mqtt};
use crate::engine::{self, Event, Segment, event};
use crate::error::{Error, Result};
use crate::limits::SILENCE_TIMEOUT_S;
use crate::payload::Template;
use crate::recorder::{Class, Window};

pub use crate::driver::mqtt::{Tally, Version as Protocol};
pub use crate::engine::{Load, Shared};

/// A run as the generator sees it.
#[derive(Debug, Clone)]
pub struct Plan {
    /// MQTT listener.
    pub target: SocketAddr,
    /// Connections, one per device, devices 0..connections.
    pub connections: u32,
    /// Worker threads.
    pub threads: u32,
    /// Protocol version of all connections.
    pub protocol: Protocol,
    /// Device n authenticates with the user name `<token_prefix>n`.
    pub token_prefix: String,
    /// Keep-alive announced and kept.
    pub keep_alive_s: u16,
    /// Open loop: the workers look at sockets and schedule at most this often, microseconds; 0 for at once. What it
    /// adds to a latency is counted in it.
    pub tick_us: u32,
    /// What each message says.
    pub payload: Template,
    /// What the connections do.
    pub load: Load,
    /// Beginning of the load that is not measured.
    pub warmup: Duration,
    /// Measured part.
    pub duration: Duration,
    /// Longest wait for outstanding answers after the end of the load.
    pub drain: Duration,
    /// No timestamp lies before this one, milliseconds since the epoch.
    pub floor_ts_ms: u64,
}

impl Plan {
    /// The measured part, after the start of the load.
    pub fn window(&self) -> Window {
        self.segment().window()
    }

    fn segment(&self) -> Segment {
        Segment {
            name: "run".to_owned(),
            loads: vec![self.load],
            warmup: self.warmup,
            duration: self.duration,
            drain: self.drain,
        }
    }

    fn engine_plan(&self) -> engine::Plan {
        engine::Plan {
            target: self.target,
            sources: Vec::new(),
            groups: vec![self.connections],
            classes: vec!["publish".to_owned()],
            threads: self.threads,
            part: (0, 1),
            open_rate: None,
            connect: engine::Connect::default(),
            tick_us: self.tick_us,
            silence: Duration::from_secs(SILENCE_TIMEOUT_S),
            segments: vec![self.segment()],
        }
    }
}

/// What a run brought.
#[derive(Debug)]
pub struct Outcome {
    /// Histograms and counters.
    pub recorder: Class,
    /// Per device, by index.
    pub tallies: Vec<Tally>,
    /// Time to open all connections.
    pub connect_time: Duration,
    /// First possible timestamp of this run, milliseconds.
    pub base_ts_ms: u64,
}

/// Opens the connections, runs the load, waits for outstanding answers, disconnects.
pub fn run(plan: &Plan, shared: &Shared, on_event: impl FnMut(Event)) -> Result<Outcome> {
    let mqtt = Mqtt::new(Config {
        version: plan.protocol,
        qos: QoS::AtLeastOnce,
        class: 0,
        token_prefix: plan.token_prefix.clone(),
        keep_alive_s: plan.keep_alive_s,
        payload: plan.payload.clone(),
        floor_ts_ms: plan.floor_ts_ms,
    });
    let outcome = event::run(&mqtt, &plan.engine_plan(), shared, on_event)?;
    let segment = outcome.segments.first().ok_or(Error::Stopped)?;
    Ok(Outcome {
        recorder: segment.recorder.total(),
        tallies: outcome.sessions.iter().map(|session| session.tally).collect(),
        connect_time: outcome.connect_time,
        base_ts_ms: segment.started_ms.max(plan.floor_ts_ms),
    })
}
