//! Keys of a scenario for publishers and subscribers: `[dataset]`, and the overrides of a phase or a mix.

use load::payload::PAYLOAD_BYTES_MAX;
use load::scenario::{Arrival, Mix, Phase, Scenario, typed};
use serde::Deserialize;
use wire::mqtt::{QoS, is_valid_name};

use super::message::STAMP_BYTES;
use crate::mqtt::{Version, defaults};

/// The largest number of subscriptions of a connection.
const SUBSCRIPTIONS_MAX: u32 = 100;

/// What the connections of a mix do.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "lowercase")]
pub(super) enum Role {
    Publish,
    /// Subscribe and receive.
    Subscribe,
}

/// Keys of the connections of one mix.
#[derive(Debug, Clone, PartialEq, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct BrokerOptions {
    role: Option<Role>,
    #[serde(default = "own_topic")]
    topic: String,
    topics: Option<u32>,
    #[serde(default = "one_subscription")]
    subscriptions: u32,
    #[serde(default = "defaults::payload_bytes")]
    pub(super) payload_bytes: usize,
    #[serde(default = "defaults::qos")]
    qos: u8,
    messages: Option<u64>,
    #[serde(default = "always")]
    clean_start: bool,
    #[serde(default)]
    session_expiry_s: u32,
    #[serde(default)]
    resume: bool,
    #[serde(default = "version_5")]
    version: String,
    #[serde(default = "defaults::token_prefix")]
    pub(super) token_prefix: String,
    #[serde(default = "defaults::device_prefix")]
    pub(super) device_prefix: String,
    pub(super) devices: Option<u32>,
    #[serde(default = "defaults::keep_alive_s")]
    pub(super) keep_alive_s: u16,
}

fn own_topic() -> String {
    "devices/{device}/bench".to_owned()
}

fn one_subscription() -> u32 {
    1
}

fn version_5() -> String {
    "5".to_owned()
}

fn always() -> bool {
    true
}

/// The connections of one mix.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct Group {
    pub(super) role: Role,
    pub(super) connections: u32,
    pub(super) qos: QoS,
    /// The class of messages of publishers, and of deliveries to subscribers.
    pub(super) class: u16,
    /// Messages of each publisher; `None` for as many as the load has.
    pub(super) messages: Option<u64>,
    /// The number of subscriptions of each subscriber.
    pub(super) subscriptions: u32,
    pub(super) clean_start: bool,
    /// How long the session outlives its connection, seconds; MQTT 5 only.
    pub(super) session_expiry_s: u32,
    /// Whether a session of an earlier phase must be there.
    pub(super) resume: bool,
}

/// The topics of a phase. Connection n of a mix has topic n modulo their number.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Topics {
    pattern: String,
    device_prefix: String,
    pub(super) count: u32,
}

impl Topics {
    /// Topic `topic` of subscription `subscription`.
    pub(super) fn name(&self, topic: u32, subscription: u32) -> String {
        self.pattern
            .replace("{device}", &format!("{}{topic}", self.device_prefix))
            .replace("{topic}", &topic.to_string())
            .replace("{subscription}", &subscription.to_string())
    }

    /// The number of connections, of `connections` in all, that have this topic.
    pub(super) fn sharing(&self, topic: u32, connections: u32) -> u32 {
        connections.saturating_sub(topic).div_ceil(self.count)
    }
}

/// The mixes of a phase, and what they have in common.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct PhaseClients {
    pub(super) options: BrokerOptions,
    pub(super) groups: Vec<Group>,
    pub(super) topics: Topics,
}

impl PhaseClients {
    pub(super) fn read(scenario: &Scenario, phase: &Phase) -> Result<Self, String> {
        // A separate check of `[dataset]` gives better suggestions.
        typed::<BrokerOptions>(scenario.dataset.clone(), "[dataset]", &[])?;
        Self::of(scenario, phase, &phase.place()).map_err(|what| phase.error(what))
    }

    fn of(scenario: &Scenario, phase: &Phase, place: &str) -> Result<Self, String> {
        let mut all: Option<BrokerOptions> = None;
        let mut groups: Vec<Group> = Vec::with_capacity(phase.mixes.len());
        for mix in &phase.mixes {
            let options: BrokerOptions = mix.options(&scenario.dataset, place)?;
            let group = options.group(scenario, mix)?;
            if groups.iter().any(|known| known.role == group.role) {
                return Err("a phase has at most one mix that publishes and one that subscribes".to_owned());
            }
            groups.push(group);
            match &all {
                Some(first) if first.of_all() != options.of_all() => {
                    return Err(format!(
                        "mix `{}` has other topics, messages or devices than `{}`: mixes differ in role, qos, messages, subscriptions \
                         and sessions alone",
                        mix.name, phase.mixes[0].name
                    ));
                }
                Some(_) => {}
                None => all = Some(options),
            }
        }
        let options = all.ok_or("it has no mix")?;
        let most = groups.iter().map(|group| group.connections).max().unwrap_or(1);
        let topics = Topics {
            pattern: options.topic.clone(),
            device_prefix: options.device_prefix.clone(),
            count: options.topics.unwrap_or(most),
        };
        let clients = Self { options, groups, topics };
        clients.check(phase)?;
        Ok(clients)
    }

