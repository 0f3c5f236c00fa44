//! Load phases: they fill or drop the tables.

use std::thread;
use std::time::{Duration, Instant};

use load::engine::{Ended, Event, SegmentOutcome, Shared, event::now_ms};
use load::progress::position;
use load::recorder::{Recorder, Second};
use load::result::Check;
use load::scenario::{Phase, Scenario};
use load::{Error, Result};

use super::action::{Action, action};
use super::{Contents, LoadProgress, Sql};
use crate::plan::segments;

/// The interval of progress reports.
const TICK: Duration = Duration::from_millis(100);

/// A load phase. It measures no latency; its figures are rows and seconds.
pub(super) struct Load<'a> {
    pub(super) sql: Sql,
    pub(super) phase: &'a Phase,
    pub(super) scenario: &'a Scenario,
}

impl Load<'_> {
    /// Runs the phase. Returns the outcome and a finding.
    pub(super) fn make(
        &self,
        shared: &Shared,
        on_event: &mut dyn FnMut(Event),
    ) -> Result<(SegmentOutcome, Option<String>)> {
        let action = action(self.phase).map_err(Error::Options)?;
        let (connections, classes) = (self.phase.connections(), self.scenario.operations.len());
        let (at, started_ms) = (Instant::now(), now_ms());
        on_event(Event::Started { segment: 0, at });
        let loaded = LoadProgress::default();
        let mut second = 0;
        thread::scope(|scope| {
            let worker = scope.spawn(|| match action {
                Action::Load => self.sql.load(connections, &loaded),
                Action::Cleanup => self.sql.clean_up(connections),
            });
            while !worker.is_finished() {
                thread::sleep(TICK);
                if shared.is_stopped() {
                    loaded.stop();
                }
                on_event(Event::Tick);
                while at.elapsed().as_secs() > second {
                    on_event(Event::Second(Box::new(Second::new(second, classes))));
                    second += 1;
                    let position = position(second, Duration::MAX);
                    on_event(Event::Note(format!("{position}  {}", self.how_far(action, &loaded))));
                }
            }
            worker.join().expect("BUG: the loader panicked")
        })?;
        let measured = at.elapsed();
        let finding = (action == Action::Load).then(|| {
            let (rows, seconds) = (loaded.rows(), measured.as_secs_f64());
            format!(
                "{rows} rows went into {} tables in {seconds:.1} s: {:.0} rows per second with {connections} connections, \
                 indexes included.",
                loaded.tables(),
                rows as f64 / seconds
            )
        });
        let window = segments(self.phase, self.scenario)[0].window();
        let mut recorder = Recorder::new(window, classes);
        recorder.take_second(second);
        let ended = if shared.is_stopped() { Ended::Stopped } else { Ended::Finished };
        Ok((SegmentOutcome { recorder, started_ms, measured, ended, first_loss_s: None }, finding))
    }

    fn how_far(&self, action: Action, loaded: &LoadProgress) -> String {
        match action {
            Action::Cleanup => "the tables are dropped".to_owned(),
            Action::Load if self.sql.rows() == 0 => "the tables are made".to_owned(),
            Action::Load => {
                let (tables, rows) = (self.sql.tables(), self.sql.rows());
                let all = u64::from(tables) * u64::from(rows);
                let (rows, whole) = (loaded.rows(), loaded.tables());
                format!(
                    "{rows} of {all} rows written, {whole} of {tables} tables are whole with their indexes"
                )
            }
        }
    }
}

/// Checks the loaded tables: `rows` in each of `tables`.
pub(super) fn checks(contents: &Contents, tables: u32, rows: u32) -> Vec<Check> {
    let mut checks = vec![Check {
        what: format!("rows of {tables} tables after the load"),
        expected: format!("{} ({rows} in each)", u64::from(tables) * u64::from(rows)),
        found: match &contents.wrong_rows[..] {
            [] => contents.rows.to_string(),
            wrong => format!("{} ({})", contents.rows, Contents::named(wrong)),
        },
        passed: contents.wrong_rows.is_empty(),
    }];
    if rows > 0 {
        let ids = format!("1 to {rows}");
        checks.push(Check {
            what: "ids of each table after the load".to_owned(),
            expected: ids.clone(),
            found: if contents.wrong_ids.is_empty() { ids } else { Contents::named(&contents.wrong_ids) },
            passed: contents.wrong_ids.is_empty(),
        });
    }
    checks
}

#[cfg(test)]
mod tests {
    use super::super::driver::SqlDriver;
    use super::*;
    use crate::driver::Driver as _;

    #[test]
    fn a_load_says_how_far_it_is_instead_of_seconds_of_nothing() {
        let sets = ["dataset.tables=3".to_owned(), "scale=0.0001".to_owned()];
        let scenario = Scenario::load("sysbench-oltp-read-write", &sets).unwrap();
        let driver = SqlDriver::new(&scenario).unwrap();
        let figures: Vec<bool> = scenario
            .phases
            .iter()
            .map(|phase| driver.phase_capabilities(phase).figures_each_second)
            .collect();
        assert_eq!(figures, [false, true, false], "load, run, cleanup");
        let load = Load {
            sql: driver.sql(&scenario.phases[0]).unwrap(),
            phase: &scenario.phases[0],
            scenario: &scenario,
        };
        let words = load.how_far(Action::Load, &LoadProgress::default());
        assert_eq!(words, "0 of 3000 rows written, 0 of 3 tables are whole with their indexes");
    }

    #[test]
    fn a_table_that_differs_fails_the_check_of_a_load() {
        let brief = |contents: &Contents, rows| -> Vec<(String, bool)> {
            checks(contents, 2, rows).into_iter().map(|check| (check.found, check.passed)).collect()
        };
        let good = Contents { rows: 20, ..Contents::default() };
        assert_eq!(brief(&good, 10), [("20".to_owned(), true), ("1 to 10".to_owned(), true)]);
        assert_eq!(brief(&Contents::default(), 0), [("0".to_owned(), true)]);
        let bad = Contents {
            rows: 19,
            wrong_rows: vec!["sbtest2 has 9".to_owned()],
            wrong_ids: vec!["sbtest2 has 1 to 9".to_owned()],
        };
        let expected = [("19 (sbtest2 has 9)".to_owned(), false), ("sbtest2 has 1 to 9".to_owned(), false)];
        assert_eq!(brief(&bad, 10), expected);
    }
}
