//! Scenarios of driver `hbase`.
//!
//! `[dataset]`: the table and its rows ([`Dataset`]). Operations: the tests ([`Keys`]). Phases: [`PhaseKeys`].

use std::sync::Arc;
use std::time::{Duration, Instant};

use clients::target_url::addresses;
use load::engine::{Event, SegmentOutcome, threads};
use load::progress::Progress;
use load::protocol::OperationChoice;
use load::result::{Check, RunResult, Target};
use load::sampling::{Source, server_pid};
use load::scenario::{Phase, PhaseKind, Scenario, typed};
use load::{Error, Result};

use super::action::{Action, PhaseKeys};
use super::blocking::{Workload, pe_figures};
use super::cluster::Cluster;
use super::counters::{self, Counters, RegionServers};
use super::operation::{Keys, Operation};
use super::registry::Registry;
use super::rows::{Dataset, Values};
use super::tally::{Totals, WrittenRows};
use super::{contents, table};
use crate::Context;
use crate::command_line::{left_behind, load_command};
use crate::driver::{
    Capabilities, Counts, Driver, Opened, PhaseCapabilities, PhaseEnd, PhaseRun, SLICE_MS_THREADS,
    TargetKind, Verdict, empty_outcome,
};
use crate::limits::SILENCE_TIMEOUT_S;
use crate::plan::plan;

/// Process names of servers: region servers run in Java.
const PROCESS_NAMES: [&str; 1] = ["java"];

/// The registration of this driver.
pub(crate) const KIND: TargetKind = TargetKind {
    name: "hbase",
    new: |scenario| Ok(Box::new(HbaseDriver::new(scenario)?)),
    target_keys: false,
    operation_keys: true,
    dataset_keys: true,
};

/// The driver of one scenario.
struct HbaseDriver {
    scenario: Scenario,
    cluster: Arc<Cluster>,
    data: Dataset,
    operations: Vec<Operation>,
    /// The servers' counters before the phase, or why they are absent.
    before: std::result::Result<Counters, String>,
    sent: Totals,
    written: Option<WrittenRows>,
    findings: Vec<String>,
}

impl HbaseDriver {
    fn new(scenario: &Scenario) -> std::result::Result<Self, String> {
        let registry = Registry::parse(&scenario.target.url).map_err(|what| format!("target.url: {what}"))?;
        let mut data: Dataset = typed(scenario.dataset.clone(), "[dataset]", &[])?;
        data.rows = scenario.scaled(data.rows);
        data.seed = scenario.head.seed;
        data.check()?;
        let mut operations = Vec::new();
        for operation in &scenario.operations {
            let keys: Keys = operation.options()?;
            let made = Operation::new(&keys, &data);
            operations.push(made.map_err(|what| format!("{}: {what}", operation.place()))?);
        }
        let silence = Duration::from_secs(SILENCE_TIMEOUT_S);
        let driver = Self {
            scenario: scenario.clone(),
            cluster: Arc::new(Cluster::new(registry, data.table.clone(), silence)),
            data,
            operations,
            before: Err("no phase has begun".to_owned()),
            sent: Totals::default(),
            written: None,
            findings: Vec::new(),
        };
        scenario.phases.iter().try_for_each(|phase| PhaseKeys::of(phase).map(drop))?;
        scenario.check_phases(|phase| driver.workload(phase))?;
        Ok(driver)
    }

    fn workload(&self, phase: &Phase) -> Result<Workload> {
        let groups = self.scenario.groups(phase);
        let classes: Vec<u16> =
            groups.iter().flat_map(|(_, classes)| classes.iter().map(|(class, _)| *class)).collect();
        let choice = OperationChoice::new(&groups).map_err(Error::Options)?;
        let rows = PhaseKeys::of(phase).map_err(Error::Options)?.rows.map(|rows| self.scenario.scaled(rows));
        let (cluster, operations) = (Arc::clone(&self.cluster), self.operations.clone());
        let seed = self.scenario.head.seed;
        Ok(Workload::new(cluster, self.data.clone(), operations, (choice, &classes), seed, rows))
    }

    /// Whether all operations of a phase write.
    fn only_writes(&self, phase: &Phase) -> bool {
        let names = phase.mixes.iter().flat_map(|mix| &mix.operations);
        let mut classes = names.map(|name| usize::from(self.scenario.class_of(name)));
        classes.all(|class| self.operations.get(class).is_some_and(|operation| operation.kind.is_write()))
    }

