//! Scenarios of driver `sql`.
//!
//! `[dataset]`: the tables (`tables`, `table_size`, `distribution`, ...). Operations: the transactions (`kind` and the
//! keys of [`super::Transaction`]). Phases of kind `load` fill the tables, or drop them with `action =
//! "cleanup"`.

use std::collections::BTreeMap;
use std::time::Duration;

use clients::passwords;
use clients::sql::{Address, Dialect};
use load::engine::{SegmentOutcome, threads};
use load::progress::Progress;
use load::protocol::OperationChoice;
use load::result::{Check, RunResult, Target};
use load::sampling::{Source, server_pid};
use load::scenario::{Phase, PhaseKind, Scenario, typed};
use load::{Error, Result};

use super::source::Database;

use super::action::{Action, action};
use super::loading;
use super::loading::Load;
use super::{ServerCounters, Sql, StatementCounts, Tables, Transaction, check_statements, ratio};
use crate::Context;
use crate::command_line::{left_behind, load_command};
use crate::driver::{
    Capabilities, Counts, Driver, Opened, PhaseCapabilities, PhaseEnd, PhaseRun, SLICE_MS_THREADS,
    TargetKind, Verdict, empty_outcome,
};
use crate::limits::SILENCE_TIMEOUT_S;
use crate::plan::plan;

/// Process names of servers of this protocol.
const PROCESS_NAMES: [&str; 4] = ["mariadbd", "mysqld", "postgres", "tacho"];

/// The registration of this driver.
pub(crate) const KIND: TargetKind = TargetKind {
    name: "sql",
    new: |scenario| Ok(Box::new(SqlDriver::new(scenario)?)),
    target_keys: false,
    operation_keys: true,
    dataset_keys: true,
};

/// The driver of one scenario.
pub(super) struct SqlDriver {
    scenario: Scenario,
    address: Address,
    tables: Tables,
    transactions: Vec<Transaction>,
    counters: Option<ServerCounters>,
    /// The server's counters before the phase.
    before: Option<BTreeMap<String, f64>>,
    sent: StatementCounts,
    findings: Vec<String>,
}

impl SqlDriver {
    pub(super) fn new(scenario: &Scenario) -> std::result::Result<Self, String> {
        let mut address =
            Address::parse(&scenario.target.url).map_err(|what| format!("target.url: {what}"))?;
        if address.password.is_empty() {
            address.password = passwords::target().unwrap_or_default();
        }
        let mut tables: Tables = typed(scenario.dataset.clone(), "[dataset]", &[])?;
        let rows = scenario.scaled(tables.table_size.into());
        tables.table_size =
            u32::try_from(rows).map_err(|_| format!("[dataset]: {rows} rows are too many"))?;
        let transactions = scenario.operations.iter().map(|operation| operation.options::<Transaction>());
        let transactions = transactions.collect::<std::result::Result<Vec<_>, _>>()?;
        let driver = Self {
            scenario: scenario.clone(),
            address,
            tables,
            transactions,
            counters: None,
            before: None,
            sent: StatementCounts::default(),
            findings: Vec::new(),
        };
        scenario.phases.iter().try_for_each(|phase| action(phase).map(|_| ()))?;
        scenario.check_phases(|phase| driver.sql(phase))?;
        Ok(driver)
    }

    pub(super) fn sql(&self, phase: &Phase) -> Result<Sql> {
        let choice = OperationChoice::new(&self.scenario.groups(phase)).map_err(Error::Options)?;
        let silence = Duration::from_secs(SILENCE_TIMEOUT_S);
        let (address, tables) = (self.address.clone(), self.tables.clone());
        Sql::new(address, tables, self.transactions.clone(), choice, self.scenario.head.seed, silence)
    }

    /// The command that fills the tables of this run.
    fn load_command(&self) -> String {
        let loads = self.scenario.phases.iter().filter(|phase| phase.kind == PhaseKind::Load);
        let loads = loads.filter(|phase| action(phase) == Ok(Action::Load));
        let phases: Vec<&str> = loads.map(|phase| phase.name.as_str()).collect();
        load_command(&self.scenario, &phases, &self.address.without_password())
    }