    fn check(&self, phase: &Phase) -> Result<(), String> {
        let stepped = |mix: &Mix| matches!(mix.arrival, Arrival::Steps | Arrival::Staircase);
        if phase.mixes.iter().any(stepped) {
            return Err("deliveries belong to one rate: use several phases instead of steps".to_owned());
        }
        if phase.duration.is_none()
            && self.groups.iter().all(|group| group.messages.is_none() && !group.resume)
        {
            return Err("it has no `duration` and no `messages`, and would never end".to_owned());
        }
        self.check_end(phase)?;
        if self.topics.count == 0 {
            return Err("topics = 0; use at least 1".to_owned());
        }
        let subscriptions = self.groups.iter().map(|group| group.subscriptions).max().unwrap_or(0);
        if subscriptions > 1 && !self.options.topic.contains("{subscription}") {
            return Err(format!(
                "{subscriptions} subscriptions need as many topics: write {{subscription}} into `topic`"
            ));
        }
        let name = self.topics.name(0, 0);
        if !is_valid_name(&name) || name.contains(['{', '}']) {
            return Err(format!(
                "topic = \"{}\"; it must be a topic name in which {{device}}, {{topic}} and {{subscription}} may appear",
                self.options.topic
            ));
        }
        if self.groups.iter().any(|group| group.resume) && self.groups.len() > 1 {
            return Err(
                "sessions that return have a phase of their own: publish in the phase before it".to_owned()
            );
        }
        if self.groups.iter().any(|group| group.role == Role::Publish && !group.clean_start) {
            return Err("only subscribers have sessions that stay: leave clean_start out where it publishes"
                .to_owned());
        }
        Ok(())
    }

    /// Refuses a load that ends with its messages if a thread would have no publisher: it could not see the end.
    fn check_end(&self, phase: &Phase) -> Result<(), String> {
        let Some(publishers) = self.with(Role::Publish) else { return Ok(()) };
        if publishers.messages.is_some() && self.groups.len() > 1 && phase.threads > publishers.connections {
            return Err(format!(
                "with `messages` each thread needs a publisher: use threads = {} or more publishers",
                publishers.connections
            ));
        }
        Ok(())
    }

    /// The group that publishes, or the one that subscribes.
    pub(super) fn with(&self, role: Role) -> Option<&Group> {
        self.groups.iter().find(|group| group.role == role)
    }

    /// The protocol version of all connections.
    pub(super) fn version(&self) -> Result<Version, String> {
        self.options.version.parse()
    }

    /// The number of devices that connect.
    pub(super) fn devices(&self) -> u32 {
        self.groups.iter().map(|group| group.connections).max().unwrap_or(0)
    }
}