    fn failed(&self, why: &str) -> Error {
        Error::Options(format!("{}: {why}", self.cluster.registry.url()))
    }

    /// The load phases with an action.
    fn loads(&self, is_drop: bool) -> Vec<&str> {
        let action =
            |phase: &Phase| PhaseKeys::of(phase).ok().and_then(|keys| keys.action).unwrap_or_default();
        let loads = self.scenario.phases.iter().filter(|phase| phase.kind == PhaseKind::Load);
        loads
            .filter(|phase| (action(phase) == Action::Drop) == is_drop)
            .map(|phase| phase.name.as_str())
            .collect()
    }

    /// Brings the table into the state that the phase needs.
    fn prepare_table(&self, phase: &Phase) -> std::result::Result<(), String> {
        let action = PhaseKeys::of(phase)?.action.unwrap_or_default();
        if action == Action::Drop {
            return Ok(());
        }
        if phase.kind == PhaseKind::Load && action == Action::Recreate {
            table::drop(&self.cluster)?;
        }
        match table::families(&self.cluster)? {
            Some(families) if families.contains(&self.data.family) => Ok(()),
            Some(families) => Err(format!(
                "table {} has families {}, not {}; set dataset.family, or another dataset.table",
                self.data.table,
                families.join(", "),
                self.data.family
            )),
            None if phase.kind == PhaseKind::Load || self.only_writes(phase) => {
                table::create(&self.cluster, &self.data)
            }
            None => Err(format!(
                "there is no table {}; load it with: `{}`",
                self.data.table,
                load_command(&self.scenario, &self.loads(false), &self.cluster.registry.url())
            )),
        }
    }

    fn drop_table(&mut self, on_event: &mut dyn FnMut(Event)) -> Result<SegmentOutcome> {
        let mut outcome = empty_outcome(self.operations.len(), on_event);
        let began = Instant::now();
        let dropped = table::drop(&self.cluster).map_err(|why| self.failed(&why))?;
        outcome.measured = began.elapsed();
        let what = if dropped { "was dropped" } else { "was not there" };
        self.findings.push(format!("Table {} {what}.", self.data.table));
        Ok(outcome)
    }

    /// Checks of the finished phase against the servers' counters.
    fn counter_checks(&mut self) -> Vec<Check> {
        let compared = self.before.clone().and_then(|before| {
            let after = counters::read(&self.cluster)?;
            counters::check(&before, &after, &self.sent)
        });
        compared.unwrap_or_else(|why| {
            self.findings.push(format!("Rows were not compared with the region servers' counters: {why}."));
            Vec::new()
        })
    }

    /// Checks of the table against the rows that this process wrote.
    fn content_checks(&mut self) -> Result<Vec<Check>> {
        let Some(written) = self.written.take().filter(|written| written.count() > 0) else {
            return Ok(Vec::new());
        };
        let found = contents::read(&self.cluster, &self.data, &written).map_err(|why| self.failed(&why))?;
        self.findings.push(format!(
            "Table {} has {} rows; {} of them were written in this phase, some of them several times.",
            self.data.table,
            found.rows,
            written.count()
        ));
        if self.data.values == Values::Pe {
            self.findings.push(
                "Values are PerformanceEvaluation's random ones: their form was checked, not their contents."
                    .to_owned(),
            );
        }
        Ok(found.checks(written.count()))
    }

    fn flush(&self, phase: &Phase) -> Result<()> {
        let keys = PhaseKeys::of(phase).map_err(Error::Options)?;
        if keys.flush == Some(true) {
            table::flush(&self.cluster).map_err(|why| self.failed(&why))?;
        }
        Ok(())
    }
}

impl Driver for HbaseDriver {
    fn capabilities(&self) -> Capabilities {
        // Each process reads back the rows that it wrote.
        Capabilities { verifies_parts: true, ..Capabilities::of_threads(&self.scenario) }
    }

    fn phase_capabilities(&self, phase: &Phase) -> PhaseCapabilities {
        let slice_ms = (phase.kind != PhaseKind::Load).then_some(SLICE_MS_THREADS);
        PhaseCapabilities::new(phase, &self.scenario, slice_ms)
    }

