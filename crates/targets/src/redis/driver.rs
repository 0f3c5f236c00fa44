//! Scenarios of driver `redis`.
//!
//! `[dataset]`, phases and mixes: `prefix`, `keys`, `base`, `size`, `content`, `deviation`, `median`, `exponent`,
//! `requests`, `distinct_seeds`. `target.url` is redis://user:password@host:port/database?resp=3. Operations:
//! `command`, `pattern`; `weight` is the ratio.

use std::collections::BTreeMap;
use std::net::SocketAddr;

use clients::passwords;
use clients::redis::{Login, RedisClient, RedisError};
use clients::target_url::{REDIS, TargetUrl, without_password};
use clients::tls::TlsClient;
use load::engine::{Ended, SegmentOutcome, event};
use load::progress::Progress;
use load::result::{Check, RunResult, Target};
use load::sampling::{Source, has_name, is_local};
use load::scenario::{Phase, PhaseKind, Scenario};
use load::{Error, Result};

use super::options::groups;
use super::source::RedisSource;
use super::{GroupConfig, Redis};
use crate::Context;
use crate::command_line::{left_behind, load_command, shell_word, tls_flags};
use crate::driver::{
    Capabilities, Counts, Driver, NOT_OPEN, Opened, PhaseCapabilities, PhaseEnd, PhaseRun, SLICE_MS_EVENTS,
    TargetKind, Verdict,
};
use crate::plan::{plan, target_url};

/// The number of keys to look up in order to see whether a data set exists.
const SAMPLED_KEYS: u64 = 100;
/// Process names of servers of this protocol, to tell them from other processes with the same id.
const PROCESS_NAMES: [&str; 4] = ["redis", "valkey", "keydb", "tacho"];

/// The registration of this driver.
pub(crate) const KIND: TargetKind = TargetKind {
    name: "redis",
    new: |scenario| Ok(Box::new(RedisDriver::new(scenario)?)),
    target_keys: false,
    operation_keys: true,
    dataset_keys: true,
};

/// The driver of one scenario.
pub(super) struct RedisDriver {
    scenario: Scenario,
    url: TargetUrl,
    login: Login,
    address: Option<SocketAddr>,
    /// TLS of the connections, known since `open`.
    tls: Option<TlsClient>,
    control: Option<RedisClient>,
    loaded: bool,
    /// The number of calls of each command before the phase.
    calls_before: BTreeMap<String, u64>,
    keys_before: Option<u64>,
    memory_before: u64,
}

impl RedisDriver {
    pub(super) fn new(scenario: &Scenario) -> std::result::Result<Self, String> {
        let url = target_url(scenario, &REDIS)?;
        let database = match url.path.as_str() {
            "" => 0,
            text => text.parse().map_err(|_| format!("target.url: `/{text}` is not a database number"))?,
        };
        let resp3 = url.parameter("resp") == Some("3");
        let password = url.password.clone().or_else(passwords::target);
        let login = Login { user: url.user.clone(), password, database, resp3 };
        for phase in &scenario.phases {
            let redis = Redis::new(groups(scenario, phase)?, login.clone());
            redis.map_err(|what| format!("{}: {what}", phase.place()))?;
        }
        Ok(Self {
            scenario: scenario.clone(),
            url,
            login,
            address: None,
            tls: None,
            control: None,
            loaded: false,
            calls_before: BTreeMap::new(),
            keys_before: None,
            memory_before: 0,
        })
    }

    fn control(&mut self) -> &mut RedisClient {
        self.control.as_mut().expect(NOT_OPEN)
    }