    /// The number of statements that the server has counted, if it counts them.
    fn counted(&mut self) -> Result<Option<BTreeMap<String, f64>>> {
        let Some(counters) = &mut self.counters else { return Ok(None) };
        counters.statements().map_err(|error| Error::Answer(format!("the server's counters: {error}")))
    }

    fn statement_checks(&mut self) -> Result<Vec<Check>> {
        let after = self.counted()?;
        let (Some(before), Some(after)) = (&self.before, after) else {
            self.findings.push(
                "Statements were not compared with the server's counters: PostgreSQL counts them only with the extension \
                 pg_stat_statements (shared_preload_libraries, then CREATE EXTENSION in this database)."
                    .to_owned(),
            );
            return Ok(Vec::new());
        };
        if self.address.dialect == Dialect::Postgres && self.sent.refused + self.sent.retried > 0 {
            self.findings.push(
                "Statements were not compared with the server's counters: PostgreSQL does not count those it refused."
                    .to_owned(),
            );
            return Ok(Vec::new());
        }
        let wrong = check_statements(before, &after, &self.sent);
        let mut checks = vec![Check {
            what: "statements the server counted".to_owned(),
            expected: (self.sent.read + self.sent.write + self.sent.other + self.sent.refused).to_string(),
            found: if wrong.is_empty() { "the same, by kind".to_owned() } else { wrong.join("; ") },
            passed: wrong.is_empty(),
        }];
        if self.transactions.len() == 1 && self.transactions[0].is_the_default() && self.sent.retried == 0 {
            let found = ratio(before, &after);
            let what = "select : update : delete : insert : commit of a transaction".to_owned();
            checks.push(Check::equal(what, "14 : 2 : 1 : 1 : 1", found));
        }
        Ok(checks)
    }

    /// Checks of the loaded tables.
    fn load_checks(&self, phase: &Phase) -> Result<Vec<Check>> {
        if action(phase).map_err(Error::Options)? != Action::Load {
            return Ok(Vec::new());
        }
        let sql = self.sql(phase)?;
        let Some(contents) = sql.contents()? else { return Ok(Vec::new()) };
        Ok(loading::checks(&contents, self.tables.tables, sql.rows()))
    }

    fn statement_findings(&mut self, segments: &[SegmentOutcome]) -> Vec<String> {
        let sent = self.sent;
        let measured_s: f64 = segments.iter().map(|s| s.measured.as_secs_f64()).sum();
        // The counts include statements of the warm-up, where a transaction has as many.
        let sum = |count: fn(&load::recorder::Counts) -> u64| -> f64 {
            segments.iter().map(|s| count(&s.recorder.total().counts)).sum::<u64>() as f64
        };
        let measured_share =
            sum(|counts| counts.completed_within_window) / sum(|counts| counts.completed).max(1.0);
        let mut findings = std::mem::take(&mut self.findings);
        let total = sent.read + sent.write + sent.other;
        if total == 0 {
            return findings;
        }
        findings.push(format!(
            "{total} statements: {} read, {} write, {} other (transaction control, and writes that changed nothing), {} \
             transactions tried again, {} connections opened again; {:.0} statements per second.",
            sent.read,
            sent.write,
            sent.other,
            sent.retried,
            sent.reconnected,
            total as f64 * measured_share / measured_s.max(1e-9)
        ));
        if sent.unchanged * 100 > sent.write + sent.unchanged {
            findings.push(format!(
                "{} of the writes changed nothing: they repeat an earlier run with the same seed, or their rows were deleted. \
                 Another seed (--set seed=N) or a fresh load writes again.",
                sent.unchanged
            ));
        }
        findings
    }
}

/// The server's process if it runs on this machine.
fn process_of(address: &Address) -> Option<u32> {
    let socket = *address.resolve().ok()?.first()?;
    server_pid(socket, &PROCESS_NAMES)
}