    fn open(&mut self, _: &Context, _: &Progress) -> Result<Opened> {
        let status = self.cluster.status().map_err(|why| self.failed(&why))?;
        let server = status.servers_name.first();
        let address = server.and_then(|server| {
            addresses(&server.host_name, u16::try_from(server.port?).ok()?).ok()?.first().copied()
        });
        let server_pid = address.and_then(|address| server_pid(address, &PROCESS_NAMES));
        let product = status.hbase_version.map(|version| format!("HBase {}", version.version));
        let count = status.servers_name.len().to_string();
        let settings = [("region_servers".to_owned(), count)].into();
        let address = self.cluster.registry.url();
        let target = Target { address, product, settings, ..Target::default() };
        Ok(Opened { target, server_pid, ..Opened::default() })
    }

    fn conclusions(&self, result: &RunResult) -> Vec<String> {
        let ran =
            |names: Vec<&str>| names.iter().any(|name| result.phases.iter().any(|known| known.name == *name));
        let drops = self.loads(true);
        if !ran(self.loads(false)) || ran(drops.clone()) {
            return Vec::new();
        }
        let what = format!("table {}", self.data.table);
        if drops.is_empty() {
            return vec![left_behind(&what, "a phase with kind = \"load\" and action = \"drop\"")];
        }
        vec![left_behind(&what, &load_command(&self.scenario, &drops, &self.cluster.registry.url()))]
    }

    fn sources(&self) -> Vec<Box<dyn Source>> {
        vec![Box::new(RegionServers::new(Arc::clone(&self.cluster)))]
    }

    fn prepare(&mut self, phase: &Phase) -> Result<()> {
        self.prepare_table(phase).map_err(|why| self.failed(&why))?;
        let keys = PhaseKeys::of(phase).map_err(Error::Options)?;
        self.before = match keys.action {
            Some(Action::Drop) => Err("the phase drops the table".to_owned()),
            _ => counters::read(&self.cluster),
        };
        Ok(())
    }

    fn run(&mut self, run: PhaseRun<'_>) -> Result<Vec<SegmentOutcome>> {
        let PhaseRun { phase, part, shared, on_event } = run;
        (self.sent, self.written) = (Totals::default(), None);
        let keys = PhaseKeys::of(phase).map_err(Error::Options)?;
        if keys.action == Some(Action::Drop) {
            return match part.0 {
                0 => Ok(vec![self.drop_table(on_event)?]),
                _ => Ok(vec![empty_outcome(self.operations.len(), on_event)]),
            };
        }
        // Another process may have made the table since.
        self.cluster.forget();
        let regions = self.cluster.regions().map_err(|why| self.failed(&why))?;
        let server = &regions.all()[0].server;
        let target = addresses(&server.host, server.port).map_err(Error::Options)?[0];
        let workload = self.workload(phase)?;
        let plan = plan(phase, &self.scenario, target, part);
        let outcome = threads::run(&workload, &plan, shared, on_event)?;
        self.sent = workload.tally().totals();
        for (reason, count) in workload.tally().reasons() {
            self.findings.push(format!("{count} calls were repeated: {reason}."));
        }
        if let Some(figures) = pe_figures(&outcome.sessions) {
            self.findings.push(format!(
                "{:.0} rows per second, warm-up included. PerformanceEvaluation would print for it: Avg TPS {:.0} rows per second (the \
                 sum of the clients' own rates), Avg latency {:.0} us (the mean of the clients' means{}).",
                figures.true_rows_per_s,
                figures.rows_per_s,
                figures.latency_us,
                if self.operations.iter().any(|operation| operation.is_buffered) {
                    ", over all puts, most of which only enter the client's buffer"
                } else {
                    ""
                }
            ));
        }
        self.written = Some(workload.written());
        Ok(outcome.segments)
    }

    fn local_counts(&mut self, _: &[SegmentOutcome]) -> Counts {
        self.sent.by_name()
    }

    fn verify(&mut self, end: &PhaseEnd<'_>) -> Result<Verdict> {
        let PhaseEnd { phase, part, all_counts, .. } = end;
        self.sent = Totals::from_names(all_counts);
        let mut checks = Vec::new();
        let is_drop = PhaseKeys::of(phase).map_err(Error::Options)?.action == Some(Action::Drop);
        if part.0 == 0 && !is_drop {
            checks = self.counter_checks();
            self.flush(phase)?;
        }
        checks.extend(self.content_checks()?);
        Ok(Verdict { checks, findings: std::mem::take(&mut self.findings) })
    }
}