    /// Checks that the data set exists for a run phase, if the scenario has a load phase.
    fn check_data(&mut self, phase: &Phase) -> Result<()> {
        let has_load = self.scenario.phases.iter().any(|phase| phase.kind == PhaseKind::Load);
        if !has_load || self.loaded || phase.kind == PhaseKind::Load {
            return Ok(());
        }
        let groups = groups(&self.scenario, phase).map_err(Error::Options)?;
        if self.sampled_keys_there(&groups)? > 0 {
            return Ok(());
        }
        let loads = self.scenario.phases.iter().filter(|phase| phase.kind == PhaseKind::Load);
        let loads: Vec<&str> = loads.map(|phase| phase.name.as_str()).collect();
        let target = without_password(&self.scenario.target.url);
        Err(Error::Options(format!(
            "the data set of {} is not there: of {} keys looked for none exists. Load it first: `{}`",
            self.scenario.head.name,
            SAMPLED_KEYS * groups.len() as u64,
            load_command(&self.scenario, &loads, &target),
        )))
    }

    /// The number of [`SAMPLED_KEYS`] of each group that exist.
    fn sampled_keys_there(&mut self, groups: &[GroupConfig]) -> Result<u64> {
        let mut found = 0;
        for group in groups {
            let range = group.keys.max - group.keys.min;
            for n in 0..SAMPLED_KEYS {
                // The sample is spread over the whole range.
                let number = group.keys.min
                    + (u128::from(range) * u128::from(n) / u128::from(SAMPLED_KEYS - 1)) as u64;
                let key = format!("{}{number}", group.keys.prefix);
                found += self.control().text(&["EXISTS", &key])?.parse::<u64>().unwrap_or(0);
            }
        }
        Ok(found)
    }

    /// Checks of a load phase: a sample of the keys exists if the phase was completed, and no other key appeared.
    fn loaded_checks(&mut self, phase: &Phase, is_finished: bool) -> Result<Vec<Check>> {
        let groups = groups(&self.scenario, phase).map_err(Error::Options)?;
        // Keys of commands with several keys, or with a key inside a word, are not checked.
        if !groups.iter().all(GroupConfig::names_one_key) {
            return Ok(Vec::new());
        }
        let mut checks = Vec::new();
        let whole: Vec<GroupConfig> =
            groups.iter().filter(|group| is_finished && group.stores_each_key()).cloned().collect();
        if !whole.is_empty() {
            let looked_for = SAMPLED_KEYS * whole.len() as u64;
            let found = self.sampled_keys_there(&whole)?;
            let what = format!("sampled keys of the data set that are there ({})", phase.name);
            checks.push(Check::equal(what, looked_for, found));
        }
        let named: u64 = groups.iter().map(|group| group.keys.max - group.keys.min + 1).sum();
        let keys_before = self.keys_before;
        if let Some((before, now)) = keys_before.zip(number_of_keys(self.control())) {
            let more = now.saturating_sub(before).saturating_sub(named);
            let what = format!("keys more than the load has names for ({})", phase.name);
            checks.push(Check::equal(what, 0, more));
        }
        Ok(checks)
    }

    /// Compares the server's counts of calls with `sent`, by command.
    fn calls_check(&mut self, sent: &Counts) -> Result<Vec<Check>> {
        let before = std::mem::take(&mut self.calls_before);
        let now = self.control().command_calls()?;
        if now.is_empty() {
            // The server has no commandstats to compare with.
            return Ok(Vec::new());
        }
        let checks = sent.iter().filter(|(_, sent)| **sent > 0).map(|(name, sent)| {
            // A count below the earlier one means that the counters were reset.
            let calls = calls_of(name, &now).saturating_sub(calls_of(name, &before));
            Check::equal(format!("calls of {name} that the server counted"), sent, calls)
        });
        Ok(checks.collect())
    }

    /// The finding about the memory of a load phase's keys compared with their content.
    fn storage_finding(&mut self, phase: &Phase) -> Result<Option<String>> {
        let groups = groups(&self.scenario, phase).map_err(Error::Options)?;
        let count = |group: &GroupConfig| (group.keys.max - group.keys.min + 1) as f64;
        let all: f64 = groups.iter().map(count).sum();
        let bytes = groups.iter().map(|group| group.payload_bytes() * count(group)).sum::<f64>() / all;
        let memory_before = self.memory_before;
        let Some(keys_before) = self.keys_before else { return Ok(None) };
        let control = self.control();
        let keys = number_of_keys(control).unwrap_or(0).saturating_sub(keys_before);
        let memory = used_memory(control)?.saturating_sub(memory_before);
        if keys == 0 || memory == 0 {
            // The keys existed before.
            return Ok(None);
        }
        let stored = memory as f64 / keys as f64;
        Ok(Some(format!(
            "{keys} keys take {stored:.0} bytes of memory each for {bytes:.0} bytes of key and value: stored/logical = {:.2} \
             (keys and memory from before the load are not counted{}).",
            stored / bytes,
            if keys_before > 0 { "; what was written over them is" } else { "" }
        )))
    }
}