impl Driver for SqlDriver {
    fn capabilities(&self) -> Capabilities {
        Capabilities::of_threads(&self.scenario)
    }

    fn phase_capabilities(&self, phase: &Phase) -> PhaseCapabilities {
        PhaseCapabilities {
            figures_each_second: phase.kind != PhaseKind::Load,
            ..PhaseCapabilities::new(phase, &self.scenario, Some(SLICE_MS_THREADS))
        }
    }

    fn open(&mut self, _: &Context, _: &Progress) -> Result<Opened> {
        let place = self.address.without_password();
        let failed = |error: &dyn std::fmt::Display| Error::Options(format!("{place}: {error}"));
        let mut counters = ServerCounters::connect(&self.address).map_err(|error| failed(&error))?;
        let product = counters.version().map_err(|error| failed(&error))?;
        let settings = counters.settings().map_err(|error| failed(&error))?;
        self.counters = Some(counters);
        let tls = self.address.verification();
        let target = Target { address: place, product: Some(product), tls, started_by_run: false, settings };
        Ok(Opened { target, server_pid: process_of(&self.address), ..Opened::default() })
    }

    fn conclusions(&self, result: &RunResult) -> Vec<String> {
        let of = |action_of: Action| {
            let phases = self.scenario.phases.iter().filter(|phase| phase.kind == PhaseKind::Load);
            phases.filter(move |phase| action(phase) == Ok(action_of)).map(|phase| phase.name.as_str())
        };
        let ran = |name: &&str| result.phases.iter().any(|known| known.name == *name);
        if of(Action::Load).filter(ran).count() == 0 || of(Action::Cleanup).filter(ran).count() > 0 {
            return Vec::new();
        }
        let cleanups: Vec<&str> = of(Action::Cleanup).collect();
        let what = format!("tables sbtest1 to sbtest{}", self.tables.tables);
        if cleanups.is_empty() {
            return vec![left_behind(&what, "a phase with kind = \"load\" and action = \"cleanup\"")];
        }
        let command = load_command(&self.scenario, &cleanups, &self.address.without_password());
        vec![left_behind(&what, &command)]
    }

    fn sources(&self) -> Vec<Box<dyn Source>> {
        vec![Box::new(Database::new(self.address.clone()))]
    }

    fn prepare(&mut self, phase: &Phase) -> Result<()> {
        if phase.kind != PhaseKind::Load {
            self.sql(phase)?.check_dataset(&self.load_command())?;
        }
        self.before = self.counted()?;
        Ok(())
    }

    fn run(&mut self, run: PhaseRun<'_>) -> Result<Vec<SegmentOutcome>> {
        let PhaseRun { phase, part, shared, on_event } = run;
        self.sent = StatementCounts::default();
        if phase.kind == PhaseKind::Load {
            // One process fills the tables, so that two do not collide.
            if part.0 > 0 {
                return Ok(vec![empty_outcome(self.transactions.len(), on_event)]);
            }
            let load = Load { sql: self.sql(phase)?, phase, scenario: &self.scenario };
            let (outcome, finding) = load.make(shared, on_event)?;
            self.findings.extend(finding);
            return Ok(vec![outcome]);
        }
        let sql = self.sql(phase)?.of_part(part);
        let target = *self.address.resolve().map_err(Error::Options)?.first().ok_or(Error::Stopped)?;
        let plan = plan(phase, &self.scenario, target, part);
        let outcome = threads::run(&sql, &plan, shared, on_event)?;
        self.sent = sql.statements();
        Ok(outcome.segments)
    }

    fn local_counts(&mut self, _: &[SegmentOutcome]) -> Counts {
        std::mem::take(&mut self.sent).by_name()
    }

    fn verify(&mut self, end: &PhaseEnd<'_>) -> Result<Verdict> {
        self.sent = StatementCounts::from_names(end.all_counts);
        let checks = match end.phase.kind {
            PhaseKind::Load => self.load_checks(end.phase)?,
            _ => self.statement_checks()?,
        };
        Ok(Verdict { checks, findings: self.statement_findings(end.segments) })
    }
}