impl BrokerOptions {
    /// The keys that are the same for all mixes of a phase.
    fn of_all(&self) -> impl PartialEq + '_ {
        let Self { topic, topics, payload_bytes, version, token_prefix, device_prefix, devices, .. } = self;
        (topic, topics, payload_bytes, version, token_prefix, device_prefix, devices, self.keep_alive_s)
    }

    fn group(&self, scenario: &Scenario, mix: &Mix) -> Result<Group, String> {
        self.version.parse::<Version>()?;
        let role = self.role.ok_or_else(|| {
            format!("mix `{}` has no role: use role = \"publish\" or \"subscribe\"", mix.name)
        })?;
        let qos = QoS::from_bits(self.qos).ok_or_else(|| format!("qos = {}; use 0, 1 or 2", self.qos))?;
        if !(STAMP_BYTES..=PAYLOAD_BYTES_MAX).contains(&self.payload_bytes) {
            return Err(format!(
                "payload_bytes = {}; use {STAMP_BYTES} (number and times of a message) to {PAYLOAD_BYTES_MAX}",
                self.payload_bytes
            ));
        }
        if self.subscriptions > SUBSCRIPTIONS_MAX {
            return Err(format!("subscriptions = {}; use at most {SUBSCRIPTIONS_MAX}", self.subscriptions));
        }
        if self.resume && self.clean_start {
            return Err("resume = true needs clean_start = false".to_owned());
        }
        let is_v5 = self.version.parse() == Ok(Version::V5);
        if is_v5 && !self.clean_start && self.session_expiry_s == 0 {
            return Err(
                "a session of MQTT 5 stays as long as it asks: clean_start = false needs session_expiry_s"
                    .to_owned(),
            );
        }
        let is_publisher = role == Role::Publish;
        if !is_publisher && !matches!(mix.arrival, Arrival::Idle | Arrival::Reopen) {
            return Err(format!(
                "mix `{}` subscribes and sends nothing: arrival = \"idle\", or \"reopen\" to measure its connects",
                mix.name
            ));
        }
        if is_publisher && matches!(mix.arrival, Arrival::Idle | Arrival::Reopen) {
            return Err(format!(
                "mix `{}` publishes: use arrival = \"poisson\", \"fixed\" or \"closed\"",
                mix.name
            ));
        }
        // The first operation of connections that are opened again is their connect.
        let name = mix.operations.last().ok_or("the file has no [[operation]]")?;
        Ok(Group {
            role,
            connections: mix.connections,
            qos,
            class: scenario.class_of(name),
            messages: self.messages.filter(|_| is_publisher),
            subscriptions: if is_publisher { 0 } else { self.subscriptions },
            clean_start: self.clean_start,
            session_expiry_s: self.session_expiry_s,
            resume: self.resume,
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn of_phase(scenario: &str, phase: usize, sets: &[&str]) -> Result<PhaseClients, String> {
        let sets: Vec<String> = sets.iter().map(|set| (*set).to_owned()).collect();
        let scenario = Scenario::load(scenario, &sets).map_err(|error| error.to_string())?;
        PhaseClients::read(&scenario, &scenario.phases[phase])
    }

    #[test]
    fn connections_share_topics_by_their_number() {
        let pairs = of_phase("broker-pairs", 0, &[]).unwrap();
        assert_eq!((pairs.topics.count, pairs.topics.sharing(7, 1_000)), (1_000, 1));
        assert_eq!(pairs.topics.name(7, 0), "devices/dev-7/bench");
        let fanout = of_phase("broker-fanout", 0, &["dataset.topics=3"]).unwrap();
        let sharing: Vec<u32> = (0..3).map(|topic| fanout.topics.sharing(topic, 1_000)).collect();
        assert_eq!(sharing, [334, 333, 333]);
        assert_eq!((fanout.topics.sharing(2, 2), fanout.topics.name(2, 0).as_str()), (0, "bench/2"));
        let connects = of_phase("broker-connects", 0, &[]).unwrap();
        assert_eq!(connects.topics.name(9, 4), "devices/dev-9/bench/4");
    }

    #[test]
    fn a_phase_says_what_its_clients_do() {
        let back = of_phase("broker-offline", 2, &[]).unwrap();
        let [group] = &back.groups[..] else { panic!("{back:?}") };
        assert!(group.resume && !group.clean_start && group.session_expiry_s > 0);
        // The connect is the first operation, the delivery the last.
        assert_eq!((group.role, group.class), (Role::Subscribe, 2));
        let queue = of_phase("broker-offline", 1, &["phase.queue.messages=7"]).unwrap();
        assert_eq!(queue.with(Role::Publish).and_then(|group| group.messages), Some(7));
        assert_eq!(queue.with(Role::Subscribe), None);
    }

    #[test]
    fn what_would_never_end_or_has_no_sense_is_refused() {
        let both = r#"phase.return.mix=[{ name = "a" }, { name = "b", role = "publish", arrival = "closed", clean_start = true, resume = false }]"#;
        for (scenario, phase, sets, expected) in [
            ("broker-fanout", 0, &["phase.run.duration=''"][..], "duration"),
            ("broker-pairs", 0, &["phase.run.mix.publishers.arrival=idle"], "mix `publishers` publishes"),
            (
                "broker-pairs",
                0,
                &["phase.run.steps=3", "phase.run.rate_to=9", "phase.run.mix.publishers.arrival=steps"],
                "several phases",
            ),
            ("broker-offline", 2, &[both], "a phase of their own"),
            ("broker-fanout-closed", 0, &["phase.run.threads=2"], "each thread needs a publisher"),
            (
                "broker-connects",
                0,
                &["dataset.subscriptions=101", "phase.idle.subscriptions=101"],
                "at most 100",
            ),
        ] {
            let error = of_phase(scenario, phase, sets).err().unwrap_or_default();
            assert!(error.contains(expected), "{sets:?}: {error}");
        }
    }
}