/// The number of calls of a command. Redis 7 counts each subcommand separately: `xgroup|create`.
fn calls_of(name: &str, counted: &BTreeMap<String, u64>) -> u64 {
    let is_it =
        |counted: &str| counted == name || counted.split_once('|').is_some_and(|(first, _)| first == name);
    counted.iter().filter(|(counted, _)| is_it(counted)).map(|(_, calls)| calls).sum()
}

/// Whether a command writes.
fn writes(command: &str) -> bool {
    const READS: [&str; 12] = [
        "GET", "MGET", "HGET", "HGETALL", "HMGET", "EXISTS", "STRLEN", "TTL", "LRANGE", "ZRANGE", "SMEMBERS",
        "DEL",
    ];
    let name = command.split_whitespace().next().unwrap_or_default().to_ascii_uppercase();
    !READS.contains(&name.as_str())
}

/// A prefix, escaped for a pattern of SCAN.
fn glob_escaped(prefix: &str) -> String {
    prefix.chars().flat_map(|c| "*?[]^\\".contains(c).then_some('\\').into_iter().chain([c])).collect()
}

/// The number of keys; `None` if the user may not ask for it.
fn number_of_keys(control: &mut RedisClient) -> Option<u64> {
    control.text(&["DBSIZE"]).ok()?.parse().ok()
}

fn used_memory(control: &mut RedisClient) -> Result<u64> {
    Ok(control.info("memory")?.get("used_memory").and_then(|text| text.parse().ok()).unwrap_or(0))
}

impl RedisDriver {
    /// The command of a client of this server, without the password.
    fn redis_cli(&self) -> String {
        let url = without_password(&self.scenario.target.url);
        let url = url.split('?').next().unwrap_or_default();
        let trust = tls_flags(self.url.tls_options());
        format!("redis-cli -u {}{trust}", shell_word(url))
    }
}

impl Driver for RedisDriver {
    fn capabilities(&self) -> Capabilities {
        Capabilities::of_events(&self.scenario)
    }

    fn phase_capabilities(&self, phase: &Phase) -> PhaseCapabilities {
        PhaseCapabilities::new(phase, &self.scenario, Some(SLICE_MS_EVENTS))
    }

    fn open(&mut self, _context: &Context, _progress: &Progress) -> Result<Opened> {
        let address = self.url.resolve()?;
        let tls = self.url.tls_client()?;
        let mut control = RedisClient::connect(address, tls.as_ref(), &self.login)?;
        let server = control.info("server").map_err(|error| match error {
            RedisError::Answer(text) if text.contains("NOAUTH") => Error::Options(format!(
                "{text} Put the password into the target's URL (redis://:PASSWORD@host) or into TACHO_TARGET_PASSWORD"
            )),
            other => other.into(),
        })?;
        let server_pid = is_local(address.ip()).then(|| server.get("process_id")?.parse().ok()).flatten();
        let server_pid = server_pid.filter(|pid| has_name(*pid, &PROCESS_NAMES));
        let product = server.get("redis_version").map(|version| {
            let name = server.get("server_name").map_or("Redis", String::as_str);
            format!("{name} {version}")
        });
        let mut settings = BTreeMap::new();
        for name in ["appendonly", "appendfsync", "save", "maxmemory", "maxmemory-policy", "io-threads"] {
            if let Ok(pair) = control.list(&["CONFIG", "GET", name])
                && let [_, value] = &pair[..]
            {
                settings.insert(name.to_owned(), String::from_utf8_lossy(value).into_owned());
            }
        }
        self.control = Some(control);
        (self.address, self.tls) = (Some(address), tls);
        let (address, tls) = (address.to_string(), self.url.verification());
        let target = Target { address, product, tls, started_by_run: false, settings };
        Ok(Opened { target, server_pid, ..Opened::default() })
    }

    fn conclusions(&self, result: &RunResult) -> Vec<String> {
        let mut prefixes: Vec<String> = Vec::new();
        let ran = |phase: &&Phase| result.phases.iter().any(|known| known.name == phase.name);
        for phase in self.scenario.phases.iter().filter(ran) {
            for group in groups(&self.scenario, phase).unwrap_or_default() {
                let prefix = &group.keys.prefix;
                if group.commands.iter().any(|command| writes(&command.text)) && !prefixes.contains(prefix) {
                    prefixes.push(prefix.clone());
                }
            }
        }
        let sentence = |prefix: &String| {
            let client = self.redis_cli();
            let pattern = shell_word(&format!("{}*", glob_escaped(prefix)));
            let command = format!("{client} --scan --pattern {pattern} | xargs -r -n 1000 {client} UNLINK");
            left_behind(&format!("keys that begin with `{prefix}`"), &command)
        };
        prefixes.iter().map(sentence).collect()
    }

    fn sources(&self) -> Vec<Box<dyn Source>> {
        let Some(address) = self.address else { return Vec::new() };
        let Login { user, password, .. } = self.login.clone();
        vec![Box::new(RedisSource::new(address, user, password).with_tls(self.tls.clone()))]
    }

    fn prepare(&mut self, phase: &Phase) -> Result<()> {
        self.check_data(phase)?;
        let control = self.control();
        let memory = used_memory(control)?;
        let keys = if phase.kind == PhaseKind::Load { number_of_keys(control) } else { None };
        // The counters come last, so that the requests above are not counted.
        let calls = control.command_calls()?;
        (self.calls_before, self.keys_before, self.memory_before) = (calls, keys, memory);
        Ok(())
    }

    fn run(&mut self, run: PhaseRun<'_>) -> Result<Vec<SegmentOutcome>> {
        let PhaseRun { phase, part, shared, on_event } = run;
        let groups = groups(&self.scenario, phase).map_err(Error::Options)?;
        let driver = Redis::new(groups, self.login.clone()).map_err(Error::Options)?;
        let address = self.address.expect(NOT_OPEN);
        let plan = plan(phase, &self.scenario, address, part).over(self.tls.clone());
        Ok(event::run(&driver, &plan, shared, on_event)?.segments)
    }

    /// Counts commands by their first word.
    fn local_counts(&mut self, segments: &[SegmentOutcome]) -> Counts {
        let mut sent = Counts::new();
        for (index, operation) in self.scenario.operations.iter().enumerate() {
            let command =
                operation.driver_keys.get("command").and_then(toml::Value::as_str).unwrap_or_default();
            let name = command.split_whitespace().next().unwrap_or_default().to_ascii_lowercase();
            let count: u64 = segments.iter().map(|s| s.recorder.classes()[index].counts.sent).sum();
            *sent.entry(name).or_default() += count;
        }
        sent
    }

    fn verify(&mut self, end: &PhaseEnd<'_>) -> Result<Verdict> {
        let mut checks = self.calls_check(end.all_counts)?;
        let mut findings = Vec::new();
        if end.phase.kind == PhaseKind::Load {
            self.loaded = true;
            let is_finished = end.segments.iter().all(|segment| segment.ended == Ended::Finished);
            checks.extend(self.loaded_checks(end.phase, is_finished)?);
            findings.extend(self.storage_finding(end.phase)?);
        }
        Ok(Verdict { checks, findings })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn calls_of_subcommands_are_calls_of_their_command() {
        let counted = [("get", 7), ("getset", 1), ("xgroup|create", 2), ("xgroup|destroy", 3)];
        let counted = counted.into_iter().map(|(name, calls)| (name.to_owned(), calls)).collect();
        assert_eq!(["get", "xgroup", "set"].map(|name| calls_of(name, &counted)), [7, 5, 0]);
    }
}
